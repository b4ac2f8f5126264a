"""The ledger in a schema of PostgreSQL."""
