"""A whole table, counted by sets of its columns: what microdata and synthesis read. Public facts only.

All tables count the same rows, those in which every column holds one of its places, and of each unit the same rows:
else no one table would have them as its marginals.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import assert_never

from confide.policy import Policy, Table
from confide.query import Question
from confide.query.bind import bind_whole
from confide.query.question import Neighbours
from confide.query.scope import Catalog, reading
from confide.query.sensitivity import Sensitivity, Stability, of_total
from confide.query.tabulation import Tabulation
from confide.query.tree import (
    Always,
    BinnedKey,
    Both,
    Bound,
    DeclaredKey,
    Field,
    Known,
    Predicate,
    Reading,
    Relation,
    Scan,
)
from confide.workload import Binned, Domain
from confide.workload.domain import Attribute, Listed


@dataclass(frozen=True, slots=True)
class TabulatedTable:
    """What is counted of a table, and what one unit can change in it."""

    tabulation: Tabulation
    rows: int
    """How many rows of the table one unit may have."""
    unit: str
    neighbours: Neighbours
    whole: Question
    """The number of all rows, as a question."""

    def sensitivity(self, grouped: bool) -> Sensitivity:
        """How much one unit can change the counts of one set of columns; of the total, if it is not grouped.

        A row with a value outside of its column's places is left out, so a row that is replaced may come or go; and of
        a key that is replaced any number of rows may, up to its bound.
        """
        varies = self.tabulation.where != Always(True) or self.tabulation.bound is not None
        return of_total(1, 1, varies, Stability(self.rows, self.rows, self.neighbours, grouped=grouped))


def tabulated(
    policy: Policy,
    catalog: Catalog,
    table: Table,
    domain: Domain,
    sets: Sequence[tuple[int, ...]],
    missing: bool = False,
) -> TabulatedTable:
    """The tables of some sets of columns. With `missing` all rows count, and every column has one place more, its last,
    for what holds none of the others.
    """
    question = bind_whole(table.name, policy, catalog)
    summary = question.summary
    rows = 1 if summary.bound is None else summary.bound.rows
    source = _source(summary.relation)
    tabulation = Tabulation(
        relation=summary.relation,
        where=Always(True) if missing else declared((attribute, source) for attribute in domain.attributes),
        # A limit of groups would keep other rows for other sets; the limit of rows bounds a count without it.
        bound=None if summary.bound is None else Bound(summary.bound.unit, rows, rows),
        keys=tuple(key_of(attribute, source, missing) for attribute in domain.attributes),
        sets=tuple(sets),
        order_by=summary.order_by,
    )
    return TabulatedTable(tabulation, rows, question.unit, question.neighbours, question)


def key_of(attribute: Attribute, source: str, missing: bool = False) -> DeclaredKey | BinnedKey:
    """The places of a column, as an engine groups by them; with `missing` the last is for all other rows."""
    field = Field(source, attribute.column)
    match attribute:
        case Listed():
            values = (*attribute.column.values, None) if missing else attribute.values
            return DeclaredKey(attribute.name, field, values)
        case Binned(_, first, width):
            seen = reading(field)
            assert isinstance(seen, Reading)
            kind = "date" if seen.span.date else "number"
            return BinnedKey(attribute.name, seen, first, width, attribute.size, kind, nulls=missing)  # type: ignore[arg-type]
    assert_never(attribute)


def _source(relation: Relation) -> str:
    """The alias of the table itself: the leftmost of what is joined on the way to the unit."""
    while not isinstance(relation, Scan):
        relation = relation.left  # type: ignore[union-attr]  # a table that is named has no inner query
    return relation.source


def declared(columns: Iterable[tuple[Attribute, str]]) -> Predicate:
    """Every column, of the table that goes by a name, holds one of its places."""
    parts: list[Predicate] = []
    for attribute, source in columns:
        seen = reading(Field(source, attribute.column))
        if isinstance(attribute, Binned) or not attribute.column.nulls:
            parts.append(Known(seen, negated=False))
    return parts[0] if len(parts) == 1 else Both(tuple(parts)) if parts else Always(True)
