"""Clopper-Pearson audits of the mechanisms for quantiles, sums and means, on the neighbours that hurt each most.

The worst neighbours come from exact probabilities over all small data sets. A false alarm has probability 10⁻⁶ in every
case. Mutants with a known flaw, each found in published code or easily made, must be caught by the same audit.
"""

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

from confide.mechanism import KernelRandomness, TestRandomness
from confide.mechanism.quantile.choice import MAKERS, quantile_plan
from confide.mechanism.quantile.em import FlippedPair
from confide.mechanism.quantile.pair import Pair
from confide.mechanism.quantile.smooth_noise import quantile, smooth_sensitivity
from confide.mechanism.quantile.svt import walked_end
from confide.mechanism.selection.exponential import Exponential
from confide.mechanism.selection.sparse_vector import SparseVector
from confide.mechanism.smooth.smooth import Smooth, rounded_cauchy
from confide.mechanism.statistic import Setting
from confide.mechanism.tally import Tally, bucketed
from confide.mechanism.total.choice import SUMMERS, mean_plan, total_plan
from confide.mechanism.total.clipping import Radius
from confide.mechanism.total.race_sum import RacedSum
from confide.mechanism.total.tail_sum import Tail
from confide.privacy.loss import PureDP
from tests.conformance.audit import audit
from tests.conformance.sparse_vector import output_probabilities
from tests.mechanism.small_data import RELATIONS, tallied

DOMAIN = (0, 400)
EPSILON = Fraction(1)
ORDINARY, LONG = 100_000, 1_000_000


def _scored(relation, q):
    return Pair(Setting(DOMAIN, EPSILON, 0.9, relation), q).lower(q, EPSILON, 0.3)


def _flipped(relation, q):
    return FlippedPair(Setting(DOMAIN, EPSILON, 0.9, relation), q).lower(q, EPSILON, 0.3)


def _walked(relation, q):
    return walked_end(q, EPSILON, relation, 0.3)


def _blocks(end, counts):
    """So many rows at the low end, between, and at the high end of the domain.

    A score is hurt most by two long gaps; a walk by a long one and then few steps to stop on.
    """
    places = (0, 398, 400) if isinstance(end.mechanism, SparseVector) else (0, 200, 400)
    present = [(place, count) for place, count in zip(places, counts, strict=True) if count]
    return Tally(*(np.array(part, dtype=np.int64) for part in zip(*present, strict=True))) if present else Tally.of([])


def _pairs(relation, rows=1):
    """Neighbours among data in three blocks with gaps between them, which is where scores and counts move together."""
    for low in range(rows, 6):
        for middle in range(4):
            for high in range(rows, 40):
                here = np.array([low, middle, high])
                if relation == "add-remove":
                    changes = [(-rows, 0, 0), (0, 0, -rows)]
                else:
                    changes = [(-rows, rows, 0), (-rows, 0, rows), (0, rows, -rows)]
                for change in changes:
                    yield tuple(here.tolist()), tuple((here + change).tolist())


def _probabilities(end, counts):
    """Of every value of the domain, exactly."""
    tally = _blocks(end, counts)
    if isinstance(end.mechanism, SparseVector):
        stream = end.stream(tally, DOMAIN)
        scales = float(end.mechanism.threshold_scale), float(end.mechanism.query_scale)
        return output_probabilities(np.repeat(stream.margins, stream.lengths), *scales)
    _, sizes, exponents = end.segments(tally, DOMAIN)
    weights = np.exp(-float(end.mechanism.rate) * np.repeat(exponents, sizes))
    return weights / weights.sum()


def _visible_loss(here, there):
    """The largest log-ratio of a tail event that is likely enough to be seen."""
    worst = 0.0
    for one, two in ((here, there), (there, here), (here[::-1], there[::-1]), (there[::-1], here[::-1])):
        first, second = np.cumsum(one), np.cumsum(two)
        seen = first > 0.02
        worst = max(worst, float(np.log(first[seen] / second[seen]).max()))
    return worst


