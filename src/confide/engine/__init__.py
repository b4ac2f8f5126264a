"""Engines: exact integer summaries of private rows, against a charge."""

from confide.engine.protocol import Engine, Exact

__all__ = ["Engine", "Exact"]
