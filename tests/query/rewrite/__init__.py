"""Tests of how questions are rewritten."""
