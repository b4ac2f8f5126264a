"""Patterns of a graph."""
