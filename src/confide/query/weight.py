"""What is added up over the rows of a join: weights, and what a SELECT makes of their sums."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from sqlglot import exp

from confide.errors import QueryError
from confide.query import number as arithmetic
from confide.query.affine import multiples, parts_of, times
from confide.query.comparison import joined
from confide.query.expression import number, predicate, scalar
from confide.query.parse import shown
from confide.query.question import Arithmetic, Between, Estimated, ShownKey, ShownValue, Value
from confide.query.question import FixedNumber as Released
from confide.query.released import Named, composed
from confide.query.scope import Scope
from confide.query.tree import Constant, Field, Known, Number, Predicate, Span

MOST_ADDED: Final = 2**58
"""What one unit adds to a sum over a join, in whole grains, is cut there at the latest: sums by unit fit 64 bits."""


@dataclass(frozen=True, slots=True)
class Weight:
    """What each joined row that passes `where` counts for; 1 if there is no number."""

    name: str
    number: Number | None
    where: Predicate

    @property
    def span(self) -> Span:
        return self.number.span if self.number is not None else Span(0, 1, nullable=False)

    @property
    def grain(self) -> Fraction:
        return self.span.grain


class Weights:
    """Collects the weights of one query; equal ones are kept, and paid for, once."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._weights: list[Weight] = []

    def value(self, node: exp.Expr, named: Named | None = None) -> Value:
        """Arithmetic on sums over the join."""
        return composed(node, self.aggregate, self.scope, self._ratio, named)

    def aggregate(self, node: exp.Expr, where: Predicate) -> Value:
        match node:
            case exp.Count(this=exp.Star()):
                return self._added("count", None, where)
            case exp.CountIf():
                return self._added("count", None, joined((where, predicate(node.this, self.scope)), every=True))
            case exp.Count() if not node.expressions and not isinstance(node.this, exp.Distinct):
                return self._known(_named("count", node), scalar(node.this, self.scope), where)
            case exp.Sum():
                return self._added(_named("sum", node), _summable(number(node.this, self.scope)), where)
            case exp.Avg():
                return self._mean(node, _summable(number(node.this, self.scope)), where)
        raise QueryError(
            f"{shown(node)}: where one unit may change any number of joined rows, COUNT, SUM and AVG are answered, and "
            "arithmetic on them"
        )

    def _ratio(self, left: Value, right: Value) -> Value | None:
        """A sum of some joined rows over the number of all of them: between the ends of what is summed, and 0."""
        top, bottom = multiples(left, Estimated), multiples(right, Estimated)
        if top is None or bottom is None or len(top) != 1 or len(bottom) != 1:
            return None
        (above, over), (below, under) = *top.items(), *bottom.items()
        weight, all_of_them = self._weights[above], self._weights[below]
        if not under or above == below or all_of_them.number is not None:
            return None
        if not parts_of(all_of_them.where) <= parts_of(weight.where):
            return None
        low, high = min(0, weight.span.low) * weight.grain, max(0, weight.span.high) * weight.grain
        quotient = Between(Arithmetic("/", Estimated(above), Estimated(below)), low, high)
        return times(over / under, quotient)

    def named(self, columns: tuple[ShownKey | ShownValue, ...]) -> tuple[Weight, ...]:
        """The weights, each called as the column that shows it alone, else after what it adds up."""
        own = {
            column.value.statistic: column.name
            for column in reversed(columns)
            if isinstance(column, ShownValue) and isinstance(column.value, Estimated)
        }
        taken = {name.casefold() for name in own.values()}
        result = []
        for place, weight in enumerate(self._weights):
            name, again = own.get(place, weight.name), 2
            while place not in own and name.casefold() in taken:
                name, again = f"{weight.name}_{again}", again + 1
            taken.add(name.casefold())
            result.append(replace(weight, name=name))
        return tuple(result)

    def _mean(self, node: exp.Expr, subject: Number, where: Predicate) -> Value:
        """low + Σ(x - low) / how many are known: what is added up is not negative, which every mechanism takes."""
        span, low = subject.span, min(subject.span.low, 0)
        if low:
            shift = Constant(-low, Span(-low, -low, span.grain, nullable=False))
            subject = arithmetic.add(subject, shift)
        total = self._added(_named("sum", node), subject, where)
        ratio = Arithmetic("/", total, self._known(_named("count", node), subject, where))
        mean: Value = Arithmetic("+", Released(low * span.grain), ratio) if low else ratio
        return Between(mean, span.low * span.grain, span.high * span.grain)

    def _known(self, name: str, subject: Field | Number, where: Predicate) -> Value:
        if not isinstance(subject, Field) and not subject.span.nullable:
            return self._added(name, None, where)
        return self._added(name, None, joined((where, Known(subject, negated=False)), every=True))

    def _added(self, name: str, subject: Number | None, where: Predicate) -> Value:
        for place, weight in enumerate(self._weights):
            if (weight.number, weight.where) == (subject, where):
                return Estimated(place)
        self._weights.append(Weight(name, subject, where))
        return Estimated(len(self._weights) - 1)


def _named(word: str, node: exp.Expr) -> str:
    column = node.find(exp.Column)
    return word if column is None else f"{word}_{column.name}"


def _summable(subject: Number) -> Number:
    if subject.span.date:
        raise QueryError("dates are not summed; days between two dates are `a - b`")
    return subject
