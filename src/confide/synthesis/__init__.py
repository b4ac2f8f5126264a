"""Synthetic data from measurements that a curator makes and pays for. Nothing here reads data."""
