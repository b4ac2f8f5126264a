"""Columns that agree: one relation over all kinds, grains and storages; an order of nodes that storage leaves alone."""

from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import floor, isnan
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from confide.engine.duckdb.engine import DuckDBEngine
from confide.engine.read.join_facts import ResidualInquiry
from confide.engine.read.network import GraphInquiry
from confide.engine.sql.agreement import LARGEST_TEXT, text_order
from confide.engine.sql.expression_sql import RowWriter
from confide.policy import Category, Column, Number, Policy, load
from confide.query.conjunction import bind_conjunction
from confide.query.tree import Field, Join, Scan
from tests.engine.worlds import CHARGE

WHOLE = [0, 1, 5, 10, -7, 50, 2**53 + 1, 10**18, None]
TEXTS = ["0", "1", "5", "10", "-7", "05", "0.5", "x", "50", "5.0", str(2**53 + 1), str(10**31), "", None]
HALVES = [Decimal(value) for value in ("0", "0.5", "1", "5", "10", "-7", "0.25")]


def ranged(low: int | str, high: int | str, grain: int | str) -> dict[str, Any]:
    return {"range": [low, high], "grain": grain}


COLUMNS: dict[str, tuple[dict[str, Any], Any]] = {
    "whole": (ranged(-100, 4 * 10**18, 1), pa.array(WHOLE)),
    "tens": (ranged(-100, 10**12, 10), pa.array(WHOLE)),
    "half": (ranged(-100, 100, "1/2"), pa.array([float(value) for value in HALVES])),
    "quarter": (ranged(-100, 100, "1/4"), pa.array(HALVES, pa.decimal128(9, 2))),
    "third": (ranged(-100, 100, "1/3"), pa.array([0.0, 1 / 3, 2 / 3, 1.0, 5.0, 10.0, -7.0])),
    "sixth": (ranged(-100, 100, "1/6"), pa.array([0.0, 1 / 3, 0.5, 1.0, 5.0, -7.0])),
    "huge": (ranged(-(10**40), 10**40, 10**31), pa.array([0.0, 1e31, 1e40, -1e31])),
    "tiny": (ranged(f"-1/{10**30}", f"1/{10**30}", f"1/{10**40}"), pa.array([0.0, 1e-30])),
    "spelled": (ranged(-100, 100, "1/2"), pa.array(TEXTS)),
    "listed": ({"values": [0, 1, 5, 50]}, pa.array(WHOLE)),
    "words": ({"values": ["0", "5", "x", "0.5"]}, pa.array(TEXTS)),
    "text": ({"type": "text"}, pa.array(TEXTS)),
    "floating text": ({"type": "text"}, pa.array([0.0, 0.5, 5.0, 1e300])),
    "id": ({"type": "id"}, pa.array(WHOLE)),
    "wide id": ({"type": "id"}, pa.array([0, 5, 10**31, 10**37, -7], pa.decimal128(38, 0))),
    "text id": ({"type": "id"}, pa.array([*TEXTS, str(10**37)])),
    "floating id": ({"type": "id"}, pa.array([0.0, 0.5, 5.0, float("nan"), -7.0])),
}
TABLES = {f"t{place}": name for place, name in enumerate(COLUMNS)}


def opened() -> tuple[DuckDBEngine, Policy]:
    tables = {table: {"columns": {"x": COLUMNS[name][0]}} for table, name in TABLES.items()}
    rules = load({"confide": 1, "budget": {"epsilon": 1}, "unit": "row", "tables": tables})
    return DuckDBEngine(rules, {table: {"x": COLUMNS[name][1]} for table, name in TABLES.items()}), rules


def meaning(column: Column, value: Any) -> Any:
    """The class of a value, in plain Python: a text, or a number that no text agrees with."""
    if value is None or (isinstance(value, float) and isnan(value)):
        return None
    match column:
        case Number():
            number = _number(value)
            if number is None:
                return None
            index = floor(number / column.grain + Fraction(1, 2))
            exact = min(max(index, column.low_index), column.high_index) * column.grain
            return str(exact) if exact.denominator == 1 and abs(exact) < LARGEST_TEXT else exact
        case Category():
            return str(value) if value in column.values else None
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 2**53
        return str(int(value)) if whole else repr(value) if value < 1e15 else None
    return str(value)


def _number(value: Any) -> Fraction | None:
    try:
        return Fraction(value.strip() if isinstance(value, str) else value)
    except ValueError:
        return None


def test_agreeing_is_one_relation_over_all_columns() -> None:
    """Every pair of kinds, grains and storages, on the database: equal exactly where the classes are, so transitive."""
    engine, rules = opened()
    values = {
        table: [meaning(rules.tables[table].columns["x"], v) for v in COLUMNS[name][1].to_pylist()]
        for table, name in TABLES.items()
    }
    joined = 0
    try:
        for left, right in product(TABLES, repeat=2):
            fields = [Field(alias, rules.tables[table].columns["x"]) for alias, table in (("a", left), ("b", right))]
            pair = (fields[0], fields[1])
            writer = RowWriter(engine._storages, Join(Scan(left, "a", False), Scan(right, "b", False), (pair,), False))
            found = engine._rows(
                f"SELECT COUNT(*) FROM main.{left} AS a JOIN main.{right} AS b ON {writer.equal(*pair)}"
            )
            expected = sum(one == two is not None for one in values[left] for two in values[right] if one is not None)
            assert found[0][0] == expected, (TABLES[left], TABLES[right])
            joined += expected
    finally:
        engine.close()
    assert joined > 500


