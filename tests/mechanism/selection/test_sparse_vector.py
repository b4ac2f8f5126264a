import math
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from confide.mechanism import KernelRandomness, TestRandomness
from confide.mechanism.selection.sparse_vector import (
    BLOCK,
    SparseVector,
    Stream,
    _chances,
    _exact_has_top,
    _has_top,
    _place,
    _place_of,
    geometric,
)
from confide.privacy.loss import PureDP
from tests.conformance.audit import audit
from tests.conformance.sparse_vector import BROKEN, output_probabilities, pattern_probability, redrawn_log_ratio
from tests.mechanism.fitting import fits
from tests.mechanism.scripted import Scripted

RUNS = 10_000


def _stream(margins, lengths=None):
    lengths = [1] * len(margins) if lengths is None else lengths
    return Stream(np.array(margins, dtype=np.int64), np.array(lengths, dtype=np.int64))


def _scales(mechanism):
    return float(mechanism.threshold_scale), float(mechanism.query_scale)


@pytest.mark.parametrize(
    ("margins", "lengths"),
    [
        ([0], [1]),
        ([-3, -1, 2, 5], [1, 1, 1, 1]),
        ([-9, -4, -1, 4], [5, 3, 1, 2]),
        ([-30, -12, 0], [7, 40, 1]),
        ([3, 2, 1, 0, -1, -2, -3], [1] * 7),
    ],
)
@pytest.mark.parametrize("mechanism", [SparseVector(Fraction(1), 1, 2), SparseVector(Fraction(1, 3), 2, 3)])
def test_the_first_top_has_its_exact_law(mechanism, margins, lengths):
    places = mechanism.first(_stream(margins, lengths), TestRandomness(3), RUNS)
    expanded = np.repeat(margins, lengths)
    observed = np.bincount(np.where(places < 0, len(expanded), places), minlength=len(expanded) + 1)
    assert fits(observed, output_probabilities(expanded, *_scales(mechanism)))


def test_first_tops_of_many_streams_have_their_exact_laws():
    mechanism, source = SparseVector(Fraction(1), 1, 2), TestRandomness(6)
    streams = [_stream([-9, -4, -1, 4], [5, 3, 1, 2]), _stream([-3, -1, 2, 5]), _stream([])]
    places = mechanism.first_of_each(streams * RUNS, source).reshape(RUNS, len(streams))
    for column, stream in enumerate(streams[:2]):
        margins = np.repeat(stream.margins, stream.lengths)
        observed = np.where(places[:, column] < 0, len(margins), places[:, column])
        law = output_probabilities(margins, *_scales(mechanism))
        assert fits(np.bincount(observed, minlength=len(margins) + 1), law)
    assert np.all(places[:, 2] == -1)
    assert abs(np.corrcoef(places[:, 0], places[:, 1])[0, 1]) < 5 / math.sqrt(RUNS)


@pytest.mark.parametrize("sizes", [[3], [BLOCK + 5], [BLOCK - 2, 2, 1, 5], [1, 2 * BLOCK, 1, 0], [0], [0, 0], []])
def test_streams_are_drawn_for_together_up_to_a_block(sizes):
    mechanism = SparseVector(Fraction(1000), 1, 2)
    streams = [_stream([-100] * (size - 1) + [100] * min(size, 1), [2] * size) for size in sizes]
    expected = [2 * (size - 1) if size else -1 for size in sizes]
    assert mechanism.first_of_each(streams, TestRandomness(1)).tolist() == expected


def test_streams_over_the_largest_domain_are_drawn_for_together():
    mechanism = SparseVector(Fraction(1000), 1, 2)
    streams = [_stream([-100, 100], [2**62, 2**62 - 1])] * 5
    assert mechanism.first_of_each(streams, TestRandomness(1)).tolist() == [2**62] * 5


@given(st.lists(st.integers(-20, 20), max_size=30), st.integers(0, 50))
def test_one_stream_is_drawn_for_as_before(margins, seed):
    mechanism, stream = SparseVector(Fraction(1), 1, 2), _stream(margins)
    both = mechanism.first(stream, TestRandomness(seed)), mechanism.first_of_each([stream], TestRandomness(seed))
    assert both[0].tolist() == both[1].tolist()


def test_several_tops_have_their_exact_law():
    mechanism, margins = SparseVector(Fraction(2), 1, 2, tops=2), [-2, 1, 0, -1, 2]
    patterns = [places for size in range(3) for places in combinations(range(5), size)]
    source, runs = TestRandomness(4), 2000
    found = [tuple(mechanism.places(_stream([-2, 1, 0, -1, 2]), source)) for _ in range(runs)]
    observed = np.array([found.count(pattern) for pattern in patterns])
    assert observed.sum() == runs
    expected = [pattern_probability(margins, pattern, 2, *_scales(mechanism)) for pattern in patterns]
    assert sum(expected) == pytest.approx(1)
    assert fits(observed, np.array(expected))


