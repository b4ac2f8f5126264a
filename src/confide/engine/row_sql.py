"""Row expressions as SQL: columns as the policy sees them, numbers, predicates, equality of joined columns.

Only total functions are used: no cast, division or sum here can raise, whatever a row holds. Numbers are BIGINT, or
HUGEINT where 62 bits do not hold their span. Comments name the reason where a plainer form would not be total or exact.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import lcm
from typing import Literal

from confide.engine.reading import date_index, number_index
from confide.engine.storage import Storage
from confide.engine.syntax import NARROW, among, case, cast, integer, name, text
from confide.policy import Category, Date, Identifier, Unbounded
from confide.policy import Number as NumberColumn
from confide.query.tree import (
    Absolute,
    Always,
    Among,
    Both,
    Choice,
    Combined,
    Compare,
    Constant,
    Derived,
    Either,
    Field,
    FirstKnown,
    Join,
    Known,
    Number,
    PerUnit,
    Predicate,
    Reading,
    Relation,
    SameField,
    Scaled,
    Scan,
    Span,
    TextIs,
    TextLike,
)

Storages = Mapping[tuple[str, str], Storage]


class RowWriter:
    """Writes expressions over the rows of one relation; `storages` says how each table's columns are stored."""

    def __init__(self, storages: Storages, relation: Relation) -> None:
        self._storages = storages
        self._owners = dict(_owners(relation))

    # --- columns ------------------------------------------------------------------------------------------------------

    def column(self, field: Field) -> str:
        return f"{field.source}.{name(field.name)}"

    def seen(self, field: Field) -> str:
        """The column as the policy sees it: what is outside a declared list, or not a number, is NULL."""
        column = field.column
        if isinstance(column, Category):
            return case([(among(self.column(field), column.values), self.column(field))])
        if isinstance(column, NumberColumn | Date):
            return self._reading(field)
        if isinstance(column, Unbounded) and self.storage(field).kind == "float":
            return case([(f"NOT ISNAN({self.column(field)})", self.column(field))])
        return self.column(field)

    def subject(self, subject: Field | Number) -> str:
        return self.seen(subject) if isinstance(subject, Field) else self.number(subject)

    def storage(self, field: Field) -> Storage:
        owner = self._owners.get(field.source)
        while isinstance(owner, PerUnit):
            field = owner.unit
            owner = self._owners.get(field.source)
        return self._storages.get((owner.table, field.name), Storage("other")) if owner else Storage("other")

    # --- joined columns -----------------------------------------------------------------------------------------------

    def equal(self, first: Field, second: Field) -> str:
        """Two columns agree, each as its policy sees it."""
        (left, left_grain), (right, right_grain) = self.join_value(first, second), self.join_value(second)
        if left_grain is None or right_grain is None:
            kinds = self._join_kind(first), self._join_kind(second)
            if kinds[0] == kinds[1]:
                return f"{left} = {right}"
            # Ids stored in different types agree as text, because an implicit cast could raise on a row.
            return f"{cast(left, 'VARCHAR')} = {cast(right, 'VARCHAR')}"
        scale = lcm(left_grain.denominator, right_grain.denominator)
        factors = int(left_grain * scale), int(right_grain * scale)
        sides = (
            value if factor == 1 else f"{cast(value, 'HUGEINT')} * {integer(factor)}"
            for value, factor in zip((left, right), factors, strict=True)
        )
        return " = ".join(sides)

    def join_value(self, field: Field, other: Field | None = None) -> tuple[str, Fraction | None]:
        """What a join compares, and for numbers what one step of it is worth."""
        column = field.column
        if isinstance(column, NumberColumn | Date):
            return self._reading(field), column.grain
        if isinstance(column, Category):
            grain = Fraction(1) if column.kind is int else None
            partner = other.column if other is not None else None
            if isinstance(partner, Category) and set(partner.values) <= set(column.values):
                return self.column(field), grain  # what equals one of the partner's values is one of ours
            return self.seen(field), grain
        if isinstance(column, Identifier) and self._join_kind(field) == "integer":
            return self.column(field), Fraction(1)
        return self.column(field), None

    def _join_kind(self, field: Field) -> Literal["integer", "boolean", "text"]:
        kind = self.storage(field).kind
        if kind in ("integer", "wide integer", "decimal", "float", "date", "timestamp"):
            return "integer"
        return "boolean" if kind == "boolean" else "text"

    # --- numbers ------------------------------------------------------------------------------------------------------

    def number(self, node: Number) -> str:
        match node:
            case Reading(field):
                return self._reading(field)
            case Derived(source, label):
                return f"{source}.{name(label)}"
            case Constant(index):
                return integer(index)
            case Scaled(inner, factor, offset, span):
                value = self._wide(inner, span)
                value = value if factor == 1 else f"({value} * {integer(factor)})"
                return value if offset == 0 else f"({value} + {integer(offset)})"
            case Combined("add", left, right, span):
                return f"({self._wide(left, span)} + {self._wide(right, span)})"
            case Combined("multiply", left, right, span):
                return f"({self._wide(left, span)} * {self._wide(right, span)})"
            case Combined(operation, left, right):
                return f"{operation.upper()}({self.number(left)}, {self.number(right)})"
            case Absolute(inner):
                return f"ABS({self.number(inner)})"
            case Choice(branches, otherwise):
                cases = [(self.predicate(condition), self.number(value)) for condition, value in branches]
                return case(cases, None if otherwise is None else self.number(otherwise))
            case FirstKnown(options):
                return f"COALESCE({', '.join(self.number(option) for option in options)})"

    def _wide(self, node: Number, span: Span) -> str:
        """The operand in a type that holds the result."""
        value = self.number(node)
        return cast(value, "HUGEINT") if span.largest >= NARROW else value

    def _reading(self, field: Field) -> str:
        column = field.column
        if isinstance(column, Date):
            return date_index(column, self.column(field), self.storage(field))
        assert isinstance(column, NumberColumn)
        return number_index(column, self.column(field), self.storage(field))

    # --- predicates ---------------------------------------------------------------------------------------------------

    def predicate(self, node: Predicate) -> str:
        match node:
            case Always(holds):
                return "TRUE" if holds else "FALSE"
            case Both(parts) | Either(parts):
                listed = self._listed(node)
                word = " AND " if isinstance(node, Both) else " OR "
                return listed or f"({word.join(self.predicate(part) for part in parts)})"
            case Compare(operation, _, right):
                return f"{self._comparand(node)} {operation} {self.number(right)}"
            case Among(field, values):
                return among(self.column(field), values)
            case TextIs(field, values, negated):
                return f"{'NOT ' if negated else ''}({among(self.column(field), values)})"
            case TextLike(field, pattern, negated, ignore_case):
                word = "ILIKE" if ignore_case else "LIKE"
                return f"{self.column(field)} {'NOT ' if negated else ''}{word} {text(pattern)}"
            case SameField(left, right, negated):
                return f"NOT ({self.equal(left, right)})" if negated else self.equal(left, right)
            case Known(subject, negated):
                return f"{self.subject(subject)} IS {'' if negated else 'NOT '}NULL"

    def _listed(self, node: Both | Either) -> str | None:
        """x = 1 OR x = 2 OR ... as one IN, and x <> 1 AND x <> 2 as NOT IN, so that a long list reads x once."""
        operation = "=" if isinstance(node, Either) else "<>"
        first = node.parts[0]
        if not isinstance(first, Compare) or len(node.parts) < 3:
            return None
        places = []
        for part in node.parts:
            if not isinstance(part, Compare) or part.operation != operation or part.left != first.left:
                return None
            if not isinstance(part.right, Constant):
                return None
            places.append(part.right.index)
        return f"{self.number(first.left)} {'' if operation == '=' else 'NOT '}IN ({', '.join(map(str, places))})"

    def _comparand(self, node: Compare) -> str:
        """A whole-number column strictly inside its range compares as it is stored, so that blocks can be skipped."""
        left, right = node.left, node.right
        if isinstance(left, Reading) and isinstance(right, Constant) and self.storage(left.field).kind == "integer":
            inside = left.span.low < right.index < left.span.high
            if isinstance(left.field.column, NumberColumn) and left.span.grain == 1 and inside:
                return self.column(left.field)
        return self.number(left)


def _owners(relation: Relation) -> Iterable[tuple[str, Scan | PerUnit]]:
    match relation:
        case Scan(source=source):
            yield source, relation
        case Join(left, right):
            yield from _owners(left)
            yield right.source, right
        case PerUnit(inner, source=source):
            yield from _owners(inner)
            yield source, relation
