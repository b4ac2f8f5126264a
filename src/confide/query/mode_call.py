"""MODE(x): the value that most rows have, of those that x can have by public facts.

x is what GROUP BY takes: a column with a list of values, a ranged number or date with few steps, BIN, or an expression
of these. Its values are the places of a key, and rows are tallied by place. NULL is no value.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Category, Identifier, Text, Unbounded
from confide.privacy.limits import MOST_COMMONEST
from confide.query import number as arithmetic
from confide.query.grouping import bind_key, key_size
from confide.query.literal import bare
from confide.query.parse import shown
from confide.query.possible_groups import possible_groups
from confide.query.scope import Scope
from confide.query.tree import (
    Among,
    BinnedKey,
    DeclaredKey,
    Field,
    Floored,
    Key,
    Number,
    Predicate,
    Relation,
    Scaled,
    Span,
)


@dataclass(frozen=True, slots=True)
class TalliedRows:
    """The rows of which the commonest value is asked for, with the key whose places are its values."""

    relation: Relation
    where: Predicate
    keys: tuple[Key, ...]


def commonest_key(node: exp.Mode, scope: Scope) -> DeclaredKey | BinnedKey:
    """What MODE is of, as a key; or a refusal."""
    subject = bare(node.this)
    if isinstance(subject, exp.Distinct):
        raise QueryError(f"{shown(node)}: every distinct value is there once; write MODE(x) without DISTINCT")
    _refuse_private(node, subject, scope)
    try:
        key = bind_key(subject, scope)
    except QueryError as refusal:
        words = str(refusal).replace("group by ", "ask for the MODE of ")
        raise QueryError(f"{shown(node)}: MODE is of what GROUP BY takes; {words}") from None
    if isinstance(key, DeclaredKey):
        return replace(key, values=tuple(value for value in key.values if value is not None))
    assert isinstance(key, BinnedKey)
    return replace(key, nulls=False)


def commonest_places(
    node: exp.Mode, key: DeclaredKey | BinnedKey, relation: Relation, where: Predicate, scope: Scope
) -> tuple[int, ...]:
    """The places of the values that a row may have; none else is measured."""
    possible = possible_groups(TalliedRows(relation, where, (key,)), None, scope.catalog)
    places = possible or tuple(range(key_size(key) or 0))
    if len(places) > MOST_COMMONEST:
        other = "MODE(BIN(x, width))" if isinstance(key, BinnedKey) and not key.labels else "fewer values in WHERE"
        raise QueryError(
            f"{shown(node)} looks among {len(places):,} values, at most {MOST_COMMONEST:,} are answered; write {other},"
            " or GROUP BY it with ORDER BY COUNT(*) DESC LIMIT 1"
        )
    return places


def place_number(key: DeclaredKey | BinnedKey, places: tuple[int, ...], scope: Scope) -> Number:
    """Of a row the place of its value; NULL, or any number, where it has none of these."""
    if isinstance(key, DeclaredKey):
        scope.room.take(2 * len(places))
        branches = ((place, key.values[place]) for place in places)
        return arithmetic.choice(
            tuple(
                (Among(key.field, (value,)), arithmetic.constant(Fraction(place)))
                for place, value in branches
                if value is not None
            ),
            None,
        )
    span = key.number.span
    low, high = span.low - key.first, span.high - key.first
    index = Scaled(key.number, 1, -key.first, Span(low, high, nullable=span.nullable))
    return index if key.width == 1 else Floored(index, key.width, Span(0, key.count - 1, nullable=span.nullable))


def _refuse_private(node: exp.Mode, subject: exp.Expr, scope: Scope) -> None:
    """Columns whose values are not public."""
    if not isinstance(subject, exp.Column):
        return
    field = scope.field(subject)
    if not isinstance(field, Field) or isinstance(field.column, Category):
        return
    name = field.name
    if isinstance(field.column, Identifier):
        raise QueryError(f"{shown(node)}: {name} is an id, and would show a unit; ask COUNT(DISTINCT {name})")
    if isinstance(field.column, Text):
        raise QueryError(
            f"{shown(node)}: the policy has no list of values of {name}; GROUP BY {name} with ORDER BY COUNT(*) DESC "
            f"LIMIT 1 finds those that enough units have, if the budget has a delta; or declare its `values`"
        )
    if isinstance(field.column, Unbounded):
        raise QueryError(
            f"{shown(node)}: {name} has no bounds in the policy; give it a range to ask MODE(BIN({name}, width))"
        )
