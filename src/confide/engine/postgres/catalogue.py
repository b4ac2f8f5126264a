"""The tables of a PostgreSQL schema: names and types of their columns, from its catalogue alone. No row is read."""

from typing import Final

import psycopg

from confide.engine.postgres.engine import CONNECT_SECONDS, complaint, source_address
from confide.errors import SourceError
from confide.host.watchdog import within

Schema = tuple[tuple[str, str], ...]

_COLUMNS: Final = """
SELECT c.relname, a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod)
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
AND CASE WHEN CAST(%s AS text) IS NULL THEN n.nspname = ANY(pg_catalog.current_schemas(false)) ELSE n.nspname = %s END
AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT')
ORDER BY c.relname, a.attnum
"""
_READ_ONLY: Final = "SET default_transaction_read_only = on"


def postgres_tables(source: str) -> dict[str, Schema]:
    """Every table and view that this user may read, with its columns in order."""
    address = source_address(source)
    settings = {"connect_timeout": str(round(CONNECT_SECONDS)), "application_name": "confide"}
    refused = ""
    try:
        connection = within(
            CONNECT_SECONDS,
            lambda: psycopg.connect(autocommit=True, **{**address.parameters, **settings}),  # type: ignore[arg-type]
            psycopg.Connection.close,
        )
        with connection:
            connection.execute(_READ_ONLY)
            rows = connection.execute(_COLUMNS, (address.schema, address.schema)).fetchall()
    except (psycopg.Error, TimeoutError) as error:
        refused = complaint(error)
    # Outside of the handler, so that the driver's words, which hold the address, do not travel along.
    if refused:
        raise SourceError(refused)
    tables: dict[str, Schema] = {}
    for table, column, kind in rows:
        tables[table] = (*tables.get(table, ()), (str(column), str(kind)))
    return tables
