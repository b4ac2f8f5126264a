"""From which distance on a decider is effective: what the search finds is so, and what it declares useless is."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.mechanism.tally import Tally
from confide.trust.choice import Chooser
from confide.trust.effectiveness import needed_epsilon, sides, worst_error
from confide.trust.seen import Powers, imagined_sum, imagined_values, quantile_of
from confide.trust.target import DELTA, Facts, Target

INCOMES = np.minimum(np.random.default_rng(3).lognormal(10, 0.6, 4_000).astype(np.int64), 499_999)
AGES = Tally.of(np.clip(np.random.default_rng(4).normal(40, 15, 3_000).astype(np.int64), 0, 105).tolist())


def sums(sign: int, tau: int = 1) -> Chooser:
    data = Tally.of((sign * INCOMES).tolist())
    low, high = (0, 500_000) if sign > 0 else (-500_000, 0)
    target = Target(Fraction(data.total()), Fraction(tau))
    return Chooser(Facts("sum", 500_000, low=low, high=high), target, imagined_sum(data), "balanced", data)


def ages(q: Fraction) -> Chooser:
    answer = quantile_of(AGES, q)
    assert answer is not None
    facts = Facts("quantile", low=0, high=105, q=q)
    return Chooser(facts, Target(answer, Fraction(1)), imagined_values(AGES, (0, 105)))


def errors(question: Chooser, name: str, epsilon: Fraction, tau: Fraction) -> list[float]:
    """At equal answers, and 2τ apart where such answers are."""
    decider, target = question.make(name, epsilon, tau), question.target.widened(tau)
    found = [worst_error(decider, question.facts, target, question.imagine, gap) for gap in (Fraction(0), 2 * tau)]
    return [error for error in found if error is not None]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", ["r2t", "svt", "optimal", "clip", "laplace"])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_the_distance_found_for_a_sum_is_the_least_effective_one(sign: int, name: str, epsilon: Fraction) -> None:
    """τ of a race may be near its sum, where there is no answer 2τ below it."""
    if name == "svt" and sign < 0:
        return
    question = sums(sign)
    found = question.threshold(name, epsilon)
    assert found < inf
    least = Fraction(found) - question.make(name, epsilon).blind
    assert max(errors(question, name, epsilon, least)) <= DELTA
    assert max(errors(question, name, epsilon, least * Fraction(98, 100))) > DELTA


def test_a_race_is_effective_though_no_sum_is_as_far_below() -> None:
    """ε = 0.2 and τ above half of the sum: it errs rarely at every gap that there is, and says from where on."""
    question, epsilon = sums(1), Fraction(1, 5)
    whole = question.target.answer
    found = Fraction(question.threshold("r2t", epsilon))
    assert whole / 2 < found < 4 * whole
    assert sides(question.facts, whole, 2 * found) == [2 * found]
    assert max(errors(question, "r2t", epsilon, found)) <= DELTA


@pytest.mark.parametrize("name", ["optimal", "tie-aware", "histogram"])
def test_quantiles_near_the_end_of_their_range_are_decided_about(name: str) -> None:
    """No median is farther away than the ends of its column, and values all moved that far would pile up there."""
    question, epsilon = ages(Fraction(1, 2)), Fraction(1, 100)
    found = question.threshold(name, epsilon)
    assert found < inf
    assert max(errors(question, name, epsilon, Fraction(found))) <= DELTA


def test_an_imagined_sum_has_its_gap_and_its_shape() -> None:
    for values in ([3, 5, 90] * 50, [-3, -5, -90] * 50, [-8, 90] * 9, [0], []):
        data = Tally.of(values)
        imagine = imagined_sum(data)
        for gap in (-900, -7, 0, 1, 12_345):
            seen = imagine(Powers((2, 8, 128)), Fraction(gap))
            assert int(seen.sums[1].sum()) - int(seen.sums[0].sum()) == data.total() + gap  # type: ignore[union-attr]
    one = imagined_sum(Tally.of([3, 5, 90] * 50))(Powers((2, 8, 128)), Fraction(4_900))
    assert one.counts[1].tolist() == [0, 200, 100]  # type: ignore[union-attr]


def test_what_no_data_can_answer_is_no_error() -> None:
    question = sums(1, 4 * 10**8)
    decider = question.make("r2t", Fraction(1))
    far = 2 * question.target.tau
    assert sides(question.facts, question.target.answer, far) == [far]
    assert worst_error(decider, question.facts, question.target, question.imagine, far) == pytest.approx(0, abs=1e-6)
    question = ages(Fraction(1, 2))
    decider = question.make("optimal", Fraction(1))
    assert worst_error(decider, question.facts, question.target, question.imagine, Fraction(200)) is None
    with pytest.raises(ParameterError, match="no private answer is as far"):
        needed_epsilon(
            lambda e: question.make("optimal", e), question.facts, question.target, question.imagine, Fraction(200), 0.1
        )
