"""The only layer that calls a model: prompts, conditions, clients, the store of answers."""
