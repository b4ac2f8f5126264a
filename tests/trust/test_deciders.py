"""What deciders do: closed forms against sampling, cautious bounds, the paper's formulas, and their errata."""

from fractions import Fraction
from itertools import pairwise
from math import exp, log

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.mechanism import TestRandomness
from confide.mechanism.tally import Buckets, Tally
from confide.trust.choice import Chooser
from confide.trust.clip import Clip
from confide.trust.effectiveness import error_at, needed_epsilon, worst_error
from confide.trust.median import Histogram, Selected
from confide.trust.optimal import Optimal
from confide.trust.plug_in import PlugIn
from confide.trust.race_decider import Raced
from confide.trust.seen import imagined_mean, imagined_sum, imagined_values, imagined_whole, seen_in
from confide.trust.sparse_decider import SparseDecider
from confide.trust.target import CAUTION, DELTA, Facts, Target
from tests.mechanism.segments import drawn_weight
from tests.mechanism.small_data import data_sets
from tests.trust.small_questions import CAUTIOUS, FACTS, VALUES, all_deciders, chooser, inside, read

RUNS = 20_000
NUMBERS = Tally.of(np.minimum(np.random.default_rng(5).lognormal(3, 1, 3_000).astype(np.int64), 999).tolist())
WIDE = Facts("sum", 999, low=0, high=999)


@pytest.mark.parametrize(("name", "decider"), [*all_deciders()])
def test_sampling_agrees_with_the_formula(name: str, decider: str) -> None:
    """Within 4.5 standard errors of 20,000 runs: a false alarm in 10⁵ for each."""
    question = chooser(name, Fraction(3, 2))
    made = question.make(decider, Fraction(3, 4))
    runs = RUNS // 5 if decider in ("svt", "r2t") else RUNS
    for seed, rows in enumerate([(1, 1, 2, 4), (0, 0, 1), (2, 3, 4, 4, 4, 4)]):
        seen = read(question.facts.kind, made.reading, rows)
        chance = made.chance(seen)
        share = made.decide(seen, TestRandomness(seed), runs).mean()
        assert abs(share - chance) <= 4.5 * (chance * (1 - chance) / runs) ** 0.5 + 1e-3 * (decider == "svt") + 1e-9


@pytest.mark.parametrize("ties", [False, True], ids=["exponential", "tie-aware"])
def test_values_far_away_are_drawn_as_often_as_they_weigh(ties: bool) -> None:
    """The last 2^61 values of a domain, which weigh 10^-16 and less: one row more moves their weight by e^ε at most."""
    decider = Selected(Target(Fraction(2**60), Fraction(2**59)), Fraction(1, 2), (0, 2**61), 1, Fraction(1), ties)
    rate, logarithms = decider.mechanism.rate, []
    rows = 80 if ties else 161  # the weight of one of them is e^-80
    for more in (-1, 0, 1, 2):
        _, sizes, exponents = decider._segments(Tally(np.array([5, 7]), np.array([rows, rows + more])))
        relative = int(exponents[-1] - exponents[sizes > 0].min())
        logarithms.append(log(drawn_weight(exponents, sizes, rate, len(sizes) - 1)))
        assert logarithms[-1] == pytest.approx(log(int(sizes[-1])) - float(rate) * relative)
        chance = decider.chance(Tally(np.array([5, 7]), np.array([rows, rows + more])))
        assert 0 < chance < 1e-15
    assert max(abs(one - two) for one, two in pairwise(logarithms)) <= 1 + 1e-9


