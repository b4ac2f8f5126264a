import random
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from confide.mechanism import DiscreteGaussian, DiscreteLaplace, KernelRandomness, TestRandomness
from confide.mechanism.noise.handful import (
    CERTAIN,
    LARGEST_SCALE,
    SMALLEST_SCALE,
    _geometric,
    _kept,
    draws_few,
    few,
    logarithms,
    signed,
)
from tests.mechanism.scripted import Scripted

SCALES = [Fraction(1, 3), Fraction(1), Fraction(22, 7), Fraction(12345.678), Fraction(2**21) - Fraction(1, 3)]


def _minus_log(word: int, bits: int = 64) -> Decimal:
    """-ln(word / 2^bits) to sixty digits."""
    with localcontext(prec=60):
        return -(Decimal(word) / Decimal(2**bits)).ln()


def _scaled(rate: Fraction, bits: int) -> int:
    """exp(-rate)·2^bits, rounded down."""
    with localcontext(prec=80):
        return int((Decimal(-rate.numerator) / rate.denominator).exp() * 2**bits)


def _words(*words: int) -> np.ndarray:
    return np.array(words, dtype=np.uint64)


def _piece(word: int) -> bytes:
    return word.to_bytes(8, "little")


def test_logarithms_are_as_near_as_the_proof_says():
    generator = random.Random(1)
    words = [CERTAIN, CERTAIN + 1, 2**64 - 1, 2**64 - 2, 2**63, 2**63 - 1, 2**63 + 1, 13043817825332782212]
    words += [2**bits + shift for bits in range(47, 64) for shift in (-1, 0, 1)]
    words += [min(2**64 - 1, int(2**bits * 0.5**0.5) + shift) for bits in range(48, 65) for shift in (-5, 0, 5)]
    words += [generator.randrange(CERTAIN, 2 ** generator.randint(47, 64)) for _ in range(6_000)]
    found = logarithms(_words(*words))
    room = Decimal(2) ** -45
    for word, near in zip(words, found.tolist(), strict=True):
        assert abs(Decimal(near) - _minus_log(word)) < room
        assert word + 1 == 2**64 or abs(Decimal(near) - _minus_log(word + 1)) < room


def test_the_rounding_in_a_logarithm_is_far_below_the_margin():
    """What the bits that were not drawn cannot explain: below 2^-47, as the proof says."""
    generator = random.Random(2)
    words = [generator.randrange(2**58, 2**64) for _ in range(5000)]
    errors = [abs(Decimal(near) - _minus_log(w)) for w, near in zip(words, logarithms(_words(*words)), strict=True)]
    assert max(errors) < Decimal(2) ** -47


@pytest.mark.parametrize("scale", SCALES, ids=float)
def test_draws_are_the_inverse_of_the_bits(scale):
    """For every word the k of its U, by sixty-digit arithmetic; words that do not tell are left to the next test."""
    generator = random.Random(3)
    words = [generator.getrandbits(64) for _ in range(3000)]
    drawn = _geometric(scale, len(words), Scripted(b"".join(map(_piece, words))))
    with localcontext(prec=60):
        for word, k in zip(words, drawn.tolist(), strict=True):
            place = _minus_log(word) * scale.numerator / scale.denominator
            if abs(place - place.to_integral_value()) > Decimal(float(scale)) * Decimal(2) ** -40:
                assert k == int(place)


@pytest.mark.parametrize("scale", SCALES, ids=float)
def test_a_word_at_a_boundary_is_decided_by_further_bits(scale):
    """exp(-k/scale) lies inside the word: the next 64 bits tell on which side of it U is, and nothing else is asked."""
    generator = random.Random(4)
    for k in [1, 2, 3, *generator.sample(range(1, max(5, int(8 * scale))), 4)]:
        word, tail = divmod(_scaled(k / scale, 128), 2**64)
        for shift, expected in ((-1, k), (1, k - 1)):
            source = Scripted(_piece(word), (tail + shift).to_bytes(8))
            assert _geometric(scale, 1, source).tolist() == [expected]
            assert source.used_up
            assert source.calls_after == 0


@pytest.mark.parametrize("scale", SCALES, ids=float)
def test_words_next_to_a_boundary_need_no_further_bits(scale):
    for k in (1, 2, 5):
        word = _scaled(k / scale, 64)
        for shift, expected in ((-1, k), (1, k - 1)):
            source = Scripted(_piece(word + shift))
            assert _geometric(scale, 1, source).tolist() == [expected]
            assert source.calls_after == 0


def test_a_tie_of_128_bits_goes_on():
    scale = Fraction(22, 7)
    word, tail = divmod(_scaled(3 / scale, 128), 2**64)
    source = Scripted(_piece(word), tail.to_bytes(8), b"\xff" * 8)
    assert _geometric(scale, 1, source).tolist() == [2]  # above exp(-3/s), by bits beyond 128
    assert source.used_up


