"""Synthetic data from measurements: synthesizers hold a curator, never data."""