@lru_cache(maxsize=64)
def _worst(make, relation, q, rows=1):
    """The neighbours between which a visible event's probability changes most, and that change."""
    end = (make if make is not _flipped else _scored)(relation, q)
    exact = {}

    def loss(pair):
        for counts in pair:
            if counts not in exact:
                exact[counts] = _probabilities(end, counts)
        return _visible_loss(*(exact[counts] for counts in pair))

    pair = max(_pairs(relation, rows), key=loss)
    return pair, loss(pair)


def _by_value(end, tally, segments, places):
    """The value that each chosen candidate stands for."""
    pairs, inverse = np.unique(np.column_stack([segments, places]), axis=0, return_inverse=True)

    class Told(Exponential):
        chosen = (0, 0)

        def select(self, *_):
            return tuple(np.array([part]) for part in self.chosen)

    told = Told(end.mechanism.epsilon, end.mechanism.spread)
    values = []
    for pair in pairs:
        Told.chosen = tuple(int(part) for part in pair)
        values.append(replace(end, mechanism=told)([tally], DOMAIN, TestRandomness(1))[0])
    return np.array(values)[inverse.ravel()]


def _sampled(end, counts, runs, source):
    """Released ends on one data set, one row each."""
    tally = _blocks(end, counts)
    if isinstance(end.mechanism, SparseVector):
        return end.mechanism.first(end.stream(tally, DOMAIN), source, runs)[:, np.newaxis]
    starts, sizes, exponents = end.segments(tally, DOMAIN)
    segments, places = end.mechanism.select(exponents, sizes, source, runs)
    values = _by_value(end, tally, segments, places) if hasattr(end, "copies") else starts[segments] + places
    return values[:, np.newaxis]


ENDS = [_scored, _walked, _flipped]


def _finding(make, relation, q, runs, source, change=lambda end: end):
    end, (pair, _) = change(make(relation, q)), _worst(make, relation, q)
    return audit(*(_sampled(end, counts, runs, source) for counts in pair), PureDP(EPSILON))


def _runs(make, runs):
    return {_scored: runs, _walked: runs // 12, _flipped: runs // 20}[make]  # as their draws cost


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("make", ENDS)
def test_ends_of_quantiles(make, relation):
    assert not _finding(make, relation, Fraction(1, 2), _runs(make, ORDINARY), TestRandomness(1)).violated


@pytest.mark.audit
@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(4, 5), Fraction(1)])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("make", ENDS)
def test_audit_ends_of_quantiles(make, relation, q):
    assert not _finding(make, relation, q, _runs(make, LONG), KernelRandomness()).violated


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_worst_neighbours_come_close_to_the_stated_loss(relation):
    """So the audits look where there is something to see."""
    assert 0.6 < _worst(_scored, relation, Fraction(1, 2))[1] <= 1 + 1e-9


def _exact_loss(end, relation):
    """The largest log-ratio of any single output, between the data that the audits choose from."""
    exact = {}
    for pair in _pairs(relation):
        for counts in pair:
            if counts not in exact:
                exact[counts] = np.log(_probabilities(end, counts))
    return max(np.abs(exact[one] - exact[two]).max() for one, two in _pairs(relation))


@pytest.mark.parametrize("relation", RELATIONS)
def test_walks_by_exact_probabilities(relation):
    """A walk's worst outputs are too rare to be seen often, but their probabilities are known."""
    end = _walked(relation, Fraction(1, 2))
    assert 0.6 < _exact_loss(end, relation) <= 1 + 1e-9
    assert _exact_loss(_quieter(end), relation) > 1.2


def _sharper(end):
    """As if the score had half its sensitivity: what the published code for EMCI does."""
    return replace(end, mechanism=Exponential(2 * end.mechanism.epsilon, end.mechanism.spread))


def _quieter(end):
    """As if a row moved the counts by half."""
    return replace(end, mechanism=replace(end.mechanism, epsilon=2 * end.mechanism.epsilon))