def test_words_below_the_certain_ones_are_exact():
    """The far tail, where a double does not know the logarithm: the k of U for words down to the first."""
    for scale in SCALES[1:]:
        for word in (1, 2, 12345, 2**30, CERTAIN - 1):
            tail = 2**63 + 1
            drawn = _geometric(scale, 1, Scripted(_piece(word), *[tail.to_bytes(8)] * 3))
            with localcontext(prec=60):
                low, high = (_minus_log(end) * scale.numerator / scale.denominator for end in (word + 1, word))
            assert int(low) <= drawn[0] <= int(high)
    drawn = _geometric(Fraction(3), 1, Scripted(_piece(0), bytes(8), (1).to_bytes(8), bytes(8)))
    assert drawn[0] == int(_minus_log(1, 192) * 3)


@pytest.mark.parametrize("rate", [Fraction(1, 2**22), Fraction(1, 3), Fraction(7, 2), Fraction(12)], ids=float)
def test_coins_are_exact_where_64_bits_do_not_tell(rate):
    word, tail = divmod(_scaled(rate, 128), 2**64)
    for shift, expected in ((-1, True), (1, False)):
        source = Scripted(_piece(word), (tail + shift).to_bytes(8))
        assert _kept(np.array([float(rate)]), lambda _: rate, source).tolist() == [expected]
        assert source.used_up
        source = Scripted(_piece(word + shift))
        assert _kept(np.array([float(rate)]), lambda _: rate, source).tolist() == [expected]
        far = Scripted(_piece(word + shift * 2**40))
        assert _kept(np.array([float(rate)]), None, far).tolist() == [expected]  # without the exact rate


def test_a_coin_never_trusts_a_rate_that_a_double_missed():
    """The double of the rate is off by as much as may be: the exact rate decides all that this could change."""
    generator = random.Random(5)
    for _ in range(300):
        rate = Fraction(generator.uniform(1e-6, 13))
        off = float(rate) + generator.choice([-1, 1]) * 2.0**-46
        boundary = _scaled(rate, 64)
        word = min(max(boundary + generator.choice([-1, 1]) * generator.randint(1, 2**21), CERTAIN), 2**64 - 1)
        expected = word < boundary
        assert _kept(np.array([off]), lambda _, rate=rate: rate, Scripted(_piece(word))).tolist() == [expected]


def test_large_rates_are_never_kept():
    source = Scripted(_piece(CERTAIN) + _piece(2**64 - 1))
    assert _kept(np.array([14.0, 1e300]), None, source).tolist() == [False, False]


def test_the_margins_leave_hardly_anything_to_exact_arithmetic(monkeypatch):
    asked = []
    monkeypatch.setattr("confide.mechanism.noise.handful.inverted", lambda *_: asked.append(1) or 0)
    few(DiscreteLaplace(Fraction(2**40)), 10_000, TestRandomness(1))
    assert len(asked) < 10


def test_signs_are_fair_and_zero_has_none():
    kept = signed(np.zeros(8, dtype=np.int64), Scripted(b"\xf0"))
    assert kept.tolist() == [0] * 4
    assert signed(np.arange(1, 9), Scripted(b"\x81")).tolist() == [-1, 2, 3, 4, 5, 6, 7, -8]


@pytest.mark.parametrize(
    ("law", "drawn"),
    [
        (DiscreteLaplace(Fraction(LARGEST_SCALE)), True),
        (DiscreteLaplace(Fraction(LARGEST_SCALE + 1)), False),
        (DiscreteLaplace(SMALLEST_SCALE), True),
        (DiscreteLaplace(SMALLEST_SCALE / 2), False),
        (DiscreteGaussian(Fraction(LARGEST_SCALE**2)), True),
        (DiscreteGaussian(Fraction(LARGEST_SCALE**2 + 1)), False),
        (DiscreteGaussian(SMALLEST_SCALE**2), True),
        (DiscreteGaussian(SMALLEST_SCALE**2 / 2), False),
    ],
    ids=str,
)
def test_scales_at_the_ends(law, drawn):
    assert draws_few(law) is drawn
    if drawn:
        values = few(law, 50, KernelRandomness())
        assert values.dtype == np.int64
        assert values.shape == (50,)
        assert (law.variance < 1) == (not values.any())


@pytest.mark.parametrize("count", [0, 1, 7, 1000])
def test_as_many_as_asked_for(count):
    for law in (DiscreteLaplace(Fraction(1, 100)), DiscreteGaussian(Fraction(3)), DiscreteLaplace(Fraction(10**12))):
        assert few(law, count, TestRandomness(2)).shape == (count,)


def test_same_bits_same_draws():
    law = DiscreteGaussian(Fraction(10**14, 3))
    assert few(law, 40, TestRandomness(4)).tolist() == few(law, 40, TestRandomness(4)).tolist()
    assert few(law, 40, TestRandomness(4)).tolist() != few(law, 40, TestRandomness(5)).tolist()
