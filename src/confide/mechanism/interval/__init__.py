"""Intervals for what is computed from noised integers."""
