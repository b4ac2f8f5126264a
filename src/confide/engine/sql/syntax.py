"""SQL as text: names, constants and the few shapes that everything here is written in."""

from collections.abc import Iterable, Sequence

NARROW = 1 << 62
"""Integers below this in magnitude are added and compared in 64 bits; others in 128."""

APART = "apart"
"""A subquery of this name is computed before what is around it: a database that puts it in place would do so often."""


def name(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'


def text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def integer(value: int) -> str:
    """A whole number of 64 or 128 bits, never of 32: sums of the database's smaller integers overflow."""
    return f"({value})::{'BIGINT' if -NARROW < value < NARROW else 'HUGEINT'}"


def double(value: float) -> str:
    return f"'{value!r}'::DOUBLE"


def constant(value: str | int | bool) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return text(value) if isinstance(value, str) else str(value)


def among(column: str, values: Sequence[str | int | bool]) -> str:
    return f"{column} IN ({', '.join(constant(value) for value in values)})" if values else "FALSE"


def case(branches: Iterable[tuple[str, str]], otherwise: str | None = None) -> str:
    whens = " ".join(f"WHEN {condition} THEN {value}" for condition, value in branches)
    return f"CASE {whens}{'' if otherwise is None else f' ELSE {otherwise}'} END"


def clamped(value: str, low: int, high: int) -> str:
    return case([(f"{value} > {high}", integer(high)), (f"{value} < {low}", integer(low))], value)


def cast(value: str, kind: str) -> str:
    return f"CAST({value} AS {kind})"


def both(conditions: Sequence[str]) -> str:
    return " AND ".join(conditions) if conditions else "TRUE"


def select(columns: Sequence[tuple[str, str]], source: str, conditions: Sequence[str] = ()) -> str:
    """SELECT value AS name, ... FROM ... WHERE ...; a row without columns still counts."""
    shown = ", ".join(f"{value} AS {alias}" for alias, value in columns) or "1 AS one"
    where = f" WHERE {both(conditions)}" if conditions else ""
    return f"SELECT {shown} FROM {source}{where}"
