"""Row expressions as SQL: columns as the policy sees them, numbers, predicates, equality of joined columns.

Only total functions are used: no cast, division or sum here can raise, whatever a row holds. Numbers are BIGINT, or
HUGEINT where 62 bits do not hold their span. Comments name the reason where a plainer form would not be total or exact.
"""

from collections.abc import Iterable
from typing import assert_never

from confide.engine.sql.agreement import LARGEST_TEXT, Joined, day_text, number_text, on_one_grid
from confide.engine.sql.canonical_text import text_of
from confide.engine.sql.index_sql import date_index, number_index
from confide.engine.sql.syntax import NARROW, among, case, cast, clamped, double, integer, name, select, text
from confide.engine.storage import Storage, Storages
from confide.policy import Category, Date, Identifier, Text, Unbounded
from confide.policy import Number as NumberColumn
from confide.policy.column import INDEX_LIMIT
from confide.query.curve import scale_of
from confide.query.tree import (
    Absolute,
    Always,
    Among,
    Both,
    Choice,
    Combined,
    Compare,
    Constant,
    CurveValue,
    Derived,
    Divided,
    Either,
    Field,
    FirstKnown,
    Floored,
    Join,
    Known,
    Matched,
    Number,
    OneOf,
    PartOfText,
    PerUnit,
    Predicate,
    Reading,
    Relation,
    SameField,
    Scaled,
    Scan,
    Span,
    TextHolds,
    TextIs,
    TextLength,
    TextLike,
    TextOrder,
)


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

    def text(self, subject: Field | PartOfText) -> str:
        """A text, or a part of one. Letters are code points, and places begin at 1, on every engine."""
        if isinstance(subject, Field):
            return self.column(subject)
        value = self.column(subject.field)
        for step in subject.steps:
            match step:
                case ("from", start):
                    value = f"SUBSTRING({value}, {start})"
                case ("from", start, length):
                    value = f"SUBSTRING({value}, {start}, {length})"
                case ("last", length):
                    # Elsewhere a place before the first letter counts as letters.
                    longer = f"LENGTH({value}) > {length}"
                    value = case([(longer, f"SUBSTRING({value}, LENGTH({value}) - {int(length) - 1})")], value)
                case ("trim", letters, side):
                    value = f"TRIM({side} {text(str(letters))} FROM {value})" if letters else value
                case _:
                    raise TypeError(step)
        return value

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
        return " = ".join(self.common(first, second))

    def common(self, first: Field, second: Field) -> tuple[str, str]:
        """Two columns in one type, in which they are equal where they agree."""
        left, right = self.joined(first, second), self.joined(second)
        if left.kind == right.kind != "number":
            return left.sql, right.sql
        if left.kind == right.kind and not self._beyond_ids(first, left, second, right):
            return on_one_grid(left, right)
        return self.joined_text(first), self.joined_text(second)

    def joined(self, field: Field, other: Field | None = None) -> Joined:
        """What a join compares of a column; of two columns that agree it may differ in its grid and its type."""
        column = field.column
        match column:
            case NumberColumn():
                return Joined(self._reading(field), "number", column.grain, _reach(column))
            case Date():
                return Joined(self._reading(field), "day")
            case Category():
                partner = other.column if other is not None else None
                # What equals one of the partner's values is one of ours.
                covered = isinstance(partner, Category) and set(partner.values) <= set(column.values)
                value = self.column(field) if covered else self.seen(field)
                if column.kind is int:
                    return Joined(value, "number", reach=INDEX_LIMIT)
                return Joined(value, "flag" if column.kind is bool else "text")
            case Identifier() | Text() | Unbounded():
                storage = self.storage(field)
                if storage.kind in ("integer", "wide integer") and isinstance(column, Identifier):
                    return Joined(self.column(field), "number", reach=1 << (64 if storage.kind == "integer" else 128))
                return Joined(text_of(self.column(field), storage), "text")
            case _:
                assert_never(column)

    def joined_text(self, field: Field) -> str:
        """The same as a text that is the same for all columns that agree; NULL where no text could agree."""
        joined = self.joined(field)
        if joined.kind == "number":
            return number_text(joined)
        if isinstance(field.column, Date):
            return day_text(field.column, self.column(field), self.storage(field))
        return joined.sql if joined.kind == "text" else cast(joined.sql, "VARCHAR")

    def _beyond_ids(self, first: Field, left: Joined, second: Field, right: Joined) -> bool:
        """Whether a number may pass those that have a text, beside an id that may be stored as one."""
        keys = [isinstance(field.column, Identifier) for field in (first, second)]
        values = [joined.reach * joined.grain for joined in (left, right)]
        return keys[0] != keys[1] and values[keys.index(False)] >= LARGEST_TEXT

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
            case Floored(inner, divisor, span):
                # Never negative, so truncating division is flooring on every engine. Its cast says that 64 bits do.
                narrow = inner.span.largest + abs(span.low * divisor) + divisor < NARROW
                value = self.number(inner) if narrow else cast(self.number(inner), "HUGEINT")
                if inner.span.low >= 0:
                    return f"({cast(value, 'BIGINT') if narrow else value} // {integer(divisor)})"
                shifted = f"({value} - {integer(span.low * divisor)})"
                return f"({cast(shifted, 'BIGINT') if narrow else shifted} // {integer(divisor)} + {integer(span.low)})"
            case Divided(left, right, span):
                below = cast(self.number(right), "BIGINT")
                if left.span.low >= 0:
                    return f"({cast(self.number(left), 'BIGINT')} // {below})"
                # Shifted so that nothing is negative: truncating division is flooring on every engine then.
                shifted = f"({self.number(left)} + {integer(-span.low)} * {self.number(right)})"
                return f"({cast(shifted, 'BIGINT')} // {below} + {integer(span.low)})"
            case CurveValue():
                return self._curved(node)
            case TextLength(subject, span):
                return clamped(cast(f"LENGTH({self.text(subject)})", "BIGINT"), span.low, span.high)
            case Choice(branches, otherwise):
                cases = [(self.predicate(condition), self.number(value)) for condition, value in branches]
                return case(cases, None if otherwise is None else self.number(otherwise))
            case FirstKnown(options):
                return f"COALESCE({', '.join(self.number(option) for option in options)})"
            case _:
                assert_never(node)

    def _curved(self, node: CurveValue) -> str:
        """In double precision, clamped to its span. Engines agree on the integer: `query/curve.py` says why."""
        inner, span = self.number(node.inner), node.span
        x = cast(inner, "DOUBLE")
        if node.inner.span.grain != 1:
            x = f"({x} * {double(float(node.inner.span.grain))})"
        match node.kind:
            case "sqrt" | "ln" | "exp":
                value = f"{node.kind.upper()}({x})"
            case "power":
                value = f"POWER({x}, {double(float(node.parameter))})"
            case _:
                assert_never(node.kind)
        scaled = f"{value} * {double(scale_of(node.kind, node.parameter, span.grain))}"
        index = f"TRY_CAST(FLOOR({scaled} + {double(0.5)}) AS BIGINT)"
        within = f"LEAST(GREATEST({index}, {integer(span.low)}), {integer(span.high)})"
        written = [(f"{inner} = {place}", integer(told)) for place, told in node.written]
        return case([*written, (f"{inner} IS NOT NULL", within)])

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
                word = " AND " if isinstance(node, Both) else " OR "
                return f"({word.join(self.predicate(part) for part in parts)})"
            case OneOf(subject, indices, negated):
                return f"{self.number(subject)} {'NOT ' if negated else ''}IN ({', '.join(map(str, indices))})"
            case Compare(operation, _, right):
                return f"{self._comparand(node)} {operation} {self.number(right)}"
            case Among(field, values):
                return among(self.column(field), values)
            case TextIs(field, values, negated):
                return f"{'NOT ' if negated else ''}({among(self.text(field), values)})"
            case TextLike(field, pattern, negated, ignore_case):
                word = "ILIKE" if ignore_case else "LIKE"
                return f"{self.text(field)} {'NOT ' if negated else ''}{word} {text(pattern)}"
            case TextOrder(field, operation, value):
                return f"{self.text(field)} {operation} {text(value)}"
            case TextHolds(field, value, negated):
                return f"STRPOS({self.text(field)}, {text(value)}) {'=' if negated else '>'} 0"
            case SameField(left, right, negated):
                return f"NOT ({self.equal(left, right)})" if negated else self.equal(left, right)
            case Matched():
                return self._matched(node)
            case Known(subject, negated):
                return f"{self.subject(subject)} IS {'' if negated else 'NOT '}NULL"
            case _:
                assert_never(node)

    def _matched(self, node: Matched) -> str:
        """Whether there is a partner. Names of tables are unique in a statement, so those inside hide none outside."""
        self._owners.update(_owners(node.relation))
        conditions = [self.equal(outer, inner) for outer, inner in node.on]
        if node.where != Always(True):
            conditions.append(self.predicate(node.where))
        found = select([("one", "1")], self.source(node.relation), conditions)
        return f"{'NOT ' if node.negated else ''}EXISTS ({found})"

    def source(self, relation: Scan | Join) -> str:
        """Tables and joins, as FROM takes them."""
        if isinstance(relation, Scan):
            # With its schema, so that no name of ours in the statement can stand before it.
            return f"main.{name(relation.table)} AS {relation.source}"
        condition = " AND ".join(self.equal(first, second) for first, second in relation.on)
        assert not isinstance(relation.left, PerUnit)
        return f"{self.source(relation.left)} JOIN {self.source(relation.right)} ON {condition}"

    def _comparand(self, node: Compare) -> str:
        """A whole-number column strictly inside its range compares as it is stored, so that blocks can be skipped."""
        left, right = node.left, node.right
        if isinstance(left, Reading) and isinstance(right, Constant) and self.storage(left.field).kind == "integer":
            inside = left.span.low < right.index < left.span.high
            if isinstance(left.field.column, NumberColumn) and left.span.grain == 1 and inside:
                return self.column(left.field)
        return self.number(left)


def _reach(column: NumberColumn) -> int:
    return max(abs(column.low_index), abs(column.high_index))


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
        case _:
            assert_never(relation)
