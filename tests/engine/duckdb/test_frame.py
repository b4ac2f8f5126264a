"""Frames as sources: Arrow, pandas and polars in the types that they come in."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from confide.engine.duckdb.engine import DuckDBEngine
from confide.engine.duckdb.frame import digest, to_arrow
from confide.errors import SourceError
from confide.policy import Policy, Table, load
from confide.query import bind
from tests.engine.worlds import CHARGE, SECRET

COLUMNS: dict[str, Any] = {
    "age": {"range": [0, 115]},
    "height": {"range": [0, 2.5], "grain": 0.01},
    "region": {"values": ["N", "E"]},
    "kids": {"values": [0, 1, 2]},
    "member": {"values": [True, False]},
    "born": {"range": ["1990-01-01", "1999-12-31"]},
    "note": {"type": "text"},
}


def policy(**columns: Any) -> Policy:
    return load(
        {"confide": 1, "budget": {"epsilon": 1, "delta": 1e-6}, "unit": "row", "tables": {"t": {"columns": columns}}}
    )


def ask(rules: Policy, frame: Any, text: str) -> list[int]:
    engine = DuckDBEngine(rules, {"t": frame})
    try:
        exact = engine.evaluate(bind(text, rules, engine).summary, CHARGE, SECRET)
        return [int(value) for cell in exact.cells for value in cell]
    finally:
        engine.close()


BIRTHS = [date(1990, 5, 1), date(1985, 1, 1), None]
PLAIN: dict[str, list[Any]] = {
    "age": [30, 200, None],
    "height": [1.75, None, 9.0],
    "region": ["N", "Z", None],
    "kids": [0, 1, 5],
    "member": [True, None, False],
    "born": BIRTHS,
    "note": ["a", "b", None],
}
TEXT = (
    "SELECT COUNT(*) AS n, SUM(age) AS a, SUM(height) AS h, COUNT(region) AS r, COUNT(kids) AS k, COUNT(member) AS m, "
    "COUNT(born) AS b, COUNT(note) AS t FROM t"
)
EXPECTED = [3, 145, 425, 1, 2, 2, 2, 2]


def _pandas() -> pd.DataFrame:
    return pd.DataFrame({**PLAIN, "born": pd.to_datetime(pd.Series(BIRTHS))})


FRAMES: dict[str, Any] = {
    "arrow": lambda: pa.table(PLAIN),
    "arrow batches": lambda: pa.concat_tables([pa.table(PLAIN).slice(0, 1), pa.table(PLAIN).slice(1)]),
    "arrow batch": lambda: pa.table(PLAIN).combine_chunks().to_batches()[0],
    "arrow reader": lambda: pa.table(PLAIN).to_reader(),
    "mapping": lambda: PLAIN,
    "polars": lambda: pl.DataFrame(PLAIN),
    "polars lazy": lambda: pl.LazyFrame(PLAIN),
    "polars categorical": lambda: pl.DataFrame(PLAIN).with_columns(pl.col("region").cast(pl.Categorical)),
    "polars enum": lambda: pl.DataFrame(PLAIN).with_columns(pl.col("region").cast(pl.Enum(["N", "Z"]))),
    "polars small": lambda: pl.DataFrame(
        PLAIN, schema_overrides={"age": pl.UInt16, "kids": pl.UInt8, "height": pl.Float32}
    ),
    "pandas": _pandas,
    "pandas nullable": lambda: _pandas().convert_dtypes(),
    "pandas arrow": lambda: _pandas().convert_dtypes(dtype_backend="pyarrow"),
    "pandas category": lambda: _pandas().astype({"region": "category"}),
    "pandas object": lambda: _pandas().astype({"note": object, "region": object}),
    "pandas indexed": lambda: _pandas().set_index(pd.Index([7, 7, 7], name="row")),
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_is_read_as_the_policy_says(name: str) -> None:
    assert ask(policy(**COLUMNS), FRAMES[name](), TEXT) == EXPECTED


SUM = "SELECT SUM(x) AS s, COUNT(x) AS n FROM t"


@pytest.mark.parametrize(
    ("values", "stored", "expected"),
    [
        ([1, 2**63, 2**64 - 1, None], pa.uint64(), [201, 3]),
        ([1, 50, 200, None], pa.uint8(), [151, 3]),
        ([1, 2**31, 2**32 - 1], pa.uint32(), [201, 3]),
        ([-5, 127], pa.int8(), [95, 2]),
        ([Decimal("1.4"), Decimal("1.5"), Decimal("99999999.9")], pa.decimal128(9, 1), [103, 3]),
        ([Decimal("1.4"), Decimal(-7), Decimal(10) ** 30], pa.decimal128(38, 5), [96, 3]),
        ([Decimal("2.5"), Decimal("-2.5")], pa.decimal128(18, 17), [1, 2]),
        ([Decimal("1.5"), Decimal(7)], pa.decimal256(60, 3), [9, 2]),
        ([1.5, float("nan"), float("inf"), None], pa.float32(), [102, 2]),
        ([np.float16(1.5), np.float16(2.0)], pa.float16(), [4, 2]),
        ([None, None], pa.null(), [0, 0]),
    ],
    ids=str,
)
def test_numbers_of_every_type(values: list[Any], stored: Any, expected: list[int]) -> None:
    rules = policy(x={"range": [-5, 100]})
    frame = pa.table({"x": pa.array(values, stored)})
    assert ask(rules, frame, SUM) == expected


def test_moments_of_every_type() -> None:
    rules = policy(x={"range": ["2024-01-01", "2024-01-31"]})
    moment = datetime(2024, 1, 5, 23, 30, tzinfo=UTC)
    frames = [
        pa.table({"x": pa.array([moment, None], pa.timestamp(unit, tz=zone))})
        for unit in ("s", "ms", "us", "ns")
        for zone in ("UTC", "America/New_York", "Asia/Tokyo", None)
    ]
    frames += [pl.DataFrame({"x": [moment, None]}), pd.DataFrame({"x": [moment, None]})]
    frames += [pa.table({"x": pa.array([moment.date(), None], kind)}) for kind in (pa.date32(), pa.date64())]
    for frame in frames:
        assert ask(rules, frame, "SELECT COUNT(*) AS n FROM t WHERE x = DATE '2024-01-05'") == [1]


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_moments_beyond_all_calendars_refuse_no_frame(unit: str) -> None:
    rules = policy(day={"range": ["2020-01-01", "2024-12-31"]}, key={"type": "id"})
    for odd in (0, 2**62, -(2**62)):
        moments = pa.array([1_600_000_000, odd]).view(pa.timestamp(unit, "Asia/Tokyo"))
        frame = {"day": moments, "key": moments}
        assert ask(rules, frame, "SELECT COUNT(*) AS n, COUNT(key) AS k FROM t") == [2, 1 + (odd == 0)]


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_times_that_no_clock_shows_are_nothing(unit: str) -> None:
    for kind in ("id", "text"):
        for odd in (-1, 10**17, 2**62, -(2**62)):
            times = pa.array([1, 2, 3_600_000_000, odd] * 500).view(pa.time64(unit))
            text = "SELECT COUNT(x) AS n, COUNT(DISTINCT x) AS d FROM t"
            assert ask(policy(x={"type": kind}), {"x": times}, text) == [1_500, 3]


def test_one_complex_number_changes_no_other() -> None:
    """numpy makes complex numbers of all numbers of a column in which one is."""
    rules = policy(x={"range": [0, 9]}, kids={"values": [1, 2]}, key={"type": "id"})
    for odd in (3.0, 3 + 0j, 3 + 1j):
        column = pd.Series([1, 2, 2, odd])
        frame = pd.DataFrame({"x": column, "kids": column, "key": column})
        assert ask(rules, frame, "SELECT SUM(x) AS s FROM t") == [8 if odd == 3 else 5]
        assert ask(rules, frame, "SELECT kids, COUNT(*) AS n FROM t GROUP BY kids") == [1, 2]
        assert ask(rules, frame, "SELECT COUNT(key) AS n FROM t") == [4 if odd == 3 else 3]


@pytest.mark.parametrize(
    ("grain", "whole"),
    [(1, 2**52 + 1), (1, -(2**53) + 1), (0.001, 10**14 + 1), (3, 2**53 - 1), (2, 2**52 + 3), (0.75, 2**51 + 1)],
)
@pytest.mark.parametrize("unbounded", [False, True])
def test_whole_numbers_are_where_integers_are(grain: float, whole: int, unbounded: bool) -> None:
    """pandas makes doubles of them if one is missing."""
    most = 12 * 10**15 if grain > 0.5 else 3 * 10**15
    bounds: Any = "unbounded" if unbounded else [-most, most]
    rules = policy(x={"range": bounds, "grain": grain})
    found = []
    for values in ([whole] * 3, [whole] * 3 + [None]):
        engine = DuckDBEngine(rules, {"t": pd.DataFrame({"x": values})})
        try:
            summary = bind("SELECT MEDIAN(x) AS m FROM t", rules, engine).summary
            tallies = engine.evaluate(summary, CHARGE, SECRET).tallies
            found.append([part[0].tolist() for part in tallies[0]])
        finally:
            engine.close()
    assert found[0] == found[1]


def test_whole_numbers_that_pandas_made_floating() -> None:
    frame = pd.DataFrame({"kids": [0, 1, None, 2, 1.5, 1e300]})
    assert str(frame["kids"].dtype) == "float64"
    assert ask(policy(kids={"values": [0, 1, 2]}), frame, "SELECT kids, COUNT(*) AS n FROM t GROUP BY kids") == [
        1,
        1,
        1,
    ]


def test_columns_without_a_type_hold_nothing() -> None:
    rules = policy(**COLUMNS)
    frame = pa.table({name: pa.array([None, None], pa.null()) for name in COLUMNS})
    assert ask(rules, frame, TEXT) == [2, 0, 0, 0, 0, 0, 0, 0]
    assert ask(rules, frame, "SELECT region, COUNT(*) AS n FROM t GROUP BY region") == [0, 0]


def test_ids_of_different_types_still_join() -> None:
    tables = {
        "person": {"columns": {"pid": {"type": "id"}, "age": {"range": [0, 100]}}},
        "visit": {
            "references": {"pid": "person.pid"},
            "at_most": {"rows": 3, "groups": 1},
            "columns": {"x": {"range": [0, 9]}},
        },
    }
    rules = load({"confide": 1, "budget": {"epsilon": 1}, "unit": "person.pid", "tables": tables})
    stored = {
        "int32": pa.array([1, 2, 3], pa.int32()),
        "uint64": pa.array([1, 2, 3], pa.uint64()),
        "text": pa.array(["1", "2", "3"]),
        "floating": pa.array([1.0, 2.0, 3.0]),
        "decimal": pa.array([Decimal(1), Decimal(2), Decimal(3)], pa.decimal128(20, 0)),
        "dictionary": pa.array(["1", "2", "3"]).dictionary_encode(),
    }
    for mine in stored.values():
        for other in stored.values():
            data = {
                "person": pa.table({"pid": mine, "age": [5, 6, 7]}),
                "visit": pa.table({"pid": other, "x": [1, 2, 3]}),
            }
            engine = DuckDBEngine(rules, data)
            sums = "SELECT COUNT(*) AS n, SUM(x * age) AS s, COUNT(DISTINCT visit.pid) AS d"
            text = f"{sums} FROM visit JOIN person USING (pid)"
            exact = engine.evaluate(bind(text, rules, engine).summary, CHARGE, SECRET)
            assert [int(cell[0]) for cell in exact.cells] == [3, 5 + 12 + 21, 3], (mine.type, other.type)
            engine.close()


def test_ids_of_any_type_can_be_the_unit() -> None:
    tables = {"person": {"columns": {"pid": {"type": "id"}, "age": {"range": [0, 100]}}}}
    rules = load({"confide": 1, "budget": {"epsilon": 1}, "unit": "person.pid", "tables": tables})
    for ids in (
        pa.array([date(2020, 1, 1), date(2020, 1, 2), date(2020, 1, 1), None]),
        pa.array([True, False, True, None]),
        pa.array([0.5, 1.5, 0.5, float("nan")]),
        pa.array([time(8, 30), time(9, 30), time(8, 30), None]),
        pa.array([Decimal("1.5"), Decimal("2.5"), Decimal("1.5"), None]),
    ):
        engine = DuckDBEngine(rules, {"person": pa.table({"pid": ids, "age": [1, 1, 1, 1]})})
        summary = bind("SELECT COUNT(*) AS n, COUNT(DISTINCT pid) AS d FROM person", rules, engine).summary
        exact = engine.evaluate(summary, CHARGE, SECRET)
        assert [int(cell[0]) for cell in exact.cells] == [2, 2], ids.type
        engine.close()


class Failing(dict[str, Any]):
    """A frame whose own code fails, with what it holds in its words."""

    def items(self) -> Any:
        raise ValueError("canary 17")


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (Failing(), "cannot be turned into Arrow"),
        ("people.csv", "paths go into the policy's `source`"),
        (b"x", "paths go into the policy's `source`"),
        (None, "must be an Arrow, pandas or polars frame"),
        (5, "is a int; give an Arrow, pandas or polars frame"),
        ([1, 2], "is a list"),
        (object(), "is a object"),
        (pa.table([[1], [2]], names=["x", "x"]), "names a column twice"),
        (pa.table([[1], [2]], names=["x", "X"]), "several columns x that differ in case alone"),
        (pa.table({"y": [1]}), "the frame for t has no column x, which the policy names for t; it has y"),
        (pa.table({"X": [1]}), "it has X"),
        (
            pa.table({"x": [date(2024, 1, 1)]}),
            "the frame for t, column x is stored as DATE, but the policy makes it a number",
        ),
        (pa.table({"x": pa.array([5], pa.duration("s"))}), "column x is stored as INTERVAL"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else type(value).__name__,
)
def test_a_frame_that_cannot_be_used(frame: Any, words: str) -> None:
    with pytest.raises(SourceError) as caught:
        DuckDBEngine(policy(x={"range": [0, 9]}), {"t": frame})
    assert words in str(caught.value)
    assert "canary" not in str(caught.value)
    assert caught.value.__context__ is None


def test_data_for_an_unknown_table() -> None:
    with pytest.raises(SourceError, match="data is given for people, which the policy does not name; it names t"):
        DuckDBEngine(policy(x={"range": [0, 9]}), {"people": pa.table({"x": [1]})})


def test_a_frame_is_copied() -> None:
    values = np.arange(10)
    rules = policy(x={"range": [0, 100]})
    engine = DuckDBEngine(rules, {"t": pd.DataFrame({"x": values}, copy=False)})
    values[:] = 50
    exact = engine.evaluate(bind("SELECT SUM(x) AS s FROM t", rules, engine).summary, CHARGE, SECRET)
    assert int(exact.cells[0][0]) == 45
    engine.close()


def test_a_digest_names_the_values_and_not_how_they_lie() -> None:
    base = to_arrow(PLAIN, "t")
    same = [
        pa.concat_tables([base.slice(0, 2), base.slice(2)]),
        base.set_column(2, "region", base["region"].dictionary_encode()),
        base.set_column(6, "note", base["note"].cast(pa.large_string())),
        pa.concat_tables([base, base]).slice(3),
    ]
    assert {digest(table) for table in same} == {digest(base)}
    other = [
        base.slice(0, 2),
        base.rename_columns([*base.column_names[:-1], "words"]),
        base.select(base.column_names[::-1]),
    ]
    for place, name in enumerate(base.column_names):
        column = base[name].to_pylist()
        other.append(base.set_column(place, name, pa.array([column[0], column[0], column[2]], base[name].type)))
        other.append(base.set_column(place, name, pa.array([column[0], None, column[2]], base[name].type)))
    known = {digest(table) for table in other}
    assert digest(base) not in {d for table, d in zip(other, map(digest, other), strict=True) if not table.equals(base)}
    assert len(known) > len(base.column_names)


def test_what_lies_under_a_null_does_not_count() -> None:
    buffers = [pa.py_buffer(b"\x05"), pa.py_buffer(np.array([1, 7, 3], dtype=np.int64).tobytes())]
    other = [buffers[0], pa.py_buffer(np.array([1, 99, 3], dtype=np.int64).tobytes())]
    first, second = (pa.Array.from_buffers(pa.int64(), 3, parts) for parts in (buffers, other))
    assert first.equals(second)
    assert digest(pa.table({"x": first})) == digest(pa.table({"x": second}))


def test_a_dictionary_with_other_words_is_other_data() -> None:
    first = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", "b"]))
    second = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", "c"]))
    assert digest(pa.table({"x": first})) != digest(pa.table({"x": second}))


def test_rows_count_without_a_column_that_the_policy_names() -> None:
    for frame in ({"z": [1, "x", None]}, pd.DataFrame({"z": [1, 2, 3]}), pl.DataFrame({"z": [1, 2, 3]})):
        assert to_arrow(frame, "t", Table("t")).num_rows == 3
    assert to_arrow(pa.table({"z": [1, 2, 3]}).select([]), "t", Table("t")).num_rows == 3
