"""Synthetic and embedded data: pools that come with the package."""