def test_tops_in_runs_are_found_one_after_the_other():
    mechanism = SparseVector(Fraction(50), 1, 2, tops=3)
    assert mechanism.places(_stream([-100, 100, -100, 100], [10**15, 2, 5, 10]), TestRandomness(1)) == [
        10**15,
        10**15 + 1,
        10**15 + 7,
    ]
    assert mechanism.places(_stream([-100], [10**6]), TestRandomness(1)) == []
    assert mechanism.places(_stream([100], [1]), TestRandomness(1)) == [0]


@given(
    st.lists(st.integers(-6, 6), min_size=1, max_size=7),
    st.data(),
    st.integers(0, 2),
    st.integers(0, 2),
    st.sampled_from([Fraction(1, 2), Fraction(2)]),
)
def test_no_output_is_more_likely_on_a_neighbour_than_the_loss_allows(margins, data, down, up, epsilon):
    assume(up + down)
    changes = [data.draw(st.integers(-down, up)) for _ in margins]
    mechanism = SparseVector(epsilon, max(up, down), up + down)
    ratios = np.log(
        output_probabilities(margins, *_scales(mechanism))
        / output_probabilities([m + c for m, c in zip(margins, changes, strict=True)], *_scales(mechanism))
    )
    assert np.abs(ratios).max() <= float(epsilon) + 1e-9


@given(st.lists(st.integers(-3, 3), min_size=3, max_size=6), st.data(), st.integers(2, 3))
def test_no_pattern_of_several_tops_is_either(margins, data, tops):
    changes = [data.draw(st.integers(-1, 1)) for _ in margins]
    mechanism = SparseVector(Fraction(1), 1, 2, tops=tops)
    for size in range(tops + 1):
        for places in combinations(range(len(margins)), size):
            here, there = (
                pattern_probability(values, places, tops, *_scales(mechanism))
                for values in (margins, [m + c for m, c in zip(margins, changes, strict=True)])
            )
            assert abs(math.log(here / there)) <= 1 + 1e-9


def test_the_whole_loss_can_be_used_up():
    """With many queries the worst ratio comes close to ε, so the noise is not larger than it must be."""
    mechanism = SparseVector(Fraction(1), 1, 2)
    here = output_probabilities([-2] * 400 + [1], *_scales(mechanism))[400]
    there = output_probabilities([-1] * 400 + [0], *_scales(mechanism))[400]
    assert 0.9 < math.log(here / there) <= 1


@pytest.mark.parametrize("name", BROKEN)
def test_published_variants_that_are_broken_are_caught(name):
    """200,000 runs a side; a false alarm has probability 10⁻⁶."""
    variant, epsilon, tops, here, there = BROKEN[name]
    generator = np.random.default_rng(1)
    samples = [variant(np.array(margins), epsilon, tops, 200_000, generator) for margins in (here, there)]
    assert audit(*samples, PureDP(Fraction(epsilon))).violated


def test_a_threshold_redrawn_with_too_small_a_scale_is_caught():
    assert redrawn_log_ratio(4.0, 8, threshold_scale=2 / 4.0) > 4 + 1
    assert redrawn_log_ratio(4.0, 8, threshold_scale=2 * 8 / 4.0) <= 4  # the scale that it takes


@pytest.mark.parametrize(
    ("runs", "source"),
    [(100_000, TestRandomness(9)), pytest.param(1_000_000, KernelRandomness(), marks=pytest.mark.audit)],
)
def test_the_audit_finds_nothing_in_ours(runs, source):
    mechanism = SparseVector(Fraction(1), 1, 2)
    samples = [
        mechanism.first(_stream(margins), source, runs)[:, np.newaxis]
        for margins in ([-1, -1, -1, -1, 1], [0, 0, 0, 0, 0])
    ]
    assert not audit(*samples, mechanism.loss).violated


@pytest.mark.parametrize(("rise", "spread", "tops"), [(1, 2, 1), (1, 1, 1), (1, 2, 5), (3, 4, 2)])
def test_the_budget_is_split_by_two_thirds_powers(rise, spread, tops):
    mechanism = SparseVector(Fraction(1), rise, spread, tops)
    first, second = rise / mechanism.threshold_scale, tops * spread / mechanism.query_scale
    assert 1 - 1e-12 < first + second <= 1
    assert float(second / first) == pytest.approx((tops * spread / rise) ** (2 / 3), rel=1e-4)


