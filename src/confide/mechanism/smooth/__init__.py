"""Noise from smooth bounds on local sensitivity."""
