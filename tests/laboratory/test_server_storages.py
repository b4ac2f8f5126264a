"""Storages of PostgreSQL and Spark: every kind of column over every type, with and without one odd row.

The integers before noise are those of `meaning`, which is docs/values.md in plain Python, row by row: so an odd row
changes nothing but its own, and fails nothing. Types that are refused are refused with any rows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from confide.engine import Engine
from confide.engine.duckdb_engine import DuckDBEngine
from confide.engine.postgres_engine import PostgresEngine
from confide.engine.spark_engine import SparkEngine
from confide.engine.spark_schema import Place
from confide.errors import SourceError
from confide.policy import Policy
from tests.conformance.engine import ask, integers, policy_of
from tests.laboratory.meaning import Beyond, canonical, day, flag, index, whole
from tests.servers import PostgresServer
from tests.spark import INTERPRETED

LOW, HIGH = date(1990, 1, 1), date(2030, 12, 31)
WHOLES = [-7, 0, 1, 12, 2024]
WORDS = ["12", "250.01", "true", "2024-01-31", "2024-01-31 08:30:00.5", "abc", "0"]
ENDS = {"number": (-1000, 10**9, Fraction(1)), "fine": (-1000, 10**6, Fraction(1, 100)), "coarse": (-50, 50, Fraction(10))}
COLUMNS: dict[str, dict[str, Any]] = {
    **{label: {"range": [low, high], "grain": float(grain)} for label, (low, high, grain) in ENDS.items()},
    "listed": {"values": WHOLES},
    "truth": {"values": [True, False]},
    "word": {"values": WORDS},
    "free": {"type": "text"},
    "key": {"type": "id"},
    "day": {"range": [LOW.isoformat(), HIGH.isoformat()]},
}
NUMERIC = ("number", "fine", "coarse", "listed", "truth")
TEXTS = ("word", "free", "key")
ACCEPTED = {
    "number": (*NUMERIC, *TEXTS),
    "float": (*NUMERIC, *TEXTS, "day"),
    "text": (*NUMERIC, *TEXTS, "day"),
    "day": (*TEXTS, "day"),
    "label": TEXTS,
    "other": (),
}
_NUMBERS = count()


@dataclass(frozen=True)
class Kept:
    """A type, what family of accepted columns it is of, ordinary values, and odd ones, as (written, meant)."""

    type: str
    family: str
    plain: Sequence[tuple[Any, Any]]
    odd: Sequence[tuple[Any, Any]] = ()
    setup: str = ""


def same(*values: Any) -> list[tuple[Any, Any]]:
    return [(value, value) for value in values]


def decimals(*written: str) -> list[tuple[str, Decimal]]:
    return [(value, Decimal(value)) for value in written]


def floats(*written: str) -> list[tuple[str, float]]:
    return [(value, float(value)) for value in written]


ODD_FLOATS = ("inf", "-inf", "NaN", "1e300", "9223372036854775808", "-1e19", "5e-324", "9007199254740993", "0.30000000000000004")
ODD_TEXTS = same(
    "", " ", "unknown", "1e99", "-1e99", "1e-99", "9" * 38, "9" * 39, "1" * 101, "1" * 100_000, ".5", "5.", "+12", "12.50", "1e5",
    "1e400", "NaN", "inf", "0x1F", "1,000", "12\n", "\t12", "١٢", "2024-02-30", "0000-01-01", "2023-02-29", "2024-02-29T10",
    "9999-12-31", "2024-01-31x", "2024-1-31", "2024-01-31 \n", "YES", " f ", "\u00a0yes", "1.0", "007", "-0", "1_000", "12 3",
    "é", "a'b\\c", "2024-01-31T08:30:00Z", "1e", "--1", "9223372036854775808", "-9223372036854775808",
)  # fmt: skip
MOMENT = datetime(2024, 1, 31, 8, 30, 0, 500_000)
INTEGERS = same(12, -7, 0, 1, None)
TEXT = same("12", "250.01", "abc", "2024-01-31", None)

POSTGRES = [
    Kept("smallint", "number", INTEGERS, same(32767)),
    Kept("integer", "number", INTEGERS, same(-(2**31))),
    Kept("bigint", "number", INTEGERS, same(2**63 - 1, -(2**63))),
    Kept("oid", "number", same(12, 0, 1), same(2**32 - 1)),
    Kept("numeric(10,2)", "number", decimals("12.00", "250.01", "0", "-0.01"), decimals("NaN", "99999999.99")),
    Kept("numeric(38,0)", "number", decimals("12", "1"), decimals("NaN", "9" * 38)),
    Kept("numeric(38,38)", "number", decimals("0.5", "0"), decimals("NaN", f"0.{'9' * 38}", f"0.{'0' * 37}1")),
    Kept("numeric(50,2)", "number", decimals("12", "0.50"), decimals("NaN", "9" * 48)),
    Kept("numeric", "number", decimals("12", "250.010", "0.005", "9007199254740993", "-0.00"),
         decimals("NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e-400", "12.5000000000000000000000000000001",
                  "1e20000", "123456789012345678901234567890.5", "-0.005", "249.994999999999999999999999999")),
    Kept("real", "float", floats("12", "0.5", "-7"), floats("inf", "NaN", "16777216")),
    Kept("double precision", "float", floats("12", "250.01", "0.005", "-0.0", "1e-5"), floats(*ODD_FLOATS)),
    Kept("boolean", "number", same(True, False, None)),
    Kept("text", "text", TEXT, ODD_TEXTS),
    Kept("varchar(60)", "text", TEXT, same("", "unknown")),
    Kept("char(12)", "text", TEXT, [("", ""), ("  x  ", "  x")]),
    Kept("name", "text", same("12", "abc"), same("odd")),
    Kept("citext", "text", same("12", "abc", "ABC"), same("odd"), "CREATE EXTENSION IF NOT EXISTS citext"),
    Kept("mood", "text", same("12", "abc"), same("sad"), "CREATE TYPE mood AS ENUM ('12', 'abc', 'sad')"),
    Kept("uuid", "label", [(str(UUID(int=7)), UUID(int=7))], [(str(UUID(int=2**128 - 1)).upper(), UUID(int=2**128 - 1))]),
    Kept("date", "day", same(date(2024, 1, 31), None),
         [("infinity", Beyond(1)), ("-infinity", Beyond(-1)), ("0044-03-15 BC", Beyond(-1)), ("5874897-12-31", Beyond(1)),
          *same(date(1, 1, 1), date(9999, 12, 31))]),
    Kept("timestamp", "day", same(MOMENT, datetime(2024, 1, 31), None),
         [("infinity", Beyond(1)), ("-infinity", Beyond(-1)), ("4713-01-01 BC", Beyond(-1)), ("294276-12-31", Beyond(1)),
          *same(datetime(2024, 1, 31, 0, 0, 0, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999))]),
    Kept("timestamptz", "day", [("2024-01-31 09:30:00.5+01", MOMENT), ("2024-01-31 00:00+00", datetime(2024, 1, 31))],
         [("infinity", Beyond(1)), ("2024-01-31 23:30-02", datetime(2024, 2, 1, 1, 30))]),
    Kept("time", "label", same(time(8, 30), time(8, 30, 0, 500_000)), [("24:00", "24:00:00")]),
    Kept("amount", "number", decimals("12.00", "250.01"), decimals("NaN"), "CREATE DOMAIN amount AS numeric(10,2)"),
    Kept("timestamp_text", "text", TEXT, ODD_TEXTS[:12], "CREATE DOMAIN timestamp_text AS text"),
    Kept("numeric_of_texts", "text", TEXT, same("x"),
         "CREATE DOMAIN base_text AS varchar(40); CREATE DOMAIN numeric_of_texts AS base_text"),
    *(Kept(kind, "other", [("NULL", None)], setup=setup) for kind, setup in (
        ("integer[]", ""), ("text[]", ""), ("numeric(10,2)[]", ""), ("json", ""), ("jsonb", ""), ("bytea", ""), ("bit(3)", ""),
        ("varbit", ""), ("money", ""), ("interval", ""), ("xml", ""), ("inet", ""), ("cidr", ""), ("macaddr", ""), ("point", ""),
        ("int4range", ""), ("tsvector", ""), ("timetz", ""), ('"char"', ""), ("xid", ""), ("regclass", ""),
        ("pair", "CREATE TYPE pair AS (a int, b int)"), ("text_list", "CREATE DOMAIN text_list AS text[]"),
        ('"double"', "CREATE TYPE \"double\" AS (x int)"), ('"DATE"', "CREATE TYPE \"DATE\" AS RANGE (subtype = float8)"),
    )),
]  # fmt: skip

QUICK = {"numeric", "double precision", "text", "timestamp", "date", "timestamp_text", "integer[]", '"double"', "citext"}


def meant(rows: Sequence[tuple[Any, Any]], labels: Sequence[str]) -> tuple[list[list[int]], set[tuple[int, str]]]:
    """What every column must give, row by row, and the texts that there are."""
    cells: list[list[int]] = []
    values = [value for _, value in rows]
    for label in labels:
        if label in ENDS:
            low, high, grain = ENDS[label]
            found = [index(value, Fraction(low), Fraction(high), Fraction(grain)) for value in values]
            cells += [[int(one is not None) for one in found], [one or 0 for one in found]]
        elif label == "listed":
            seen = [whole(value) for value in values]
            cells += [[int(one == number) for one in seen] for number in WHOLES]
        elif label == "truth":
            flags = [flag(value) for value in values]
            cells += [[int(one is wanted) for one in flags] for wanted in (True, False)]
        elif label == "word":
            cells += [[int(canonical(value) == word) for value in values] for word in WORDS]
        elif label == "key":
            cells += [[int(canonical(value) is not None) for value in values]] * 2
        elif label == "day":
            days = [day(value, LOW, HIGH) for value in values]
            cells += [[int(one is not None) for one in days], [(one - LOW).days if one else 0 for one in days]]
    texts = {(place, text) for place, value in enumerate(values) if (text := canonical(value)) is not None}
    return cells, texts if "free" in labels else set()


def found(engine: Engine, policy: Policy, labels: Sequence[str]) -> tuple[list[list[int]], set[tuple[int, str]]]:
    """The same, as an engine reads it: no noise, one group for each row."""
    shown: list[str] = []
    for label in labels:
        if label in ENDS:
            shown += [f"COUNT({label})", f"SUM({label})"]
        elif label == "listed":
            shown += [f"COUNT(*) FILTER (WHERE listed = {number})" for number in WHOLES]
        elif label == "truth":
            shown += [f"COUNT(*) FILTER (WHERE truth = {wanted})" for wanted in ("TRUE", "FALSE")]
        elif label == "word":
            shown += [f"COUNT(*) FILTER (WHERE word = '{word}')" for word in WORDS]
        elif label == "key":
            shown += ["COUNT(key)", "COUNT(*) FILTER (WHERE key = told)"]
        elif label == "day":
            shown += ["COUNT(day)", f"SUM(day - DATE '{LOW.isoformat()}')"]
    named = ", ".join(f"{one} AS c{place}" for place, one in enumerate(shown))
    cells = integers(ask(engine, policy, f"SELECT n, {named} FROM t GROUP BY n"))
    if "free" not in labels:
        return cells, set()
    exact = ask(engine, policy, "SELECT n, free, COUNT(*) AS c FROM t WHERE free IS NOT NULL GROUP BY n, free")
    assert exact.keys is not None
    return cells, {(int(place), str(text)) for place, text in exact.keys}


def policy_for(labels: Sequence[str], rows: int) -> Policy:
    columns = {label: COLUMNS[label] for label in labels}
    return policy_of({"t": {"columns": {"n": {"values": list(range(rows))}, "told": {"type": "id"}, **columns}}})


def check(kept: Kept, opened: Callable[[Policy, Kept, Sequence[tuple[Any, Any]]], Any], singly: bool = True) -> None:
    """With no odd row, with each alone, and with all."""
    labels = ACCEPTED[kept.family]
    for rows in ([], *([odd] for odd in kept.odd if singly), list(kept.odd)):
        rows = [*kept.plain, *rows]
        for label in COLUMNS:
            if label not in labels and (not kept.odd or len(rows) > len(kept.plain) + 1):
                with pytest.raises(SourceError, match=r"is stored as .*, but the policy makes it"):
                    opened(policy_for([label], len(rows)), kept, rows)
        if labels:
            policy = policy_for(labels, len(rows))
            with closing(opened(policy, kept, rows)) as engine:
                assert found(engine, policy, labels) == meant(rows, labels), rows


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kept",
    [pytest.param(kept, marks=[] if kept.type in QUICK else [pytest.mark.audit], id=kept.type) for kept in POSTGRES],
)
def test_postgres(kept: Kept, postgres_server: PostgresServer, postgres_database: str) -> None:
    with postgres_server.connect(postgres_database) as connection:
        connection.execute(kept.setup) if kept.setup else None

        def opened(policy: Policy, kept: Kept, rows: Sequence[tuple[Any, Any]]) -> PostgresEngine:
            columns = ", ".join(f"{label} {kept.type}" for label in COLUMNS)
            connection.execute("DROP TABLE IF EXISTS t")
            connection.execute(f"CREATE TABLE t (n integer, told text, {columns})")
            for place, (written, value) in enumerate(rows):
                value = canonical(value)
                given = [None if written == "NULL" else written] * len(COLUMNS)
                slots = ", ".join([f"CAST(%s AS {kept.type})"] * len(COLUMNS))
                connection.execute(f"INSERT INTO t VALUES (%s, %s, {slots})", (place, value, *given))
            return PostgresEngine(replace(policy, source=postgres_server.url(postgres_database)))

        check(kept, opened)
