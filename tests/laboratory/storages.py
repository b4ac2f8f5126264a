"""The same values in every storage of frames and files, for policies of every kind of column.

`docs/values.md` is the table that this checks. A `Kind` says what a policy makes of a column, and which values it is
tried with; `stored` makes a column of a source of a list of Python's values.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 48
"""So many rows has a table, over three units, of which each may have five."""
AT_MOST = 5


@dataclass(frozen=True)
class Kind:
    """What the policy says of x; values in the storage that all others are compared with; other storages of them, each
    with what the values are written as there; odd values, with what they mean."""

    column: dict[str, Any]
    plain: tuple[pa.DataType, list[Any]]
    storages: tuple[tuple[str, Callable[[Any], Any]], ...]
    odd: tuple[tuple[Any, Any], ...]
    shown: str


def same(value: Any) -> Any:
    return value


def known(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else convert(value)


def as_moment(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


# --- storages ---------------------------------------------------------------------------------------------------------


def _arrow(kind: pa.DataType) -> Callable[[list[Any]], Any]:
    return lambda values: pa.array(values, kind)


def _stamps(kind: pa.DataType) -> Callable[[list[Any]], Any]:
    return lambda values: pa.array([value and as_moment(value) for value in values], kind)


def _pandas(kind: Any) -> Callable[[list[Any]], Any]:
    return lambda values: pd.Series(values, dtype=kind)


def _floats(values: list[Any]) -> Any:
    return pd.Series([np.nan if value is None else float(value) for value in values], dtype="float64")


def _polars(kind: Any) -> Callable[[list[Any]], Any]:
    return lambda values: pl.Series("x", values, dtype=kind)


def _levels(values: list[Any]) -> Any:
    return pl.Series("x", values, dtype=pl.Enum(sorted({value for value in values if value is not None})))


def _dictionary(values: list[Any]) -> Any:
    return pa.array(values).dictionary_encode()


FRAMES: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "pandas objects": _pandas(object),
    "pandas float64": _floats,
    "pandas Int64": _pandas("Int64"),
    "pandas boolean": _pandas("boolean"),
    "pandas string": _pandas("string[pyarrow]"),
    "pandas category": lambda values: pd.Series(pd.Categorical(values)),
    "pandas moments": lambda values: pd.Series(pd.to_datetime(values)),
    "numpy objects": lambda values: np.array([*values, None], dtype=object)[:-1],
    "polars": _polars(None),
    "polars Float64": _polars(pl.Float64),
    "polars Decimal": _polars(pl.Decimal(20, 4)),
    "polars Int128": _polars(pl.Int128),
    "polars UInt64": _polars(pl.UInt64),
    "polars Categorical": _polars(pl.Categorical),
    "polars Enum": _levels,
    "polars Datetime": _polars(pl.Datetime("ns")),
    "polars Object": _polars(pl.Object),
    "arrow int16": _arrow(pa.int16()),
    "arrow uint32": _arrow(pa.uint32()),
    "arrow float": _arrow(pa.float32()),
    "arrow double": _arrow(pa.float64()),
    "arrow bool": _arrow(pa.bool_()),
    "arrow decimal": _arrow(pa.decimal128(18, 4)),
    "arrow whole decimal": _arrow(pa.decimal128(18, 0)),
    "arrow wide decimal": _arrow(pa.decimal256(60, 4)),
    "arrow string": _arrow(pa.string()),
    "arrow large_string": _arrow(pa.large_string()),
    "arrow string_view": _arrow(pa.string_view()),
    "arrow dictionary": _dictionary,
    "arrow date32": _arrow(pa.date32()),
    "arrow date64": _arrow(pa.date64()),
    "arrow seconds": _stamps(pa.timestamp("s")),
    "arrow milliseconds": _stamps(pa.timestamp("ms")),
    "arrow moments": _stamps(pa.timestamp("ns", tz="Asia/Tokyo")),
}
TYPES: dict[str, str] = {
    f"duckdb {kind}": kind
    for kind in (
        "TINYINT",
        "USMALLINT",
        "BIGINT",
        "UBIGINT",
        "HUGEINT",
        "UHUGEINT",
        "DECIMAL(38,0)",
        "DECIMAL(12,4)",
        "FLOAT",
        "DOUBLE",
        "BOOLEAN",
        "VARCHAR",
        "DATE",
        "TIMESTAMP",
        "TIMESTAMP_S",
        "TIMESTAMP_NS",
        "TIMESTAMPTZ",
    )
}


def stored(storage: str, values: list[Any], folder: Path, table: str) -> tuple[Any, str | None]:
    """A table with the column x: a frame, or None and the file that holds it. Its other columns are `rest`'s."""
    others = rest(len(values))
    if storage in FRAMES:
        return {**others, "x": FRAMES[storage](values)}, None
    if storage == "csv":
        place = folder / f"{table}.csv"
        pd.DataFrame({**others, "x": pd.Series(values, dtype=object)}).to_csv(place, index=False)
        return None, str(place)
    if storage.startswith("parquet "):
        place = folder / f"{table}.parquet"
        column = FRAMES[storage.removeprefix("parquet ")](values)
        pq.write_table(pa.table({**others, "x": column}), place)
        return None, str(place)
    place = folder / f"{table}.duckdb"
    frame = pa.table({**others, "x": pa.array(values)})
    with duckdb.connect(str(place)) as connection:
        connection.register("frame", frame)
        connection.execute(f'CREATE TABLE "{table}" AS SELECT k, y, CAST(x AS {TYPES[storage]}) AS x FROM frame')
    return None, str(place)


