"""Errata of a benchmark: a table of what is said to be wrong, a patch of the dataset, a text for its maintainers."""
