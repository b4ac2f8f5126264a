"""The rule that divides a budget, from public facts alone."""

from fractions import Fraction
from typing import Any

import pytest

from confide.errors import ParameterError
from confide.privacy.loss import ZCDP, PureDP
from confide.synthesis.strategy import choose_strategy, noise
from confide.workload import marginals, thresholds
from tests.workload.samples import domain

WORKLOAD = marginals(3).bound(domain())
ZCDP_COST, PURE_COST = ZCDP(Fraction(1, 100)), PureDP(Fraction(1))


@pytest.mark.parametrize("cost", [ZCDP_COST, PURE_COST])
def test_what_the_caller_sets_is_taken(cost: PureDP | ZCDP) -> None:
    chosen = choose_strategy(WORKLOAD, cost, 5_000, 1, select="queries", rounds=3, picks=7, rows=11)
    assert (chosen.select, chosen.rounds, chosen.picks, chosen.rows) == ("queries", 3, 7, 11)
    assert choose_strategy(WORKLOAD, cost, 5_000, 1, rounds=2).select == "marginals"


def test_little_noise_measures_everything_and_much_noise_chooses() -> None:
    assert choose_strategy(WORKLOAD, ZCDP_COST, 100_000, 1).select == "closure"
    few = choose_strategy(WORKLOAD, ZCDP_COST, 70, 1)
    assert few.select == "marginals"
    assert few.rounds >= 1


def test_a_pure_budget_chooses_sooner() -> None:
    """Six pairs at ε = 0.7: Laplace noise of 12 on each cell, which is 1 % of 1,200 rows and 4 % of 300."""
    assert choose_strategy(WORKLOAD, PURE_COST, 1_200, 1).select == "closure"
    few = choose_strategy(WORKLOAD, PURE_COST, 300, 1)
    assert (few.select, few.rounds) == ("marginals", 2)


def test_single_columns_get_everything_where_there_is_nothing_else() -> None:
    alone = choose_strategy(thresholds(1, 1).bound(domain()), PURE_COST, 5_000, 1)
    assert (alone.select, alone.ones) == ("closure", 1)


def test_noise_is_that_of_the_mechanisms() -> None:
    assert noise(ZCDP_COST, Fraction(1, 2), 4, 3) == pytest.approx(3 * (4 / (2 * 0.005)) ** 0.5)
    assert noise(PURE_COST, Fraction(1, 2), 4, 3) == pytest.approx(2**0.5 * 3 * 4 / 0.5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"select": "best"}, "write auto, closure, marginals, queries, all"),
        ({"rounds": 0}, "rounds = 0 must be a whole number from 1"),
        ({"rounds": 10**12}, "from 1 to 10,000"),
        ({"picks": 1.5, "select": "queries"}, "picks = 1.5"),
        ({"rows": 0}, "at least one row"),
        ({"rows": True}, "rows = True"),
        ({"select": "closure", "rounds": 3}, "has no rounds"),
        ({"select": "marginals", "picks": 3}, "one a round"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        choose_strategy(WORKLOAD, PURE_COST, 5_000, 1, **options)


@pytest.mark.parametrize("cost", [ZCDP(Fraction(1, 10**12)), PureDP(Fraction(1, 10**6))])
def test_an_epsilon_that_buys_no_round_is_refused(cost: PureDP | ZCDP) -> None:
    with pytest.raises(ParameterError, match="buys no round"):
        choose_strategy(WORKLOAD, cost, 5_000, 1)


def test_tables_too_large_to_measure_are_refused() -> None:
    from tests.workload.test_workload import wide  # noqa: PLC0415

    with pytest.raises(ParameterError, match="select = 'closure' measures pairs only"):
        choose_strategy(marginals(4).bound(wide(4, 100)), ZCDP_COST, 5_000, 1, select="all")
