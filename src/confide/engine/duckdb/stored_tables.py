"""The tables of a DuckDB file: names and types of their columns, from its catalogue alone."""

from pathlib import Path

import duckdb

from confide.errors import SourceError
from confide.host.fork import whole_beginning

Schema = tuple[tuple[str, str], ...]


@whole_beginning()
def stored_tables(path: Path) -> dict[str, Schema]:
    """Every table and view of the file's main schema, with its columns in order. No row is read."""
    place = str(path).replace("'", "''")
    connection = duckdb.connect(":memory:")
    try:
        connection.execute("SET autoinstall_known_extensions = false")
        connection.execute("SET autoload_known_extensions = false")
        connection.execute(f"ATTACH '{place}' AS source (READ_ONLY)")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        rows = connection.execute(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() "
            "WHERE database_name = 'source' AND schema_name = 'main' ORDER BY table_name, column_index"
        ).fetchall()
    except duckdb.Error:
        raise SourceError(f"{path.name} is not a DuckDB file that can be read") from None
    finally:
        connection.close()
    tables: dict[str, Schema] = {}
    for table, column, kind in rows:
        tables[table] = (*tables.get(table, ()), (str(column), str(kind)))
    return tables