def rest(rows: int) -> dict[str, Any]:
    return {"k": pa.array([place % 3 for place in range(rows)]), "y": pa.array(list(range(rows)))}


# --- kinds ------------------------------------------------------------------------------------------------------------

_TEXTUAL = (
    "list",
    "pandas objects",
    "pandas string",
    "pandas category",
    "numpy objects",
    "polars",
    "polars Categorical",
    "polars Enum",
    "polars Object",
    "arrow string",
    "arrow large_string",
    "arrow string_view",
    "arrow dictionary",
    "parquet arrow string",
    "csv",
    "duckdb VARCHAR",
)
_WHOLE = (
    "list",
    "pandas objects",
    "pandas float64",
    "pandas Int64",
    "pandas category",
    "numpy objects",
    "polars",
    "polars Float64",
    "polars Int128",
    "polars Object",
    "arrow int16",
    "arrow float",
    "arrow double",
    "arrow dictionary",
    "parquet arrow double",
    "duckdb BIGINT",
    "duckdb HUGEINT",
    "duckdb DECIMAL(38,0)",
    "duckdb DECIMAL(12,4)",
    "duckdb FLOAT",
    "duckdb DOUBLE",
    "duckdb VARCHAR",
)
_POSITIVE = ("polars UInt64", "arrow uint32", "duckdb USMALLINT", "duckdb UBIGINT", "duckdb UHUGEINT")
_DECIMALS = ("list", "pandas objects", "polars Decimal", "arrow decimal", "arrow wide decimal", "parquet arrow decimal")
_DAYS = (
    "list",
    "pandas objects",
    "pandas moments",
    "numpy objects",
    "polars",
    "polars Datetime",
    "polars Object",
    "arrow date32",
    "arrow date64",
    "arrow seconds",
    "arrow milliseconds",
    "parquet arrow date32",
    "duckdb DATE",
    "duckdb TIMESTAMP",
    "duckdb TIMESTAMP_S",
    "duckdb TIMESTAMP_NS",
)


def _all(
    storages: tuple[str, ...], convert: Callable[[Any], Any] = same
) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    return tuple((storage, convert) for storage in storages)


_digits = _all(_TEXTUAL, known(str))
_decimals = _all(_DECIMALS, known(Decimal))
_moments = (*_all(("arrow moments",)), *_all(("duckdb TIMESTAMPTZ", "list"), known(as_moment)))
_bools = ("list", "pandas objects", "pandas boolean", "polars", "arrow bool", "arrow dictionary", "duckdb BOOLEAN")
_whole_numbers = (*_all((*_WHOLE, *_POSITIVE)), *_digits, *_decimals, *_all(("arrow whole decimal",), known(Decimal)))

