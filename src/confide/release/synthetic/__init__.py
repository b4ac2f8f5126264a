"""Synthetic data for a workload."""
