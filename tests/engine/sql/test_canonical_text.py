"""Canonical texts and what texts say: the database against plain Python, value by value."""

import random
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from confide.engine.duckdb.objects import texts_of
from confide.engine.sql.canonical_text import any_number, day, long_number, text_of, truth, whole_number
from confide.engine.sql.schema import read_column
from confide.engine.storage import Storage, storage_of
from confide.errors import SourceError
from confide.policy import Category, Date, Identifier, Number, Text


def read(values: list[Any], sql: str, kind: pa.DataType | None = None) -> list[Any]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("t", pa.table({"place": range(len(values)), "x": pa.array(values, kind)}))
        return [row[0] for row in connection.execute(f"SELECT {sql} FROM t ORDER BY place").fetchall()]


def as_objects(values: list[Any]) -> list[str | None]:
    found: list[str | None] = texts_of([*values, object()], Identifier("x")).to_pylist()[:-1]
    return found


def doubles() -> list[float]:
    generator = random.Random(7)
    plain = [
        0.0,
        -0.0,
        0.1 + 0.2,
        0.3,
        250.01,
        1e-4,
        9.9e-5,
        1e15,
        1e16,
        2.0**53,
        2.0**53 - 1,
        -(2.0**53),
        1e300,
        123456.789,
    ]
    plain += [float("nan"), float("inf"), float("-inf"), 5e-324, 999999999999999.9, 99999999999999.9, 0.1, 1.5, -7.25]
    bits = [struct.unpack("<d", generator.randbytes(8))[0] for _ in range(1_000)]
    short = [
        round(generator.uniform(-1, 1) * 10.0 ** generator.randrange(-5, 17), generator.randrange(8))
        for _ in range(20_000)
    ]
    return [*plain, *bits, *short]


def test_doubles_have_one_text() -> None:
    values = doubles()
    found = read(values, text_of("x", Storage("float")), pa.float64())
    assert found == as_objects(values)
    for value, text in zip(values, found, strict=True):
        assert text is None or float(text) == value
    known = [text for text in found if text is not None]
    assert len(known) > 2_500
    assert all(len(text.replace("-", "").replace(".", "").lstrip("0")) <= 16 for text in known)
    assert read([0.5, 250.01], text_of("x", storage_of("FLOAT")), pa.float32()) == ["0.5", None]


def test_decimals_and_integers_have_one_text() -> None:
    decimals = [Decimal(text) for text in ("0.00", "12345.00", "250.01", "-0.50", "-7.00", "100.00", "99999999.99")]
    for kind in ("DECIMAL(18,2)", "DECIMAL(38,10)"):
        found = read(decimals, text_of(f"CAST(x AS {kind})", storage_of(kind)))
        assert found == as_objects(decimals) == ["0", "12345", "250.01", "-0.5", "-7", "100", "99999999.99"]
    whole = [0, 5, -5, 2**62, -(2**63)]
    assert read(whole, text_of("x", storage_of("BIGINT"))) == as_objects(whole) == [str(value) for value in whole]


def test_days_and_moments_have_one_text() -> None:
    generator = random.Random(8)
    plain = ["0001-01-01", "9999-12-31 23:59:59.999999", "2020-02-29", "2020-02-29 00:00:00.000001", "1700-01-01"]
    moments = [datetime.fromisoformat(text) for text in plain]
    moments += [moments[-1] + timedelta(microseconds=generator.randrange(10**16)) for _ in range(500)]
    moments += [moment.replace(microsecond=0) for moment in moments]
    expected = as_objects(moments)
    for kind, stored in (
        ("TIMESTAMP", pa.timestamp("us")),
        ("TIMESTAMP WITH TIME ZONE", pa.timestamp("us", "Asia/Tokyo")),
    ):
        assert read(moments, text_of("x", storage_of(kind)), stored) == expected
    assert as_objects([moment.replace(tzinfo=UTC) for moment in moments]) == expected
    later = [moment for moment in moments if 1700 <= moment.year < 2200]
    assert read(later, text_of("x", storage_of("TIMESTAMP_NS")), pa.timestamp("ns")) == as_objects(later)
    days = [date(1, 1, 1), date(9999, 12, 31), date(2020, 2, 29)]
    assert read(days, text_of("x", storage_of("DATE"))) == as_objects(days) == [own.isoformat() for own in days]
    assert read([0], text_of("CAST('infinity' AS TIMESTAMP)", storage_of("TIMESTAMP"))) == [None]
    assert read([0], text_of("DATE '20000-01-01'", storage_of("DATE"))) == [None]
    far = pa.array([2**62, -(2**62), 5], pa.int64()).cast(pa.timestamp("s")).to_numpy(zero_copy_only=False)
    with duckdb.connect() as connection:
        connection.register("t", pa.table({"x": pa.array(far)}))
        found = connection.execute(f"SELECT {text_of('x', storage_of('TIMESTAMP_S'))} FROM t").fetchall()
    assert found == [(None,), (None,), ("1970-01-01 00:00:05",)]


