"""Quantiles with intervals, by four mechanisms."""
