"""A second reading of what a `Summary` means, row by row in plain Python, to hold engines against.

Slow and obvious on purpose: rows are dicts, numbers are Python's integers and Fractions. It shares nothing with an
engine but the tree. Its `Naive` switches turn single protections off, so that tests can show that they would notice.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal, localcontext
from fractions import Fraction
from hashlib import sha256
from typing import Any

from confide.policy import Category, Date, Number, Unbounded
from confide.query.comparison import matches
from confide.query.grouping import key_size
from confide.query.tree import (
    Absolute,
    Always,
    Among,
    BinnedKey,
    Both,
    Cell,
    Choice,
    Combined,
    Compare,
    Constant,
    CurveValue,
    DeclaredKey,
    Derived,
    Divided,
    Either,
    Field,
    FirstKnown,
    Floored,
    Join,
    Key,
    Known,
    Matched,
    OneOf,
    PartOfText,
    PerUnit,
    Predicate,
    Reading,
    Relation,
    SameField,
    Scaled,
    Scan,
    Summary,
    TextHolds,
    TextIs,
    TextLength,
    TextLike,
    TextOrder,
)
from confide.query.tree import Number as RowNumber

Row = dict[str, dict[str, Any]]
"""Alias of a source → its row; an absent source of a LEFT JOIN has a row of NULLs."""
Tables = Mapping[str, Sequence[Mapping[str, Any]]]
_EPOCH = date(1970, 1, 1)
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    ">=": lambda a, b: a >= b,
    ">": lambda a, b: a > b,
}


@dataclass(frozen=True, slots=True)
class Naive:
    """What a careless engine forgets."""

    no_rows_bound: bool = False
    no_groups_bound: bool = False
    bound_before_join: bool = False
    by_row_order: bool = False
    no_clamp: bool = False
    float_sums: bool = False


@dataclass
class Reference:
    """Evaluates summaries over lists of rows."""

    tables: Tables
    naive: Naive = field(default_factory=Naive)
    secret: bytes = b"reference"

    def evaluate(self, summary: Summary) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        """For every group that exists (every declared one, if all keys are), its key and its cells."""
        return {key: tuple(self.cell(cell, own) for cell in summary.cells) for key, own in self.groups(summary).items()}

    def tallies(self, summary: Summary) -> list[dict[tuple[Any, ...], dict[int, int]]]:
        """For every tally and group, how many rows have each value."""
        groups = self.groups(summary)
        result = []
        for tally in summary.tallies:
            counted: dict[tuple[Any, ...], dict[int, int]] = {}
            for key, own in groups.items():
                counts = counted.setdefault(key, {})
                for row in own:
                    value = self.number(tally.subject, row) if self.holds(tally.where, row) else None
                    if value is not None:
                        counts[value] = counts.get(value, 0) + 1
            result.append(counted)
        return result

    def groups(self, summary: Summary) -> dict[tuple[Any, ...], list[Row]]:
        """The kept rows of every group."""
        rows = [row for row in self.rows(summary.relation) if self.holds(summary.where, row)]
        if self.naive.bound_before_join and summary.bound is not None:
            first = summary.bound.unit.source
            own: dict[Any, list[int]] = {}
            for row in rows:
                mine = own.setdefault(_hashable(row[first][summary.bound.unit.name]), [])
                if id(row[first]) not in mine:
                    mine.append(id(row[first]))
            rows = [
                row
                for row in rows
                if id(row[first]) in own[_hashable(row[first][summary.bound.unit.name])][: summary.bound.rows]
            ]
        placed = [(self.group(summary.keys, row), row) for row in rows]
        kept = [(group, row) for group, row in placed if group is not None]
        if summary.bound is not None and not self.naive.bound_before_join:
            kept = self.bounded(kept, summary)
        groups: dict[tuple[Any, ...], list[Row]] = (
            {} if summary.open_keys else {key: [] for key in all_groups(summary.keys)}
        )
        for group, row in kept:
            groups.setdefault(group, []).append(row)
        return groups

    # --- rows ---------------------------------------------------------------------------------------------------------

    def rows(self, relation: Relation) -> list[Row]:
        match relation:
            case Scan(table, source):
                return [{source: dict(row)} for row in self.tables[table]]
            case Join(left, right, on, optional):
                result: list[Row] = []
                for row in self.rows(left):
                    partners = [
                        {**row, right.source: dict(other)}
                        for other in self.tables[right.table]
                        if all(self.joins(a, b, {**row, right.source: dict(other)}) for a, b in on)
                    ]
                    if not partners and optional:
                        partners = [{**row, right.source: _Nothing()}]
                    result += partners
                return result
            case PerUnit(inner, where, unit, columns, source):
                units: dict[Any, list[Row]] = {}
                for row in self.rows(inner):
                    key = row[unit.source][unit.name]
                    if key is not None and self.holds(where, row):
                        units.setdefault(_hashable(key), []).append(row)
                result = []
                for own in units.values():
                    made: dict[str, Any] = {unit.name: own[0][unit.source][unit.name]}
                    for label, cell, span in columns:
                        value = self.cell(cell, own, keep_null=True)
                        made[label] = None if value is None else min(max(value, span.low), span.high)
                    result.append({source: made})
                return result

    def joins(self, first: Field, second: Field, row: Row) -> bool:
        left, right = self.joined_value(first, row), self.joined_value(second, row)
        if left is None or right is None:
            return False
        if isinstance(left, str) != isinstance(right, str):
            return str(left) == str(right)
        return bool(left == right)

    def joined_value(self, field: Field, row: Row) -> Any:
        column, value = field.column, self.seen(field, row)
        if isinstance(column, Number | Date) and value is not None:
            return value * column.grain
        if isinstance(value, float):
            return int(value) if value.is_integer() and abs(value) < 2**53 else str(value)
        return value

    def bounded(self, rows: list[tuple[tuple[Any, ...], Row]], summary: Summary) -> list[tuple[tuple[Any, ...], Row]]:
        assert summary.bound is not None
        unit = summary.bound.unit
        units: dict[Any, list[tuple[tuple[Any, ...], Row]]] = {}
        for group, row in rows:
            key = row[unit.source][unit.name]
            if key is not None:
                units.setdefault(_hashable(key), []).append((group, row))
        kept: list[tuple[tuple[Any, ...], Row]] = []
        for key, own in units.items():
            chosen = own
            groups = sorted({group for group, _ in own}, key=lambda group: self._order(repr((key, group))))
            if summary.keys and not self.naive.no_groups_bound:
                allowed = set(groups[: summary.bound.groups])
                chosen = [(group, row) for group, row in own if group in allowed]
            if not self.naive.no_rows_bound:
                if not self.naive.by_row_order:
                    chosen = sorted(chosen, key=lambda pair: self._row_order(pair[1], summary.order_by))
                chosen = chosen[: summary.bound.rows]
            kept += chosen
        return kept

    def _row_order(self, row: Row, order_by: tuple[Field, ...]) -> tuple[str, str]:
        text = repr([self.seen(field, row) for field in order_by])
        return self._order(text), text

    def _order(self, text: str) -> str:
        return sha256(self.secret + text.encode(errors="surrogatepass")).hexdigest()

    # --- keys and cells -----------------------------------------------------------------------------------------------

    def group(self, keys: tuple[Key, ...], row: Row) -> tuple[Any, ...] | None:
        places = []
        for key in keys:
            match key:
                case DeclaredKey(_, field, values):
                    value = self.seen(field, row)
                    if value not in values:
                        return None
                    places.append(values.index(value))
                case BinnedKey(_, number, first, width):
                    index = self.number(number, row)
                    if index is None and not key.nulls:
                        return None
                    places.append(key.count if index is None else (index - first) // width)
                case _:
                    value = self.seen(key.field, row)
                    if value is None and not key.nulls:
                        return None
                    places.append(value)
        return tuple(places)

    def cell(self, cell: Cell, rows: Iterable[Row], keep_null: bool = False) -> Any:
        passed = [row for row in rows if self.holds(cell.where, row)]
        if cell.kind == "rows":
            return len(passed)
        assert cell.subject is not None
        values = [value for row in passed if (value := self.subject(cell.subject, row)) is not None]
        match cell.kind:
            case "known":
                return len(values)
            case "distinct":
                return len({_hashable(value) for value in values})
            case "distinct total":
                return sum(set(values)) if values or not keep_null else None
            case "total" if self.naive.float_sums:
                return sum(float(value) * 0.1 for value in values)
            case "total":
                return sum(values) if values or not keep_null else None
            case "smallest":
                return min(values, default=None)
        return max(values, default=None)

    # --- scalars ------------------------------------------------------------------------------------------------------

    def subject(self, subject: Field | RowNumber, row: Row) -> Any:
        return self.seen(subject, row) if isinstance(subject, Field) else self.number(subject, row)

    def seen(self, field: Field, row: Row) -> Any:
        """A column as the policy sees it."""
        value, column = row[field.source][field.name], field.column
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return None
        match column:
            case Category(values=values):
                return value if any(value == own and type(value) is type(own) for own in values) else None
            case Number():
                return self._index(column, value)
            case Date():
                if isinstance(value, datetime):
                    value = (value.astimezone(UTC) if value.tzinfo is not None else value).date()
                day = value
                return min(max((day - _EPOCH).days, column.low_index), column.high_index)
            case Unbounded():
                return value
        return value

    def text(self, subject: Field | PartOfText, row: Row) -> Any:
        value = self.seen(subject if isinstance(subject, Field) else subject.field, row)
        for step in subject.steps if isinstance(subject, PartOfText) and value is not None else ():
            match step:
                case ("from", start, *length):
                    value = value[start - 1 :][: length[0] if length else None]
                case ("last", length):
                    value = value[max(0, len(value) - length) :]
                case ("trim", letters, side):
                    value = value if side == "TRAILING" else value.lstrip(letters)
                    value = value if side == "LEADING" else value.rstrip(letters)
        return value

    def _index(self, column: Number, value: Any) -> int:
        """Clamped to the range, then ⌊x/g + ½⌋: exactly for whole numbers and decimals, in doubles for doubles."""
        if not self.naive.no_clamp:
            if value >= column.high:
                return column.high_index
            if value <= column.low:
                return column.low_index
        if isinstance(value, float):
            if abs(value) > 1e15:  # only without clamping
                return 2**63 if value > 0 else -(2**63)
            q, p = float(column.grain.denominator), float(column.grain.numerator)
            index = math.floor(value * q / p + 0.5)
        else:
            index = math.floor(Fraction(value) / column.grain + Fraction(1, 2))
        return index if self.naive.no_clamp else min(max(index, column.low_index), column.high_index)

    def number(self, node: RowNumber, row: Row) -> int | None:
        match node:
            case Reading(field):
                return self.seen(field, row)
            case Derived(source, label):
                return row[source][label]
            case Constant(index):
                return index
            case Scaled(inner, factor, offset):
                value = self.number(inner, row)
                return None if value is None else value * factor + offset
            case Combined("add" | "multiply" as operation, left, right):
                a, b = self.number(left, row), self.number(right, row)
                if a is None or b is None:
                    return None
                return a + b if operation == "add" else a * b
            case Combined(operation, left, right):
                known = [value for side in (left, right) if (value := self.number(side, row)) is not None]
                pick = min if operation == "least" else max
                return pick(known) if known else None
            case Absolute(inner):
                value = self.number(inner, row)
                return None if value is None else abs(value)
            case Floored(inner, divisor):
                value = self.number(inner, row)
                return None if value is None else value // divisor
            case Divided(left, right):
                a, b = self.number(left, row), self.number(right, row)
                return None if a is None or b is None else a // b
            case CurveValue(kind, parameter, inner, _, span):
                value = self.number(inner, row)
                return None if value is None else _curve(kind, parameter, value * inner.span.grain, span.grain)
            case TextLength(subject, span):
                word = self.text(subject, row)
                return None if word is None else min(len(word), span.high)
            case Choice(branches, otherwise):
                for condition, option in branches:
                    if self.holds(condition, row):
                        return self.number(option, row)
                return None if otherwise is None else self.number(otherwise, row)
            case FirstKnown(options):
                return next((value for option in options if (value := self.number(option, row)) is not None), None)
        raise TypeError(node)

    def holds(self, node: Predicate, row: Row) -> bool:
        """Whether a row passes; unknown does not."""
        match node:
            case Always(holds):
                return holds
            case Both(parts):
                return all(self.holds(part, row) for part in parts)
            case Either(parts):
                return any(self.holds(part, row) for part in parts)
            case OneOf(subject, indices, negated):
                own = self.number(subject, row)
                return own is not None and (own in indices) != negated
            case Compare(operation, left, right):
                a, b = self.number(left, row), self.number(right, row)
                return a is not None and b is not None and COMPARE[operation](a, b)
            case Among(field, values):
                value = self.seen(field, row)
                return value is not None and value in values
            case TextIs(field, values, negated):
                value = self.text(field, row)
                return value is not None and (value in values) != negated
            case TextOrder(field, operation, other):
                value = self.text(field, row)
                return value is not None and COMPARE[operation](value, other)
            case TextHolds(field, other, negated):
                value = self.text(field, row)
                return value is not None and (other in value) != negated
            case TextLike(field, pattern, negated, ignore_case):
                value = self.text(field, row)
                return value is not None and matches(pattern, value, ignore_case) != negated
            case SameField(left, right, negated):
                a, b = self.seen(left, row), self.seen(right, row)
                return a is not None and b is not None and (a == b) != negated
            case Matched(relation, on, where, negated):
                partners = ({**row, **other} for other in self.rows(relation))
                return negated != any(
                    all(self.joins(a, b, both) for a, b in on) and self.holds(where, both) for both in partners
                )
            case Known(subject, negated):
                return (self.subject(subject, row) is None) == negated
        raise TypeError(node)


def _curve(kind: str, parameter: Fraction, x: Fraction, grain: Fraction) -> int:
    """f(x) to the nearest grain, half up, in digits enough."""
    with localcontext() as context:
        context.prec = 60
        value, other = (Decimal(part.numerator) / Decimal(part.denominator) for part in (x, parameter))
        if kind == "sqrt":
            told = value.sqrt()
        elif kind == "ln":
            told = value.ln() / other.ln() if parameter else value.ln()
        else:
            told = value.exp() if kind == "exp" else value**other if value else Decimal(0)
        return math.floor(Fraction(told) / grain + Fraction(1, 2))


class _Nothing(dict[str, Any]):
    """The row of a table that a LEFT JOIN did not find."""

    def __missing__(self, key: str) -> None:
        return None


def all_groups(keys: tuple[Key, ...]) -> list[tuple[int, ...]]:
    domain: list[tuple[int, ...]] = [()]
    for key in keys:
        domain = [(*places, place) for places in domain for place in range(key_size(key) or 0)]
    return domain


def _hashable(value: Any) -> Any:
    return ("decimal", str(value)) if isinstance(value, Decimal) else value