@pytest.mark.parametrize("relation", RELATIONS)
def test_half_the_sensitivity_is_caught(relation):
    assert _finding(_scored, relation, Fraction(1, 2), ORDINARY, TestRandomness(2), _sharper).violated


def test_a_unit_with_several_rows_is_protected_as_a_whole():
    """Three rows of one unit move together; with noise for one row per unit the same move is caught."""
    pair, _ = _worst(_scored, "replace-one", Fraction(1, 2), rows=3)
    for rows, violated in ((3, False), (1, True)):
        setting = Setting(DOMAIN, EPSILON, 0.9, "replace-one", rows)
        end = Pair(setting, Fraction(1, 2)).lower(Fraction(1, 2), setting.row_epsilon, 0.3)
        samples = [_sampled(end, counts, ORDINARY, TestRandomness(n)) for n, counts in enumerate(pair)]
        assert audit(*samples, PureDP(EPSILON)).violated == violated


# --- smooth sensitivity -----------------------------------------------------------------------------------------------

NARROW, WIDE = (50,) * 6, (0, 50, 50, 50, 50, 50)
SPLIT = ((0,) * 5 + (100,) * 5, (0,) * 4 + (100,) * 6)


def _smoothed(data, relation, runs, source, sensitivity=smooth_sensitivity, factor=1):
    smooth, tally = Smooth(EPSILON), tallied(data)
    bound = sensitivity(tally, Fraction(1, 2), (0, 100), float(smooth.alpha), relation)
    answer, scale = quantile(tally, Fraction(1, 2), (0, 100)), smooth.factor * Fraction(bound) * factor
    return np.array([[rounded_cauchy(answer, scale, source)] for _ in range(runs)])


