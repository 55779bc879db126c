"""Longer tables of error rates; each module runs alone."""
