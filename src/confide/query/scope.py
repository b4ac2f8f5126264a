"""Names: which tables and columns a query may speak of, and what is publicly known of each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from typing import Protocol

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Column, Date, Identifier, Policy, Table
from confide.policy import Number as NumberColumn
from confide.query.tree import Derived, Field, Reading, Span


class Catalog(Protocol):
    """Facts about public tables, read from the tables themselves: they cost nothing."""

    def columns(self, table: str) -> Mapping[str, Column]:
        """The columns of a public table."""
        ...

    def multiplicity(self, table: str, columns: tuple[str, ...]) -> int:
        """The most rows of a public table that agree on these columns."""
        ...


@dataclass(frozen=True, slots=True)
class Source:
    """A table, or a per-unit inner query, under the name it has in this query."""

    alias: str
    table: Table | None
    columns: Mapping[str, Column]
    derived: Mapping[str, Derived]

    @property
    def private(self) -> bool:
        return self.table is None or not self.table.public


class Scope:
    """The sources of one FROM clause. Lookups are case-blind, as in SQL."""

    def __init__(self, policy: Policy, catalog: Catalog) -> None:
        self.policy = policy
        self.catalog = catalog
        self.sources: dict[str, Source] = {}

    def add_table(self, name: str, alias: str) -> Source:
        table = self._table(name)
        columns = self.catalog.columns(table.name) if table.public else table.columns
        return self._add(Source(alias, table, columns, {}))

    def add_derived(self, alias: str, unit: Field, columns: Iterable[tuple[str, Span]]) -> Source:
        derived = {name: Derived(alias, name, span) for name, span in columns}
        return self._add(Source(alias, None, {unit.name: Identifier(unit.name)}, derived))

    def _add(self, source: Source) -> Source:
        if source.alias in self.sources:
            raise QueryError(f"two tables are called {source.alias}; give each its own alias: FROM t AS a JOIN t AS b")
        self.sources[source.alias] = source
        return source

    def _table(self, name: str) -> Table:
        known = {table.lower(): table for table in self.policy.tables}
        if name.lower() not in known:
            raise QueryError(f"there is no table {name}; {nearest(name, self.policy.tables, 'the policy has')}")
        return self.policy.tables[known[name.lower()]]

    def field(self, node: exp.Column) -> Field | Reading | Derived:
        """What a column name stands for."""
        if isinstance(node.this, exp.Star):
            raise QueryError("`*` shows rows, which never leave the data; write COUNT(*) or an aggregate of a column")
        if node.args.get("db") or node.args.get("catalog"):
            raise QueryError(f"{node.sql()}: write table.column or just the column")
        name, qualifier = node.name, node.table
        if qualifier:
            found = [s for s in self.sources.values() if s.alias.lower() == qualifier.lower()]
            if not found:
                raise QueryError(
                    f"there is no table {qualifier} in this query; {nearest(qualifier, self.sources, 'it has')}"
                )
        else:
            found = list(self.sources.values())
        matches = [match for source in found for match in self._matches(source, name)]
        if not matches:
            names = [column for source in found for column in (*source.columns, *source.derived)]
            raise QueryError(f"there is no column {name}; {nearest(name, names, 'the policy names')}")
        if len(matches) > 1:
            owners = " and ".join(f"{match.source}.{name}" if isinstance(match, Field) else name for match in matches)
            raise QueryError(f"the column {name} could be {owners}; write the table before it")
        return self.reading(matches[0]) if isinstance(matches[0], Field) else matches[0]

    def reading(self, field: Field) -> Field | Reading:
        """A ranged column is read as a bounded index; others stay fields."""
        column = field.column
        if isinstance(column, NumberColumn):
            return Reading(field, Span(column.low_index, column.high_index, column.grain))
        if isinstance(column, Date):
            return Reading(field, Span(column.low_index, column.high_index, Fraction(1), date=True))
        return field

    def _matches(self, source: Source, name: str) -> list[Field | Derived]:
        exact = name in source.columns or name in source.derived
        wanted = name if exact else name.lower()
        fields: list[Field | Derived] = [
            Field(source.alias, column)
            for own, column in source.columns.items()
            if (own if exact else own.lower()) == wanted
        ]
        return fields + [column for own, column in source.derived.items() if (own if exact else own.lower()) == wanted]


def nearest(name: str, known: Iterable[str], introduction: str) -> str:
    """The nearest known spelling, or the list of what there is."""
    names = sorted(set(known))
    close = get_close_matches(name.lower(), [n.lower() for n in names], n=1, cutoff=0.6)
    if close:
        return f"did you mean {next(n for n in names if n.lower() == close[0])}?"
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"{introduction} {shown}" if names else f"{introduction} none"
