"""Storages of PostgreSQL and Spark: every kind of column over every type, with and without one odd row.

The integers before noise are those of `meaning`, which is docs/values.md in plain Python, row by row: so an odd row
changes nothing but its own, and fails nothing. Types that are refused are refused with any rows.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import date, datetime, time
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
from confide.engine.duckdb.engine import DuckDBEngine
from confide.engine.postgres.engine import PostgresEngine
from confide.engine.spark.engine import SparkEngine
from confide.engine.spark.schema import SparkTable
from confide.errors import SourceError
from confide.policy import Policy
from tests.conformance.engine import ask, integers, policy_of
from tests.laboratory.meaning import Beyond, canonical, day, flag, index, whole
from tests.servers import PostgresServer
from tests.spark import INTERPRETED

LOW, HIGH = date(1990, 1, 1), date(2030, 12, 31)
WHOLES = [-7, 0, 1, 12, 2024]
WORDS = ["12", "250.01", "true", "2024-01-31", "2024-01-31 08:30:00.5", "abc", "0"]
ENDS = {
    "number": (-1000, 10**9, Fraction(1)),
    "fine": (-1000, 10**6, Fraction(1, 100)),
    "coarse": (-50, 50, Fraction(10)),
}
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
    "whole": (*NUMERIC, *TEXTS, "day"),  # as a day it is NULL: a column that holds nothing may be stored so
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
    setup: tuple[str, ...] = ()


def same(*values: Any) -> list[tuple[Any, Any]]:
    return [(value, value) for value in values]


def moment(written: str) -> datetime:
    return datetime.fromisoformat(written)


def decimals(*written: str) -> list[tuple[str, Decimal]]:
    return [(value, Decimal(value)) for value in written]


def floats(*written: str) -> list[tuple[str, float]]:
    return [(value, float(value)) for value in written]


ODD_FLOATS = floats(
    "inf", "-inf", "NaN", "1e300", "9223372036854775808", "-1e19", "5e-324", "9007199254740993", "0.30000000000000004",
    "1e15", "0.00009",
)  # fmt: skip
ODD_TEXTS = same(
    "", " ", "unknown", "1e99", "-1e99", "1e-99", "9" * 38, "9" * 39, "1" * 101, "1" * 100_000, ".5", "5.", "+12",
    "12.50", "1e5", "1e300", "-12.5e-300", ".00000000000000001e-300", "1e301", "123456789e100", "NaN", "inf",
    "-Infinity", "0x1F", "1,000", "12\n", "\t12", "\u0661\u0662", "2024-02-30", "0000-01-01", "2023-02-29",
    "2024-02-29T10", "9999-12-31", "2024-01-31x", "2024-1-31", "2024-01-31 \n", "YES", " f ", "\u00a0yes", "1.0", "007",
    "-0", "1_000", "12 3", "é", "a'b\\c", "2024-01-31T08:30:00Z", "1e", "--1", "9223372036854775808",
    "-9223372036854775808", "12d", "\u212a",
)  # fmt: skip
MOMENT = moment("2024-01-31 08:30:00.500000")
INTEGERS = same(12, -7, 0, 1, None)
TEXT = same("12", "250.01", "abc", "2024-01-31", None)
NIL, MOST = UUID(int=7), UUID(int=2**128 - 1)

POSTGRES = [
    Kept("smallint", "whole", INTEGERS, same(32767)),
    Kept("integer", "whole", INTEGERS, same(-(2**31))),
    Kept("bigint", "whole", INTEGERS, same(2**63 - 1, -(2**63))),
    Kept("oid", "whole", same(12, 0, 1), same(2**32 - 1)),
    Kept("numeric(10,2)", "number", decimals("12.00", "250.01", "0", "-0.01"), decimals("NaN", "99999999.99")),
    Kept("numeric(38,0)", "number", decimals("12", "1"), decimals("NaN", "9" * 38)),
    Kept("numeric(38,38)", "number", decimals("0.5", "0"), decimals("NaN", f"0.{'9' * 38}", f"0.{'0' * 37}1")),
    Kept("numeric(50,2)", "number", decimals("12", "0.50"), decimals("NaN", "9" * 48)),
    Kept(
        "numeric",
        "number",
        decimals("12", "250.010", "0.005", "9007199254740993", "-0.00"),
        decimals(
            "NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e-400", "12.5000000000000000000000000000001", "-0.005",
            "1e20000", "123456789012345678901234567890.5", "249.994999999999999999999999999",
        ),
    ),
    Kept("real", "float", floats("12", "0.5", "-7"), floats("inf", "NaN", "16777216")),
    Kept("double precision", "float", floats("12", "250.01", "0.005", "-0.0", "1e-5"), ODD_FLOATS),
    Kept("boolean", "number", same(True, False, None)),
    Kept("text", "text", TEXT, ODD_TEXTS),
    Kept("varchar(60)", "text", TEXT, same("", "unknown")),
    Kept("char(12)", "text", TEXT, [("", ""), ("  x  ", "  x")]),
    Kept("name", "text", same("12", "abc"), same("odd")),
    Kept("citext", "text", same("12", "abc", "ABC"), same("odd"), ("CREATE EXTENSION citext",)),
    Kept("mood", "text", same("12", "abc"), same("sad"), ("CREATE TYPE mood AS ENUM ('12', 'abc', 'sad')",)),
    Kept("uuid", "label", [(str(NIL), NIL)], [(str(MOST).upper(), MOST)]),
    Kept(
        "date",
        "day",
        same(date(2024, 1, 31), None),
        [
            ("infinity", Beyond(1)), ("-infinity", Beyond(-1)), ("0044-03-15 BC", Beyond(-1)),
            ("5874897-12-31", Beyond(1)), *same(date(1, 1, 1), date(9999, 12, 31)),
        ],
    ),
    Kept(
        "timestamp",
        "day",
        same(MOMENT, moment("2024-01-31 00:00:00"), None),
        [
            ("infinity", Beyond(1)), ("-infinity", Beyond(-1)), ("4713-01-01 BC", Beyond(-1)),
            ("294276-12-31", Beyond(1)), *same(moment("2024-01-31 00:00:00.000001")),
            *same(moment("9999-12-31 23:59:59.999999")),
        ],
    ),
    Kept(
        "timestamptz",
        "day",
        [("2024-01-31 09:30:00.5+01", MOMENT), ("2024-01-31 00:00+00", moment("2024-01-31 00:00:00"))],
        [("infinity", Beyond(1)), ("2024-01-31 23:30-02", moment("2024-02-01 01:30:00"))],
    ),
    Kept("time", "label", same(time(8, 30), time(8, 30, 0, 500_000)), [("24:00", "24:00:00")]),
    Kept("amount", "number", decimals("12.00", "250.01"), decimals("NaN"), ("CREATE DOMAIN amount AS numeric(10,2)",)),
    Kept("timestamp_text", "text", TEXT, ODD_TEXTS[:12], ("CREATE DOMAIN timestamp_text AS text",)),
    Kept(
        "numeric_of_texts",
        "text",
        TEXT,
        same("x"),
        ("CREATE DOMAIN base_text AS varchar(40)", "CREATE DOMAIN numeric_of_texts AS base_text"),
    ),
    *(
        Kept(kind, "other", same(None))
        for kind in (
            "integer[]", "text[]", "numeric(10,2)[]", "json", "jsonb", "bytea", "bit(3)", "varbit", "money", "interval",
            "inet", "cidr", "macaddr", "point", "int4range", "tsvector", "timetz", '"char"', "xid", "regclass",
        )
    ),
    Kept("pair", "other", same(None), (), ("CREATE TYPE pair AS (a int, b int)",)),
    Kept("text_list", "other", same(None), (), ("CREATE DOMAIN text_list AS text[]",)),
    Kept('"double"', "other", same(None), (), ('CREATE TYPE "double" AS (x int)',)),
    Kept('"DATE"', "other", same(None), (), ('CREATE TYPE "DATE" AS RANGE (subtype = float8)',)),
]  # fmt: skip
"""Types of PostgreSQL; the last ones have names that begin, or are written, as others'."""

