"""Tallies on grids: what the database gives, against the same grid in plain Python, with exact sums."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from confide.engine import Engine
from confide.engine.duckdb.engine import DuckDBEngine
from confide.policy import Policy, load
from confide.query import bind
from confide.query.grid import EvenGrid, FloatingGrid, Grid
from tests.engine.postgres_tables import create_engine
from tests.engine.worlds import CHARGE, SECRET
from tests.servers import PostgresServer

MOST = 2**62 - 1
GRIDS: list[Grid] = [
    EvenGrid(-MOST, MOST, 1),
    EvenGrid(-MOST, MOST, 5),
    EvenGrid(-MOST, MOST, 2 * 10**12),
    *(FloatingGrid(-MOST, MOST, centre, digits) for centre in (0, 17) for digits in (0, 1, 6, 62)),
]
VALUES = [
    *(sign * (2**bits + near) for bits in (0, 1, 2, 5, 7, 8, 20, 40, 61) for near in (-1, 0, 1) for sign in (-1, 1)),
    *range(-40, 40),
    MOST,
    -MOST,
    2**63 - 1,
    -(2**63),
    None,
]


def policy(column: Mapping[str, Any]) -> Policy:
    return load(
        {
            "confide": 1,
            "budget": {"epsilon": 1},
            "unit": "row",
            "tables": {"t": {"columns": {"g": {"values": ["a", "b", "c"]}, "x": dict(column)}}},
        }
    )


def expected(grid: Grid) -> dict[str, tuple[Counter[int], dict[int, int]]]:
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    sums: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for place, value in enumerate(VALUES):
        if value is not None:
            seen = min(max(value, -MOST), MOST)
            counts["ab"[place % 2]][grid.point(seen)] += 1
            sums["ab"[place % 2]][grid.point(seen)] += seen
    return {group: (counts[group], sums[group]) for group in "abc"}


def compare(engine: Engine, rules: Policy) -> None:
    question = bind("SELECT g, MEDIAN(x) AS m FROM t GROUP BY g", rules, engine)
    for grid in GRIDS:
        (tally,) = question.summary.tallies
        summary = replace(question.summary, tallies=(replace(tally, grid=grid, sums=True),))
        exact = engine.evaluate(summary, CHARGE, SECRET)
        for (values, counts, sums), (wanted, totals) in zip(exact.tallies[0], expected(grid).values(), strict=True):
            assert values.tolist() == sorted(wanted), grid
            assert dict(zip(values.tolist(), counts.tolist(), strict=True)) == wanted, grid
            assert dict(zip(values.tolist(), sums.tolist(), strict=True)) == totals, grid
        alone = replace(summary, keys=(), tallies=(replace(tally, grid=grid),))
        ((values, counts),) = engine.evaluate(alone, CHARGE, SECRET).tallies[0]
        assert Counter(dict(zip(values.tolist(), counts.tolist(), strict=True))) == sum(
            (wanted for wanted, _ in expected(grid).values()), Counter()
        )


TABLE = pa.table({"g": pa.array((["a", "b"] * len(VALUES))[: len(VALUES)]), "x": pa.array(VALUES, pa.int64())})


@pytest.mark.parametrize(
    "column", [{"range": [-MOST, MOST]}, {"range": "unbounded", "grain": 1}], ids=["range", "none"]
)
def test_duckdb(column: Mapping[str, Any]) -> None:
    rules = policy(column)
    engine = DuckDBEngine(rules, {"t": TABLE})
    compare(engine, rules)
    engine.close()


def test_postgres(postgres_server: PostgresServer, postgres_database: str) -> None:
    rules = policy({"range": [-MOST, MOST]})
    engine = create_engine(postgres_server, postgres_database, rules, {"t": TABLE})
    compare(engine, rules)
    engine.close()