@pytest.mark.parametrize(("name", "decider"), [(n, d) for n in FACTS for d in CAUTIOUS[FACTS[n].kind]])
def test_a_cautious_yes_is_wrong_as_rarely_as_it_says(name: str, decider: str) -> None:
    """Over all small data sets; `clip` assumes something of the tail, and is held to it where nothing is cut."""
    facts = FACTS[name] if decider != "clip" else Facts("sum", 4, low=0, high=4)
    question = chooser(name, Fraction(2), "cautious", facts)
    for epsilon in (Fraction(1, 2), Fraction(3)):
        made = question.make(decider, epsilon)
        assert made.wrong_yes is not None
        assert made.wrong_yes <= float(CAUTION) + 1e-9
        for rows in range(5):
            for data in data_sets(VALUES, rows):
                if inside(facts, question.target, data) or made.assumes:
                    continue
                assert made.chance(read(facts.kind, made.reading, data)) <= made.wrong_yes + 1e-9


def test_deciders_without_a_bound_refuse_to_be_cautious() -> None:
    for name in FACTS:
        for decider in set(chooser(name).names) - set(CAUTIOUS[FACTS[name].kind]):
            with pytest.raises(ParameterError, match="cautious"):
                chooser(name, 2, "cautious").make(decider, Fraction(1))


# --- counts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1, 4), Fraction(1)])
def test_no_private_decider_errs_less_on_a_count(epsilon: Fraction) -> None:
    """The linear programme: the best acceptance of any private decider as good at the edges is the optimal one's."""
    target = Target(Fraction(20), Fraction(6))
    made = Optimal.make(FACTS["count"], target, epsilon)
    chances = [made.chance(x) for x in range(41)]
    growth = [min(exp(float(epsilon)) * p, 1 - exp(-float(epsilon)) * (1 - p)) for p in chances]
    for x in range(target.first - 1, 20):
        assert chances[x + 1] == pytest.approx(growth[x], rel=1e-9)
    for x in range(21, target.last + 2):
        assert chances[x - 1] == pytest.approx(growth[x], rel=1e-9)
    edge = 1 / (1 + exp(float(epsilon)))
    assert [chances[target.first - 1], 1 - chances[target.first]] == pytest.approx([edge, edge], rel=1e-9)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1, 2)])
def test_at_the_centre_it_errs_half_as_often_as_laplace(epsilon: Fraction) -> None:
    target = Target(Fraction(1_000), Fraction(40))
    made, plain = (kind.make(FACTS["count"], target, epsilon) for kind in (Optimal, PlugIn))
    assert 1 - made.chance(1_000) == pytest.approx((1 - plain.chance(1_000)) / 2, rel=1e-6)


def test_the_graded_exponential_has_the_closed_form_of_the_paper() -> None:
    made = chooser("count", 10).make("exponential", Fraction(1, 4))
    for gap in (0, 4, 9, 10, 15, 20, 400):
        depth = max(-10, 10 - gap)
        assert made.chance(5 + gap) == pytest.approx(1 / (1 + exp(-depth / 4)))


def test_it_does_not_overflow_into_a_coin() -> None:
    """q₁₂ of the paper at ε = 1: exp(7527·u') is no number in double precision, and the published error is 0.57."""
    target = Target(Fraction(470_483), Fraction(470_483) * Fraction(32, 1000))
    made = Chooser(FACTS["count"], target, imagined_whole(470_483)).make("exponential", Fraction(1))
    assert 1 - made.chance(471_994) < 1e-100
    assert made.decide(471_994, TestRandomness(1), 1_000).all()


def test_effectiveness_thresholds_of_counts_and_the_erratum_of_proposition_43() -> None:
    """Equal answers make LM_count say no with probability e^(-ετ), so its threshold is ln(1/δ)/ε, not ln(1/2δ)/ε."""
    epsilon, delta = Fraction(1, 100), float(DELTA)
    question = Chooser(FACTS["count"], Target(Fraction(10_000), Fraction(1)), imagined_whole(10_000))
    found = {name: question.threshold(name, epsilon) * float(epsilon) for name in question.names}
    assert found["laplace"] == pytest.approx(log(1 / delta), abs=0.02)
    assert found["exponential"] == pytest.approx(log((1 - delta) / delta), abs=0.02)
    assert found["optimal"] == pytest.approx(log(1 / (2 * delta)), abs=0.02)
    assert found["exponential-naive"] == float("inf")
    published = log(1 / (2 * delta)) / float(epsilon)
    plain = question.make("laplace", epsilon, Fraction(published))
    assert 1 - plain.chance(10_000) > 1.9 * delta


