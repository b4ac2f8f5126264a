"""Confide answers questions about private data, and tells you how far to trust each answer."""
