import math
from collections import Counter
from fractions import Fraction

import pytest

from confide.mechanism import KernelRandomness, TestRandomness, bernoulli_exponential, uniform_below
from confide.mechanism.noise.enclosure import exponential
from tests.mechanism.scripted import Scripted


def test_uniform_below_is_uniform():
    source = TestRandomness(1)
    counts = Counter(uniform_below(6, source) for _ in range(60_000))
    assert sorted(counts) == list(range(6))
    statistic = sum((count - 10_000) ** 2 / 10_000 for count in counts.values())
    assert statistic < 29.6  # chi-square with 5 degrees of freedom: false alarm 1.8e-5


def test_uniform_below_starts_again_when_the_bits_are_too_large():
    assert uniform_below(5, Scripted(b"\xe0", b"\xa0", b"\x80")) == 4  # 7, 5, then 4 in the top three bits


def test_uniform_below_large_bounds():
    bound = 3 * 2**500 + 1
    drawn = [uniform_below(bound, KernelRandomness()) for _ in range(200)]
    assert all(0 <= value < bound for value in drawn)
    assert max(drawn) > bound // 2 > min(drawn)
    assert uniform_below(1, TestRandomness(1)) == 0


@pytest.mark.parametrize("bound", [0, -3])
def test_uniform_below_needs_a_bound(bound):
    with pytest.raises(ValueError, match="below"):
        uniform_below(bound, TestRandomness(1))


@pytest.mark.parametrize("rate", [Fraction(1, 7), Fraction(1), Fraction(5, 2)])
def test_bernoulli_has_its_chance(rate):
    source = TestRandomness(2)
    hits = sum(bernoulli_exponential(rate, source) for _ in range(40_000))
    chance = math.exp(-rate)
    assert abs(hits - 40_000 * chance) < 5 * math.sqrt(40_000 * chance * (1 - chance))  # false alarm 6e-7


def test_bernoulli_of_extreme_rates():
    source = TestRandomness(3)
    assert all(bernoulli_exponential(Fraction(0), source) for _ in range(50))
    assert not any(bernoulli_exponential(Fraction(10**30), source) for _ in range(50))


def test_bernoulli_reads_on_when_64_bits_do_not_tell():
    rate = Fraction(1, 3)
    coarse, fine = exponential(rate, 64)[0], exponential(rate, 128)[0]
    for shift, expected in ((-1, True), (2, False)):
        source = Scripted(coarse.to_bytes(8), ((fine + shift) % 2**64).to_bytes(8))
        assert bernoulli_exponential(rate, source) is expected
        assert source.used_up


def test_bernoulli_continues_known_bits():
    rate = Fraction(1, 3)
    low = exponential(rate, 32)[0]
    assert bernoulli_exponential(rate, Scripted(), word=low - 1, known=32)
    assert not bernoulli_exponential(rate, Scripted(), word=low + 2, known=32)
