"""The net as a method: which cells a count adds up, what is refused, what a session makes of it."""

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import confide
import confide.testing
from confide.errors import ParameterError
from confide.mechanism.selection.net import net
from confide.privacy.loss import PureDP
from confide.synthesis.listed_tables import NetStrategy, asked_cells, net_strategy
from confide.workload import Threshold, Workload
from tests.synthesis.booked import domain_with, every

ROWS = {"a": ["x", "x", "y", "z"], "b": [0, 1, 1, 1]}


def policy(budget: dict[str, Any]) -> dict[str, Any]:
    columns = {"a": {"values": ["x", "y", "z"]}, "b": {"values": [0, 1]}}
    return {"confide": 1, "budget": budget, "unit": "row", "tables": {"t": {"size": 5, "columns": columns}}}


def test_a_count_adds_up_its_cells() -> None:
    pair = Workload((Threshold(("c0", "c1"), 1),)).bound(domain_with((2, 2)))
    assert asked_cells(pair).tolist() == [[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]]
    singles = every((2, 3), 1)
    assert sorted(map(sum, asked_cells(singles).tolist())) == [2, 2, 2, 3, 3]


@pytest.mark.parametrize("budget", [{"epsilon": 10_000}, {"epsilon": 10_000, "delta": 1e-6}], ids=["pure", "zcdp"])
def test_a_large_budget_finds_the_rows(budget: dict[str, Any]) -> None:
    with confide.testing.open(policy(budget), pl.DataFrame(ROWS), seed=1) as session:
        plan = session.plan_synthesize(confide.marginals(2), 5_000, method="net")
        assert plan.steps[0].what == "choose one of all tables of few rows"
        twin = session.synthesize(confide.marginals(2), 5_000, method="net")
        assert twin.total == 4
        assert session.budget.spent == 5_000
        assert sorted(map(str, twin.sample(4).to_pylist())) == sorted(map(str, pl.DataFrame(ROWS).to_dicts()))
        assert session.synthesize(confide.marginals(2), 5_000, method="net").stored


def test_a_table_of_no_rows_is_a_table() -> None:
    with confide.testing.open(policy({"epsilon": 10_000}), pl.DataFrame(ROWS).head(0), seed=1) as session:
        twin = session.synthesize(confide.marginals(2), 5_000, method="net")
        assert twin.total == 0
        assert (twin.answer(confide.marginals(2))[0] == 0).all()  # type: ignore[index]


def test_its_loss_is_exact_over_all_tables() -> None:
    """Every pair of neighbours of at most two rows over four cells: no chance changes by more than e^ε."""
    queries, epsilon = asked_cells(every((2, 2), 2)), 1.0
    made = net(Fraction(1), 1, queries, 2)
    laws = {}
    for table in made.tables:
        weights = np.exp(-float(made.mechanism.rate) * made.errors(table))
        laws[tuple(table.tolist())] = weights / weights.sum()
    for one, law in laws.items():
        for cell in range(4):
            more = tuple(count + (place == cell) for place, count in enumerate(one))
            if more in laws:
                assert np.abs(np.log(law / laws[more])).max() <= epsilon + 1e-12


def test_what_cannot_be_listed_is_refused() -> None:
    cost = PureDP(Fraction(1))
    with pytest.raises(ParameterError, match="and these have 20; take wider bins"):
        net_strategy(every((4, 5), 2), cost, 5, 1)
    for expected, rows, words in ((None, None, "no size"), (100, None, "would be 100"), (5, 0, "would be 0")):
        with pytest.raises(ParameterError, match=words):
            net_strategy(every((2, 2), 2), cost, expected, 1, rows=rows)
    assert net_strategy(every((2, 2), 2), cost, 100, 1, rows=3) == NetStrategy(3)
