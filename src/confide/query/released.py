"""What may be said of released numbers: arithmetic in the SELECT, conditions in HAVING, the order of ORDER BY.

They see measures and keys, never rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from operator import add, mul, sub, truediv
from typing import Literal, Protocol

from sqlglot import exp

from confide.errors import QueryError
from confide.query.comparison import Operation, declared
from confide.query.expression import COMPARISONS, FLIPPED, NEGATED, predicate
from confide.query.grouping import find_key
from confide.query.literal import bare, is_literal, is_text, literal_number, text
from confide.query.magnitude import held
from confide.query.parse import conjuncts, shown
from confide.query.question import (
    AllOf,
    AnyOf,
    Arithmetic,
    Comparison,
    Condition,
    Dated,
    Estimated,
    FixedNumber,
    Magnitude,
    Order,
    Rounded,
    ShownKey,
    ShownValue,
    Value,
)
from confide.query.released_kind import (
    day_in_quotes,
    day_of,
    has_aggregate,
    is_date_cast,
    require_days,
    require_number,
    unwrapped,
)
from confide.query.scope import Scope
from confide.query.spelling import nearest
from confide.query.tree import Always, BinnedKey, DeclaredKey, Key, Label, Predicate
from confide.query.view import PLACED

_OPERATIONS: dict[type[exp.Expr], Literal["+", "-", "*", "/"]] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
}
_FOLDED: dict[str, Callable[[Fraction, Fraction], Fraction]] = {"+": add, "-": sub, "*": mul, "/": truediv}
_REALS = (exp.DType.DOUBLE, exp.DType.FLOAT)
_MOST_DIGITS = 12

Aggregate = Callable[[exp.Expr, Predicate], Value]
Named = Callable[[exp.Column], Value | None]
Ratio = Callable[[Value, Value], Value | None]


class Valued(Protocol):
    def value(self, node: exp.Expr, named: Named | None = None) -> Value:
        """An expression of aggregates, and of columns of the result by their names."""


@dataclass(frozen=True, slots=True)
class Released:
    """The columns of a result, and what may be said of them."""

    aliases: frozenset[str]
    """Names that the SELECT gives with AS."""
    columns: tuple[ShownKey | ShownValue, ...]
    keys: tuple[Key, ...]
    aggregates: Valued
    scope: Scope

    def orders(self, clause: exp.Order, dialect: str) -> tuple[Order, ...]:
        """Of several orders by the same only the first decides anything."""
        found: dict[Value | ShownKey, Order] = {}
        for item in clause.expressions:
            order = self.order(item, dialect)
            found.setdefault(order.by, order)
        return tuple(found.values())

    def order(self, item: exp.Ordered, dialect: str) -> Order:
        node = item.this
        if item.args.get("nulls_first") and dialect == "duckdb":
            raise QueryError("NULLS FIRST is not answered: a key that is NULL comes last")
        if item.args.get("with_fill"):
            raise QueryError("ORDER BY ... WITH FILL is not answered; all declared keys are in the result anyway")
        if isinstance(node, exp.Literal) and not node.is_string:
            place = literal_number(node)
            if place.denominator != 1 or not 1 <= place <= len(self.columns):
                raise QueryError(
                    f"ORDER BY {node.name}: the SELECT has {len(self.columns)} columns; write one of their names"
                )
            return Order(_ordered(_content(self.columns[int(place) - 1]), node), bool(item.args.get("desc")))
        if is_literal(node):
            raise QueryError(f"ORDER BY {shown(node)} is a constant; name a column of the result")
        return Order(_ordered(self._subject(node), node), bool(item.args.get("desc")))

    def condition(self, node: exp.Expr, negated: bool = False) -> Condition:
        node = bare(node)
        match node:
            case exp.Not():
                return self.condition(node.this, not negated)
            case exp.And() | exp.Or():
                parts = tuple(self.condition(part, negated) for part in conjuncts(node))
                return AllOf(parts) if isinstance(node, exp.And) != negated else AnyOf(parts)
            case exp.Between() if not node.args.get("symmetric"):
                ends: list[tuple[Operation, exp.Expr]] = [(">=", node.args["low"]), ("<=", node.args["high"])]
                parts = self._comparisons(ends, node.this, negated)
                return AnyOf(parts) if negated else AllOf(parts)
            case exp.In() if node.expressions and not node.args.get("query"):
                parts = self._comparisons([("=", option) for option in node.expressions], node.this, negated)
                return AllOf(parts) if negated else AnyOf(parts)
        if type(node) not in COMPARISONS:
            raise QueryError(f"HAVING {shown(node)} is not answered; compare aggregates with numbers")
        return self._comparisons([(COMPARISONS[type(node)], node.expression)], node.this, negated)[0]

    def _comparisons(
        self, sides: Sequence[tuple[Operation, exp.Expr]], node: exp.Expr, negated: bool
    ) -> tuple[Condition, ...]:
        """One subject compared with several others; it is bound once, whatever it is."""
        turned = [(NEGATED[operation] if negated else operation, other) for operation, other in sides]
        if (is_literal(node) or day_of(node) is not None) and not all(is_literal(other) for _, other in turned):
            return tuple(
                self._comparison(FLIPPED[operation], self._subject(other), other, node) for operation, other in turned
            )
        subject = self._subject(node)
        if not isinstance(subject, ShownKey):
            self.scope.room.repeat(subject, len(turned) - 1)
        return tuple(self._comparison(operation, subject, node, other) for operation, other in turned)

    def _comparison(
        self, operation: Operation, subject: Value | ShownKey, left: exp.Expr, right: exp.Expr
    ) -> Comparison:
        self.scope.room.take(1)
        if isinstance(subject, ShownKey):
            return Comparison(operation, subject, _key_constant(self.keys[subject.key], operation, right, self.scope))
        if isinstance(subject, Dated):
            days = day_in_quotes(right)
            return Comparison(operation, subject, days if days is not None else self._date(right))
        require_number(subject, left)
        if is_text(right):
            raise QueryError(f"HAVING compares a number with the text {shown(right)}; write the number without quotes")
        other = self._subject(right)
        if isinstance(other, ShownKey):
            raise QueryError(f"HAVING {shown(left)}, {shown(right)}: a key is compared with a constant")
        return Comparison(operation, subject, require_number(other, right))

    def _date(self, node: exp.Expr) -> Value:
        """What a released date is compared with."""
        other = self._subject(node)
        if isinstance(other, ShownKey) or not isinstance(other, Dated):
            raise QueryError(f"HAVING compares a date with {shown(node)}; write DATE '2024-01-31'")
        return other

    def _subject(self, node: exp.Expr) -> Value | ShownKey:
        """A column of the result by its name, a key, or an expression of aggregates."""
        node = bare(node)
        if isinstance(node, exp.Column):
            named = self._named(node)
            if named is not None:
                return named
        place = find_key(node, self.keys, self.scope)
        if place is not None:
            return ShownKey(self.keys[place].name, place)
        if isinstance(node, exp.Column):
            names = [column.name for column in self.columns]
            raise QueryError(f"{shown(node)} is not a column of the result; {nearest(node.name, names, 'it has')}")
        return self.aggregates.value(node, self._aliased)

    def _aliased(self, node: exp.Column) -> Value | None:
        """What a column of the result stands for inside an expression: bound already, and measured once."""
        named = self._named(node) if node.name.casefold() in self.aliases else None
        return None if isinstance(named, ShownKey) else named

    def _named(self, node: exp.Column) -> Value | ShownKey | None:
        if node.table or node.meta.get(PLACED):
            return None
        found = (column for column in self.columns if column.name.casefold() == node.name.casefold())
        column = next(found, None)
        if column is None:
            return None
        content = _content(column)
        if not isinstance(content, ShownKey):
            self.scope.room.repeat(content, 1)
        return content


def aliases_of(items: Sequence[exp.Expr]) -> frozenset[str]:
    return frozenset(item.alias.casefold() for item in items if isinstance(item, exp.Alias))


def _content(column: ShownKey | ShownValue) -> Value | ShownKey:
    return column if isinstance(column, ShownKey) else column.value


def _ordered(content: Value | ShownKey, node: exp.Expr) -> Value | ShownKey:
    """What rows are sorted by: a number, a date or a key."""
    return content if isinstance(content, ShownKey | Dated) else require_number(content, node)


def _key_constant(key: Key, operation: Operation, node: exp.Expr, scope: Scope) -> str | bool:
    """The constant a key is compared with, as the key is printed."""
    if operation not in ("=", "<>") or (not is_literal(node) and not isinstance(bare(node), exp.Cast)):
        raise QueryError("HAVING compares a key with = or <> and a constant; put other conditions on keys into WHERE")
    if isinstance(key, DeclaredKey):
        column = key.field.column
        value = declared(column, node, scope)  # type: ignore[arg-type]
        return value if isinstance(value, bool) else str(value)
    if not isinstance(key, BinnedKey):
        return text(node)
    if key.labels and isinstance(key.labels[0], str | bool):
        return _label(key.labels, node)
    return _printed(node, "date" if key.labels and isinstance(key.labels[0], date) else key.kind)


def _label(labels: Sequence[Label], node: exp.Expr) -> str | bool:
    inner = bare(node)
    value = bool(inner.this) if isinstance(inner, exp.Boolean) else text(inner)
    if value not in labels:
        names = [str(label) for label in labels]
        raise QueryError(f"no group is called {shown(node)}; {nearest(str(value), names, 'there are')}")
    return value


def _printed(node: exp.Expr, kind: Literal["number", "date"]) -> str:
    if kind == "date":
        inner = bare(node)
        written = text(inner.this if isinstance(inner, exp.Cast) else inner)
        try:
            return date.fromisoformat(written).isoformat()
        except ValueError:
            raise QueryError(f"'{written[:40]}' is not a date; write DATE '2024-01-31'") from None
    value: Fraction = literal_number(node)
    return str(int(value)) if value.denominator == 1 else str(float(value))


def composed(node: exp.Expr, aggregate: Aggregate, scope: Scope, ratio: Ratio, named: Named | None = None) -> Value:
    """The value of an expression; `aggregate` reads one aggregate over the rows that pass its FILTER, `ratio` knows
    what more is to say of a quotient, if anything, and `named` reads a column of the result by its name, outside of
    aggregates.
    """
    scope.room.take(1)

    def value(inner: exp.Expr) -> Value:
        return require_number(composed(inner, aggregate, scope, ratio, named), inner)

    def operand(inner: exp.Expr) -> tuple[Value, bool]:
        """A value, and whether it is the number of a day."""
        constant = day_of(inner)
        if constant is not None:
            return constant, True
        found = composed(unwrapped(inner), aggregate, scope, ratio, named)
        return (found.inner, True) if isinstance(found, Dated) else (found, False)

    match node:
        case exp.Paren():
            return composed(node.this, aggregate, scope, ratio, named)
        case exp.Literal():
            return FixedNumber(literal_number(node))
        case exp.Neg():
            inner = value(node.this)
            return (
                FixedNumber(-inner.value)
                if isinstance(inner, FixedNumber)
                else Arithmetic("-", FixedNumber(Fraction(0)), inner)
            )
        case exp.Column() if named is not None and (found := named(node)) is not None:
            return found
        case exp.DateDiff() if has_aggregate(node):
            require_days(node)
            return _difference(node, operand(node.this), operand(node.expression))
        case exp.Sub():
            return _difference(node, operand(node.this), operand(node.expression))
        case exp.Add() | exp.Mul() | exp.Div():
            left, right = value(node.this), value(node.expression)
            if isinstance(node, exp.Div) and right == FixedNumber(Fraction(0)):
                raise QueryError("the query divides by zero")
            operation = _OPERATIONS[type(node)]
            if isinstance(left, FixedNumber) and isinstance(right, FixedNumber):
                return FixedNumber(held(_FOLDED[operation](left.value, right.value)))
            known = ratio(left, right) if operation == "/" else None
            return known if known is not None else Arithmetic(operation, left, right)
        case exp.Abs():
            inner = value(node.this)
            return FixedNumber(abs(inner.value)) if isinstance(inner, FixedNumber) else Magnitude(inner)
        case exp.Round():
            digits = literal_number(node.args["decimals"]) if node.args.get("decimals") else Fraction(0)
            if digits.denominator != 1 or not 0 <= digits <= _MOST_DIGITS:
                raise QueryError(f"ROUND takes 0 to {_MOST_DIGITS} digits")
            return Rounded(value(node.this), int(digits))
        case exp.Nullif() if _is_zero(node.expression):
            # The usual guard of a ratio, SUM(a) / NULLIF(SUM(b), 0): ours has no failing division to guard.
            return value(node.this)
        case exp.Coalesce() if len(node.expressions) == 1 and _is_zero(node.expressions[0]):
            return value(node.this)  # a released sum is never NULL
        case exp.Cast() if is_date_cast(node) and day_of(node) is None:
            found, dated = operand(node.this)
            if not dated:
                raise QueryError(f"{shown(node)}: only a date is cast to one; leave the cast out")
            return Dated(found) if isinstance(found, Estimated) else found
        case exp.Cast() if node.to.this in _REALS:
            return value(node.this)  # released numbers divide as real numbers anyway
        case exp.Filter():
            return aggregate(node.this, predicate(node.expression.this, scope))
    return aggregate(node, Always(True))


def _difference(node: exp.Expr, last: tuple[Value, bool], first: tuple[Value, bool]) -> Value:
    """Of two numbers, or of two days, which is a number of days."""
    (left, one), (right, two) = last, first
    if one != two or (isinstance(node, exp.DateDiff) and not one):
        raise QueryError(
            f"{shown(node)} is a difference of two dates or of two numbers; a date is moved inside the aggregate, "
            "MAX(d + INTERVAL 1 MONTH)"
        )
    left, right = require_number(left, node.this), require_number(right, node.expression)
    if isinstance(left, FixedNumber) and isinstance(right, FixedNumber):
        return FixedNumber(held(left.value - right.value))
    return Arithmetic("-", left, right)


def _is_zero(node: exp.Expr) -> bool:
    inner = bare(node)
    return isinstance(inner, exp.Literal) and not inner.is_string and literal_number(inner) == 0
