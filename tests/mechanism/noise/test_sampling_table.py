import random
from fractions import Fraction

import numpy as np
import pytest

from confide.mechanism import TestRandomness
from confide.mechanism.noise.enclosure import ExponentialWeights
from confide.mechanism.noise.sampling_table import UNDECIDED, table
from tests.mechanism.scripted import Scripted

GAUSSIAN = ExponentialWeights(Fraction(1, 200), Fraction(1, 100), folded=True)
LAPLACE = ExponentialWeights(Fraction(1, 3), folded=True)
DIGIT = ExponentialWeights(Fraction(1, 100), count=32)
GEOMETRIC = ExponentialWeights(Fraction(1, 10))


def _script(word: int, signed: bool, negative: bool, *more: bytes) -> Scripted:
    """A source whose next U starts with the 64 bits of `word`, and the given bytes after them."""
    known = 16 - signed
    prefix = word >> (64 - known)
    if signed:
        prefix = prefix << 1 | negative
    rest = (word << known) % 2**64
    return Scripted(prefix.to_bytes(2, "little"), rest.to_bytes(8, "little"), *more)


def test_every_decided_cell_is_decided_rightly():
    for weights, signed in [(GAUSSIAN, True), (LAPLACE, True), (DIGIT, False), (GEOMETRIC, False)]:
        made = table(weights, signed)
        enclosed = weights.cumulative(64)
        bits = 16 - signed
        for prefix in random.Random(1).sample(range(2**bits), 2000):
            cell = int(made.cells[prefix << signed])
            start, end = prefix << (64 - bits), ((prefix + 1) << (64 - bits)) - 1
            if cell == UNDECIDED:
                assert enclosed.index(start) is None or enclosed.index(start) != enclosed.index(end)
            else:
                assert enclosed.index(start) == enclosed.index(end) == cell
                if signed:
                    assert made.cells[prefix << 1 | 1] == -cell


def test_most_cells_are_decided():
    assert (table(GAUSSIAN, signed=True).cells == UNDECIDED).mean() < 0.002


@pytest.mark.parametrize(
    ("weights", "signed"), [(GAUSSIAN, True), (LAPLACE, True), (DIGIT, False), (GEOMETRIC, False)], ids=str
)
def test_words_beside_a_boundary_are_decided_by_64_bits(weights, signed):
    made, enclosed = table(weights, signed), weights.cumulative(64)
    for place in (0, 1, 5, 9):
        for shift, expected in ((-1, place), (1, place + 1)):
            source = _script(enclosed.lows[place] + shift, signed, negative=False)
            drawn = made.draw(1, source)
            assert drawn.tolist() == [expected]
            assert source.used_up
            assert source.calls_after == 0


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("place", [0, 1, 7, 20])
@pytest.mark.parametrize(
    ("weights", "signed"), [(GAUSSIAN, True), (LAPLACE, True), (DIGIT, False), (GEOMETRIC, False)], ids=str
)
def test_a_boundary_word_is_refined_to_512_bits(weights, signed, place, negative):
    made = table(weights, signed)
    boundary = weights.cumulative(64).lows[place]
    fine = weights.cumulative(512).lows[place]
    assert fine >> 448 == boundary
    sign = -1 if signed and negative else 1
    for shift, expected in ((-1, place), (1, place + 1)):
        rest = ((fine + shift) % 2**448).to_bytes(56)
        source = _script(boundary, signed, negative, rest)
        assert made.draw(1, source).tolist() == [sign * expected]
        assert source.used_up
        assert source.calls_after == 0


def test_a_tie_at_512_bits_is_refined_further():
    place = 3
    made = table(GAUSSIAN, signed=True)
    coarse, fine, finer = (GAUSSIAN.cumulative(bits).lows[place] for bits in (64, 512, 1024))
    for shift, expected in ((-1, place), (1, place + 1)):
        tie = (fine % 2**448).to_bytes(56)
        rest = ((finer + shift) % 2**512).to_bytes(64)
        source = _script(coarse, True, False, tie, rest)
        assert made.draw(1, source).tolist() == [expected]
        assert source.used_up


@pytest.mark.parametrize("weights", [GAUSSIAN, LAPLACE, GEOMETRIC], ids=str)
def test_the_last_word_reaches_beyond_the_table(weights):
    signed = weights.folded
    made = table(weights, signed)
    fine = weights.cumulative(512)
    generator = random.Random(2)
    for size in (448, 400, 200, 64):  # the smaller, the further out
        rest = 2**448 - 1 - generator.getrandbits(size)
        word = (2**64 - 1) << 448 | rest
        expected = next(place for place, low in enumerate(fine.lows) if word < low)
        assert fine.highs[expected - 1] <= word
        drawn = made.draw(1, _script(2**64 - 1, signed, False, rest.to_bytes(56)))
        assert drawn.tolist() == [expected]
    assert expected > len(made.lows)


def test_a_finite_table_has_no_tail():
    drawn = table(DIGIT).draw(1, Scripted(b"\xff\xff", b"\xff" * 8))
    assert drawn.tolist() == [31]


def test_draws_are_the_inverse_transform_of_their_bits():
    """The whole path against a direct search with all 64 bits, on the same bits."""
    made, enclosed = table(LAPLACE, signed=True), LAPLACE.cumulative(64)
    drawn = made.draw(20_000, TestRandomness(5))
    replay = TestRandomness(5)
    prefixes = np.frombuffer(replay.bytes(40_000), dtype="<u2").astype(int)
    undecided = np.flatnonzero(made.cells[prefixes] == UNDECIDED)
    fresh = dict(zip(undecided.tolist(), (replay.uint64(len(undecided)) >> np.uint64(15)).tolist(), strict=True))
    for place, prefix in enumerate(prefixes.tolist()):
        word = (prefix >> 1) << 49 | fresh.get(place, 0)
        index = enclosed.index(word)
        assert drawn[place] == (-index if prefix & 1 else index)
