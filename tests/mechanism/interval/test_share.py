"""Shares of a part in a whole hold at least as often as they say, whatever the groups are."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from confide.mechanism.interval.many_terms import dominating_repeated_half_width, repeated_half_width
from confide.mechanism.interval.share import share_interval
from confide.mechanism.noise.law import DiscreteGaussian, DiscreteLaplace, Law

ONE = Fraction(1)
REACH = 40
LAWS = [DiscreteLaplace(Fraction(2)), DiscreteGaussian(Fraction(9))]


def masses(law: Law) -> np.ndarray:
    """Probabilities of -REACH, ..., REACH."""
    right = -np.diff(law.tails(np.arange(REACH + 1, dtype=np.float64)))
    return np.concatenate([right[::-1], 1 - 2 * law.tails(np.zeros(1)), right])


@pytest.mark.parametrize("law", LAWS, ids=["laplace", "gaussian"])
@pytest.mark.parametrize("others", [1, 2])
@pytest.mark.parametrize(
    ("part", "rest"), [(0, 0), (0, 60), (1, 0), (3, 1), (1, 400), (60, 60), (200, 20), (400, 0), (7, 30)]
)
def test_exactly_at_least_as_often_as_stated(law: Law, others: int, part: int, rest: int) -> None:
    """By all noises that there may be, each with its probability."""
    own = masses(law)
    summed = own if others == 1 else np.convolve(own, own)
    half = len(summed) // 2
    covered, confidence = 0.0, 0.8
    for x, y in product(range(-25, 26), range(-30, 31)):
        low, high = share_interval(
            Fraction(part + x), Fraction(part + rest + x + y), [(ONE, law, 1)], [(ONE, law, others)], confidence
        )
        assert 0 <= low <= high <= 1
        holds = (low, high) == (0, 1) if part + rest == 0 else low <= part / (part + rest) <= high
        covered += own[REACH + x] * summed[half + y] * holds
    assert covered >= confidence
    if min(part, rest) >= 20:
        assert covered < 0.9


@pytest.mark.parametrize("law", LAWS, ids=["laplace", "gaussian"])
@pytest.mark.parametrize("confidence", [0.6, 0.9, 0.95, 0.99])
def test_of_nobody_any_share_is_possible(law: Law, confidence: float) -> None:
    own = masses(law)
    everything = sum(
        own[REACH + x] * own[REACH + y]
        for x, y in product(range(-REACH, REACH + 1), repeat=2)
        if share_interval(Fraction(x), Fraction(x + y), [(ONE, law, 1)], [(ONE, law, 1)], confidence) == (0, 1)
    )
    assert everything >= confidence - 1e-6


@pytest.mark.parametrize("law", [*LAWS, DiscreteLaplace(Fraction(300)), DiscreteGaussian(Fraction(250_000))], ids=str)
@pytest.mark.parametrize("groups", [2, 30, 400])
@pytest.mark.parametrize("skew", ["even", "one large", "empty", "tiny"])
def test_drawn_noise_is_covered(law: Law, groups: int, skew: str) -> None:
    """400 draws at 0.9 fall below 0.84 once in 10,000 times; seeds are fixed."""
    random = np.random.default_rng(groups)
    deviation = float(law.variance) ** 0.5
    sizes = {"even": [20 * deviation] * groups, "one large": [2_000 * deviation] + [2.0] * (groups - 1),
             "empty": [0.0] * groups, "tiny": [1.0] + [0.0] * (groups - 1)}[skew]  # fmt: skip
    exact = [round(size) for size in sizes]
    truth = Fraction(exact[0], sum(exact)) if sum(exact) else None
    held, widths = 0, []
    for _ in range(400):
        noise = drawn(random, law, groups)
        part, whole = exact[0] + int(noise[0]), sum(exact) + int(noise.sum())
        low, high = share_interval(Fraction(part), Fraction(whole), [(ONE, law, 1)], [(ONE, law, groups - 1)], 0.9)
        held += (low, high) == (0, 1) if truth is None else low <= truth <= high
        widths.append(high - low)
    assert held >= 336
    if skew == "even" and groups < 400:
        plain = 1.645 * ((1 - 1 / groups) ** 2 + (groups - 1) / groups**2) ** 0.5 * deviation / sum(exact)
        assert float(np.median(widths)) < 1.4 * 2 * plain


def drawn(random: np.random.Generator, law: Law, count: int) -> np.ndarray:
    if isinstance(law, DiscreteGaussian):
        return np.rint(random.normal(0, float(law.variance) ** 0.5, count))
    scale = 1 - np.exp(-1 / float(law.scale))
    return random.geometric(scale, count) - random.geometric(scale, count)


@pytest.mark.parametrize("law", LAWS, ids=["laplace", "gaussian"])
@pytest.mark.parametrize("count", [3, 40])
def test_what_dominates_serves_for_smaller_coefficients(law: Law, count: int) -> None:
    bound = dominating_repeated_half_width([(ONE, law, 1), (Fraction(1, 2), law, count)], 0.9)
    for own, other in product((Fraction(1, 3), Fraction(4, 5), ONE), (Fraction(1, 7), Fraction(1, 2))):
        assert repeated_half_width([(own, law, 1), (other, law, count)], 0.9) <= bound * Fraction(101, 100)


def test_a_constant_part_of_the_whole_is_never_empty() -> None:
    law = LAWS[0]
    low, high = share_interval(Fraction(2), Fraction(9), [(ONE, law, 1)], [], 0.95, least=Fraction(7))
    assert 0 <= low < high < 1
    assert share_interval(Fraction(2), Fraction(-9), [(ONE, law, 1)], [], 0.95, least=Fraction(7)) == (0, 1)
    assert share_interval(Fraction(900), Fraction(900), [(ONE, law, 1)], [], 0.95) == (1, 1)
