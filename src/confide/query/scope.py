"""Names: which tables and columns a query may speak of, and what is publicly known of each.

Inside our tree a table is called s0, s1, ... in the order of the query, whatever its alias: the analyst's words stay
out of the SQL that is sent, and two queries that differ in aliases alone are one question.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from typing import Protocol

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Category, Column, Contribution, Date, Identifier, KeyUnit, Policy, Table
from confide.policy import Number as NumberColumn
from confide.privacy.limits import MOST_COMPARED, MOST_TABLES
from confide.query.parse import shown
from confide.query.room import Room
from confide.query.row_facts import IndexRange, RowFacts, StepsLeft, TooLongError
from confide.query.spelling import nearest
from confide.query.tree import (
    Both,
    Compare,
    Constant,
    Derived,
    Field,
    Number,
    PartOfText,
    Predicate,
    Reading,
    Span,
    TextIs,
)

_STEPS = 500
"""Of telling what is known of one number."""

"""Of columns that joins make equal; some databases look at every three columns of a class of equal ones."""

Value = str | int | bool


class Catalog(Protocol):
    """Facts about public tables, read from the tables themselves: they cost nothing."""

    def columns(self, table: str) -> Mapping[str, Column]:
        """The columns of a public table."""
        ...

    def multiplicity(self, table: str, columns: tuple[str, ...]) -> int:
        """The most rows of a public table that agree on these columns, as a join sees them."""
        ...

    def distinct(
        self, table: str, columns: tuple[str, ...], most: int
    ) -> tuple[tuple[str | int | bool | None, ...], ...] | None:
        """The different rows of a public table in these columns, as its policy sees them: ranged ones as indices. None
        if there are more than `most`.
        """
        ...


@dataclass(frozen=True, slots=True)
class Source:
    """A table, or a per-unit inner query: `alias` in the query, `name` in our tree.

    `optional`: a LEFT JOIN may leave it out of a row. `parent`: the source whose row says whose row this is.
    `hidden`: the query does not name it; it is there because the way to the unit leads through it.
    """

    alias: str
    name: str
    table: Table | None
    columns: Mapping[str, Column]
    derived: Mapping[str, Derived]
    optional: bool = False
    parent: str | None = None
    hidden: bool = False

    @property
    def private(self) -> bool:
        return self.table is None or not self.table.public

    @property
    def label(self) -> str:
        return self.table.name if self.table is not None else self.alias

    def field(self, column: str) -> Field:
        return Field(self.name, self.columns[column])

    def matches(self, name: str) -> list[Field | Derived]:
        exact = name in self.columns or name in self.derived
        wanted = name if exact else name.casefold()
        fields: list[Field | Derived] = [
            Field(self.name, column)
            for own, column in self.columns.items()
            if (own if exact else own.casefold()) == wanted
        ]
        return fields + [column for own, column in self.derived.items() if (own if exact else own.casefold()) == wanted]


class Scope:
    """The sources of one FROM clause. Lookups are case-blind, as in SQL."""

    def __init__(
        self,
        policy: Policy,
        catalog: Catalog,
        names: Iterator[int] | None = None,
        room: Room | None = None,
        at_most: Contribution | None = None,
        outer: "Scope | None" = None,
    ) -> None:
        self.outer = outer
        """That of the query around, whose columns an inner query in WHERE may name."""
        self.matching = False
        """Whether EXISTS and IN of a query may stand here: in the WHERE of rows whose unit is known."""
        self.unit: Field | None = None
        """The column that says whose a row is."""
        self.pairs: tuple[tuple[Field, Field], ...] = ()
        """Columns that joins make equal in every row."""
        self.inner_tables: list[str] = []
        """Private tables that conditions look into."""
        self.policy = policy
        self.at_most = at_most
        """What one unit may have in the whole of FROM, where a view says so."""
        self.catalog = catalog
        self.names = names if names is not None else count()
        self.room = room if room is not None else Room()
        self.facts: RowFacts | None = None
        """What is known of the rows that are spoken of, beside their policy."""
        self.not_zero: frozenset[Number] = frozenset()
        """Numbers that are known not to be 0 in them."""
        self.listed_texts: dict[Field | PartOfText, tuple[str, ...]] = {}
        """Texts that are known to be one of a list in them."""
        self._places: dict[int, dict[Value, int]] = {}
        self._pairs = 0
        self.sources: list[Source] = []
        self.merged: dict[str, Field] = {}
        """Columns of USING: one name for the equal columns of both sides."""

    def known(self, number: Number) -> IndexRange:
        """What is known of a number in the rows that count here: those that pass WHERE, in this branch of a CASE."""
        span, told = number.span, RowFacts(StepsLeft(_STEPS)) if self.facts is None else self.facts
        try:
            seen = replace(told, steps=StepsLeft(_STEPS)).of_number(number)
        except TooLongError:
            return IndexRange(span.low, span.high, span.nullable)
        return IndexRange(max(seen.low, span.low), min(seen.high, span.high), seen.null and span.nullable)

    def rows_pass(self, where: Predicate) -> None:
        """From here on only rows that pass are spoken of."""
        self.not_zero = _all_not_zero((where,))
        parts = where.parts if isinstance(where, Both) else (where,)
        self.listed_texts = {part.field: part.values for part in parts if isinstance(part, TextIs) and not part.negated}
        try:
            self.facts = RowFacts(StepsLeft(_STEPS)).passing(where)
        except TooLongError:
            self.facts = None

    @contextmanager
    def where(self, *conditions: Predicate) -> Iterator[None]:
        """While such conditions hold of the rows that are spoken of."""
        before, others = self.facts, self.not_zero
        self.not_zero |= _all_not_zero(conditions)
        try:
            told = RowFacts(StepsLeft(_STEPS)) if before is None else replace(before, steps=StepsLeft(_STEPS))
            self.facts = told.passing_all(conditions) or before
        except TooLongError:
            self.facts = before
        try:
            yield
        finally:
            self.facts, self.not_zero = before, others

    def add_link(self, table: str) -> Source:
        """A table on the way to the unit that the query does not name."""
        source = Source(
            "", self.next_name(), self.policy.tables[table], self.policy.tables[table].columns, {}, hidden=True
        )
        self.sources.append(source)
        return source

    def add_table(self, name: str, alias: str) -> Source:
        known = {table.casefold(): table for table in self.policy.tables}
        if name.casefold() not in known:
            raise QueryError(f"there is no table {name[:60]}; {nearest(name, self.policy.tables, 'the policy has')}")
        table = self.policy.tables[known[name.casefold()]]
        columns = self.catalog.columns(table.name) if table.public else table.columns
        return self._add(Source(alias, self.next_name(), table, columns, {}))

    def add_derived(
        self, alias: str, name: str, unit: tuple[str, Identifier] | None, columns: Iterable[tuple[str, Derived]]
    ) -> Source:
        """An inner query; `unit` is the name under which it shows the unit's key, if it does."""
        return self._add(Source(alias, name, None, {} if unit is None else {unit[0]: unit[1]}, dict(columns)))

    def places(self, column: Category) -> Mapping[Value, int]:
        """Of each declared value of a column its place, found once for a question."""
        if id(column) not in self._places:
            self._places[id(column)] = {value: place for place, value in enumerate(column.values)}
        return self._places[id(column)]

    def take_pairs(self, pairs: int) -> None:
        """Columns that one more join makes equal."""
        self._pairs += pairs
        if self._pairs > MOST_COMPARED:
            raise QueryError(f"the joins of the query compare more than {MOST_COMPARED} pairs of columns; use fewer")

    def next_name(self) -> str:
        return f"s{next(self.names)}"

    def replace(self, source: Source) -> None:
        self.sources = [source if own.name == source.name else own for own in self.sources]

    def named(self, name: str) -> Source:
        return next(source for source in self.sources if source.name == name)

    def _add(self, source: Source) -> Source:
        if any(own.alias.casefold() == source.alias.casefold() for own in self.sources):
            raise QueryError(
                f"two tables are called {source.alias[:60]}; give each its own alias: FROM t AS a JOIN t AS b"
            )
        if len(self.sources) >= MOST_TABLES:
            raise QueryError(f"the query names more than {MOST_TABLES} tables")
        self.sources.append(source)
        return source

    def field(self, node: exp.Column) -> Field | Reading | Derived:
        """What a column name stands for."""
        if isinstance(node.this, exp.Star):
            raise QueryError("`*` shows rows, which never leave the data; write COUNT(*) or an aggregate of a column")
        if node.args.get("db") or node.args.get("catalog"):
            raise QueryError(f"{shown(node)}: write table.column or just the column")
        found = self.find(node)
        return reading(found) if isinstance(found, Field) else found

    def find(self, node: exp.Column) -> Field | Derived:
        name, qualifier = node.name, node.table
        sources = [source for source in self.sources if not source.hidden]
        if qualifier:
            sources = [source for source in sources if source.alias.casefold() == qualifier.casefold()]
            if not sources and self.outer is not None:
                return self.outer.find(node)
            if not sources:
                aliases = [source.alias for source in self.sources if not source.hidden]
                raise QueryError(f"there is no table {qualifier[:60]} here; {nearest(qualifier, aliases, 'there are')}")
        elif name.casefold() in self.merged:
            return self.merged[name.casefold()]
        matches = [(source, match) for source in sources for match in source.matches(name)]
        if not matches and self.outer is not None:
            return self.outer.find(node)
        if not matches:
            names = [column for source in sources for column in (*source.columns, *source.derived)]
            lists = [own.values for source in sources for own in source.columns.values() if isinstance(own, Category)]
            text = f"; a text stands in single quotes: '{name}'" if any(name in own for own in lists) else ""
            raise QueryError(f"there is no column {name[:60]}; {nearest(name, names, 'the policy names')}{text}")
        if len(matches) > 1:
            owners = " or ".join(f"{source.alias}.{name}" for source, _ in matches)
            raise QueryError(f"the column {name} could be {owners}; write the table before it")
        return matches[0][1]

    def holds(self, node: exp.Column) -> bool:
        """Whether the name is a column of the sources, rather than an alias of the SELECT."""
        return node.name.casefold() in self.merged or any(
            source.matches(node.name) for source in self.sources if not source.hidden
        )

    def equal_to(self, field: Field) -> list[Field]:
        """The columns that joins make equal to one, without itself."""
        found, before = {field}, 0
        while len(found) > before:
            before = len(found)
            found |= {own for pair in self.pairs if found & set(pair) for own in pair}
        return sorted(found - {field}, key=lambda own: (own.source, own.name))

    def own_unit(self, source: Source) -> Field | None:
        """The column of this source that holds the unit's key itself, if it has one."""
        unit = self.policy.unit
        if not isinstance(unit, KeyUnit) or source.table is None or source.table.public:
            return None
        if source.table.name == unit.table:
            return source.field(unit.column)
        path = self.policy.unit_path(source.table.name)
        return source.field(path[0].column) if len(path) == 1 else None


def not_zero(condition: Predicate) -> Number | None:
    """The number that a condition says is not 0."""
    match condition:
        case Compare("<>", own, Constant(0)):
            return own
        case _:
            return None


def _all_not_zero(conditions: Iterable[Predicate]) -> frozenset[Number]:
    parts = [part for own in conditions for part in (own.parts if isinstance(own, Both) else (own,))]
    return frozenset(found for part in parts if (found := not_zero(part)) is not None)


def reading(field: Field) -> Field | Reading:
    """A ranged column is read as a bounded index; others stay fields."""
    column = field.column
    if isinstance(column, NumberColumn):
        return Reading(field, Span(column.low_index, column.high_index, column.grain))
    if isinstance(column, Date):
        return Reading(field, Span(column.low_index, column.high_index, Fraction(1), date=True))
    return field
