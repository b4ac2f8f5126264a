"""GROUP BY: keys whose domain is public before anything is read, or that a private threshold releases."""

from fractions import Fraction
from math import floor, prod
from typing import Literal

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Category, Date, Identifier, Text
from confide.policy import Number as NumberColumn
from confide.query.expression import number
from confide.query.literal import literal_number
from confide.query.scope import Scope
from confide.query.tree import BinnedKey, DeclaredKey, Derived, Field, Key, Number, Reading, UnknownKey

MOST_GROUPS = 1_000_000
MOST_PLAIN = 10_000
"""A ranged column may be grouped by its plain values when it has at most so many."""


def bind_keys(select: exp.Select, scope: Scope) -> tuple[tuple[exp.Expr, ...], tuple[Key, ...]]:
    """The expressions of GROUP BY, positions and aliases resolved, and the key that each becomes."""
    clause = select.args.get("group")
    if clause is None:
        return (), ()
    extras = [name for name, value in clause.args.items() if value and name != "expressions"]
    if extras:
        raise QueryError(f"GROUP BY {extras[0].upper()} is not answered; list the keys")
    nodes = tuple(_resolve(node, select) for node in clause.expressions)
    keys = tuple(_key(node, _name(node, select, scope), scope) for node in nodes)
    if len(set(nodes)) < len(nodes):
        raise QueryError("GROUP BY names the same key twice")
    groups = prod(size for size in map(key_size, keys) if size is not None)
    if groups > MOST_GROUPS:
        raise QueryError(
            f"the keys make {groups:,} groups, at most {MOST_GROUPS:,} are answered; use wider bins or fewer keys"
        )
    return nodes, keys


def key_size(key: Key) -> int | None:
    """How many groups the key makes; None if that is private."""
    match key:
        case DeclaredKey():
            return len(key.values)
        case BinnedKey():
            return key.count
    return None


def _resolve(node: exp.Expr, select: exp.Select) -> exp.Expr:
    """A position or an alias becomes the expression of the SELECT it stands for."""
    if isinstance(node, exp.Literal) and not node.is_string:
        place = literal_number(node)
        if place.denominator != 1 or not 1 <= place <= len(select.expressions):
            raise QueryError(f"GROUP BY {node.name}: the SELECT has {len(select.expressions)} columns")
        chosen: exp.Expr = select.expressions[int(place) - 1]
        return chosen.unalias()
    if isinstance(node, exp.Column) and not node.table:
        for item in select.expressions:
            if isinstance(item, exp.Alias) and item.alias.lower() == node.name.lower():
                named: exp.Expr = item.this
                return named
    return node.unnest()


def _name(node: exp.Expr, select: exp.Select, scope: Scope) -> str:
    for item in select.expressions:
        if item.unalias() == node and isinstance(item, exp.Alias):
            return item.alias
    inner = node.find(exp.Column)
    if inner is None:
        return "key"
    subject = scope.field(inner)
    name = subject.field.name if isinstance(subject, Reading) else subject.name
    return name if isinstance(node, exp.Column) else f"{name}_bin"


def _key(node: exp.Expr, name: str, scope: Scope) -> Key:
    if isinstance(node, exp.Anonymous) and node.name.upper() == "BIN":
        return _binned(node, name, scope)
    if not isinstance(node, exp.Column):
        raise QueryError(
            f"GROUP BY {node.sql()[:60]} is not answered; group by a declared column or BIN(column, width)"
        )
    subject = scope.field(node)
    if isinstance(subject, Reading | Derived):
        steps = subject.span.high - subject.span.low + 1
        if steps > MOST_PLAIN:
            raise QueryError(f"{node.name} has {steps:,} possible values; group by BIN({node.name}, width)")
        kind: Literal["number", "date"] = "date" if subject.span.date else "number"
        return BinnedKey(name, subject, subject.span.low, 1, steps, kind)
    column = subject.column
    if isinstance(column, Category):
        return DeclaredKey(name, subject, (*column.values, None) if column.nulls else column.values)
    if isinstance(column, Text):
        if scope.policy.budget.pure:
            raise QueryError(
                f"the values of {column.name} are not public, and a pure budget cannot release them; "
                "declare its `values` in the policy, or give the budget a delta"
            )
        return UnknownKey(name, subject)
    if isinstance(column, Identifier):
        raise QueryError(
            f"{column.name} is an id: a group of one unit would show that unit; group by a declared column"
        )
    raise QueryError(
        f"{column.name} has no bounds in the policy; give it a range to group by BIN({column.name}, width)"
    )


def _binned(node: exp.Anonymous, name: str, scope: Scope) -> Key:
    if not 1 <= len(node.expressions) <= 2:
        raise QueryError("BIN takes a ranged column and a width: BIN(age, 10)")
    subject = number(node.expressions[0], scope)
    width = literal_number(node.expressions[1]) if len(node.expressions) == 2 else _default_width(subject)
    steps = width / subject.span.grain
    if steps.denominator != 1 or steps < 1:
        raise QueryError(f"the width {width} of BIN is not a positive multiple of the grain {subject.span.grain}")
    step = int(steps)
    first = floor(Fraction(subject.span.low, step)) * step
    count = (subject.span.high - first) // step + 1
    return BinnedKey(name, subject, first, step, count, "date" if subject.span.date else "number")


def _default_width(subject: Number) -> Fraction:
    column = subject.field.column if isinstance(subject, Reading) else None
    if isinstance(column, NumberColumn | Date) and column.bins is not None:
        return column.bins
    raise QueryError("BIN needs a width: BIN(age, 10); or declare `bins` for the column in the policy")


def key_field(key: Key) -> Field | None:
    return key.field if isinstance(key, DeclaredKey | UnknownKey) else None
