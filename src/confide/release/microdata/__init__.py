"""Noisy marginals, and a table fitted to them."""
