"""Aggregates and what is computed from them: from sqlglot's nodes to measures and values."""

from fractions import Fraction
from typing import Literal

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Category, Text, Unbounded
from confide.policy.column import INDEX_LIMIT
from confide.query import number as arithmetic
from confide.query.affine import AskedSum, Shared, affine, multiples, parts_of, shared_sums, times, told_by
from confide.query.association_call import AssociationCall, association_call
from confide.query.comparison import joined
from confide.query.distinct_values import all_below, where_distinct
from confide.query.expression import flag_of, number, predicate, scalar
from confide.query.grouping import key_size
from confide.query.mode_call import commonest_key, commonest_places, place_number
from confide.query.parse import shown
from confide.query.quantile import quantile_call
from confide.query.question import (
    Association,
    Axis,
    Commonest,
    Dated,
    Estimated,
    Mean,
    Measure,
    Measured,
    Occurs,
    Spread,
    Statistic,
    Value,
    association_places,
)
from confide.query.relation import From
from confide.query.released import Named, composed
from confide.query.rewrite.aggregate_names import one_or_zero
from confide.query.scope import Scope
from confide.query.sensitivity import Sensitivity, Stability, of_distinct, of_total
from confide.query.tree import Always, Cell, Constant, Field, Known, Predicate, Span, Tallied
from confide.query.tree import Number as RowNumber
from confide.query.typical import typical_ends
from confide.query.unanswered import unanswered

_SPREADS: dict[type[exp.Expr], tuple[bool, bool]] = {  # (sample, root)
    exp.Variance: (True, False),
    exp.VariancePop: (False, False),
    exp.Stddev: (True, True),
    exp.StddevSamp: (True, True),
    exp.StddevPop: (False, True),
}

_CONDITIONS = 4
_TOLD = 4  # parts of a sum that is told by another one and a count, beside that


