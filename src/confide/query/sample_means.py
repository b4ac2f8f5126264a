"""Which columns of a question speak of a population as well: means and shares of rows, and sums of these."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from confide.query.grouping import group_count
from confide.query.question import Arithmetic, FixedNumber, Mean, Question, Rounded, ShownValue, Value
from confide.query.tree import UnknownKey

MOST_GROUPS: Final = 1_000
"""For more groups what was measured is not kept beside the answer."""
_HELP = "leave population=True out to get the interval for the rows themselves"


@dataclass(frozen=True, slots=True)
class SampleMeans:
    """Σ weight × mean + constant, rounded to so many digits if that was asked."""

    means: tuple[tuple[Fraction, Mean], ...]
    constant: Fraction
    digits: int | None = None


def sample_means(value: Value) -> SampleMeans | None:
    """A value as a sum of multiples of means of rows; None if it is none."""
    if isinstance(value, Rounded):
        inner = sample_means(value.inner)
        return None if inner is None or inner.digits is not None else SampleMeans(*_parts(inner), value.digits)
    found = _combined(value)
    if found is None or not found[0]:
        return None
    return SampleMeans(tuple((weight, mean) for mean, weight in found[0].items()), found[1])


def _parts(inner: SampleMeans) -> tuple[tuple[tuple[Fraction, Mean], ...], Fraction]:
    return inner.means, inner.constant


def _combined(value: Value) -> tuple[Mapping[Mean, Fraction], Fraction] | None:
    match value:
        case Mean():
            return {value: Fraction(1)}, Fraction(0)
        case FixedNumber(constant):
            return {}, constant
        case Arithmetic(operation, left, right):
            first, second = _combined(left), _combined(right)
            if first is None or second is None:
                return None
            (a, x), (b, y) = first, second
            if operation in ("+", "-"):
                sign = 1 if operation == "+" else -1
                means = {mean: a.get(mean, Fraction(0)) + sign * b.get(mean, Fraction(0)) for mean in [*a, *b]}
                return means, x + sign * y
            if operation == "*" and not (a and b):
                scaled, factor = (a, y) if a else (b, x)
                return {mean: factor * weight for mean, weight in scaled.items()}, x * y
            if operation == "/" and not b and y:
                return {mean: weight / y for mean, weight in a.items()}, x / y
        case _:
            pass
    return None


def population_refusal(question: Question) -> str | None:
    """Why a question says nothing of a population, and what to ask instead; None if it does."""
    if any(isinstance(key, UnknownKey) for key in question.keys):
        return f"population=True is for groups that the policy declares, not for keys that are found; {_HELP}"
    groups = group_count(question)
    if groups is not None and groups > MOST_GROUPS:
        return f"population=True is for at most {MOST_GROUPS:,} groups, and there are {groups:,}; use wider bins"
    for column in question.columns:
        if not isinstance(column, ShownValue):
            continue
        found = sample_means(column.value)
        if found is None:
            return (
                f"{column.name}: population=True is for means, shares such as AVG(CASE WHEN p THEN 1 ELSE 0 END) or "
                "COUNT(*) FILTER (WHERE p) / COUNT(*), and differences of them: nothing else is the same in a sample "
                f"as in the population it is drawn from; {_HELP}"
            )
        for _, mean in found.means:
            refusal = _refused(question, mean)
            if refusal is not None:
                return f"{column.name}: {refusal}; {_HELP}"
    return None


def _refused(question: Question, mean: Mean) -> str | None:
    total, count = question.measures[mean.total], question.measures[mean.count]
    cells = [question.summary.cells[place] for _, place in total.terms]
    if any(cell.kind in ("distinct", "distinct total") for cell in cells):
        return "distinct values are not counted row by row, so their number is no share of a population"
    most = 2 if question.neighbours == "replace-one" and question.keys else 1
    if count.l1 > most:
        return (
            f"one {question.unit} may have several rows here, and rows of one are no independent draws: make one "
            "number of each unit first, in an inner query"
        )
    return None
