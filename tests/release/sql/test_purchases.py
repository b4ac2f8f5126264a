"""What a budget buys, by the code that plans and charges."""

from fractions import Fraction
from typing import Any

import pytest

import confide
from confide.errors import BudgetError
from confide.policy import Policy, load
from confide.release.sql.purchases import Purchase, purchases


def rules(budget: dict[str, Any], **more: Any) -> Policy:
    columns = {"x": {"range": [0, 100]}, "g": {"values": ["a", "b"]}}
    return load({"budget": budget, "unit": "row", "tables": {"t": {"columns": columns, **more}}})


def calls(policy: Policy) -> dict[str, tuple[int | None, int | None]]:
    return {f"{own.what} ±{own.within}": (own.with_delta, own.without_delta) for own in purchases(policy).offered}


def test_counts_of_a_usual_budget() -> None:
    found = calls(rules({"epsilon": 3, "delta": 1e-9}))
    assert found["a count in t ±10"] == (6, 10)
    assert found["a count in t ±20"] == (25, 20)
    assert found["a count in t ±50"] == (154, 50)
    assert found == calls(rules({"epsilon": 3}))  # beside a budget without δ stands what the usual one would give
    assert found == calls(rules({"epsilon": 3, "delta": 1e-9, "accounting": "either"}))


def test_means_and_medians_are_of_the_first_column_of_numbers() -> None:
    found = calls(rules({"epsilon": 3, "delta": 1e-9}))
    assert {"the mean of x in 1,000 rows ±1", "the median of x in 1,000 rows ±1"} <= set(found)
    assert all(number is None or number >= 0 for pair in found.values() for number in pair)


def test_where_the_number_of_rows_is_public_a_count_is_still_paid_for() -> None:
    found = calls(rules({"epsilon": 3}, rows="public"))
    assert 0 < (found["a count in t ±10"][1] or 0) <= 10


@pytest.mark.parametrize(("budget", "place"), [({"epsilon": 3}, 1), ({"epsilon": 3, "delta": 1e-9}, 0)])
def test_so_many_calls_fit_and_not_one_more(budget: dict[str, Any], place: int) -> None:
    """Asked one by one, under the budget itself."""
    policy = rules(budget)
    most = calls(policy)["a count in t ±10"][place]
    with confide.testing.open(policy, {"t": {"x": [1, 2], "g": ["a", "b"]}}, seed=1) as session:
        for number in range(most or 0):
            session.sql(f"SELECT COUNT(*) AS n{number} FROM t", within=10)
        with pytest.raises(BudgetError):
            session.sql("SELECT COUNT(*) AS more FROM t", within=10)


def test_a_purchase_names_what_it_is() -> None:
    found = purchases(rules({"epsilon": 3}))
    assert (found.epsilon, found.delta) == (3, Fraction(1, 10**9))
    assert isinstance(found.offered[0], Purchase)
