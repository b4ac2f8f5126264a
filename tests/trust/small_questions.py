"""Every decider on small questions, for checks by brute force."""

from collections.abc import Iterator
from fractions import Fraction

from confide.mechanism.tally import Tally
from confide.trust.choice import Chooser
from confide.trust.seen import (
    Reading,
    Seen,
    WholeCell,
    imagined_mean,
    imagined_sum,
    imagined_values,
    imagined_whole,
    quantile_of,
    seen_in,
)
from confide.trust.target import Facts, Kind, Prefer, Target

VALUES = range(5)
SYNTHETIC = Tally.of([0, 1, 1, 2, 4])
FACTS = {
    "count": Facts("count", 1),
    "sum": Facts("sum", 4, low=0, high=4),
    "mean": Facts("mean", low=0, high=4),
    "median": Facts("quantile", low=0, high=4, q=Fraction(1, 2)),
    "upper quarter": Facts("quantile", low=0, high=4, q=Fraction(3, 4)),
    "smallest": Facts("quantile", low=0, high=4, q=Fraction(0)),
    "largest": Facts("quantile", low=0, high=4, q=Fraction(1)),
}
CAUTIOUS = {
    "count": ("optimal", "laplace", "exponential", "exponential-naive"),
    "sum": ("optimal", "laplace", "exponential", "exponential-naive", "clip"),
    "mean": ("optimal", "exponential-naive"),
    "quantile": ("optimal", "histogram", "exponential-naive"),
}
"""The deciders whose wrong yes has a bound."""


def chooser(name: str, tau: object = 1, prefer: Prefer = "balanced", facts: Facts | None = None) -> Chooser:
    """The question of that name about five synthetic rows."""
    known = facts or FACTS[name]
    match known.kind:
        case "count":
            return Chooser(known, Target(Fraction(5), Fraction(tau)), imagined_whole(5), prefer)
        case "sum":
            target = Target(Fraction(SYNTHETIC.total()), Fraction(tau))
            return Chooser(known, target, imagined_sum(SYNTHETIC), prefer, SYNTHETIC)
        case "mean":
            answer = Fraction(SYNTHETIC.total(), SYNTHETIC.rows)
            return Chooser(known, Target(answer, Fraction(tau)), imagined_mean(SYNTHETIC.total(), 5), prefer)
    assert known.q is not None
    answer = quantile_of(SYNTHETIC, known.q)
    assert answer is not None
    return Chooser(known, Target(answer, Fraction(tau)), imagined_values(SYNTHETIC, (0, 4)), prefer)


def read(kind: Kind, reading: Reading, rows: tuple[int, ...]) -> Seen:
    """What a reading finds in so many rows."""
    return len(rows) if kind == "count" and isinstance(reading, WholeCell) else seen_in(reading, Tally.of(rows))


def inside(facts: Facts, target: Target, rows: tuple[int, ...]) -> bool:
    """The truth, by definition: no rows have no mean and no quantile."""
    if facts.kind == "count":
        answer: Fraction | None = Fraction(len(rows))
    elif facts.kind == "sum":
        answer = Fraction(sum(rows))
    elif facts.kind == "mean":
        answer = Fraction(sum(rows), len(rows)) if rows else None
    else:
        answer = quantile_of(Tally.of(rows), facts.q or Fraction(0))
    return answer is not None and target.low < answer < target.high


def all_deciders() -> Iterator[tuple[str, str]]:
    for name in FACTS:
        for decider in chooser(name).names:
            yield name, decider
