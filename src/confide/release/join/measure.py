"""Answers over joins that one unit may change in any number of rows: what is read, measured and told."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np

from confide.host.progress import tell
from confide.mechanism import Assumes
from confide.mechanism.join.elastic import Elastic
from confide.mechanism.join.residual import Residual
from confide.mechanism.join.truncation import Bounded, clipped_totals
from confide.privacy.charge import Charge
from confide.query.conjunction import BY_ROW, BY_UNIT, Conjunction, relation_of
from confide.query.grouping import group_count
from confide.query.identity import question_name
from confide.query.tree import Cell, Join, Relation, Summary
from confide.query.weight import Weight
from confide.release.answer.answer import Answer
from confide.release.answer.answer_table import AnswerTable
from confide.release.answer.estimate import Estimate
from confide.release.answer.notes import assuming_bounds, key_notes
from confide.release.cost import Cost
from confide.release.holdings import Holdings
from confide.release.join.request import PricedJoin
from confide.release.packed import packed_totals


@dataclass(frozen=True, slots=True)
class Column:
    """Estimates of one weight in all groups with the ends of their intervals, and what the upper ends assume.

    `uninformed`: in how many groups too little is seen to learn what one unit adds (see `Bounded`).
    """

    results: list[tuple[int, int, int]]
    condition: str = ""
    uninformed: int = 0


def measured_join(holdings: Holdings, priced: PricedJoin, charge: Charge) -> Answer:
    """What is read of a join, with noise; the answer that is made of it."""
    measured = _by_row if priced.mechanism in BY_ROW else _by_unit
    return _answer(holdings, priced, measured(holdings, priced, charge))


# --- measuring --------------------------------------------------------------------------------------------------------


def _by_row(holdings: Holdings, priced: PricedJoin, charge: Charge) -> list[Column]:
    question, steps = priced.question, len(priced.question.weights) + 2
    tell("reading", 0, steps)
    cells = tuple(Cell("rows" if w.number is None else "total", w.number, w.where) for w in question.weights)
    summary = Summary(question.relation, question.where, None, question.keys, cells)
    exact = holdings.engine.evaluate(summary, charge, holdings.ledger.secret)
    tell("reading how much one row changes", 1, steps)
    smooth = cache(sensitivity(holdings, priced, charge).smooth)  # the same for all sums with equal shares
    columns: list[Column] = []
    for place, weight in enumerate(question.weights):
        tell("measuring", place + 2, steps)
        mechanism = priced.smooth(place)
        scale = smooth(float(mechanism.alpha)) * max(1, weight.span.largest)
        answers = [int(value) for value in possible(exact.cells[place], question)]
        noised, half = mechanism.measure(answers, scale, priced.misses[place], holdings.randomness)
        floor_at = 0 if weight.span.low >= 0 else None
        columns.append(Column([_inside(value, half, floor_at) for value in noised]))
    tell("measuring", steps, steps)
    return columns


class SmoothBound(Protocol):
    """A bound on how much one row changes a join."""

    def smooth(self, alpha: float) -> float:
        """Its α-smooth version."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """The bound of a join each of whose rows public tables repeat at most so many times."""

    inner: SmoothBound
    times: int

    def smooth(self, alpha: float) -> float:
        return self.inner.smooth(alpha) * self.times


def sensitivity(holdings: Holdings, priced: PricedJoin, charge: Charge) -> SmoothBound:
    from confide.engine.read.join_facts import RepeatsInquiry, ResidualInquiry  # noqa: PLC0415  loaded when used

    question, engine = priced.question, holdings.engine
    if priced.mechanism == "residual":
        bound: SmoothBound = Residual(question.copies, engine.inquire(ResidualInquiry(question), charge))
    else:
        bound = _elastic(holdings, question, charge)
    return Repeated(bound, engine.inquire(RepeatsInquiry(question), charge)) if question.optional else bound


def _elastic(holdings: Holdings, question: Conjunction, charge: Charge) -> Elastic:
    from confide.engine.read.join_facts import FrequencyInquiry  # noqa: PLC0415  loaded when used

    places = {scan.source: place for place, scan in enumerate(question.occurrences)}
    joins = []
    relation: Relation = relation_of(question.occurrences, question.pairs)
    while isinstance(relation, Join):
        added = relation.right.source
        pairs = [(one, two) if two.source == added else (two, one) for one, two in relation.on]
        ends = tuple(((places[one.source], one.name), (places[two.source], two.name)) for one, two in pairs)
        joins.append((places[added], ends))
        relation = relation.left
    first = places[relation.source]
    tables = tuple(None if scan.public else scan.table for scan in question.occurrences)
    return Elastic(tables, first, tuple(reversed(joins)), holdings.engine.inquire(FrequencyInquiry(question), charge))


def _by_unit(holdings: Holdings, priced: PricedJoin, charge: Charge) -> list[Column]:
    from confide.engine.read.join_facts import SharesInquiry  # noqa: PLC0415  loaded when used

    columns: list[Column] = []
    cuts = [priced.cut(place) for place in range(len(priced.question.weights))]
    shown = len(possible(range(group_count(priced.question)), priced.question))
    # As many for every weight, group and level, whether a group has rows or not.
    steps, done = shown * sum(len(cut.levels.edges) for cut in cuts), 0
    for place, mechanism in enumerate(cuts):
        edges = mechanism.levels.edges
        inquiry = SharesInquiry(priced.question, place, edges[-1])
        tell("reading", done, steps)
        groups: list[Bounded] = []
        for shares in possible(holdings.engine.inquire(inquiry, charge), priced.question):
            groups.append(mechanism.measure(totals(shares, edges, done, steps), holdings.randomness))
            done += len(edges)
            tell("counting", done, steps)
        uninformed = sum(not group.informed for group in groups)
        results = [(group.estimate, group.low, group.high) for group in groups]
        columns.append(Column(results, mechanism.condition if uninformed < len(groups) else "", uninformed))
    return columns


def possible(groups: Any, question: Conjunction) -> list[Any]:
    """What there is of each group, without the groups that have no rows in any data."""
    return list(groups) if question.possible is None else [groups[place] for place in question.possible]


def totals(shares: Any, edges: Sequence[int], before: int = 0, steps: int | None = None) -> list[int]:
    """What is left at each level. It tells of these, after so many that were `before`, of so many `steps` in all."""
    if shares.entities is None:
        return clipped_totals(shares.weights, shares.counts, edges)
    return packed_totals(shares.entities, shares.weights, edges, None, before, steps)


def _inside(value: int, half: int, least: int | None) -> tuple[int, int, int]:
    half = max(half, 1)  # no interval is without width, however little noise there is
    if least is None:
        return value, value - half, value + half
    # Below the least there is, the upper end stays where it is for the least: no interval is empty.
    return max(value, least), max(value - half, least), max(value, least) + half


# --- the answer -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Told:
    """What is said of every weight."""

    name: str
    condition: str


def _answer(holdings: Holdings, priced: PricedJoin, columns: Sequence[Column]) -> Answer:
    question = priced.question
    sums = [
        (_Told(priced.mechanism, f"for its upper end {column.condition}" if column.condition else ""), estimate)
        for column, estimate in zip(columns, map(_estimate, question.weights, columns), strict=True)
    ]
    notes: tuple[str, ...] = ()
    if priced.mechanism in BY_UNIT:
        most = ", ".join(
            f"{weight.name}: {float(largest * weight.grain):,g}"
            for weight, largest in zip(question.weights, priced.largest, strict=True)
        )
        notes = (f"what one unit adds is cut at {most}", *_uninformed(question, priced.groups, columns))
    table = AnswerTable(question, None, (), (), priced.request.confidence, sums)
    return Answer(
        columns=tuple(assuming_bounds(column, "".join(notes[:1])) for column in table.columns()),
        confidence=priced.request.confidence,
        cost=Cost.of(priced.request.epsilon, priced.loss),
        unit=_protected(question),
        neighbours=question.neighbours,
        question=question_name(question),
        notes=(*notes, *key_notes(question, question)),
        test_noise=not holdings.randomness.kernel,
        chosen=table.chosen,
    )


def _uninformed(question: Conjunction, groups: int, columns: Sequence[Column]) -> tuple[str, ...]:
    return tuple(
        f"no information about {weight.name}{_of_groups(column.uninformed, groups)}: too little is "
        "seen to learn what one unit adds, so the interval is what holds where no unit adds more; say bounds, if known"
        for weight, column in zip(question.weights, columns, strict=True)
        if column.uninformed
    )


def _of_groups(some: int, groups: int) -> str:
    return "" if groups == 1 else f" in {some:,} of {groups:,} groups"


def _protected(question: Conjunction) -> str:
    if question.owners:
        return question.unit
    tables = dict.fromkeys(question.occurrences[place].table for place in question.private)
    return f"row of {' or '.join(tables)}"


def _estimate(weight: Weight, column: Column) -> Estimate:
    assumes: Assumes = "density" if column.condition else "always"
    grain, whole = weight.grain, weight.grain.denominator == 1
    values, low, high = (
        np.array([number * grain.numerator if whole else float(number * grain) for number in part], dtype=object)
        for part in zip(*column.results, strict=True)
    )
    return Estimate(values, low, high, whole=whole, assumes=assumes)
