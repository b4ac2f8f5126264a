"""Tables of counts through an engine: equal to counting rows, from few GROUP BYs that sets of columns share."""

from datetime import date
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest

from confide.engine.duckdb.engine import DuckDBEngine
from confide.engine.read.counted_tables import readings, tabulated
from confide.errors import EngineError
from confide.ledger import MemoryLedger
from confide.mechanism import TestRandomness
from confide.policy import Policy
from confide.privacy.budget import Budget
from confide.privacy.loss import PureDP
from confide.query.tabulation import Tabulation
from confide.release.holdings import Holdings
from confide.release.synthetic.request import SynthesisOptions, bind_synthesis
from confide.workload import Workload, marginals

RULES: dict[str, Any] = {
    "confide": 1,
    "budget": {"epsilon": 1},
    "unit": "row",
    "tables": {
        "t": {
            "columns": {
                "g": {"values": ["a", "b"], "nulls": True},
                "flag": {"values": [True, False]},
                "x": {"range": [0, 9], "bins": 5},
                "day": {"range": [date(2024, 1, 1), date(2024, 1, 2)]},
            }
        }
    },
}
DAYS = (date(2024, 1, 1), date(2024, 1, 2))
ROWS = pl.DataFrame(
    {
        "g": ["a", "b", None, "zzz", "a", "b", "a"],
        "flag": [True, False, True, False, None, True, True],
        "x": [0, 4, 5, 99, 3, -7, 2],
        "day": [*DAYS, date(2023, 1, 1), date(2025, 1, 1), DAYS[0], None, DAYS[1]],
    }
)
KEPT = [(0, 0, 0, 0), (1, 1, 0, 1), (2, 0, 1, 0), (2, 1, 1, 1), (0, 0, 0, 1)]
"""What the policy sees of the rows that hold a declared value in every column: days and numbers are clamped."""


def tabulation(
    rules: dict[str, Any], data: dict[str, Any], workload: Workload, table: str = "t"
) -> tuple[Tabulation, Any]:
    policy = Policy.parse(rules)
    engine = DuckDBEngine(policy, data)
    ledger = MemoryLedger(policy.budget, {})
    design = bind_synthesis(
        Holdings(policy, engine, ledger, TestRandomness(1)),
        SynthesisOptions(workload, 1, table, inside="even"),
        ledger.standing().budget,
    )
    charge = ledger.charge(PureDP(Fraction(1, 2)), "test", "key")
    return design.tabulation, engine.tabulate(design.tabulation, charge, b"secret")


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_tables_equal_counting_the_rows_that_the_policy_sees(k: int) -> None:
    _, exact = tabulation(RULES, {"t": ROWS}, marginals(k))
    codes = np.array(KEPT)
    assert exact.sizes == (3, 2, 2, 2)
    for columns in combinations(range(4), k):
        counts = np.zeros([exact.sizes[column] for column in columns], dtype=np.int64)
        np.add.at(counts, tuple(codes[:, column] for column in columns), 1)
        np.testing.assert_array_equal(exact.marginal(columns, 0, exact.sizes[columns[0]]), counts)
    assert exact.rows == 5


def test_sets_within_others_share_their_statement() -> None:
    found, _ = tabulation(RULES, {"t": ROWS}, marginals(2) + marginals(1) + marginals(3, ["g", "x", "day"]))
    asked = []

    def read(summary: Any, groups: Any) -> Any:
        asked.append((tuple(key.name for key in summary.keys), groups))
        empty = np.zeros(0, dtype=np.int64)
        return [{"p": empty, "n": empty}]

    tabulated(found, read)
    assert asked == [(("g", "flag", "x", "day"), [[0, 1, 2, 3]])]


@pytest.mark.parametrize(("most_cells", "most_readings"), [(1, 64), (1, 1), (4, 2)])
def test_tables_do_not_depend_on_what_is_read_together(
    monkeypatch: pytest.MonkeyPatch, most_cells: int, most_readings: int
) -> None:
    _, usual = tabulation(RULES, {"t": ROWS}, marginals(2) + marginals(3))
    monkeypatch.setattr("confide.engine.read.counted_tables._MOST_CELLS", most_cells)
    monkeypatch.setattr("confide.engine.read.counted_tables._MOST_READINGS", most_readings)
    _, apart = tabulation(RULES, {"t": ROWS}, marginals(2) + marginals(3))
    assert list(usual.tables) == list(apart.tables)
    for columns, table in usual.tables.items():
        np.testing.assert_array_equal(table.cells, apart.tables[columns].cells)
        np.testing.assert_array_equal(table.counts, apart.tables[columns].counts)


def test_sets_are_read_together_while_their_cells_are_few() -> None:
    sizes = (40,) * 6
    sets = list(combinations(range(6), 2))
    found = readings(sets, sizes)
    assert sorted(columns for _, own in found for columns in own) == sets
    assert all(len(reading) <= 3 for reading, _ in found)
    assert all(set(columns) <= set(reading) for reading, own in found for columns in own)
    assert len(found) < len(sets) / 2
    assert readings([(0, 1, 2), (3,)], (10**6,) * 4) == [((0, 1, 2), [(0, 1, 2)]), ((3,), [(3,)])]


def test_a_unit_is_bounded_and_the_same_rows_are_in_every_table() -> None:
    rules = {
        "confide": 1,
        "budget": {"epsilon": 1},
        "unit": "p.id",
        "tables": {
            "p": {"columns": {"id": {"type": "id"}}},
            "v": {
                "references": {"id": "p.id"},
                "at_most": {"rows": 3, "groups": 1},
                "columns": {"id": {"type": "id"}, "a": {"range": [0, 9]}, "b": {"range": [0, 9]}},
            },
        },
    }
    generator = np.random.default_rng(1)
    data = {
        "p": pl.DataFrame({"id": range(20)}),
        "v": pl.DataFrame(
            {
                "id": generator.integers(0, 20, 400),
                "a": generator.integers(0, 10, 400),
                "b": generator.integers(0, 10, 400),
            }
        ),
    }
    _, exact = tabulation(rules, data, marginals(1) + marginals(2), "v")
    assert exact.rows == 60
    both = exact.marginal((0, 1), 0, 10)
    np.testing.assert_array_equal(both.sum(axis=1), exact.marginal((0,), 0, 10))
    np.testing.assert_array_equal(both.sum(axis=0), exact.marginal((1,), 0, 10))
    # Without one unit, no table changes by more than its three rows.
    fewer = {"p": data["p"], "v": data["v"].filter(pl.col("id") != 7)}
    _, other = tabulation(rules, fewer, marginals(2), "v")
    assert np.abs(both - other.marginal((0, 1), 0, 10)).sum() <= 3


def test_rows_are_read_against_a_charge_alone_and_failures_say_nothing() -> None:
    policy = Policy.parse(RULES)
    engine = DuckDBEngine(policy, {"t": ROWS})
    found, _ = tabulation(RULES, {"t": ROWS}, marginals(1))
    with pytest.raises(TypeError, match="against a charge"):
        engine.tabulate(found, "free", b"")  # type: ignore[arg-type]
    charge = MemoryLedger(Budget.of(1), {}).charge(PureDP(Fraction(1, 2)), "test", "key")
    engine.close()
    with pytest.raises(EngineError) as caught:
        engine.tabulate(found, charge, b"secret")
    assert caught.value.__context__ is None
