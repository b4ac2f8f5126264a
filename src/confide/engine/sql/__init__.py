"""Writing statements: a summary as SQL, in the words of DuckDB, and their translation."""
