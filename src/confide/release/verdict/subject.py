"""A question as a decider sees it: one aggregate, what is public about it, and the statement that fetches it.

Several questions about one table share a statement where that changes nothing. Groups are all read at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any, Final, assert_never

import numpy as np

from confide.engine import Exact
from confide.errors import QueryError
from confide.mechanism.tally import Buckets
from confide.mechanism.tally import Tally as Counted
from confide.policy import Number as NumberColumn
from confide.query.comparison import joined
from confide.query.grid import LARGEST_SUMMARY, FloatingGrid
from confide.query.grouping import key_size
from confide.query.question import Estimated, Mean, Measured, Question, ShownValue, Statistic, Value
from confide.query.tree import (
    Always,
    BinnedKey,
    Cell,
    Choice,
    Combined,
    Compare,
    Constant,
    Field,
    Join,
    Number,
    Predicate,
    Scaled,
    Span,
    Summary,
    Tallied,
)
from confide.query.tree import Reading as ColumnReading
from confide.release.questions import BoundedText
from confide.trust.seen import Clipped, Powers, Reading, Seen, Sides, Totals, Values, WholeCell, seen_in
from confide.trust.target import Facts

Evaluate = Callable[[Summary], Exact]

MOST_BINNED: Final = 1 << 24
"""Columns up to this are read in some thousand bins; beyond, bins would be too many."""

_TOGETHER: Final = 300  # readings of one statement: databases limit the columns of a result

_AGGREGATES: Final = "COUNT, SUM, AVG, MEDIAN, QUANTILE, MIN or MAX"


@dataclass(frozen=True, slots=True)
class Subject:
    """One aggregate of one query: `cell` counts or sums it, `subject` is what is summed or ranked."""

    sql: str
    question: Question
    facts: Facts
    grain: Fraction
    cell: Cell | None
    subject: Number | None
    where: Predicate

    @property
    def grouped(self) -> bool:
        return bool(self.question.keys)

    @property
    def number(self) -> Number:
        assert self.subject is not None
        return self.subject


def subject_of(text: BoundedText) -> Subject:
    """What a query asks, or why no decider takes it."""
    sql, question = text.sql, text.under("auto")
    value = _single_value(question)
    summary = question.summary
    if isinstance(value, Measured):
        measure = question.measures[value.measure]
        cell = summary.cells[measure.terms[0][1]]
        if cell.kind != "total":
            facts = Facts("count", measure.l1, single=_single(question))
            return Subject(sql, question, facts, measure.grain, cell, None, cell.where)
        number = _numeric(cell)
        facts = _facts("sum", question, text.under("svt").statistics[0], whole=measure.l1)
        return Subject(sql, question, facts, measure.grain, cell, number, cell.where)
    if isinstance(value, Mean):
        cell = summary.cells[question.measures[value.total].terms[0][1]]
        facts = _facts("mean", question, text.under("svt").statistics[0])
        return Subject(sql, question, facts, value.grain, cell, _numeric(cell), cell.where)
    assert isinstance(value, Estimated)
    statistic = question.statistics[value.statistic]
    tally = summary.tallies[statistic.tally]
    kinds: dict[str, Any] = {"quantile": "quantile", "total": "sum", "mean": "mean"}
    facts = _facts(kinds[statistic.kind], question, statistic)
    summed = None if statistic.kind == "quantile" else Cell("total", tally.subject, tally.where)
    return Subject(sql, question, facts, statistic.grain, summed, tally.subject, tally.where)


def _single_value(question: Question) -> Value:
    values = [column.value for column in question.columns if isinstance(column, ShownValue)]
    if len(values) != 1:
        raise QueryError("a verdict is about one aggregate; give several queries as a list, each with one")
    if question.having is not None or question.order or question.limit is not None or question.offset:
        raise QueryError("HAVING, ORDER BY and LIMIT have no place in a verdict: there is one for every key")
    if question.summary.open_keys:
        raise QueryError("GROUP BY takes columns whose values the policy declares, so that every key has its verdict")
    ratio = isinstance(values[0], Mean) and not _is_average(values[0], question)
    if ratio or not isinstance(values[0], Measured | Mean | Estimated):
        raise QueryError(f"a verdict is about {_AGGREGATES}, with WHERE and GROUP BY, and not about arithmetic on them")
    return values[0]


def _is_average(mean: Mean, question: Question) -> bool:
    """Whether a mean is that of all known values of a number: other ratios of sums and counts are means as well."""
    summed, counted = (question.summary.cells[question.measures[m].terms[0][1]] for m in (mean.total, mean.count))
    if summed.kind != "total" or counted.where != summed.where or summed.subject is None:
        return False
    assert not isinstance(summed.subject, Field)
    return counted.subject == summed.subject or (counted.kind == "rows" and not summed.subject.span.nullable)


def _facts(kind: Any, question: Question, statistic: Statistic, whole: int | None = None) -> Facts:
    swapped = question.neighbours == "replace-one"
    # A replaced row is one that goes and one that comes; what is asked of the binder may have counted it so already.
    rows = statistic.rows * (2 if statistic.neighbours == "replace-one" else 1)
    return Facts(
        kind,
        whole,
        rows,
        _single(question),
        swapped and not question.keys,
        statistic.low,
        statistic.high,
        statistic.q,
    )


def _single(question: Question) -> bool:
    """Whether one unit can only change one group."""
    if not question.keys:
        return True
    if question.neighbours != "add-remove":
        return False
    bound = question.summary.bound
    return not isinstance(question.summary.relation, Join) if bound is None else bound.groups == 1


def _numeric(cell: Cell) -> Number:
    assert isinstance(cell.subject, Number)
    return cell.subject


# --- fetching ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be read for one question: one reading for each of these groups, or the same for all there are."""

    asked: Subject
    readings: tuple[Reading, ...]
    places: tuple[int, ...] | None = None

    @property
    def cells(self) -> tuple[Cell, ...] | None:
        """As single integers per group, if that is possible; else it takes a tally."""
        if not self.asked.grouped or all(isinstance(reading, WholeCell | Totals) for reading in self.readings):
            return _cells(self.asked, self.readings[0])
        return None