def test_days_in_texts_are_days_of_the_calendar() -> None:
    texts = [
        f"{year:04d}-{month:02d}-{number:02d}"
        for year in (0, 1, 4, 100, 400, 1900, 2000, 2023, 2024, 9999)
        for month in range(14)
        for number in range(33)
    ]
    expected = []
    for text in texts:
        try:
            expected.append(date.fromisoformat(text))
        except ValueError:
            expected.append(None)
    assert read(texts, day("x")) == expected
    odd = [" 2024-01-31 ", "2024-01-31T23:59+05", "2024-01-31x", "24-01-31", "2024-1-31", "20240131", "", "٢٠٢٤-01-31"]
    assert read(odd, day("x")) == [date(2024, 1, 31)] * 2 + [None] * 6


NUMBERS = {
    "12": 12.0,
    " +1.50 ": 1.5,
    ".5": 0.5,
    "5.": 5.0,
    "1e3": 1000.0,
    "-1E-2": -0.01,
    "1e300": 1e300,
    "1e-300": 1e-300,
    "inf": float("inf"),
    "-Infinity": float("-inf"),
    "9" * 100: 1e100,
    "0" * 100 + "1": None,
    "1e301": None,
    "1e400": None,
    "1e-400": None,
    "123456789e299": None,
    "NaN": None,
    "1,000": None,
    "0x1F": None,
    "1_000": None,
    "": None,
    " ": None,
    "+": None,
    "1e": None,
    "1 2": None,
    "٣": None,
    "1\n": None,
    "--1": None,
}


def test_numbers_in_texts() -> None:
    condition, value = any_number("x")
    assert read(list(NUMBERS), f"CASE WHEN {condition} THEN {value} END") == list(NUMBERS.values())
    condition, value = long_number("x")
    digits = {"9" * 38: 10**38 - 1, "-" + "9" * 38: 1 - 10**38, "0" * 30 + "7": 7, "1.0": None, "9" * 39: None}
    assert read(list(digits), f"CASE WHEN {condition} THEN {value} END") == list(digits.values())
    whole = {
        "12": 12,
        "12.0": 12,
        "-7.": -7,
        "007": 7,
        "12.5": None,
        "1e3": None,
        "9" * 38: None,
        str(2**63 - 1): 2**63 - 1,
        " 5 ": 5,
    }
    assert read(list(whole), whole_number("x")) == list(whole.values())
    words = {"TRUE": True, " f ": False, "Yes": True, "0.0": False, "1": True, "2": None, "": None, "truee": None}
    assert read(list(words), truth("x")) == list(words.values())


COLUMNS = (
    Identifier("x"),
    Text("x"),
    Category("x", ("a",)),
    Category("x", (1,)),
    Number("x", Fraction(0), Fraction(1)),
    Date("x", date(2020, 1, 1), date(2021, 1, 1)),
)
NO_SCALARS = (
    "BLOB",
    "BIT",
    "INTEGER[]",
    "VARCHAR[]",
    "TIMESTAMP[]",
    "INTEGER[3]",
    "STRUCT(a INTEGER)",
    "JSON",
    "INTERVAL",
)


@pytest.mark.parametrize("kind", [*NO_SCALARS, "MAP(INTEGER, INTEGER)", "TIMETZ", "ENUM('a')[]", "DECIMAL(9,2)[]"])
def test_what_is_no_scalar_is_refused_from_its_type(kind: str) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t (x {kind})")
        stored = connection.execute("DESCRIBE t").fetchall()[0][1]
    for column in COLUMNS:
        with pytest.raises(SourceError, match="t, column x is stored as"):
            read_column(column, stored, "t, column x")


def test_other_scalars_are_ids_by_their_text() -> None:
    cases = {
        "UUID": ("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        "TIME": ("'08:30:00.500'", "08:30:00.5"),
        "UHUGEINT": (str(2**127 + 5), str(2**127 + 5)),
        "BOOLEAN": ("true", "true"),
        "ENUM('a', 'b')": ("'b'", "b"),
        "TIMESTAMP_NS": ("'2020-01-01 00:00:00.000000001'", "2020-01-01 00:00:00.000000001"),
    }
    for kind, (value, expected) in cases.items():
        assert read([0], text_of(f"CAST({value} AS {kind})", storage_of(kind))) == [expected]
