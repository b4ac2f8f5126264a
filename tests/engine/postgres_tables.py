"""Arrow tables as tables of a PostgreSQL schema, for tests."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

import pyarrow as pa

from confide.engine.postgres.engine import PostgresEngine
from confide.policy import Policy
from tests.servers import PostgresServer

_NUMBERS = count()


def stored_type(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        return stored_type(kind.value_type)
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    names = {
        pa.int8(): "smallint", pa.int16(): "smallint", pa.int32(): "integer", pa.int64(): "bigint",
        pa.uint8(): "smallint", pa.uint16(): "integer", pa.uint32(): "bigint", pa.uint64(): "numeric(20,0)",
        pa.float32(): "real", pa.float64(): "double precision", pa.string(): "text", pa.large_string(): "text",
        pa.string_view(): "text", pa.bool_(): "boolean", pa.date32(): "date", pa.null(): "text",
    }  # fmt: skip
    return names[kind]


def quoted(label: str) -> str:
    return '"' + label.replace('"', '""') + '"'


def create_schema(server: PostgresServer, database: str, tables: Mapping[str, pa.Table]) -> str:
    """A new schema that holds these tables."""
    schema = f"s{next(_NUMBERS)}"
    with server.connect(database) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        for label, table in tables.items():
            columns = ", ".join(f"{quoted(field.name)} {stored_type(field.type)}" for field in table.schema)
            place = f"{schema}.{quoted(label)}"
            connection.execute(f"CREATE TABLE {place} ({columns})")
            with connection.cursor() as cursor, cursor.copy(f"COPY {place} FROM STDIN") as copy:
                for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                    copy.write_row(row)
    return schema


def create_engine(
    server: PostgresServer, database: str, policy: Policy, tables: Mapping[str, pa.Table], seconds: float = 600.0
) -> PostgresEngine:
    schema = create_schema(server, database, tables)
    source = server.url(database, schema=schema)
    return PostgresEngine(replace(policy, source=source), limit_seconds=seconds)
