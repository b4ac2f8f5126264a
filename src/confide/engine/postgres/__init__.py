"""PostgreSQL as a source of data."""