def _local_only(tally, q, domain, alpha, relation):
    """Noise scaled to local sensitivity, which tells what the local sensitivity is."""
    steps = np.array([tally.rows // 2 + step for step in (0, 1, 2)])
    values = tally.order_statistics(steps, *domain)
    return float(max(np.abs(np.diff(values)).max(), 1))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("pair", [(NARROW, WIDE), SPLIT])
def test_smooth_noise(pair, relation):
    samples = [_smoothed(data, relation, ORDINARY // 5, TestRandomness(3 + n)) for n, data in enumerate(pair)]
    assert not audit(*samples, PureDP(EPSILON)).violated


@pytest.mark.audit
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("pair", [(NARROW, WIDE), SPLIT])
def test_audit_smooth_noise(pair, relation):
    samples = [_smoothed(data, relation, LONG // 4, KernelRandomness()) for data in pair]
    assert not audit(*samples, PureDP(EPSILON)).violated


@pytest.mark.parametrize(
    ("pair", "flaw"),
    [
        ((((0,) * 3 + (100,) * 4), ((0,) * 4 + (100,) * 3)), {"factor": Fraction(1, 6)}),
        ((((50,) * 3 + (100,) * 2), ((50,) * 2 + (100,) * 3)), {"sensitivity": _local_only, "factor": Fraction(1, 8)}),
    ],
)
def test_too_little_smooth_noise_is_caught(pair, flaw):
    samples = [_smoothed(data, "replace-one", 40_000, TestRandomness(5 + n), **flaw) for n, data in enumerate(pair)]
    assert audit(*samples, PureDP(EPSILON)).violated


# --- sums -------------------------------------------------------------------------------------------------------------


def _levels(summer, data, runs, source, share=1):
    """The noised numbers behind a sum, one column for each bucket of each sign."""
    edges = summer.edges(False)
    buckets = bucketed(tallied(data), edges)
    columns = []
    for sign in summer._signs(False):
        if isinstance(summer, RacedSum):
            parts, levels = buckets.sums_upto(sign), summer._lanes(EPSILON, 0.1, False).noises
        else:
            parts, levels = buckets.sums[sign], summer._levels(np.array(edges), EPSILON * share)
        for level, exact in zip(levels, parts, strict=True):
            columns.append(level.measure(np.full(runs, int(exact)), source).values)
    return np.column_stack(columns)


SUM_PAIRS = {"add-remove": ((9, 9, -9), (9, -9)), "replace-one": ((9, 9), (9, -9))}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("make", [RacedSum, Tail])
def test_bucket_sums(make, relation):
    summer = make(Setting((-9, 9), EPSILON, 0.9, relation))
    samples = [_levels(summer, data, ORDINARY // 2, TestRandomness(n)) for n, data in enumerate(SUM_PAIRS[relation])]
    assert not audit(*samples, PureDP(EPSILON)).violated


def test_a_whole_epsilon_for_both_buckets_of_a_replaced_row_is_caught():
    summer = Tail(Setting((-1, 1), EPSILON, 0.9, "replace-one"))
    samples = [_levels(summer, data, ORDINARY, TestRandomness(n), share=2) for n, data in enumerate(((1, 1), (1, -1)))]
    assert audit(*samples, PureDP(EPSILON)).violated


@pytest.mark.parametrize("relation", RELATIONS)
def test_radii(relation):
    radius = Radius(EPSILON, 0.3, 64)
    pairs = {"add-remove": ((0,) * 9 + (64,), (0,) * 9), "replace-one": ((0,) * 9 + (64,), (0,) * 10)}
    samples = [
        radius.mechanism.first(radius.stream(tallied(data), 0), TestRandomness(n), ORDINARY)[:, np.newaxis]
        for n, data in enumerate(pairs[relation])
    ]
    assert not audit(*samples, PureDP(EPSILON)).violated


# --- whole releases ---------------------------------------------------------------------------------------------------

ROWS = {"add-remove": ((0, 0, 4, 4), (0, 4, 4)), "replace-one": ((0, 0, 4, 4), (0, 4, 4, 4))}


def _released(plan, data, runs, source):
    """Both ends and the estimate, in hundredths."""
    tally = tallied(data)
    results = [plan.measure(tally, source) for _ in range(runs)]
    return np.array([[r.interval.low, r.estimate, r.interval.high] for r in results], dtype=float) * 100


def _whole(plan, relation, runs, sources):
    samples = [_released(plan, data, runs, next(sources)) for data in ROWS[relation]]
    return audit(*(np.rint(sample).astype(np.int64) for sample in samples), plan.loss)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", sorted(MAKERS))
def test_a_release_of_a_quantile(name, relation):
    plan = quantile_plan(0.5, (0, 4), Fraction(2), 0.9, relation, mechanism=name)
    assert not _whole(plan, relation, 500, map(TestRandomness, (1, 2))).violated


@pytest.mark.audit
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", sorted(MAKERS))
def test_audit_a_release_of_a_quantile(name, relation):
    plan = quantile_plan(0.5, (0, 4), Fraction(2), 0.9, relation, mechanism=name)
    assert not _whole(plan, relation, LONG // 50, iter([KernelRandomness()] * 2)).violated


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", sorted(SUMMERS))
def test_a_release_of_a_sum(name, relation):
    plan = total_plan((0, 4), Fraction(2), 0.9, relation, mechanism=name)
    assert not _whole(plan, relation, 500, map(TestRandomness, (1, 2))).violated


@pytest.mark.audit
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("make", [total_plan, mean_plan])
@pytest.mark.parametrize("name", sorted(SUMMERS))
def test_audit_a_release_of_a_sum_or_mean(name, make, relation):
    plan = make((0, 4), Fraction(2), 0.9, relation, mechanism=name)
    assert not _whole(plan, relation, LONG // 200, iter([KernelRandomness()] * 2)).violated


def test_a_release_that_costs_more_than_it_states_is_caught():
    plan = total_plan((0, 4), Fraction(3), 0.9, "replace-one", mechanism="laplace")
    samples = [_released(plan, data, 3000, TestRandomness(n)) for n, data in enumerate(((0, 0), (0, 4)))]
    assert audit(*(np.rint(sample).astype(np.int64) for sample in samples), PureDP(Fraction(1))).violated
