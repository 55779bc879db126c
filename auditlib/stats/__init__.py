"""Statistics on arrays: integer counts in, small frozen dataclasses out; every random step takes ``rng``."""