class Aggregates:
    """Collects the cells and measures of one query; equal ones are kept, and paid for, once."""

    def __init__(
        self, scope: Scope, source: From, grouped: bool, where: Predicate, shared: Shared | None = None
    ) -> None:
        self.scope = scope
        self.relation, self.where = source.relation, where
        self.stability = Stability(source.rows, source.groups if grouped else 1, source.neighbours, grouped)
        self.unit = source.unit
        self.unit_fields = source.unit_fields
        self.always = source.complete and not grouped and where == Always(True)
        self.mechanism = "auto"
        self._cells: dict[Cell, int] = {}
        self._measures: dict[Measure, int] = {}
        self._tallies: dict[Tallied, int] = {}
        self._statistics: dict[Statistic, int] = {}
        self._shared = shared
        self._sums: dict[AskedSum, None] = {}

    @property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(self._cells)

    @property
    def measures(self) -> tuple[Measure, ...]:
        return tuple(self._measures)

    @property
    def tallies(self) -> tuple[Tallied, ...]:
        return tuple(self._tallies)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        return tuple(self._statistics)

    def value(self, node: exp.Expr, named: Named | None = None) -> Value:
        """Arithmetic on aggregates and constants."""
        return composed(node, self.aggregate, self.scope, self._ratio, named)

    def aggregate(self, node: exp.Expr, where: Predicate) -> Value:
        """One aggregate over the rows that pass its FILTER."""
        match node:
            case exp.Count(this=exp.Star()):
                return self._count(where)
            case exp.Count(this=exp.Distinct()):
                if len(node.this.expressions) != 1:
                    raise QueryError("COUNT(DISTINCT x) takes one column")
                column, where = where_distinct(node.this.expressions[0], where, self.scope)
                return self._distinct(scalar(column, self.scope), where)
            case exp.Sum(this=exp.Distinct()) | exp.Avg(this=exp.Distinct()):
                return self._distinct_total(node, where)
            case exp.CountIf():
                return self._count(joined((where, predicate(node.this, self.scope)), every=True))
            case exp.Count() if not node.expressions:
                return Measured(self._known(scalar(node.this, self.scope), where))
            case exp.Sum() | exp.Avg():
                kind: Literal["total", "mean"] = "total" if isinstance(node, exp.Sum) else "mean"
                flag = flag_of(node.this, self.scope) is not None
                subject, bounded = self._numeric(one_or_zero(node.this) if flag else node.this)
                if not bounded or self.mechanism not in ("auto", "laplace"):
                    return self._statistic(kind, subject, bounded, where)
                return self._sum(subject, where) if kind == "total" else self._mean(subject, where)
            case exp.Mode():
                return self._commonest(node, where)
            case exp.LogicalAnd() | exp.LogicalOr():
                every = isinstance(node, exp.LogicalAnd)
                # Every row holds where none fails, and none where the condition is unknown.
                found = joined((where, predicate(node.this, self.scope, negated=every)), every=True)
                counted = self._count(found)
                assert isinstance(counted, Measured)
                return Occurs(counted.measure, every)
        association = association_call(node)
        if association is not None:
            return self._association(association, where)
        quantile = quantile_call(node)
        if isinstance(node, exp.Min | exp.Max):
            self._refuse_texts(node.this)
        if quantile is not None:
            subject, bounded = self._numeric(quantile[0])
            return self._statistic("quantile", subject, bounded, where, quantile[1])
        if type(node) in _SPREADS:
            sample, root = _SPREADS[type(node)]
            return self._spread(number(node.this, self.scope), where, sample, root)
        raise QueryError(unanswered(node))

    def _refuse_texts(self, node: exp.Expr) -> None:
        field = self.scope.field(node) if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star) else None
        if isinstance(field, Field) and isinstance(field.column, Text):
            raise QueryError(
                f"{field.name} is text: its least or greatest value would show a row; ask COUNT(*) of the same rows, "
                f"or COUNT(DISTINCT {field.name})"
            )

    def _numeric(self, node: exp.Expr) -> tuple[RowNumber, bool]:
        """A number and whether the policy bounds it."""
        if isinstance(node, exp.Column):
            field = self.scope.field(node)
            if isinstance(field, Field) and isinstance(field.column, Unbounded):
                return arithmetic.unbounded_reading(field), False
        return number(node, self.scope), True

    def _statistic(
        self,
        kind: Literal["quantile", "total", "mean"],
        subject: RowNumber,
        bounded: bool,
        where: Predicate,
        q: Fraction | None = None,
    ) -> Value:
        """A statistic of its own: what one unit can change are ranks and rows, not one bounded sum."""
        span = subject.span
        if span.date and kind != "quantile":
            _summable(subject)
        if span.largest >= INDEX_LIMIT:
            raise QueryError("the expression is too wide for a quantile; use fewer factors or a coarser grain")
        stability = self.stability
        rows, neighbours = stability.rows, stability.neighbours
        if neighbours == "replace-one" and (span.nullable or not self.always or where != Always(True)):
            # A row that is replaced may come or go here: two changes of add-remove.
            rows, neighbours = 2 * rows, "add-remove"
        tally = self._tallies.setdefault(Tallied(subject, where), len(self._tallies))
        low, high = (span.low, span.high) if bounded else (None, None)
        typical = typical_ends(subject)
        statistic = Statistic(kind, tally, q, low, high, span.grain, rows, neighbours, self.mechanism, typical=typical)
        found = Estimated(self._statistics.setdefault(statistic, len(self._statistics)))
        return Dated(found) if span.date else found

    def _commonest(self, node: exp.Mode, where: Predicate) -> Value:
        """The value that most rows have: one histogram of all values, in which a row is counted once."""
        key = commonest_key(node, self.scope)
        rows = joined((self.where, where), every=True)
        places = commonest_places(node, key, self.relation, rows, self.scope)
        subject = place_number(key, places, self.scope)
        tally = self._tallies.setdefault(Tallied(subject, where), len(self._tallies))
        ends, stability = (0, (key_size(key) or 1) - 1), self.stability
        statistic = Statistic(
            "mode", tally, None, *ends, Fraction(1), stability.rows, stability.neighbours, self.mechanism, places=places
        )
        return Commonest(self._statistics.setdefault(statistic, len(self._statistics)), key)

    def _count(self, where: Predicate) -> Value:
        optional = not (self.always and where == Always(True))
        sensitivity = of_total(1, 1, optional, self.stability)
        terms = ((1, self._cell(Cell("rows", None, where))),)
        # A forecast takes every condition to hold for half of the rows.
        typical = Fraction(1, 2 ** min(len(parts_of(where)), _CONDITIONS))
        return Measured(self._measure("rows", terms, Fraction(1), sensitivity, 0, typical))

    def _known(self, subject: Field | RowNumber, where: Predicate) -> int:
        if not isinstance(subject, Field) and not subject.span.nullable:
            result = self._count(where)
            assert isinstance(result, Measured)
            return result.measure
        cell = self._cell(Cell("known", subject, where))
        return self._measure("known values", ((1, cell),), Fraction(1), of_total(1, 1, True, self.stability), 0)

    def _distinct(self, subject: Field | RowNumber, where: Predicate) -> Value:
        values = per_unit = None
        if isinstance(subject, Field):
            if isinstance(subject.column, Category):
                values = len(subject.column.values)
            if subject in self.unit_fields:
                per_unit = 1
        else:
            values = subject.span.high - subject.span.low + 1
        sensitivity = of_distinct(values, per_unit, self.stability)
        cell = self._cell(Cell("distinct", subject, where))
        return Measured(self._measure("distinct values", ((1, cell),), Fraction(1), sensitivity, 0, ceiling=values))

    def _distinct_total(self, node: exp.Expr, where: Predicate) -> Value:
        """What the distinct values add up to: a row adds its value at most once, or not at all."""
        if len(node.this.expressions) != 1:
            raise QueryError(f"{shown(node)}: SUM(DISTINCT x) and AVG(DISTINCT x) take one number")
        subject = number(node.this.expressions[0], self.scope)
        _summable(subject)
        span = subject.span
        centre = (span.low + span.high) // 2 if isinstance(node, exp.Avg) else 0
        low, high = span.low - centre, span.high - centre
        sensitivity = of_total(low, high, True, self.stability)
        terms = [(1, self._cell(Cell("distinct total", subject, where)))]
        if centre:
            terms.append((-centre, self._cell(Cell("distinct", subject, where))))
        floor, ceiling = (None, None) if centre else (all_below(span.low), -all_below(-span.high))
        total = self._measure(
            "total of distinct values", tuple(terms), span.grain, sensitivity, floor, Fraction(high - low, 8), ceiling
        )
        if isinstance(node, exp.Sum):
            return Measured(total)
        count = self._distinct(subject, where)
        assert isinstance(count, Measured)
        return Mean(total, count.measure, centre, span.low, span.high, span.grain)

    def _sum(self, subject: RowNumber, where: Predicate) -> Value:
        _summable(subject)
        wanted = affine(subject)
        measured = (self._shared or {}).get((wanted.base, where), subject)
        total = self._total(measured, where, 0, "total")
        if self._shared is None:
            measure = self.measures[total]
            rows = of_total(1, 1, True, self.stability).l1
            self._sums.setdefault(AskedSum(subject, where, measure.l1 * measure.grain, rows))
        if measured == subject:
            return Measured(total)
        self.scope.room.take(_TOLD)
        of = affine(measured)
        same = wanted.shift * of.factor == of.shift * wanted.factor
        return told_by(wanted, of, total, total if same else self._known(wanted.base, where))

    @property
    def shared(self) -> Shared:
        """Of the sums that were asked, those that are told by another one."""
        return shared_sums(self._sums)

    def _ratio(self, left: Value, right: Value) -> Value | None:
        """A count or a sum over a count of the same rows, or of more: a mean, within what values can be.

        Where there are more rows, those that are not summed count as zeros. So is a count of distinct values.
        """
        top, bottom = multiples(left, Measured), multiples(right, Measured)
        if top is None or bottom is None or len(bottom) != 1:
            return None
        ((below, under),) = bottom.items()
        others = [place for place in top if place != below]
        if len(others) != 1 or not under:
            return None
        (above,) = others
        span = self._averaged(self.measures[above], self.measures[below])
        if span is None:
            return None
        mean = Mean(above, below, 0, *span, self.measures[above].grain)
        return times(top[above] / under, mean, top.get(below, Fraction(0)) / under)

    def _averaged(self, summed: Measure, counted: Measure) -> tuple[int, int] | None:
        """Between which indices a measure over another one lies, if that is a count of at least as many rows."""
        if len(summed.terms) != 1 or len(counted.terms) != 1 or summed.terms[0][0] != 1:
            return None
        one, all_of_them = (self.cells[measure.terms[0][1]] for measure in (summed, counted))
        if all_of_them.kind not in ("rows", "known") or not parts_of(all_of_them.where) <= parts_of(one.where):
            return None
        if all_of_them.kind == "known" and (one.kind == "rows" or one.subject != all_of_them.subject):
            return None
        if one.kind == "distinct total":
            return None
        if one.kind != "total":
            return 0, 1
        assert one.subject is not None
        assert not isinstance(one.subject, Field)
        span = one.subject.span
        known = all_of_them.kind == "known" or not span.nullable
        same = known and parts_of(all_of_them.where) == parts_of(one.where)
        return (span.low, span.high) if same else (min(span.low, 0), max(span.high, 0))

    def _mean(self, subject: RowNumber, where: Predicate) -> Value:
        _summable(subject)
        span = subject.span
        centre = (span.low + span.high) // 2
        total = self._total(subject, where, centre, "total about the middle of the range")
        return Mean(total, self._known(subject, where), centre, span.low, span.high, span.grain)

    def _spread(self, subject: RowNumber, where: Predicate, sample: bool, root: bool) -> Value:
        _summable(subject)
        span = subject.span
        centre = (span.low + span.high) // 2
        # On the grain of the values: a constant on a finer grain would put the squares on that one.
        shift = Constant(-centre, Span(-centre, -centre, span.grain, nullable=False))
        centred = arithmetic.add(subject, shift)
        radius = max(span.high - centre, centre - span.low)
        self.scope.room.repeat(subject, 1)
        squares = self._total(arithmetic.multiply(centred, centred), where, 0, "total of squares")
        total = self._total(subject, where, centre, "total about the middle of the range")
        return Spread(squares, total, self._known(subject, where), radius, span.grain, sample, root)

    def _association(self, call: AssociationCall, where: Predicate) -> Value:
        y, x = number(call.y, self.scope), number(call.x, self.scope)
        known = [Known(subject, negated=False) for subject in (x, y) if subject.span.nullable]
        for condition in known:
            self.scope.room.repeat(condition.subject, 6)
        where = joined((where, *known), every=True) if known else where
        if call.kind == "count":
            return self._count(where)
        if call.kind == "mean of x":
            return self._mean(x, where)
        if call.kind == "mean of y":
            return self._mean(y, where)
        first, axis_x = self._axis(x, where, squared=call.kind != "covariance")
        second, axis_y = self._axis(y, where, squared=call.kind in ("corr", "r2"))
        products = self._total(arithmetic.multiply(first, second), where, 0, "total of products")
        count = self._count(where)
        assert isinstance(count, Measured)
        value = Association(call.kind, axis_x, axis_y, products, count.measure, call.sample)
        places = association_places(value)
        if len(set(places)) < len(places) or not axis_x.radius or not axis_y.radius:
            raise QueryError(
                f"{shown(call.y)} and {shown(call.x)} say the same, or one is a constant: there is nothing to find out "
                "about how they go together; VAR_POP says how far one of them spreads"
            )
        return value

    def _axis(self, subject: RowNumber, where: Predicate, squared: bool) -> tuple[RowNumber, Axis]:
        """A number about the middle of its range, which makes what one row can change the least."""
        _summable(subject)
        span = subject.span
        centre = (span.low + span.high) // 2
        self.scope.room.repeat(subject, 4)
        centred = arithmetic.add(subject, Constant(-centre, Span(-centre, -centre, span.grain, nullable=False)))
        total = self._total(subject, where, centre, "total about the middle of the range")
        squares = None
        if squared:
            squares = self._total(arithmetic.multiply(centred, centred), where, 0, "total of squares")
        radius = max(span.high - centre, centre - span.low)
        return centred, Axis(total, squares, centre, radius, span.grain)

    def _total(self, subject: RowNumber, where: Predicate, centre: int, label: str) -> int:
        """Σ (value − centre) over known values: one cell for the total, one for how many."""
        span = subject.span
        terms = [(1, self._cell(Cell("total", subject, where)))]
        if centre:
            counted = Cell("known", subject, where) if span.nullable else Cell("rows", None, where)
            terms.append((-centre, self._cell(counted)))
        low, high = span.low - centre, span.high - centre
        optional = span.nullable or not (self.always and where == Always(True))
        sensitivity = of_total(low, high, optional, self.stability)
        # A forecast needs some value: the middle of what a total can hold, an eighth of the range off a centre.
        typical = Fraction(high - low, 8) if centre or low < 0 < high else Fraction(low + high, 2)
        believed = typical_ends(subject)
        if believed is not None:
            typical = (believed[0] + believed[1]) / 2 - centre
        return self._measure(
            label, tuple(terms), span.grain, sensitivity, 0 if low >= 0 else None, typical, 0 if high <= 0 else None
        )

    def _cell(self, cell: Cell) -> int:
        return self._cells.setdefault(cell, len(self._cells))

    def _measure(
        self,
        label: str,
        terms: tuple[tuple[int, int], ...],
        grain: Fraction,
        sensitivity: Sensitivity,
        floor: int | None,
        typical: Fraction = Fraction(1),
        ceiling: int | None = None,
    ) -> int:
        measure = Measure(label, terms, grain, sensitivity.l1, sensitivity.l2_squared, floor, typical, ceiling)
        return self._measures.setdefault(measure, len(self._measures))

    def threshold(self) -> Measure:
        """Units per key: rows under `unit: row`, distinct unit keys otherwise; one unit touches at most `l1` keys."""
        stability = self.stability
        if self.unit is None and stability.rows > 1:
            raise QueryError(
                "keys of an undeclared domain are not released through a join that repeats rows; declare the values"
            )
        touched = min(stability.groups, stability.rows)
        if stability.neighbours == "replace-one":
            touched *= 2
        place = self._cell(Cell("rows") if self.unit is None else Cell("distinct", self.unit))
        return Measure("units per key", ((1, place),), Fraction(1), touched, touched, 0, Fraction(1))


def _summable(subject: RowNumber) -> None:
    span = subject.span
    if span.date:
        raise QueryError("dates are counted, compared and binned, not summed; days between two dates are `a - b`")
    arithmetic.span_of(span.low, span.high, span.grain, span.nullable)
