"""How columns are stored: part of a schema, not of the data."""

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "integer", "wide integer", "decimal", "float", "text", "boolean", "date", "timestamp", "nothing", "other"
]

_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_WIDE = {"UBIGINT", "HUGEINT", "UHUGEINT"}
_OTHERS: dict[str, Kind] = {
    "FLOAT": "float", "DOUBLE": "float", "VARCHAR": "text", "ENUM": "text", "BOOLEAN": "boolean", "DATE": "date",
    '"NULL"': "nothing", "NULL": "nothing",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Storage:
    """The kind of a stored column; `exact` if it is the widest plain type of its kind; digits of a decimal."""

    kind: Kind
    exact: bool = True
    width: int = 0
    scale: int = 0


def storage_of(stored: str) -> Storage:
    """From the name that DuckDB gives a type."""
    upper = stored.upper().strip()
    decimal = re.fullmatch(r"(?:DECIMAL|NUMERIC)\((\d+),\s*(\d+)\)", upper)
    if decimal:
        return Storage("decimal", width=int(decimal[1]), scale=int(decimal[2]))
    plain = re.sub(r"\(.*", "", upper, flags=re.DOTALL).strip()
    if plain in _INTEGERS:
        return Storage("integer", exact=plain == "BIGINT")
    if plain in _WIDE:
        return Storage("wide integer", exact=plain == "HUGEINT")
    if plain.startswith("TIMESTAMP"):
        return Storage("timestamp")
    if upper.endswith("]"):
        return Storage("other")
    return Storage(_OTHERS.get(plain, "other"), exact=plain in ("DOUBLE", "VARCHAR", "BOOLEAN", "DATE"))