def fetch(wanted: Sequence[Wanted], evaluate: Evaluate) -> list[list[Seen]]:
    """What was read for each question, group by group: one statement for all that can share one."""
    found: dict[int, list[Seen]] = {}
    shared: dict[tuple[object, ...], list[int]] = {}
    for place, want in enumerate(wanted):
        summary = want.asked.question.summary
        if want.cells is None:
            found[place] = _from_values(want, evaluate)
            continue
        # Contributions are bounded after the filter, so under a bound only equal filters can share a statement.
        filtered = summary.where if summary.bound is not None else None
        shared.setdefault((summary.relation, summary.bound, summary.keys, filtered), []).append(place)
    for places in shared.values():
        found |= zip(places, _together([wanted[place] for place in places], evaluate), strict=True)
    return [found[place] for place in range(len(wanted))]


def _together(wanted: Sequence[Wanted], evaluate: Evaluate) -> list[list[Seen]]:
    summaries = [want.asked.question.summary for want in wanted]
    alike = all(summary.where == summaries[0].where for summary in summaries)
    every: dict[Cell, int] = {}
    places: list[list[int]] = []
    for want, summary in zip(wanted, summaries, strict=True):
        own = want.cells or ()
        if not alike:
            own = tuple(replace(cell, where=joined((summary.where, cell.where), every=True)) for cell in own)
        places.append([every.setdefault(cell, len(every)) for cell in own])
    where = summaries[0].where if alike else Always(True)
    exact = evaluate(replace(summaries[0], where=where, cells=tuple(every), tallies=()))
    groups = range(len(exact.cells[0]))
    return [
        [_seen(want.readings[0], [int(exact.cells[place][group]) for place in own]) for group in want.places or groups]
        for want, own in zip(wanted, places, strict=True)
    ]


def _seen(reading: Reading, numbers: list[int]) -> Seen:
    return numbers[0] if isinstance(reading, WholeCell) else tuple(numbers)


