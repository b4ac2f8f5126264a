"""Choosing among candidates: exponential mechanism, sparse vector, thresholds of keys."""
