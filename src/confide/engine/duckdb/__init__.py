"""DuckDB, embedded: files, database files and frames."""