INTEGERS = [1, 2, 7, 30, 300, 12345, None, 8]
KINDS: dict[str, Kind] = {
    "number": Kind(
        {"range": [0, 9000]},
        (pa.int64(), INTEGERS),
        _whole_numbers,
        (
            ("odd", None),
            (2.5, 3),
            (True, 1),
            (date(2024, 1, 1), None),
            (float("inf"), 9000),
            ([1], None),
            (2**130, 9000),
        ),
        "SUM(x) AS v",
    ),
    "switch": Kind(
        {"range": [0, 10]},
        (pa.int64(), [1, 0, None]),
        _all(_bools, known(bool)),
        (("odd", None), (1.0, 1)),
        "SUM(x) AS v",
    ),
    "fraction": Kind(
        {"range": [-10, 300], "grain": 0.25},
        (pa.float64(), [250.25, -3.5, 12.0, None, 0.75]),
        (
            *_all(
                (
                    "list",
                    "pandas objects",
                    "pandas float64",
                    "polars",
                    "arrow float",
                    "duckdb DOUBLE",
                    "duckdb DECIMAL(12,4)",
                )
            ),
            *_digits,
            *_all(("arrow decimal", "polars Decimal", "arrow wide decimal", "list"), known(lambda v: Decimal(str(v)))),
        ),
        (("odd", None), (True, 1), (float("-inf"), -10), (Decimal("NaN"), None), (" 7 ", 7)),
        "SUM(x) AS v",
    ),
    "unbounded": Kind(
        {"range": "unbounded", "grain": 1},
        (pa.int64(), INTEGERS),
        _whole_numbers,
        (("odd", None), (2.5, 3), (2**55 + 1, 2**55 + 1)),
        "COUNT(x) AS v",
    ),
    "whole": Kind(
        {"values": [1, 2, 7, 12345]},
        (pa.int64(), INTEGERS),
        _whole_numbers,
        (("odd", None), (1.5, None), (True, 1), ("007", 7), (date(2024, 1, 1), None), (2**70, None)),
        "x, COUNT(*) AS v",
    ),
    "truth": Kind(
        {"values": [True, False]},
        (pa.bool_(), [True, False, None]),
        (*_all(_bools), *_all(("list", "pandas float64", "arrow int16", "duckdb DECIMAL(12,4)"), known(int)), *_digits),
        (("odd", None), ("Yes", True), (0.0, False), (2, None)),
        "x, COUNT(*) AS v",
    ),
    "word": Kind(
        {"values": ["1", "12345", "x"]},
        (pa.string(), ["1", "12345", None, "zz"]),
        _all(_TEXTUAL),
        ((12345, "12345"), (12345.0, "12345"), (True, None), (b"x", None)),
        "x, COUNT(*) AS v",
    ),
    "numbered word": Kind(
        {"values": ["1", "12345", "x"]},
        (pa.string(), [None if v is None else str(v) for v in INTEGERS]),
        tuple((storage, known(lambda v, write=write: write(int(v)))) for storage, write in _whole_numbers),
        (("x", "x"),),
        "x, COUNT(*) AS v",
    ),
    "text": Kind(
        {"type": "text"},
        (pa.string(), [None if v is None else str(v) for v in INTEGERS]),
        tuple((storage, known(lambda v, write=write: write(int(v)))) for storage, write in _whole_numbers),
        (("odd", "odd"), (12345.0, "12345"), (250.01, "250.01"), (True, "true"), ("\ud800", None)),
        "COUNT(DISTINCT x) AS v",
    ),
    "id": Kind(
        {"type": "id"},
        (pa.int64(), INTEGERS),
        _whole_numbers,
        (("12345", 12345), (12345.0, 12345), (float("nan"), None), (Decimal("7.00"), 7), ({}, None)),
        "COUNT(DISTINCT x) AS v",
    ),
    "day": Kind(
        {"range": ["2020-01-01", "2024-12-31"]},
        (pa.date32(), [date(2020, 2, 29), date(2024, 12, 31), None, date(2031, 1, 1)]),
        (*_all(_DAYS), *_digits, *_moments),
        (("odd", None), (5, None), ("2020-02-30", None), ("2020-02-29T08:00", date(2020, 2, 29))),
        "COUNT(x) AS v",
    ),
    "day as id": Kind(
        {"type": "id"},
        (pa.string(), ["2020-02-29", "2024-12-31", None, "1999-01-01"]),
        (
            *((storage, known(date.fromisoformat)) for storage in _DAYS),
            *_all(_TEXTUAL),
            ("arrow moments", known(date.fromisoformat)),
            ("list", known(lambda v: as_moment(date.fromisoformat(v)))),
        ),
        ((date(2020, 2, 29), "2020-02-29"), (pd.NaT, None)),
        "COUNT(DISTINCT x) AS v",
    ),
}


def repeated(values: list[Any]) -> list[Any]:
    return [values[place % len(values)] for place in range(ROWS)]
