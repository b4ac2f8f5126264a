from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.mechanism.noise.enclosure import ExponentialWeights, exponential

RATES = st.one_of(st.fractions(0, 30), st.fractions(0, 1, max_denominator=2**70), st.integers(0, 2000).map(Fraction))


def _taylor(rate: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Bounds of exp(-rate) from the series alone: exp(rate) between partial sums, inverted."""
    total = term = Fraction(1)
    count = 0
    while count < 2 * rate or term > Fraction(1, 4**bits):
        count += 1
        term = term * rate / count
        total += term
    return 1 / (total + 2 * term), 1 / total


@given(RATES, st.sampled_from([0, 8, 64, 128, 512]))
def test_exponential_is_enclosed(rate, bits):
    low, high = exponential(rate, bits)
    assert high - low <= 3
    if rate < 40:
        least, most = _taylor(Fraction(rate).limit_denominator(10**6), 200)
        reduced_low, reduced_high = exponential(Fraction(rate).limit_denominator(10**6), bits)
        assert reduced_low <= most * 2**bits
        assert reduced_high >= least * 2**bits
    with localcontext(prec=220):
        value = (-Decimal(rate.numerator) / rate.denominator).exp() * 2**bits
    assert low <= value <= high


def test_exponential_of_extreme_rates():
    assert exponential(Fraction(0), 64) == (2**64, 2**64)
    assert exponential(Fraction(10**40), 64) == (0, 1)
    low, high = exponential(Fraction(1, 10**40), 64)
    assert low <= 2**64 <= high + 1


@pytest.mark.parametrize("bits", [64, 512])
@pytest.mark.parametrize(
    "weights",
    [
        ExponentialWeights(Fraction(1, 3)),
        ExponentialWeights(Fraction(3, 7), folded=True),
        ExponentialWeights(Fraction(1, 200), Fraction(1, 100), folded=True),
        ExponentialWeights(Fraction(1, 50), Fraction(1, 25)),
        ExponentialWeights(Fraction(1, 1000), count=64),
        ExponentialWeights(Fraction(10**6), folded=True),
    ],
    ids=str,
)
def test_cumulative_encloses_the_distribution_function(weights, bits):
    with localcontext(prec=300):
        values = [Decimal(1)]
        while len(values) < (weights.count or 10**6):
            place = len(values)
            rate = place * weights.first + weights.step * place * (place - 1) / 2
            value = (-Decimal(rate.numerator) / rate.denominator).exp() * (2 if weights.folded else 1)
            if value < Decimal(10) ** -200:
                break
            values.append(value)
        total = sum(values)
        enclosed = weights.cumulative(bits)
        upto = Decimal(0)
        for low, high, value in zip(enclosed.lows, enclosed.highs, values, strict=False):
            upto += value
            assert low <= upto / total * 2**bits <= high
            assert high - low <= 2
    assert enclosed.ends == (weights.count is not None)
    if enclosed.ends:
        assert enclosed.lows[-1] == 2**bits
    else:
        assert enclosed.lows[-1] == 2**bits - 1  # so that all that lies beyond is one boundary word


def test_index_is_known_except_on_a_boundary_word():
    enclosed = ExponentialWeights(Fraction(1, 3), folded=True).cumulative(64)
    for place in range(5):
        word = enclosed.lows[place]
        assert enclosed.index(word - 1) == place
        assert enclosed.index(word) is None
        assert enclosed.index(word + 1) == place + 1
    assert enclosed.index(0) == 0
    assert enclosed.index(2**64 - 1) is None