def _cells(asked: Subject, reading: Reading) -> tuple[Cell, ...] | None:
    where = asked.where
    match reading:
        case WholeCell():
            assert asked.cell is not None
            return (asked.cell,)
        case Totals():
            return Cell("total", asked.number, where), Cell("known", asked.number, where)
        case Clipped(low, high):
            number = asked.number
            outside: Predicate = Always(False)
            if low > number.span.low:
                outside = joined((outside, _compare(number, "<", low)), every=False)
            if high < number.span.high:
                outside = joined((outside, _compare(number, ">", high)), every=False)
            return Cell("total", _cut(number, low, high), where), Cell(
                "rows", None, joined((where, outside), every=True)
            )
        case Sides(below, above):
            ends = _compare(asked.number, "<=", below), _compare(asked.number, ">=", above)
            counted = (Cell("rows", None, joined((where, end), every=True)) for end in ends)
            return Cell("known", asked.number, where), *counted
        case Values() | Powers():
            return None
    assert_never(reading)


def _cut(number: Number, low: int, high: int) -> Number:
    """A number cut to [low, high]: a column is read in that range at once, anything else is compared."""
    span = replace(number.span, low=max(low, number.span.low), high=min(high, number.span.high))
    if isinstance(number, ColumnReading) and isinstance(number.field.column, NumberColumn):
        column = replace(number.field.column, low=span.low * span.grain, high=span.high * span.grain, bins=None)
        return ColumnReading(replace(number.field, column=column), span)
    below, above = _compare(number, "<", low), _compare(number, ">", high)
    return Choice(((below, _constant(number, low)), (above, _constant(number, high))), number, span)


def _from_values(want: Wanted, evaluate: Evaluate) -> list[Seen]:
    reading, summary = want.readings[0], want.asked.question.summary
    if isinstance(reading, Powers) and not want.asked.grouped and summary.bound is None:
        return [_by_bucket(want.asked, reading, evaluate)]
    if _wide(want.asked):
        return _from_wide(want, evaluate)
    counted = _counted(want.asked, Tallied(want.asked.number, want.asked.where), evaluate)
    if want.places is None:
        return [seen_in(reading, values) for values in counted]
    return [seen_in(own, counted[place]) for own, place in zip(want.readings, want.places, strict=True)]


def _counted(asked: Subject, tally: Tallied, evaluate: Evaluate) -> list[Counted]:
    exact = evaluate(replace(asked.question.summary, cells=(), tallies=(tally,)))
    return [
        Counted(values, counts, sums[0] if sums else None, tally.grid) for values, counts, *sums in exact.tallies[0]
    ]


def _wide(asked: Subject) -> bool:
    """Whether there may be more distinct values than a summary may have rows."""
    span = asked.number.span
    return _groups(asked) * (span.high - span.low + 1) > LARGEST_SUMMARY


def _groups(asked: Subject) -> int:
    return prod(key_size(key) or 1 for key in asked.question.keys)


def too_wide(want: Wanted) -> str | None:
    """Why a question cannot be read within the cap, from public facts; None if it can."""
    if not any(isinstance(reading, Values) for reading in want.readings) or not _wide(want.asked):
        return None
    return (
        f"this mechanism reads every value of {want.asked.sql.strip()[:120]}, and of these there may be more than the "
        f"{LARGEST_SUMMARY:,} rows that a summary may have; ask with mechanism='auto', or with a coarser grain"
    )


def _from_wide(want: Wanted, evaluate: Evaluate) -> list[Seen]:
    """The same without a tally of values: sums by powers of two, or single integers for every reading."""
    asked, reading = want.asked, want.readings[0]
    places = want.places or tuple(range(_groups(asked)))
    readings = want.readings if want.places is not None else (reading,) * len(places)
    found: dict[int, Seen] = {}
    if any(isinstance(own, Powers | Values) for own in readings):
        span = asked.number.span
        grid = None if isinstance(reading, Values) else FloatingGrid(span.low, span.high, 0, 0)
        counted = _counted(asked, Tallied(asked.number, asked.where, grid, grid is not None), evaluate)
        whole = isinstance(reading, Values)
        found = {
            number: seen_in(own, counted[place])
            for number, (own, place) in enumerate(zip(readings, places, strict=True))
            if whole or isinstance(own, Powers)
        }
    rest = list(dict.fromkeys(own for number, own in enumerate(readings) if number not in found))
    for some in (rest[start : start + _TOGETHER] for start in range(0, len(rest), _TOGETHER)):
        cells = [_cells(asked, own) or () for own in some]
        every = dict.fromkeys(cell for own in cells for cell in own)
        exact = evaluate(replace(asked.question.summary, cells=tuple(every), tallies=()))
        columns = dict(zip(every, exact.cells, strict=True))
        for number, (own, place) in enumerate(zip(readings, places, strict=True)):
            if own in some and number not in found:
                found[number] = _seen(own, [int(columns[cell][place]) for cell in cells[some.index(own)]])
    return [found[number] for number in range(len(readings))]


