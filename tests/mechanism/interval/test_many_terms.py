"""Sums of very many terms have half-widths by their law: never too narrow, and next to that of the normal law."""

from fractions import Fraction
from itertools import pairwise
from math import sqrt

import numpy as np
import pytest

from confide.mechanism import DiscreteGaussian, DiscreteLaplace, TestRandomness, draw
from confide.mechanism.interval import many_terms
from confide.mechanism.interval.linear import combined_half_width
from confide.mechanism.interval.many_terms import dominating_repeated_half_width, repeated_half_width

ONE = Fraction(1)
LAPLACE, WIDE = DiscreteLaplace(Fraction(5)), DiscreteLaplace(Fraction(10**9))
NORMAL, VAST = DiscreteGaussian(Fraction(30)), DiscreteGaussian(Fraction(10**12))


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("law", [DiscreteLaplace(Fraction(1, 2)), LAPLACE, NORMAL])
@pytest.mark.parametrize("count", [17, 20, 32])
def test_it_is_the_quantile_of_the_exact_law(law, confidence, count):
    exact = combined_half_width([(ONE, law)] * count, confidence)
    assert exact <= repeated_half_width([(ONE, law, count)], confidence) <= exact * Fraction(101, 100) + 1


@pytest.mark.parametrize("law", [LAPLACE, NORMAL, WIDE, VAST])
@pytest.mark.parametrize("count", [40, 700, 20_000])
def test_many_terms_are_next_to_the_normal_law(law, count):
    half = float(repeated_half_width([(ONE, law, count)], 0.95))
    normal = 1.959964 * sqrt(count * float(law.variance))
    assert 0.99 * normal <= half <= 1.05 * normal


@pytest.mark.parametrize(
    "kinds",
    [
        [(ONE, LAPLACE, 300)],
        [(Fraction(1, 300), LAPLACE, 299), (Fraction(299, 300), LAPLACE, 1)],
        [(Fraction(1), NORMAL, 40), (Fraction(3, 2), LAPLACE, 25)],
        [(Fraction(1), WIDE, 60), (Fraction(7), VAST, 3)],
        [(Fraction(place), LAPLACE, 1) for place in range(1, 401)],
        [(Fraction(1, 7 * place + 1), (LAPLACE, NORMAL)[place % 2], 1) for place in range(400)],
    ],
)
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_it_covers(kinds, confidence):
    """Two thousand sums: by chance one that misses as often as it may is further off than this once in a million."""
    runs = 2_000
    sums = np.zeros(runs)
    for place, (coefficient, law, count) in enumerate(kinds):
        noise = draw(law, (runs * count,), TestRandomness(place)).astype(float).reshape(runs, count)
        sums += float(coefficient) * noise.sum(axis=1)
    half = float(repeated_half_width(kinds, confidence))
    missed = float(np.mean(np.abs(sums) > half))
    slack = 5 * sqrt(confidence * (1 - confidence) / runs)
    assert missed <= 1 - confidence + slack
    assert missed >= 0.6 * (1 - confidence) - slack


def test_a_bound_for_more_terms_serves_for_fewer():
    widths = [repeated_half_width([(ONE, LAPLACE, count)], 0.95) for count in range(17, 400)]
    assert all(one <= two for one, two in pairwise(widths))
    assert len(set(widths)) < 140


def test_a_sum_that_wraps_around_would_be_noticed(monkeypatch):
    """With a circle that is too small the quantile comes out too small."""
    whole = repeated_half_width([(ONE, LAPLACE, 1_000)], 0.95)
    monkeypatch.setattr(many_terms, "chernoff_of", lambda *_: Fraction(60))
    many_terms._many.cache_clear()
    try:
        assert many_terms._wrapped(((ONE, LAPLACE, 1_000),), 0.05, 1_000) < whole / 2
    finally:
        many_terms._many.cache_clear()


def test_rare_misses_are_left_to_closed_forms():
    half = repeated_half_width([(ONE, NORMAL, 100)], 1 - Fraction(1, 10**9))
    assert 5 * sqrt(3000) < half < 8 * sqrt(3000)


@pytest.mark.parametrize("scale", [Fraction(1, 10**12), Fraction(1, 10**6), Fraction(1, 100), Fraction(2**300)])
@pytest.mark.parametrize("factor", [Fraction(1, 2**300), ONE, Fraction(2**300)])
@pytest.mark.parametrize("count", [2, 40, 3_000])
def test_nothing_raises_whatever_the_scale_is(scale, factor, count):
    for law in (DiscreteLaplace(scale), DiscreteGaussian(scale)):
        for confidence in (0.5, 0.95, 1 - Fraction(1, 10**12)):
            half = repeated_half_width([(factor, law, count), (ONE, law, 20)], confidence)
            assert half >= 0
            assert combined_half_width([(factor, law)] * min(count, 20), confidence) >= 0


@pytest.mark.parametrize("law", [LAPLACE, NORMAL])
@pytest.mark.parametrize("repeated", [repeated_half_width, dominating_repeated_half_width])
def test_very_many_kinds_take_as_long_as_some(repeated, law, monkeypatch):
    """The law of some hundred kinds is computed, and serves for all; spreading costs a sixth, and raising little."""
    transformed = []
    plain = many_terms.levelled
    monkeypatch.setattr(many_terms, "levelled", lambda *own: (transformed.append(1), plain(*own))[1])
    kinds = [(Fraction(place, 997), law, 1) for place in range(1, 5_001)]
    many_terms._many.cache_clear()
    half = float(repeated(kinds, 0.95))
    assert 0 < len(transformed) <= many_terms.MOST_KINDS
    normal = 1.959964 * sqrt(sum(float(a) ** 2 for a, *_ in kinds) * float(law.variance))
    assert 0.99 * normal <= half <= 1.3 * normal


def test_coefficients_that_are_raised_are_no_smaller():
    kinds = tuple((Fraction(place, 10**place), LAPLACE, place) for place in range(1, 30))
    for bits in (1, 3, 40):
        raised = many_terms._raised(kinds, Fraction(3, 7), bits)
        assert sum(count for *_, count in raised) == sum(count for *_, count in kinds)
        for (coefficient, _, _), (own, _, _) in zip(kinds, raised, strict=False):
            assert coefficient / Fraction(3, 7) <= own <= coefficient / Fraction(3, 7) * (1 + Fraction(2, 2**bits))