def test_the_error_forecast_is_that_of_the_gap_and_epsilon_is_found_for_it() -> None:
    target = Target(Fraction(749), Fraction(30))
    question = Chooser(FACTS["count"], target, imagined_whole(749))
    made = question.make("optimal", Fraction(1, 10))
    assert error_at(made, target, question.imagine, Fraction(10)) == pytest.approx(1 - made.chance(759))
    assert error_at(made, target, question.imagine, Fraction(-50)) == pytest.approx(made.chance(699))
    epsilon = needed_epsilon(
        lambda e: question.make("optimal", e), question.facts, target, question.imagine, Fraction(10), 0.01
    )
    for factor, holds in ((Fraction(1), True), (Fraction(98, 100), False)):
        again = question.make("optimal", epsilon * factor)
        assert (worst_error(again, question.facts, target, question.imagine, Fraction(10)) <= 0.01) == holds


def test_where_no_epsilon_helps_it_says_so() -> None:
    """The published sparse vector drops what matters, however much is spent."""
    question = _sum_question(NUMBERS.total() * Fraction(1, 20))
    with pytest.raises(ParameterError, match="no ε up to"):
        needed_epsilon(lambda e: question.make("svt", e), WIDE, question.target, question.imagine, Fraction(0), 0.05)


# --- sums -------------------------------------------------------------------------------------------------------------


def _sum_question(tau: object, facts: Facts = WIDE) -> Chooser:
    target = Target(Fraction(NUMBERS.total()), Fraction(tau))  # type: ignore[arg-type]
    return Chooser(facts, target, imagined_sum(NUMBERS), "balanced", NUMBERS)


def test_the_published_sparse_vector_says_no_at_any_epsilon_and_the_clipped_sum_does_not() -> None:
    """The private data are the synthetic ones, so yes is right; the top 5 % hold more than τ, and are dropped."""
    question = _sum_question(NUMBERS.total() * Fraction(1, 20))
    for epsilon in (Fraction(5), Fraction(50), Fraction(500)):
        sparse, clip = question.make("svt", epsilon), question.make("clip", epsilon)
        assert sparse.chance(seen_in(sparse.reading, NUMBERS)) < 0.05
        assert clip.chance(seen_in(clip.reading, NUMBERS)) > 0.999


def test_the_cut_is_where_noise_and_tail_are_least_together() -> None:
    made = _sum_question(5_000).make("clip", Fraction(1, 2))
    assert isinstance(made, Clip)
    assert made.cuts
    assert 0 < made.cut.high < 999
    found = _sum_question(5_000).threshold("clip", Fraction(1, 2))
    assert found < 0.75 * _sum_question(5_000).threshold("optimal", Fraction(1, 2))
    precise = _sum_question(5_000).make("clip", Fraction(50))
    assert isinstance(precise, Clip)
    assert precise.cut.high > made.cut.high


def test_many_private_rows_beyond_the_cut_are_a_no() -> None:
    question = _sum_question(50_000)
    made = question.make("clip", Fraction(1))
    kept, outside = seen_in(made.reading, NUMBERS)  # type: ignore[misc]
    assert made.chance((kept, outside)) > 0.99
    assert made.chance((kept, 2 * outside + 10)) > 0.99
    assert made.chance((kept, 2 * outside + 200)) < 0.01


def test_an_unbounded_column_is_clipped_and_nothing_else() -> None:
    facts = Facts("sum", None)
    question = Chooser(
        facts, Target(Fraction(NUMBERS.total()), Fraction(9_000)), imagined_sum(NUMBERS), "balanced", NUMBERS
    )
    assert question.choose("auto", Fraction(1)).decider.name == "clip"
    for name in ("laplace", "exponential", "optimal", "r2t", "svt"):
        with pytest.raises(ParameterError, match="clip"):
            question.make(name, Fraction(1))