def _by_bucket(asked: Subject, reading: Powers, evaluate: Evaluate) -> Buckets:
    """One GROUP BY over as many keys as there are buckets, however many values there are."""
    edges, number = reading.edges, asked.number
    size = len(edges)
    if number.span.low >= 0 and edges[-1] <= MOST_BINNED:
        return _by_bin(asked, edges, evaluate)
    # From the largest negative magnitude to the largest positive one, each bucket named by the last value in it.
    lasts = [*edges[:-1]] if number.span.low >= 0 else [*(-edge - 1 for edge in reversed(edges[:-1])), -1, *edges[:-1]]
    bucket = _bucket(number, lasts, size - 1 - len(lasts) + size)
    key = BinnedKey("bucket", bucket, 0, 1, 2 * size, "number")
    cells = Cell("total", number, asked.where), Cell("known", number, asked.where)
    exact = evaluate(replace(asked.question.summary, keys=(key,), cells=cells, tallies=()))
    sums, counts = (cell.astype(object) for cell in exact.cells)
    return Buckets(
        edges,
        np.stack([counts[:size][::-1], counts[size:]]),
        np.stack([-sums[:size][::-1], sums[size:]]),
    )


def _by_bin(asked: Subject, edges: tuple[int, ...], evaluate: Evaluate) -> Buckets:
    """Buckets from bins that they are made of: values up to w one by one, those above in bins (kw, (k+1)w].

    The smaller of two numbers and a division find a bin, where a bucket takes several comparisons. w is a power of two,
    as edges are: ⌊min(wx, x + w² - 1) / w⌋ is x up to w, and ⌈x / w⌉ + w - 1 above.
    """
    number, width = asked.number, 1 << (edges[-1].bit_length() // 2)
    high = number.span.high
    single = Scaled(number, width, 0, Span(0, high * width))
    binned = Scaled(number, 1, width**2 - 1, Span(0, high + width**2))
    place = Combined("least", single, binned, Span(0, high + width**2))
    count = width + edges[-1] // width + 1
    key = BinnedKey("bucket", place, 0, width, count, "number")
    cells = Cell("total", number, asked.where), Cell("known", number, asked.where)
    exact = evaluate(replace(asked.question.summary, keys=(key,), cells=cells, tallies=()))
    bins = np.arange(count)
    lasts = np.where(bins <= width, bins, (bins - width + 1) * width)
    places = np.minimum(np.searchsorted(np.array(edges), lasts), len(edges) - 1)
    sums, counts = np.zeros((2, len(edges)), dtype=object), np.zeros((2, len(edges)), dtype=object)
    for found, cell in ((sums, exact.cells[0]), (counts, exact.cells[1])):
        for filled in np.flatnonzero(exact.cells[1]):
            found[1, places[filled]] += int(cell[filled])
    return Buckets(edges, counts, sums)


def _bucket(number: Number, lasts: list[int], first: int) -> Number:
    """The place of the bucket that a number falls into, by halving."""
    if not lasts:
        return Constant(first, Span(first, first, nullable=False))
    middle = len(lasts) // 2
    left, right = _bucket(number, lasts[:middle], first), _bucket(number, lasts[middle + 1 :], first + middle + 1)
    span = Span(first, first + len(lasts), nullable=False)
    return Choice(((_compare(number, "<=", lasts[middle]), left),), right, span)


def _compare(number: Number, operation: Any, index: int) -> Compare:
    return Compare(operation, number, _constant(number, index))


def _constant(number: Number, index: int) -> Constant:
    return Constant(index, Span(index, index, number.span.grain, nullable=False, date=number.span.date))


def answer_reading(asked: Subject, mechanism: str) -> Reading:
    """What is read of the synthetic data: their answer, and what else a decider wants to know of them."""
    match asked.facts.kind:
        case "count":
            return WholeCell()
        case "mean":
            return Totals()
        case "sum" if mechanism in ("laplace", "exponential", "exponential-naive", "optimal"):
            return Totals()
    return Values()
