"""Sums beyond 64 bits, against Python's integers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.mechanism.noise import limbs

NUMBERS = st.integers(0, limbs.MOST) | st.sampled_from([0, 1, limbs.MASK, limbs.MASK + 1, limbs.MOST])


def _array(numbers, wide):
    return np.array(numbers, dtype=object if wide else np.int64)


@given(st.lists(NUMBERS, max_size=40), st.booleans())
def test_a_total(numbers, wide):
    assert limbs.total(_array(numbers, wide)) == sum(numbers)


@given(st.lists(st.tuples(st.integers(0, 5), NUMBERS), max_size=40), st.booleans())
def test_totals_by_place(pairs, wide):
    places = np.array([place for place, _ in pairs], dtype=np.int64)
    found = limbs.totals_at(places, _array([number for _, number in pairs], wide), 7)
    assert found.tolist() == [sum(number for own, number in pairs if own == place) for place in range(7)]


@given(st.lists(st.lists(NUMBERS, min_size=1, max_size=9), min_size=1, max_size=6), st.booleans())
def test_totals_of_runs(runs, wide):
    begins = np.cumsum([0, *map(len, runs)])[:-1]
    assert limbs.totals_of_runs(_array([number for run in runs for number in run], wide), begins).tolist() == [
        sum(run) for run in runs
    ]


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=9))
def test_a_sum_of_two(pairs):
    first, second = (np.array([pair[place] for pair in pairs], dtype=np.int64) for place in (0, 1))
    assert limbs.plus(first, second).tolist() == [sum(pair) for pair in pairs]


@pytest.mark.parametrize("numbers", [[limbs.MOST] * 2, [limbs.MOST, 1]])
def test_what_does_not_fit_is_no_longer_64_bits_wide(numbers):
    places, values = np.zeros(2, dtype=np.int64), np.array(numbers)
    assert limbs.totals_at(places, values, 1).dtype == object
    assert limbs.totals_at(places, values - values // 2 - 1, 1).dtype == np.int64