def test_the_race_underestimates_and_reaches_the_largest_value() -> None:
    made = _sum_question(NUMBERS.total() * Fraction(9, 10)).make("r2t", Fraction(1))
    edges = made.reading.edges  # type: ignore[union-attr]
    assert edges[-1] >= 999
    assert edges[-2] < 999
    assert made.chance(seen_in(made.reading, NUMBERS)) > 0.95


def test_negative_values_are_raced_apart_and_cut_alike() -> None:
    both = Tally.of([-50, -3, 4, 9, 60] * 200)
    facts = Facts("sum", 100, low=-100, high=100)
    question = Chooser(facts, Target(Fraction(both.total()), Fraction(15_000)), imagined_sum(both), "balanced", both)
    raced = question.make("r2t", Fraction(2))
    assert raced.chance(seen_in(raced.reading, both)) > 0.9
    for tau in (2_000, 5_000, 9_000):
        narrow = question.make("r2t", Fraction(2), Fraction(tau))
        sampled = narrow.decide(seen_in(narrow.reading, both), TestRandomness(tau), 4_000).mean()
        assert narrow.chance(seen_in(narrow.reading, both)) == pytest.approx(sampled, abs=0.04)
    clip = question.make("clip", Fraction(1, 50))
    assert isinstance(clip, Clip)
    assert clip.cut.low == -clip.cut.high
    with pytest.raises(ParameterError, match="negative"):
        question.make("svt", Fraction(1))


# --- quantiles --------------------------------------------------------------------------------------------------------


def test_the_histogram_of_the_paper_is_off_by_one_and_ours_is_not() -> None:
    """Three values, the median is the second: two at or above r are a no, and ⌈3/2⌉ = 2 is n - m + 1 as well; four
    values, the median is the second: three at or above r are a no, and two are not."""
    for values, right in (((0, 4, 4), False), ((0, 0, 4, 4), True), ((0, 4, 4, 4), False)):
        made = Histogram.make(FACTS["median"], Target(Fraction(0), Fraction(2)), Fraction(400))
        assert (made.chance(seen_in(made.reading, Tally.of(values))) > 0.99) == right


def test_the_published_score_does_not_find_a_median_among_ties() -> None:
    """45 of 100 rows are 37. Counted from below, 21 to 37 score alike; by a rank with ties 37 is the best alone."""
    ages = Tally.of([20] * 30 + [37] * 45 + [60] * 25)
    facts = Facts("quantile", low=0, high=100, q=Fraction(1, 2))
    question = Chooser(facts, Target(Fraction(37), Fraction(1)), imagined_values(ages, (0, 100)))
    chances = {name: question.make(name, Fraction(1)).chance(ages) for name in ("exponential", "tie-aware")}
    assert chances["exponential"] < 0.1
    assert chances["tie-aware"] > 0.9
    made = question.make("optimal", Fraction(1))
    assert made.chance(seen_in(made.reading, ages)) > 0.9999


