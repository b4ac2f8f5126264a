"""Spark as a source of data."""