DAYS = date(2024, 1, 31).toordinal() - date(1970, 1, 1).toordinal()
MIDNIGHT = DAYS * 86_400_000_000
MOMENTS = [(MIDNIGHT + 30_600_500_000, MOMENT), (MIDNIGHT, moment("2024-01-31 00:00:00")), (None, None)]
ODD_MOMENTS = [(2**63 - 1, Beyond(1)), (-(2**63), Beyond(-1)), (MIDNIGHT + 1, moment("2024-01-31 00:00:00.000001"))]
EARLY = (date(1500, 3, 1).toordinal() - date(1970, 1, 1).toordinal(), date(1500, 3, 1))

PARQUET: dict[pa.DataType, Kept] = {
    kind: Kept(str(kind), *rest)
    for kind, *rest in (
        (pa.int8(), "whole", INTEGERS, same(127)),
        (pa.int32(), "whole", INTEGERS, same(-(2**31))),
        (pa.int64(), "whole", INTEGERS, same(2**63 - 1, -(2**63))),
        (pa.uint64(), "number", same(12, 0), same(2**64 - 1)),
        (pa.float32(), "float", same(12.0, 0.5, -7.0), same(float("inf"), float("nan"), 16777216.0)),
        (pa.float64(), "float", same(12.0, 250.01, 0.005, -0.0, 1e-5), [(value, value) for _, value in ODD_FLOATS]),
        (pa.decimal128(10, 2), "number", same(Decimal("12.00"), Decimal("250.01")), same(Decimal("-0.01"))),
        (pa.decimal128(38, 0), "number", same(Decimal(12)), same(Decimal("9" * 38))),
        (pa.decimal128(38, 10), "number", same(Decimal("0.5")), same(Decimal("1e-10"), Decimal("9" * 28))),
        (pa.bool_(), "number", same(True, False, None), ()),
        (pa.string(), "text", TEXT, ODD_TEXTS),
        (pa.date32(), "day", [(DAYS, date(2024, 1, 31))], [(2**31 - 1, Beyond(1)), (-(2**31), Beyond(-1)), EARLY]),
        (pa.timestamp("us"), "day", MOMENTS, ODD_MOMENTS),
        (pa.timestamp("us", "UTC"), "day", MOMENTS, ODD_MOMENTS),
        (pa.binary(), "other", [(b"x", None)], ()),
        (pa.list_(pa.int64()), "other", [([1], None)], ()),
        (pa.struct({"a": pa.int64()}), "other", [({"a": 1}, None)], ()),
    )
}
BAD_BYTES = (b"\xff12", None)
"""A text that is none: only Spark stores and reads it."""

