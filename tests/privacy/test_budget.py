from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from confide.errors import ParameterError
from confide.privacy.amount import QUANTA
from confide.privacy.budget import Budget, add, amounts, fits, in_currency, of_quanta, quanta_of, remaining
from confide.privacy.conversion import rho_for
from confide.privacy.loss import ZCDP, ApproxDP, PureDP

DELTA = Fraction(1, 10**9)


def test_a_pure_budget_is_spent_in_epsilon() -> None:
    budget = Budget.of(3)
    assert budget.pure
    assert budget.cap == PureDP(Fraction(3))
    assert budget.cost(Fraction(1, 10)) == PureDP(Fraction(1, 10))
    assert budget.as_epsilon(PureDP(Fraction(2))) == 2
    assert str(budget) == "ε = 3"


def test_half_of_delta_converts_and_half_is_spent() -> None:
    budget = Budget.of("3", "1e-9")
    assert not budget.pure
    assert budget.cap == ZCDP(rho_for(Fraction(3), DELTA / 2), DELTA / 2)
    assert budget.cost(Fraction(3)) == ZCDP(rho_for(Fraction(3), DELTA / 2))
    assert fits(ZCDP(Fraction(0)), budget.cost(Fraction(3)), budget.cap)
    assert budget.as_epsilon(budget.cap) == 3
    assert str(budget) == "ε = 3, δ = 1e-09"


@pytest.mark.parametrize("delta", [1, 1.5, "1", "nan", -1, "abc", True])
def test_delta_must_be_below_one(delta: object) -> None:
    with pytest.raises(ParameterError, match="delta = "):
        Budget.of(1, delta)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), 1e308, "1e-400", "abc", True, None])
def test_epsilon_must_be_an_amount(epsilon: object) -> None:
    with pytest.raises(ParameterError, match="epsilon = "):
        Budget.of(epsilon)


@pytest.mark.parametrize("delta", [0, 0.0, None])
def test_no_delta_is_pure(delta: object) -> None:
    assert Budget.of(1, delta).pure


def test_only_exact_numbers() -> None:
    with pytest.raises(TypeError, match=r"Budget\.of"):
        Budget(1.0)  # type: ignore[arg-type]


def test_an_epsilon_that_costs_nothing_is_refused() -> None:
    with pytest.raises(ParameterError, match="too small"):
        Budget.of("1e-30", "1e-30")
    with pytest.raises(ParameterError, match="too small"):
        Budget.of(1, "1e-30").cost(Fraction(1, 10**30))


def test_every_loss_has_a_price_in_rho() -> None:
    cap = Budget.of(1, "1e-9").cap
    assert in_currency(PureDP(Fraction(1, 2)), cap) == ZCDP(Fraction(1, 8))
    assert in_currency(ApproxDP(Fraction(1, 2), DELTA), cap) == ZCDP(Fraction(1, 8), DELTA)
    assert in_currency(ZCDP(Fraction(1, 7), DELTA), cap) == ZCDP(Fraction(1, 7), DELTA)


@pytest.mark.parametrize("loss", [ZCDP(Fraction(1)), ApproxDP(Fraction(1), DELTA)])
def test_a_pure_budget_pays_no_delta(loss: ZCDP | ApproxDP) -> None:
    with pytest.raises(ParameterError, match="need a delta"):
        in_currency(loss, PureDP(Fraction(1)))
    assert in_currency(ApproxDP(Fraction(1), Fraction(0)), PureDP(Fraction(1))) == PureDP(Fraction(1))


@given(st.fractions(min_value=0, max_value=3))
def test_prices_round_up_to_whole_quanta(epsilon: Fraction) -> None:
    for cap, exact in ((PureDP(epsilon), epsilon), (ZCDP(epsilon), epsilon**2 / 2)):
        loss = in_currency(PureDP(epsilon), cap)
        assert 0 <= amounts(loss)[0] - exact < Fraction(1, QUANTA)
        assert of_quanta(quanta_of(loss)) == loss


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=3), st.sampled_from([Fraction(0), DELTA]))
def test_a_call_at_the_whole_budget_fits_whatever_the_fraction(epsilon: Fraction, delta: Fraction) -> None:
    if epsilon.denominator > 10**50:
        return
    budget = Budget(epsilon, delta)
    nothing = remaining(budget.cap, budget.cap)
    cost = in_currency(budget.cost(epsilon), budget.cap)
    assert fits(nothing, cost, budget.cap)
    assert not fits(cost, cost, budget.cap)


def test_totals_add_fit_and_leave() -> None:
    cap = ZCDP(Fraction(1), DELTA)
    total = add(ZCDP(Fraction(1, 3)), ZCDP(Fraction(1, 3), DELTA))
    assert total == ZCDP(Fraction(2, 3), DELTA)
    assert fits(total, ZCDP(Fraction(1, 3)), cap)
    assert not fits(total, ZCDP(Fraction(1, 3) + Fraction(1, QUANTA)), cap)
    assert not fits(total, ZCDP(Fraction(1, 3), Fraction(1, QUANTA)), cap)
    assert remaining(total, cap) == ZCDP(Fraction(1, 3))
    assert remaining(ZCDP(Fraction(2), DELTA), cap) == ZCDP(Fraction(0))
    assert remaining(PureDP(Fraction(2)), PureDP(Fraction(3))) == PureDP(Fraction(1))


def test_currencies_do_not_mix() -> None:
    with pytest.raises(TypeError, match="in_currency"):
        add(PureDP(Fraction(1)), ZCDP(Fraction(1)))
    with pytest.raises(ParameterError, match="no ε"):
        Budget.of(1).as_epsilon(ZCDP(Fraction(1)))


@given(st.fractions(min_value=Fraction(1, 1000), max_value=1), st.sampled_from([Fraction(0), DELTA]))
@example(1 - Fraction(11, 11001782020880), Fraction(0))
def test_the_largest_call_fits_and_is_nearly_the_largest(used: Fraction, delta: Fraction) -> None:
    budget = Budget(Fraction(1), delta)
    left = remaining(budget.cost(used), budget.cap)
    largest = budget.largest_under(budget.rule, left)
    if largest is None:  # a rest below 10⁻¹² is nothing
        assert 1 - used < Fraction(1, 10**12)
        return
    assert fits(remaining(left, left), budget.cost(largest), left)
    assert not fits(remaining(left, left), budget.cost(largest * Fraction(1003, 1000)), left)


def test_nothing_is_left_of_nothing() -> None:
    budget = Budget.of(1, "1e-9")
    assert budget.largest_under(budget.rule, ZCDP(Fraction(0), DELTA)) is None
    assert budget.largest_under(budget.rule, remaining(ZCDP(Fraction(0)), budget.cap)) == 1
