"""How columns are stored: part of a schema, not of the data."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "integer", "wide integer", "decimal", "float", "index", "text", "boolean", "date", "timestamp", "time", "uuid",
    "nothing", "other",
]  # fmt: skip
"""`index` is a number of the policy that was brought to its grid when the data were opened."""

_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_WIDE = {"UBIGINT", "HUGEINT", "UHUGEINT"}
_TIMESTAMPS = {
    "TIMESTAMP": 6, "TIMESTAMP_S": 0, "TIMESTAMP_MS": 3, "TIMESTAMP_NS": 9,
    "TIMESTAMP WITH TIME ZONE": 6, "TIMESTAMPTZ": 6, "TIMESTAMPTZ_NS": 9,
}  # fmt: skip
"""And how many digits of a second they hold."""
_OTHERS: dict[str, Kind] = {
    "FLOAT": "float", "DOUBLE": "float", "VARCHAR": "text", "ENUM": "text", "BOOLEAN": "boolean", "DATE": "date",
    "TIME": "time", "TIME_NS": "time", "UUID": "uuid", '"NULL"': "nothing", "NULL": "nothing",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Storage:
    """The kind of a stored column; `exact` if it is the plain type of its kind, which needs no cast; digits of a
    decimal, or of a second; the least and the largest index that there may be."""

    kind: Kind
    exact: bool = True
    width: int = 0
    scale: int = 0
    low: int = 0
    high: int = 0


Storages = Mapping[tuple[str, str], Storage]
"""How the columns of each table are stored, by table and column."""


def storage_of(stored: str) -> Storage:
    """From the name that DuckDB gives a type. What is not known by its whole name is of another kind."""
    upper = stored.upper().strip()
    if upper.endswith("]"):
        return Storage("other")
    decimal = re.fullmatch(r"(?:DECIMAL|NUMERIC)\((\d+),\s*(\d+)\)", upper)
    if decimal:
        return Storage("decimal", width=int(decimal[1]), scale=int(decimal[2]))
    plain = "ENUM" if upper.startswith("ENUM(") else upper
    if plain in _INTEGERS:
        return Storage("integer", exact=plain == "BIGINT")
    if plain in _WIDE:
        return Storage("wide integer", exact=plain == "HUGEINT")
    if plain in _TIMESTAMPS:
        return Storage("timestamp", plain in ("TIMESTAMP", "TIMESTAMP_NS"), scale=_TIMESTAMPS[plain])
    return Storage(_OTHERS.get(plain, "other"), exact=plain in ("DOUBLE", "VARCHAR", "BOOLEAN", "DATE"))
