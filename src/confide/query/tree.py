"""The tree that a checked query becomes: our own nodes, nothing of the analyst's text but its constants.

Numbers are integers on a public grid: a node with grain g stands for index × g, and its bounds are bounds of the
index. Every node is total: it has a value (or NULL) for every row, so no row can raise. Predicates hold no negation (it
was pushed to the leaves), so a leaf may be false where SQL says unknown and the rows that pass are the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from datetime import date as Day  # noqa: N812
from fractions import Fraction
from typing import Literal

from confide.policy import Column as ColumnPolicy
from confide.query.grid import Grid

# --- scalars ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Field:
    """A column of a table in the query, seen through its policy; `source` is the alias of the table in this query.

    It is hashed and printed by its names alone: a question names a column a thousand times, and a column may declare
    a hundred thousand values. The policy's facts are part of every key beside the question.
    """

    source: str
    column: ColumnPolicy

    def __hash__(self) -> int:
        return hash((self.source, self.column.name))

    def __repr__(self) -> str:
        return f"Field({self.source!r}, {type(self.column).__name__}, {self.column.name!r})"

    @property
    def name(self) -> str:
        return self.column.name


TextStep = tuple[str | int, ...]
"""("from", start) and ("from", start, length): a part, letters counted from 1; ("last", length); ("trim", letters,
side): without these letters at BOTH ends, LEADING or TRAILING.
"""


@dataclass(frozen=True, slots=True)
class PartOfText:
    """A part of a column of undeclared domain, cut step by step; NULL where the column is."""

    field: Field
    steps: tuple[TextStep, ...]

    @property
    def name(self) -> str:
        return self.field.name


@dataclass(frozen=True, slots=True)
class Span:
    """What is publicly known of a number: an index in [low, high] times `grain`, or NULL if `nullable`.

    A date is a number of days since 1970-01-01 that says so.
    """

    low: int
    high: int
    grain: Fraction = Fraction(1)
    nullable: bool = True
    date: bool = False

    @property
    def largest(self) -> int:
        return max(abs(self.low), abs(self.high))


@dataclass(frozen=True, slots=True)
class Reading:
    """A ranged column as an index: clamped to its range, rounded to its grain, NULL for NULL and NaN."""

    field: Field
    span: Span


@dataclass(frozen=True, slots=True)
class Derived:
    """A number computed per unit by an inner query, clamped to its span."""

    source: str
    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Constant:
    index: int
    span: Span


@dataclass(frozen=True, slots=True)
class Scaled:
    """index × factor + offset."""

    inner: "Number"
    factor: int
    offset: int
    span: Span


@dataclass(frozen=True, slots=True)
class Combined:
    """left (+ or × or smaller of or larger of) right, both already on one grid where that matters."""

    operation: Literal["add", "multiply", "least", "greatest"]
    left: "Number"
    right: "Number"
    span: Span


@dataclass(frozen=True, slots=True)
class Absolute:
    inner: "Number"
    span: Span


@dataclass(frozen=True, slots=True)
class Floored:
    """⌊index / divisor⌋, for a divisor above 0."""

    inner: "Number"
    divisor: int
    span: Span


@dataclass(frozen=True, slots=True)
class Divided:
    """⌊left / right⌋ of two indices; the right one is above 0 where it is not NULL."""

    left: "Number"
    right: "Number"
    span: Span


@dataclass(frozen=True, slots=True)
class CurveValue:
    """⌊f(x) / grain + ½⌋ of x = index × the grain of `inner`. `written` are indices whose value is written out, since
    engines may not agree on it (`query/curve.py` says why they do on all others).

    `parameter` is the exponent of a power, or the base of a logarithm, 0 for the natural one.
    """

    kind: Literal["sqrt", "ln", "exp", "power"]
    parameter: Fraction
    inner: "Number"
    written: tuple[tuple[int, int], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class TextLength:
    """How many letters a text of undeclared domain has, the highest of the span if it has more."""

    subject: "Field | PartOfText"
    span: Span


@dataclass(frozen=True, slots=True)
class Choice:
    """CASE WHEN ... THEN ... ELSE ... END; `otherwise` None is NULL."""

    branches: tuple[tuple["Predicate", "Number"], ...]
    otherwise: "Number | None"
    span: Span


@dataclass(frozen=True, slots=True)
class FirstKnown:
    """COALESCE of numbers on one grid."""

    options: tuple["Number", ...]
    span: Span


Number = (
    Reading
    | Derived
    | Constant
    | Scaled
    | Combined
    | Absolute
    | Floored
    | Divided
    | CurveValue
    | TextLength
    | Choice
    | FirstKnown
)


def fields_of(node: object) -> Iterator[Field | Derived]:
    """The columns that an expression speaks of, as often as it does."""
    pending = [node]
    while pending:
        own = pending.pop()
        if isinstance(own, Field | Derived):
            yield own
        elif isinstance(own, tuple):
            if own and (isinstance(own[0], tuple) or is_dataclass(own[0])):
                pending += own
        elif is_dataclass(own):
            pending += [getattr(own, part.name) for part in fields(own)]


# --- predicates ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Always:
    holds: bool


@dataclass(frozen=True, slots=True)
class Compare:
    """Two indices on one grid."""

    operation: Literal["<", "<=", "=", "<>", ">=", ">"]
    left: Number
    right: Number


@dataclass(frozen=True, slots=True)
class OneOf:
    """A number's index is, or is not, one of these: a long list reads the number once."""

    subject: Number
    indices: tuple[int, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class Among:
    """A declared column has one of these of its declared values."""

    field: Field
    values: tuple[str | int | bool, ...]


@dataclass(frozen=True, slots=True)
class TextIs:
    """A text of undeclared domain is, or is not, one of these texts."""

    field: Field | PartOfText
    values: tuple[str, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class TextLike:
    field: Field | PartOfText
    pattern: str
    negated: bool
    ignore_case: bool


@dataclass(frozen=True, slots=True)
class TextOrder:
    """A text of undeclared domain comes before or after another, by code points."""

    field: Field | PartOfText
    operation: Literal["<", "<=", "=", "<>", ">=", ">"]
    value: str


@dataclass(frozen=True, slots=True)
class TextHolds:
    """A text of undeclared domain has, or has not, another one in it."""

    field: Field | PartOfText
    value: str
    negated: bool


@dataclass(frozen=True, slots=True)
class SameField:
    """Two columns of undeclared domain are, or are not, equal."""

    left: Field
    right: Field
    negated: bool


@dataclass(frozen=True, slots=True)
class Known:
    """A column or a number is, or is not, NULL (a value outside a declared list counts as NULL)."""

    subject: "Field | Number"
    negated: bool


@dataclass(frozen=True, slots=True)
class Matched:
    """A row has, or has not, a partner in other tables: a row of `relation` that agrees with it on all pairs, its own
    column first, and passes `where`, which may speak of both.
    """

    relation: "Scan | Join"
    on: tuple[tuple[Field, Field], ...]
    where: "Predicate"
    negated: bool


@dataclass(frozen=True, slots=True)
class Both:
    parts: tuple["Predicate", ...]


@dataclass(frozen=True, slots=True)
class Either:
    parts: tuple["Predicate", ...]


Predicate = (
    Always
    | Compare
    | OneOf
    | Among
    | TextIs
    | TextLike
    | TextOrder
    | TextHolds
    | SameField
    | Known
    | Matched
    | Both
    | Either
)


# --- relations ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scan:
    table: str
    source: str
    public: bool


@dataclass(frozen=True, slots=True)
class Join:
    """`optional` keeps rows of the left side that find no partner."""

    left: "Relation"
    right: Scan
    on: tuple[tuple[Field, Field], ...]
    optional: bool


@dataclass(frozen=True, slots=True)
class PerUnit:
    """One row per unit: its key and clamped aggregates of its own rows."""

    inner: "Relation"
    where: Predicate
    unit: Field
    columns: tuple[tuple[str, "Cell", Span], ...]
    source: str


Relation = Scan | Join | PerUnit


# --- the summary --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cell:
    """One exact integer per group: rows, non-NULL values, a total, distinct values, the total of these, or (per unit
    only) an extreme.
    """

    kind: Literal["rows", "known", "total", "distinct", "distinct total", "smallest", "largest"]
    subject: "Field | Number | None" = None
    where: Predicate = Always(True)


@dataclass(frozen=True, slots=True)
class Tallied:
    """Per group the distinct known values of a number, each with how many rows have it.

    On a grid the points of its cells stand for values; `sums` adds what the values of each cell sum up to.
    """

    subject: "Number"
    where: Predicate = Always(True)
    grid: Grid | None = None
    sums: bool = False


@dataclass(frozen=True, slots=True)
class DeclaredKey:
    """Group by a declared column: every value is in the result, then NULL if the policy asks for it."""

    name: str
    field: Field
    values: tuple[str | int | bool | None, ...]


Label = str | bool | Fraction | Day
"""What a group is called whose key is computed; all labels of a key are of one type."""


@dataclass(frozen=True, slots=True)
class BinnedKey:
    """Group by ⌊(index − first) / width⌋; the key shown is the lower end of the bin, or the label in its place. With
    `nulls` the last group, at place `count`, is that of rows where the number is NULL.
    """

    name: str
    number: Number
    first: int
    width: int
    count: int
    kind: Literal["number", "date"]
    nulls: bool = False
    labels: "tuple[Label, ...]" = ()


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """Group by a column of undeclared domain: keys are released only above a private threshold. With `nulls` NULL is
    such a key as well.
    """

    name: str
    field: Field
    nulls: bool = False


Key = DeclaredKey | BinnedKey | UnknownKey


@dataclass(frozen=True, slots=True)
class Bound:
    """What one unit may contribute: rows in all, groups in all; a keyed hash order chooses, after joins and filter."""

    unit: Field
    rows: int
    groups: int


@dataclass(frozen=True, slots=True)
class Summary:
    """What an engine computes: exact integers per group of a bounded relation. One statement, and one per tally."""

    relation: Relation
    where: Predicate
    bound: Bound | None
    keys: tuple[Key, ...]
    cells: tuple[Cell, ...]
    tallies: tuple[Tallied, ...] = ()
    order_by: tuple[Field, ...] = ()
    """Columns that order a unit's rows under the keyed hash: all declared private ones, whatever the query uses."""

    @property
    def open_keys(self) -> bool:
        return any(isinstance(key, UnknownKey) for key in self.keys)