QUICK = {"numeric", "double precision", "text", "timestamp", "timestamp_text", "integer[]", '"double"'}
QUICK_FILES = (pa.float64(), pa.string())


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


def check(kept: Kept, opened: Callable[[Policy, Sequence[tuple[Any, Any]]], Engine], singly: bool) -> None:
    """With all odd rows; and with none, and with each alone, if `singly`."""
    labels = ACCEPTED[kept.family]
    for odd in (kept.odd, *([[], *([one] for one in kept.odd)] if singly else [])):
        rows = [*kept.plain, *odd]
        for label in [label for label in COLUMNS if label not in labels]:
            with pytest.raises(SourceError, match=r"is stored as .*, but the policy makes it"):
                opened(policy_for([label], len(rows)), rows)
        if labels:
            policy = policy_for(labels, len(rows))
            with closing(opened(policy, rows)) as engine:
                assert found(engine, policy, labels) == meant(rows, labels), rows


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


def check_postgres(kept: Kept, server: PostgresServer, database: str, singly: bool) -> None:
    with server.connect(database) as connection:
        for statement in kept.setup:
            connection.execute(statement)

        def opened(policy: Policy, rows: Sequence[tuple[Any, Any]]) -> Engine:
            columns = ", ".join(f"{label} {kept.type}" for label in COLUMNS)
            connection.execute("DROP TABLE IF EXISTS t")
            connection.execute(f"CREATE TABLE t (n integer, told text, {columns})")
            slots = ", ".join([f"CAST(%s AS {kept.type})"] * len(COLUMNS))
            for place, (written, value) in enumerate(rows):
                given = [written] * len(COLUMNS)
                connection.execute(f"INSERT INTO t VALUES (%s, %s, {slots})", (place, canonical(value), *given))
            return PostgresEngine(replace(policy, source=server.url(database)))

        check(kept, opened, singly)


