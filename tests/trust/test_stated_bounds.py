"""No decider says a wrong yes more often than it states, anywhere on a grid of ε, τ, GS and gaps."""

from fractions import Fraction

import pytest

from confide.errors import ParameterError
from confide.mechanism import TestRandomness
from confide.mechanism.tally import Tally
from confide.trust.choice import Chooser
from confide.trust.clip import Clip
from confide.trust.seen import imagined_sum, seen_in
from confide.trust.target import CAUTION, Facts, Target
from tests.trust.stated_bounds import sweep

DIGITS = 1e-9
HEAVY = Tally.of([1, 2, 3] * 60 + [90] * 4)


def test_no_wrong_yes_is_likelier_than_stated() -> None:
    found = [*sweep([Fraction(1, 2)], [Fraction(1, 2)], [100], ["cautious"])]
    assert len(found) > 300
    assert [one for one in found if one.exact > one.stated + DIGITS] == []


@pytest.mark.audit
def test_no_wrong_yes_is_likelier_than_stated_on_the_whole_grid() -> None:
    epsilons = [Fraction(1, 1_000), Fraction(1, 20), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(20)]
    shares = [Fraction(1, 10_000), Fraction(1, 100), Fraction(1, 20), Fraction(1, 4), Fraction(1), Fraction(3)]
    for one in sweep(epsilons, shares, [1, 10, 100, 10**6, 2**40], ["cautious", "balanced"]):
        assert one.exact <= one.stated + DIGITS, one


@pytest.mark.parametrize("low", [0, -100])
def test_a_cut_that_may_be_off_by_all_of_tau_is_a_no_whatever_the_data_are(low: int) -> None:
    facts = Facts("sum", 100, low=low, high=100)
    target = Target(Fraction(HEAVY.total()), Fraction(100))
    question = Chooser(facts, target, imagined_sum(HEAVY), "cautious", HEAVY)
    chosen = question.choose("clip", Fraction(1, 20))
    decider = chosen.decider
    assert isinstance(decider, Clip)
    assert decider.tail >= target.tau
    assert decider.wrong_yes == 0
    assert "no yes would be safe" in chosen.why
    for total in range(-200, 1_000, 25):
        assert decider.chance((total, 0)) == 0
    assert not decider.decide(seen_in(decider.reading, HEAVY), TestRandomness(1), 1_000).any()
    wider = question.make("clip", Fraction(1, 20), decider.tail + 1)
    assert 0 < (wider.wrong_yes or 0) <= CAUTION


def test_auto_is_cautious_whatever_the_data_are_or_refuses() -> None:
    question = Chooser(
        Facts("sum", None), Target(Fraction(HEAVY.total()), Fraction(500)), imagined_sum(HEAVY), "cautious", HEAVY
    )
    with pytest.raises(ParameterError, match=r"unbounded column whatever the data are.*mechanism='clip'"):
        question.choose("auto", Fraction(1))
    assert question.choose("clip", Fraction(1)).decider.assumes
