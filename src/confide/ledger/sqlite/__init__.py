"""The ledger in a file."""