# --- nothing fails after the charge -----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), Fraction(1), Fraction(500)])
@pytest.mark.parametrize("size", [0, 1, 2**62, 2**100, -(2**100)])
def test_sums_of_any_size_are_decided(size: int, epsilon: Fraction) -> None:
    """Sums go to 2¹²⁶: no decider may raise on one, since what raised would tell about the data."""
    facts = Facts("sum", 2**60, low=-(2**60), high=2**60)
    for single in (True, False):
        known = Facts("sum", 2**60, 3, single, low=-(2**60), high=2**60)
        question = Chooser(known, Target(Fraction(2**70), Fraction(2**65)), imagined_sum(NUMBERS), "balanced", NUMBERS)
        for name in question.names:
            if name in ("svt", "r2t") or (name == "exponential-naive" and not single):
                continue
            made = question.make(name, epsilon)
            seen = (size, 7) if name == "clip" else size
            assert made.decide(seen, TestRandomness(1)).dtype == bool
    buckets = Buckets(
        (2, 2**60), np.array([[1, 2], [3, 4]], dtype=object), np.array([[1, 2], [abs(size), 4]], dtype=object)
    )
    raced = Raced(Target(Fraction(2**70), Fraction(2**65)), (2, 2**60), (0, 1), 1, epsilon)
    sparse = SparseDecider(Target(Fraction(2**70), Fraction(2**65)), (2, 2**60), 1, epsilon)
    assert raced.decide(buckets, TestRandomness(1)).dtype == bool
    assert sparse.decide(buckets, TestRandomness(1)).dtype == bool
    mean = Chooser(
        Facts("mean", low=facts.low, high=facts.high), Target(Fraction(5), Fraction(1, 3)), imagined_mean(5, 1)
    )
    for name in mean.names:
        assert mean.make(name, epsilon).decide((size, 2**40), TestRandomness(1)).dtype == bool


@pytest.mark.parametrize("q", [Fraction(0), Fraction(999_999, 10**6), Fraction(1)])
def test_quantiles_of_any_number_of_rows_are_decided(q: Fraction) -> None:
    facts = Facts("quantile", low=0, high=10**9, q=q)
    for rows in (0, 2**43):
        for name in ("optimal", "histogram", "exponential-naive"):
            made = Chooser(facts, Target(Fraction(50), Fraction(3)), imagined_whole(0)).make(name, Fraction(1, 10**6))
            assert made.decide((rows, rows // 2, rows // 2), TestRandomness(1)).dtype == bool
        for name in ("tie-aware", "exponential"):
            made = Chooser(facts, Target(Fraction(50), Fraction(3)), imagined_whole(0)).make(name, Fraction(1))
            counted = Tally(np.array([7], dtype=np.int64)[: bool(rows)], np.array([rows], dtype=np.int64)[: bool(rows)])
            assert made.decide(counted, TestRandomness(1)).dtype == bool


# --- the choice -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "epsilon", "name", "why"),
    [
        (chooser("count", 40), Fraction(1, 4), "optimal", "effective at this τ"),
        (chooser("count", 2), Fraction(1, 4), "laplace", "no decider is effective"),
        (chooser("count", 2, "cautious"), Fraction(1, 4), "optimal", "bounded whatever the data are"),
        (_sum_question(9_000), Fraction(1, 2), "clip", "cutting rare large values"),
        (_sum_question(100), Fraction(1, 2), "clip", "no decider is effective"),
        (chooser("sum", 2, "cautious"), Fraction(1), "optimal", "bounded"),
        (chooser("mean", 1), Fraction(1), "optimal", "none into a count"),
        (chooser("median", 1), Fraction(1), "optimal", "half a row"),
    ],
)
def test_auto_chooses_from_public_facts_and_says_why(question: Chooser, epsilon: Fraction, name: str, why: str) -> None:
    chosen = question.choose("auto", epsilon)
    assert chosen.decider.name == name
    assert why in chosen.why
    assert chosen.threshold == question.threshold(name, epsilon)


def test_unknown_deciders_are_refused_with_those_there_are() -> None:
    with pytest.raises(ParameterError, match=r"no decider 'svt' for a count; there are auto, optimal, laplace"):
        chooser("count").choose("svt", Fraction(1))
    with pytest.raises(ParameterError, match="one of them"):
        chooser("count", facts=Facts("count", 3, single=False)).make("exponential-naive", Fraction(1))


def test_thresholds_of_means_lie_between_the_steps_of_the_grid() -> None:
    found = chooser("mean").threshold("optimal", Fraction(20))
    assert 0 < found < 1.5
    assert found != round(found)
