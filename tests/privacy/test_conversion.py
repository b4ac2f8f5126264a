import math
from fractions import Fraction

import dp_accounting
import pytest
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.privacy.amount import QUANTA
from confide.privacy.conversion import epsilon_of, rho_for, rho_of_exponential, rho_of_pure

epsilons = st.fractions(min_value=Fraction(1, 10**6), max_value=100, max_denominator=10**9)
deltas = st.integers(1, 60).map(lambda halvings: Fraction(1, 2**halvings))


def delta_at(epsilon: float, rho: float) -> float:
    """The δ that ρ-zCDP gives at ε, by a fine grid over α: an independent reading of the same theorem."""
    best = math.inf
    for step in range(1, 20_000):
        t = 10 ** (-6 + 14 * step / 20_000)
        log_delta = t * ((1 + t) * rho - epsilon) - math.log(t) + (1 + t) * (math.log(t) - math.log1p(t))
        best = min(best, log_delta)
    return best


@pytest.mark.parametrize("rho", [1e-6, 1e-3, 0.01, 0.1, 0.5, 1, 5, 50])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9, 1e-15])
def test_agrees_with_dp_accounting(rho: float, delta: float) -> None:
    # Gaussian noise with standard deviation σ is exactly 1/(2σ²)-zCDP; the accountant has its own conversion from RDP.
    orders = [1 + 10 ** (-2 + 8 * step / 4000) for step in range(4000)]
    accountant = RdpAccountant(orders)
    accountant.compose(dp_accounting.GaussianDpEvent(math.sqrt(1 / (2 * rho))))
    theirs = accountant.get_epsilon(delta)
    ours = float(epsilon_of(Fraction(rho), Fraction(delta)))
    assert ours == pytest.approx(theirs, rel=1e-4)
    assert ours <= theirs * (1 + 1e-9)  # their orders are a grid; ours is the optimum


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 3, 10])
@pytest.mark.parametrize("delta", [1e-4, 1e-9])
def test_the_rho_found_meets_delta_and_nothing_larger_does(epsilon: float, delta: float) -> None:
    rho = float(rho_for(Fraction(epsilon), Fraction(delta)))
    assert delta_at(epsilon, rho) <= math.log(delta) + 1e-4
    assert delta_at(epsilon, rho * 1.001) > math.log(delta)


@settings(max_examples=300)
@given(epsilons, deltas)
def test_there_and_back_never_gains(epsilon: Fraction, delta: Fraction) -> None:
    rho = rho_for(epsilon, delta)
    assert rho > 0
    back = epsilon_of(rho, delta)
    # What comes back may be above ε only by the flatness of the optimum, and below it only by one rounding.
    assert abs(back - epsilon) <= epsilon / 10**9 + Fraction(1, 10**20)


@settings(max_examples=100)
@given(epsilons, epsilons, deltas)
def test_monotone(one: Fraction, other: Fraction, delta: Fraction) -> None:
    low, high = sorted((one, other))
    assert rho_for(low, delta) <= rho_for(high, delta)
    assert epsilon_of(low, delta) <= epsilon_of(high, delta)


@settings(max_examples=100)
@given(epsilons, deltas)
def test_better_than_the_textbook_bound(rho: Fraction, delta: Fraction) -> None:
    textbook = float(rho) + 2 * math.sqrt(float(rho) * math.log(1 / float(delta)))
    assert float(epsilon_of(rho, delta)) <= textbook


def test_results_are_whole_quanta() -> None:
    assert (rho_for(Fraction(1), Fraction(1, 10**9)) * QUANTA).denominator == 1
    assert (epsilon_of(Fraction(1, 7), Fraction(1, 10**9)) * QUANTA).denominator == 1


def test_ends_of_the_range() -> None:
    for epsilon in (Fraction(1, 10**12), Fraction(10**6)):
        for delta in (Fraction(1, 10**30), Fraction(1, 2), Fraction(10**9 - 1, 10**9)):
            rho = rho_for(epsilon, delta)
            assert rho > 0
            assert abs(epsilon_of(rho, delta) - epsilon) <= epsilon / 10**6
    assert epsilon_of(Fraction(0), Fraction(1, 100)) == 0


def test_exact_steps() -> None:
    assert rho_of_pure(Fraction(1, 3)) == Fraction(1, 18)
    assert rho_of_exponential(Fraction(1, 3)) == Fraction(1, 72)


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1), Fraction(-1), Fraction(2)])
def test_needs_a_delta_between_0_and_1(delta: Fraction) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        rho_for(Fraction(1), delta)
