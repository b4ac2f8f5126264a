"""Sums and means with intervals, by four mechanisms."""
