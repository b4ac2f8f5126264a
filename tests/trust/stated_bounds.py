"""What a decider states of a wrong yes, beside its exact probability where no is right, over a grid of questions."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil, floor

from confide.errors import ParameterError
from confide.mechanism.tally import Tally
from confide.trust.choice import Chooser
from confide.trust.clip import Clip
from confide.trust.decider import Decider
from confide.trust.seen import Seen, imagined_mean, imagined_sum, imagined_values, imagined_whole, quantile_of
from confide.trust.target import Facts, Prefer, Target

SHAPES = {
    "small": [1, 1, 2, 3, 5] * 40,
    "rare and large": [1, 2, 3] * 60 + [90] * 4,
    "one row": [7],
    "all equal": [4] * 100,
}
ROWS = ((1, True, False), (3, True, False), (3, False, False), (2, True, True))
"""Rows of a unit, whether it is in one group only, and whether rows are replaced."""


@dataclass(frozen=True)
class Stated:
    """One decider in one setting: what it states, the largest exact probability of a wrong yes, and where that is."""

    setting: str
    stated: float
    exact: float


def sweep(
    epsilons: Iterable[Fraction], shares: Iterable[Fraction], reaches: Iterable[int], prefers: Iterable[Prefer]
) -> Iterator[Stated]:
    """Every decider with a bound: over ε, τ as a share of the synthetic answer, GS, and every gap that matters."""
    for epsilon, share, reach, prefer in product(epsilons, shares, reaches, prefers):
        for shape, question in _questions(share, reach, prefer):
            for name in question.names:
                try:
                    decider = question.make(name, epsilon)
                except ParameterError:
                    continue
                if decider.wrong_yes is None:
                    continue
                exact = max(decider.chance(seen) for seen in _wrong(question, decider))
                setting = f"{question.facts} {shape} {name} {prefer} ε={epsilon} τ={question.target.tau}"
                yield Stated(setting, decider.wrong_yes, exact)


def _questions(share: Fraction, reach: int, prefer: Prefer) -> Iterator[tuple[str, Chooser]]:
    for (shape, values), (rows, single, swapped) in product(SHAPES.items(), ROWS):
        for sign in ("positive", "negative", "mixed"):
            data = Tally.of([_signed(min(value, reach), place, sign) for place, value in enumerate(values)])
            low, high = (0 if sign == "positive" else -reach), (0 if sign == "negative" else reach)
            counted = (rows, single, swapped)
            total = Fraction(data.total())
            change = Facts("sum", None, *counted, low, high).change(low, high)
            facts = Facts("sum", change, *counted, low, high)
            target = Target(total, max(abs(total) * share, Fraction(1, 7)))
            yield f"{shape}, {sign}", Chooser(facts, target, imagined_sum(data), prefer, data)
            middle = Facts("mean", None, *counted, low, high)
            mean = Target(total / data.rows, max(abs(total / data.rows) * share, Fraction(1, 7)))
            yield f"{shape}, {sign}", Chooser(middle, mean, imagined_mean(data.total(), data.rows), prefer)
            for q in (Fraction(0), Fraction(1, 2), Fraction(9, 10)):
                answer = quantile_of(data, q)
                assert answer is not None
                known = Facts("quantile", None, *counted, low, high, q)
                place = Target(answer, max(abs(answer) * share, Fraction(1, 7)))
                yield f"{shape}, {sign}", Chooser(known, place, imagined_values(data, (low, high)), prefer)
        count = Target(Fraction(len(values)), max(len(values) * share, Fraction(1, 7)))
        yield shape, Chooser(Facts("count", rows, rows, single, swapped), count, imagined_whole(len(values)), prefer)


def _signed(value: int, place: int, sign: str) -> int:
    return value if sign == "positive" or (sign == "mixed" and place % 3) else -value


def _wrong(question: Chooser, decider: Decider) -> Iterator[Seen]:
    """What is read of data for which no is right, nearest to the interval first, and far away."""
    facts, target = question.facts, question.target
    if facts.kind == "mean":
        yield 0, 0
        for rows in (1, 2, 3, 10, 1_000):
            for beyond in (0, 1, 5 * rows):
                yield floor(target.low * rows) - beyond, rows
                yield ceil(target.high * rows) + beyond, rows
    elif facts.kind == "quantile":
        assert facts.q is not None
        for rows in (0, 1, 2, 3, 10, 1_001):
            place = max(1, ceil(facts.q * rows)) if rows else 0
            for more in {0, max(rows - place, 0)}:
                yield rows, place + more, rows - place - more  # the quantile is at or below l, all others above r
                yield rows, 0, min(rows, rows - place + 1 + more)  # at or above r, all others inside
    else:
        for tail in _tails(question, decider) if isinstance(decider, Clip) else (Fraction(0),):
            for beyond in (0, 1, 40):
                for total in (floor(target.low - tail) - beyond, ceil(target.high - tail) + beyond):
                    yield (total, 0) if isinstance(decider, Clip) else total


def _tails(question: Chooser, decider: Clip) -> Iterator[Fraction]:
    """What private values may exceed the cut by, if what the decider assumes holds: at most twice the synthetic."""
    assert question.synthetic is not None
    values, counts = question.synthetic.values, question.synthetic.counts
    above = int(((values - decider.cut.high).clip(min=0) * counts).sum())
    below = int(((decider.cut.low - values).clip(min=0) * counts).sum())
    for more, less in product((0, above, 2 * above), (0, below, 2 * below)):
        yield Fraction(more - less)