@pytest.mark.parametrize("kept", [kept for kept in POSTGRES if kept.type in QUICK], ids=lambda kept: kept.type)
def test_postgres(kept: Kept, postgres_server: PostgresServer, postgres_database: str) -> None:
    check_postgres(kept, postgres_server, postgres_database, singly=False)


@pytest.mark.audit
@pytest.mark.parametrize("kept", POSTGRES, ids=lambda kept: kept.type)
def test_postgres_with_each_odd_row(kept: Kept, postgres_server: PostgresServer, postgres_database: str) -> None:
    check_postgres(kept, postgres_server, postgres_database, singly=True)


# --- Spark ------------------------------------------------------------------------------------------------------------


def written(kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
    if pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
        return pa.array(values, pa.int32() if pa.types.is_date32(kind) else pa.int64()).cast(kind)
    if pa.types.is_string(kind):
        raw = pa.array([one.encode() if isinstance(one, str) else one for one in values], pa.binary())
        return pa.Array.from_buffers(kind, len(raw), raw.buffers())
    return pa.array(values, kind)


def file_of(folder: Path, kind: pa.DataType, rows: Sequence[tuple[Any, Any]]) -> Path:
    place = folder / f"{next(_NUMBERS)}.parquet"
    column = written(kind, [one for one, _ in rows])
    told = pa.array([canonical(value) for _, value in rows], pa.string())
    pq.write_table(pa.table({"n": range(len(rows)), "told": told, **dict.fromkeys(COLUMNS, column)}), place)
    return place


def check_spark(kind: pa.DataType, kept: Kept, spark: Any, folder: Path, ansi: bool, singly: bool) -> None:
    def opened(policy: Policy, rows: Sequence[tuple[Any, Any]]) -> Engine:
        engine = SparkEngine(policy, {"t": SparkTable(str(file_of(folder, kind, rows)), files=True)}, spark)
        for setting, value in {**INTERPRETED, "spark.sql.ansi.enabled": str(ansi).lower()}.items():
            engine._session.spark.conf.set(setting, value)
        return engine

    check(kept, opened, singly)


@pytest.mark.parametrize("kind", QUICK_FILES, ids=str)
def test_spark(kind: pa.DataType, spark: Any, tmp_path: Path) -> None:
    kept = PARQUET[kind]
    if pa.types.is_string(kind):
        kept = replace(kept, odd=[*kept.odd, BAD_BYTES])
    check_spark(kind, kept, spark, tmp_path, ansi=True, singly=False)


@pytest.mark.audit
@pytest.mark.parametrize("ansi", [True, False], ids=["ansi", "plain"])
@pytest.mark.parametrize("kind", PARQUET, ids=str)
def test_spark_with_each_odd_row(kind: pa.DataType, ansi: bool, spark: Any, tmp_path: Path) -> None:
    check_spark(kind, PARQUET[kind], spark, tmp_path, ansi, singly=ansi)


@pytest.mark.parametrize("kind", PARQUET, ids=str)
def test_duckdb_reads_the_same_files(kind: pa.DataType, tmp_path: Path) -> None:
    def opened(policy: Policy, rows: Sequence[tuple[Any, Any]]) -> Engine:
        return DuckDBEngine(replace(policy, source={"t": str(file_of(tmp_path, kind, rows))}))

    check(PARQUET[kind], opened, singly=False)