@pytest.mark.parametrize("miss", [0.3, 0.05, 1e-6])
@pytest.mark.parametrize("mechanism", [SparseVector(Fraction(1), 1, 2), SparseVector(Fraction(7), 3, 5)])
def test_misses_and_early_stops_are_as_rare_as_said(mechanism, miss):
    def missed(margin):
        return output_probabilities([margin], *_scales(mechanism))[1]

    below = mechanism.missed_below(miss)
    assert missed(below) <= miss * (1 + 1e-6)
    assert below == 0 or missed(below - 1) > miss
    above = mechanism.stopped_above(miss)
    assert 1 - missed(-above) <= miss * (1 + 1e-6)
    assert above == 0 or 1 - missed(1 - above) > miss


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(5), Fraction(100)])
def test_one_sided_noise_is_geometric(scale):
    drawn = geometric(scale, RUNS, TestRandomness(8))
    assert drawn.min() >= 0
    ratio = math.exp(-1 / scale)
    edges = np.arange(drawn.max() + 2)
    expected = ratio**edges * (1 - ratio)
    expected[-1] = ratio ** edges[-1]
    assert fits(np.bincount(drawn, minlength=len(edges)), expected)


@pytest.mark.parametrize(("gap", "length"), [(1, 2), (5, 13), (9, 10**6), (40, 2**61)])
def test_places_in_a_run_are_truncated_geometric(gap, length):
    scale, source, runs = Fraction(3), TestRandomness(7), 3000
    places = np.array([_place(gap, length, scale, source) for _ in range(runs)])
    chance = math.exp(-gap / 3)
    whole = -math.expm1(length * math.log1p(-chance))
    edges = np.unique([int(-math.log1p(-whole * share) / -math.log1p(-chance)) for share in np.linspace(0, 0.999, 25)])
    below = -np.expm1((edges + 1) * math.log1p(-chance)) / whole
    cells = np.diff(np.concatenate([[0], below[:-1], [1]]))
    observed = np.bincount(np.searchsorted(edges[:-1], places, side="left"), minlength=len(cells))
    assert places.max() < length
    assert fits(observed, cells)


def test_a_place_that_the_first_bits_do_not_tell_asks_for_more():
    """V at the border between the first and the second place of two: s = 1 - e^-1, V·(1 - s²) = 1 - s."""
    chance = Fraction("0.36787944117144232159552377016146086744581113103176783450783680169746149574489980335714727")
    border = int(chance / (1 - (1 - chance) ** 2) * 2**64)
    assert _place_of(border, 64, 1, 2, Fraction(1)) is None
    for more, expected in ((b"\x00" * 8, 0), (b"\xff" * 8, 1)):
        source = Scripted(border.to_bytes(8), more)
        assert _place(1, 2, Fraction(1), source) == expected
        assert source.used_up


@pytest.mark.parametrize(("gap", "length"), [(1, 1), (3, 7), (30, 10**12), (10**6, 2**61)])
def test_doubtful_words_are_decided_exactly(gap, length):
    scale = Fraction(2)
    chance = float(_chances(np.array([[gap]]), np.array([length]), scale)[0, 0])
    word = int(chance * 2.0**64)
    near = 1 << 20  # beyond the error of the double
    assert not _exact_has_top(gap, length, scale, min(word + near, 2**64 - 1), TestRandomness(1)) or chance > 0.999999
    assert _exact_has_top(gap, length, scale, max(word - near, 0), TestRandomness(1)) or chance < 1e-12


def test_a_word_that_a_double_would_misjudge_is_decided_exactly():
    """Between a chance and the double nearest to it: one says top, the other does not."""
    scale, judged = Fraction(2), 0
    for gap, length in product((1, 2, 3, 5, 9), (2, 3, 7, 30)):
        chance = 1 - (1 - (-gap / Decimal(2)).exp()) ** length
        exact, double = (
            int(chance * 2**64),
            int(Fraction(float(_chances(np.array([gap]), np.array([length]), scale)[0])) * 2**64),
        )
        word = (exact + double) // 2
        if abs(exact - double) > 1:
            words = Scripted(word.to_bytes(8, "little"))
            most = np.array([2**64 - 1], dtype=np.uint64)
            assert _has_top(np.array([gap]), np.array([length]), most, scale, words)[0] == (word < exact)
            judged += 1
    assert judged >= 3


def test_a_stream_must_have_positive_lengths():
    with pytest.raises(ValueError, match="positive length"):
        _stream([1, 2], [1, 0])
    with pytest.raises(ValueError, match="several tops"):
        SparseVector(Fraction(1), 1, 2, tops=2).first(_stream([1]), TestRandomness(1))
    with pytest.raises(ValueError, match="several tops"):
        SparseVector(Fraction(1), 1, 2, tops=2).first_of_each([_stream([1])], TestRandomness(1))