@pytest.mark.parametrize(
    "kinds", [("tens", "text id", "id"), ("half", "whole", "text id"), ("id", "floating id", "tens")]
)
def test_chains_of_equal_columns_are_bounded_by_their_residuals(kinds: tuple[str, str, str]) -> None:
    """One row more in the middle of a chain changes the join by no more than the parts that are left say."""
    tables = {label: {"columns": {"x": COLUMNS[kind][0]}} for label, kind in zip("abc", kinds, strict=True)}
    rules = load({"confide": 1, "budget": {"epsilon": 1}, "unit": "row", "tables": tables})
    values = [0, 1, 5, 10, 50, 100]
    written = {"text id": str, "floating id": float}
    question = "SELECT COUNT(*) AS n FROM a JOIN b ON a.x = b.x JOIN c ON b.x = c.x"

    def engine(more: int | None) -> DuckDBEngine:
        rows = [
            [v for v in values for _ in range(7)],
            [*values, *([] if more is None else [more])],
            [v for v in values for _ in range(9)],
        ]
        data = [pa.array([written.get(kind, int)(v) for v in own]) for kind, own in zip(kinds, rows, strict=True)]
        return DuckDBEngine(rules, {label: {"x": column} for label, column in zip("abc", data, strict=True)})

    def count(opened: DuckDBEngine) -> int:
        conjunction = bind_conjunction(question, rules, opened)
        writer = RowWriter(opened._storages, conjunction.relation)
        on = [writer.equal(*pair) for pair in conjunction.pairs]
        names = ", ".join(f"main.{scan.table} AS {scan.source}" for scan in conjunction.occurrences)
        return int(opened._rows(f"SELECT COUNT(*) FROM {names} WHERE {' AND '.join(on)}")[0][0])

    plain = engine(None)
    residuals = plain.inquire(ResidualInquiry(bind_conjunction(question, rules, plain)), CHARGE)
    before = count(plain)
    plain.close()
    assert before > 0
    for more in values:
        other = engine(more)
        assert abs(count(other) - before) <= residuals[frozenset((1,))]
        other.close()


def test_texts_are_ordered_as_integers_are() -> None:
    magnitudes = {10**power + step for power in range(19) for step in (-1, 0, 1)} | {2**63 - 1}
    values = sorted({sign * magnitude for magnitude in magnitudes for sign in (-1, 1)} | {-(2**63)})
    others = ["", "-0", "00", "1.5", "12a", "x", "é", "1" * 39, "2" * 39]
    texts = [*map(str, values), *others, *map(str, (2**63, 10**37, -(10**37)))]
    columns = {"columns": {"x": {"type": "id"}}}
    rules = load({"confide": 1, "budget": {"epsilon": 1}, "unit": "row", "tables": {"n": columns, "t": columns}})
    engine = DuckDBEngine(rules, {"n": {"x": pa.array(values)}, "t": {"x": pa.array(texts)}})
    numbers = [row[0] for row in engine._rows("SELECT x FROM main.n ORDER BY x")]
    found = [row[0] for row in engine._rows(f"SELECT x FROM main.t ORDER BY {', '.join(text_order('x'))}")]
    engine.close()
    assert [text for text in found if text in set(map(str, values))] == list(map(str, numbers))
    assert found[-len(others) :] == sorted(others, key=lambda text: (len(text), text.encode()))


@pytest.mark.parametrize("sign", [1, -1])
def test_nodes_keep_their_order_when_one_end_is_missing(sign: int) -> None:
    """pandas makes floats of a column with a gap, and objects of one with a word: the graph must stay as it was."""
    ends = [(sign * a, sign * b) for a, b in ((9, 10), (10, 100), (2, 9), (100, 2), (11, 9), (1000, 11))]
    frames = {
        "plain": pd.DataFrame(ends, columns=["a", "b"]),
        "gap": pd.DataFrame([*ends, (None, None)], columns=["a", "b"]),
        "texts": pd.DataFrame([(str(a), str(b)) for a, b in ends], columns=["a", "b"]),
        "objects": pd.DataFrame([*ends, (object(), 5)], columns=["a", "b"], dtype=object),
        "one side": pd.DataFrame([*ends, (None, 5)], columns=["a", "b"]),
    }
    assert str(frames["gap"]["a"].dtype) == "float64"
    columns = {"a": {"type": "id"}, "b": {"type": "id"}}
    rules = load({"confide": 1, "budget": {"epsilon": 1}, "unit": "row", "tables": {"t": {"columns": columns}}})
    networks = {}
    for label, frame in frames.items():
        engine = DuckDBEngine(rules, {"t": frame})
        declared = rules.tables["t"].columns
        found = engine.inquire(GraphInquiry("t", declared["a"], declared["b"], True), CHARGE)
        networks[label] = (found.nodes, found.source.tolist(), found.target.tolist())
        engine.close()
    assert {label: network for label, network in networks.items() if network != networks["plain"]} == {}
