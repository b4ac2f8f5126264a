import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.mechanism import KernelRandomness, TestRandomness
from confide.mechanism.exponential import MARGIN, Exponential, _proposal, scaled_coin
from confide.privacy.loss import ZCDP, PureDP
from tests.mechanism.fitting import fits
from tests.mechanism.scripted import Scripted

INVERSE_E = Fraction("0.36787944117144232159552377016146086744581113103176783450783680169746149574489980335714727")


def _probabilities(exponents, sizes, rate):
    least = min(exponents)
    weights = np.array(
        [size * math.exp(-rate * (exponent - least)) for exponent, size in zip(exponents, sizes, strict=True)]
    )
    return weights / weights.sum()


@pytest.mark.parametrize(
    ("exponents", "sizes", "epsilon"),
    [
        ([0, 1, 2, 3], [1, 1, 1, 1], Fraction(1)),
        ([5, 4, 3, 9], [1, 7, 2, 40], Fraction(2)),
        ([0, 40, 41], [1, 2**60, 2**62], Fraction(2)),  # huge segments, tiny weights
        ([3, 0, 6, 1], [0, 3, 5, 0], Fraction(1, 3)),  # empty segments
        ([10**12, 10**12 + 3], [1, 1], Fraction(1)),
        (list(range(60)), [1 + n % 5 for n in range(60)], Fraction(1, 10)),
    ],
)
def test_segments_come_out_in_proportion_to_their_weights(exponents, sizes, epsilon):
    """A false alarm once in 10,000 were the seed drawn; it is fixed."""
    mechanism, runs = Exponential(epsilon, 2), 40_000
    segments, places = mechanism.select(np.array(exponents), np.array(sizes), TestRandomness(5), runs)
    observed = np.bincount(segments, minlength=len(sizes))
    assert not observed[np.array(sizes) == 0].any()
    assert fits(observed, _probabilities(exponents, sizes, float(mechanism.rate)))
    assert (places >= 0).all()
    assert (places < np.array(sizes)[segments]).all()


def test_places_within_a_segment_are_uniform():
    _, places = Exponential(Fraction(1), 2).select(np.array([3]), np.array([7]), TestRandomness(6), 20_000)
    assert fits(np.bincount(places, minlength=7), np.full(7, 1 / 7))


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 2**62)), min_size=1, max_size=30),
    st.fractions(Fraction(1, 10**6), 50),
)
def test_a_proposal_is_never_below_its_exact_weight(segments, rate):
    exponents, sizes = (np.array(part, dtype=np.int64) for part in zip(*segments, strict=True))
    if not sizes.any():
        sizes[0] = 1
    proposal = _proposal(exponents, sizes, rate)
    assert (proposal.ceilings[sizes == 0] == 0).all()
    for place in np.flatnonzero(sizes):
        exact = (
            proposal.factor
            * int(sizes[place])
            * Fraction(math.exp(-min(float(rate * int(proposal.relative[place])), 750)))
        )
        assert exact * (1 + Fraction(MARGIN) / 2) <= int(proposal.ceilings[place])
    assert int(proposal.ends[-1]) < 2**52


@pytest.mark.parametrize("ratio", [Fraction(1), Fraction(3, 2), Fraction(1, 7)])
def test_the_coin_is_decided_by_its_exact_chance(ratio):
    """U just below and just above ratio × exp(-1), to 128 bits."""
    chance = int(ratio * INVERSE_E * 2**128)
    for offset, expected in ((-3, True), (3, False)):
        word = chance + offset
        source = Scripted((word >> 64).to_bytes(8), (word % 2**64).to_bytes(8))
        assert scaled_coin(ratio, Fraction(1), source) is expected
        assert source.used_up


@pytest.mark.parametrize(("more", "expected"), [(b"\x00" * 8, True), (b"\xff" * 8, False)])
def test_a_doubtful_word_is_left_to_exact_arithmetic(more, expected):
    proposal = _proposal(np.array([0, 1]), np.array([1, 1]), Fraction(1))
    chance = proposal.factor / int(proposal.ceilings[1]) * INVERSE_E
    source = Scripted(int(chance * 2**64).to_bytes(8, "little"), more)
    assert proposal.accept(np.array([1]), source)[0] == expected
    assert source.used_up


def test_nothing_to_select_from_is_refused():
    with pytest.raises(ValueError, match="nothing"):
        Exponential(Fraction(1), 2).select(np.array([1]), np.array([0]), KernelRandomness())


def test_the_loss_is_stated_both_ways():
    mechanism = Exponential(Fraction(1, 2), 2)
    assert mechanism.loss == PureDP(Fraction(1, 2))
    assert mechanism.zcdp == ZCDP(Fraction(1, 32))
    assert mechanism.rate == Fraction(1, 4)


def test_a_million_segments_take_one_pass():
    generator = np.random.default_rng(1)
    exponents, sizes = generator.integers(0, 10**7, 10**6), generator.integers(1, 10**9, 10**6)
    segments, _ = Exponential(Fraction(1, 1000), 2).select(exponents, sizes, TestRandomness(2))
    assert 0 <= segments[0] < 10**6
