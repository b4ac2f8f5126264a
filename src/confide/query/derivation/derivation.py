"""A derivation: questions, and a table that is made of what they release. Nothing here reads a row of the data.

A table is made step by step. Its columns are public (keys, and what is computed of keys alone) or released (they have
intervals); which rows it has is public, or a choice by released numbers. Expressions name columns of the table before
by their places.
"""

from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Literal

from confide.query.question import Question

ColumnKind = Literal["text", "integer", "number", "boolean", "date"]
Plain = Fraction | str | bool | date | None


@dataclass(frozen=True, slots=True)
class Taken:
    """A column of the table before."""

    column: int


@dataclass(frozen=True, slots=True)
class Fixed:
    """A constant."""

    value: Plain


@dataclass(frozen=True, slots=True)
class Called:
    """A function of the same row. CASE is `case`: condition, value, condition, value, ..., otherwise."""

    function: str
    parts: tuple["DerivedExpression", ...]


@dataclass(frozen=True, slots=True)
class OneNumber:
    """The only cell of a table of one row."""

    table: "DerivedTable"


@dataclass(frozen=True, slots=True)
class RowOrder:
    """An order of rows by an expression."""

    by: "DerivedExpression"
    descending: bool
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Windowed:
    """A function over the rows of a partition. `frame`: how many rows before and after, None for all of them; with
    `peers` the frame ends with the last row that the order cannot tell from this one.
    """

    function: str
    parts: tuple["DerivedExpression", ...]
    partition: tuple["DerivedExpression", ...]
    order: tuple[RowOrder, ...]
    frame: tuple[int | None, int | None]
    peers: bool


DerivedExpression = Taken | Fixed | Called | OneNumber | Windowed


@dataclass(frozen=True, slots=True)
class Gathered:
    """An aggregate over rows of a table: of those for which `where` holds, if it is there."""

    function: str
    subject: DerivedExpression | None
    where: DerivedExpression | None
    share: Fraction | None = None


@dataclass(frozen=True, slots=True)
class QuestionTable:
    """What a question shows: its keys, then its values."""

    question: int


@dataclass(frozen=True, slots=True)
class OneRow:
    """One row without columns, for a SELECT without FROM."""


@dataclass(frozen=True, slots=True)
class ListedRows:
    """The rows of a public table."""

    rows: tuple[tuple[Plain, ...], ...]


@dataclass(frozen=True, slots=True)
class KeptRows:
    """The rows for which a condition holds."""

    source: "DerivedTable"
    condition: DerivedExpression


@dataclass(frozen=True, slots=True)
class GroupedRowsOf:
    """One row for each combination of keys, or one row of all: keys, then aggregates."""

    source: "DerivedTable"
    keys: tuple[DerivedExpression, ...]
    gathered: tuple[Gathered, ...]


@dataclass(frozen=True, slots=True)
class ComputedColumns:
    """Rows as they are, with other columns."""

    source: "DerivedTable"
    names: tuple[str, ...]
    columns: tuple[DerivedExpression, ...]


@dataclass(frozen=True, slots=True)
class FirstRows:
    """Rows in an order, from `offset` on, at most `limit` of them; then only the first `width` columns."""

    source: "DerivedTable"
    order: tuple[RowOrder, ...]
    limit: int | None
    offset: int
    width: int


@dataclass(frozen=True, slots=True)
class DistinctRows:
    source: "DerivedTable"


@dataclass(frozen=True, slots=True)
class MatchedTables:
    """Pairs of rows with equal public columns. `kind`: inner, left or full; rows without a partner have NULLs there."""

    left: "DerivedTable"
    right: "DerivedTable"
    kind: Literal["inner", "left", "full"]
    pairs: tuple[tuple[int, int], ...]
    widths: tuple[int, int]
    """How many columns each has, also where it has no row."""


@dataclass(frozen=True, slots=True)
class StackedTables:
    """The rows of several tables, one after the other."""

    parts: tuple["DerivedTable", ...]


DerivedTable = (
    QuestionTable
    | OneRow
    | ListedRows
    | KeptRows
    | GroupedRowsOf
    | ComputedColumns
    | FirstRows
    | DistinctRows
    | MatchedTables
    | StackedTables
)


@dataclass(frozen=True, slots=True)
class DerivedColumn:
    """What is known of a column from the text. `depth`: how many functions in each other made it."""

    name: str
    kind: ColumnKind
    public: bool
    depth: int = 0
    label: bool = False
    """Whether it is a released date, or a value that MODE found: shown as it is, and nothing is computed of it."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """Questions, each different from the others, and the table that is made of their answers."""

    questions: tuple[Question, ...]
    table: DerivedTable
    columns: tuple[DerivedColumn, ...]
    crossing: bool
    """Whether a row may depend on other rows: by aggregates, windows, LIMIT, DISTINCT, or conditions on numbers."""
    gathering: bool
    """Whether it does by aggregates or windows."""

    @property
    def unit(self) -> str:
        return self.questions[0].unit

    @property
    def neighbours(self) -> str:
        """A unit that is replaced is the wider notion, if questions differ in it."""
        kinds = {question.neighbours for question in self.questions}
        return "replace-one" if "replace-one" in kinds else "add-remove"
