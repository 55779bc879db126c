"""Leaderboards: many models on many benchmarks, audited without notebooks and shown on one page."""
