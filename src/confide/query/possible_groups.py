"""Which groups can have rows at all: told from the text, the policy and public tables, before anything is read.

A group whose keys contradict WHERE, a join, HAVING or the rows of a public table is empty whatever the private data
are. Nobody has to measure that, and noise on it would only look like rows. What is left out here is certain to be
empty; what cannot be told stays in, and so does everything once telling takes too long.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from confide.policy import Category, Date
from confide.policy import Number as NumberColumn
from confide.query.group_facts import Pair, agreeing, at_null, at_place, candidates, consistent, plain_keys, valued
from confide.query.grouping import key_size
from confide.query.key_value import key_holds
from confide.query.question import AllOf, AnyOf, Comparison, Condition, ShownKey
from confide.query.row_facts import RowFacts, StepsLeft, TooLongError, Value
from confide.query.scope import Catalog
from confide.query.tree import (
    Always,
    BinnedKey,
    Both,
    DeclaredKey,
    Derived,
    Field,
    Join,
    Key,
    PerUnit,
    Predicate,
    Relation,
    Scan,
    UnknownKey,
    fields_of,
)

MOST_STEPS: Final = 100_000
"""Of telling: a second at most."""
MOST_PUBLIC_ROWS: Final = 10_000
"""Of a public table with more different rows than this, in the columns that matter, nothing is told."""
MOST_TRIED: Final = 1_000
"""Values of the columns that a computed key is made of, all together, are tried one by one if they are no more."""

Mask = NDArray[np.bool_]
Leaf = tuple[str, str]


class GroupedRows(Protocol):
    """The part of a question that says which groups it has."""

    @property
    def relation(self) -> Relation: ...
    @property
    def where(self) -> Predicate: ...
    @property
    def keys(self) -> tuple[Key, ...]: ...


def possible_groups(asked: GroupedRows, having: Condition | None, catalog: Catalog) -> tuple[int, ...] | None:
    """The places of the groups that can have rows, in the product of the keys' domains; None if every group can."""
    keys = asked.keys
    if not keys or any(isinstance(key, UnknownKey) for key in keys):
        return None
    shape = tuple(key_size(key) or 0 for key in keys)
    mask = np.ones(shape, dtype=bool)
    if having is not None:
        mask &= _may_pass(having, keys)
    for places, part in _parts(asked, catalog):
        mask &= _spread(part, places, len(keys))
    return None if mask.all() else tuple(np.flatnonzero(mask).tolist())


def null_groups(asked: GroupedRows, possible: tuple[int, ...] | None) -> tuple[int, ...]:
    """The places of the keys for which NULL is a group of its own, and one of the possible ones."""
    pairs = _inner_pairs(asked.relation)
    places = [place for place, key in enumerate(asked.keys) if _has_null(key) and _null_passes(key, asked.where, pairs)]
    if not places or possible is None:
        return tuple(places)
    sizes = [key_size(key) or 0 for key in asked.keys]
    shown = np.unravel_index(np.array(possible, dtype=np.intp), sizes)
    return tuple(place for place in places if np.any(shown[place] == sizes[place] - 1))


def lost_nulls(asked: GroupedRows) -> tuple[int, ...]:
    """The places of the keys without whose value a row is in no group, though it may pass."""
    pairs = _inner_pairs(asked.relation)
    return tuple(
        place for place, key in enumerate(asked.keys) if not _has_null(key) and _null_passes(key, asked.where, pairs)
    )


def _inner_pairs(relation: Relation) -> list[Pair]:
    return [pair for optional, own in _joined(relation)[1].values() if not optional for pair in own]


def _null_passes(key: Key, where: Predicate, pairs: Sequence[Pair]) -> bool:
    try:
        facts = at_null(RowFacts(StepsLeft(MOST_STEPS)), key)
        inside = None if facts is None else facts.passing_all(_conjuncts(where))
        return inside is not None and agreeing(inside, pairs) is not None
    except TooLongError:
        return True


def _has_null(key: Key) -> bool:
    """Whether NULL is a group of its own: the last, where the values are declared."""
    return None in key.values if isinstance(key, DeclaredKey) else key.nulls


# --- HAVING -----------------------------------------------------------------------------------------------------------


def _may_pass(condition: Condition, keys: tuple[Key, ...]) -> Any:
    """Where a condition may hold, as far as the keys tell; what is measured may be anything."""
    match condition:
        case AllOf(parts):
            return np.logical_and.reduce(np.broadcast_arrays(*(_may_pass(part, keys) for part in parts)))
        case AnyOf(parts):
            return np.logical_or.reduce(np.broadcast_arrays(*(_may_pass(part, keys) for part in parts)))
        case Comparison(operation, ShownKey(_, place), str() | bool() as right):
            key = keys[place]
            return _spread(
                np.array([key_holds(key, at, operation, right) for at in range(key_size(key) or 0)], dtype=bool),
                (place,),
                len(keys),
            )
    return np.ones((1,) * len(keys), dtype=bool)


def _spread(mask: Mask, places: Sequence[int], dimensions: int) -> Mask:
    """A mask over some keys, in increasing order, as one over all of them."""
    shape = [1] * dimensions
    for place, size in zip(places, mask.shape, strict=True):
        shape[place] = size
    return mask.reshape(shape)


# --- WHERE, joins and public tables -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Table:
    """A public table: the columns that matter, its different rows in them, and how it is joined.

    `optional` says that a row may find no partner in it; then its columns are NULL, and its pairs do not hold.
    """

    columns: tuple[Field, ...]
    rows: tuple[tuple[Value | None, ...], ...]
    pairs: tuple[Pair, ...]
    optional: bool


@dataclass(frozen=True, slots=True)
class _Part:
    """Keys, conditions and tables that share columns: nothing else says anything about these."""

    keys: tuple[Key, ...]
    conditions: tuple[Predicate, ...]
    pairs: tuple[Pair, ...]
    tables: tuple[_Table, ...]
    steps: StepsLeft

    def mask(self) -> Mask:
        whole = np.ones(tuple(key_size(key) or 0 for key in self.keys), dtype=bool)
        if not self.conditions and not self.pairs and not self.tables and len(self.keys) < 2 and plain_keys(self.keys):
            return whole
        # Ranges of numbers are wider than the values that they take: where columns have few values, each is tried.
        tried = _every_value(self.keys, self.tables)
        attempts = [(StepsLeft(MOST_STEPS), (*self.tables, *tried))] if tried else []
        for steps, tables in (*attempts, (self.steps, self.tables)):
            found = np.zeros_like(whole)
            try:
                facts = self._passing(RowFacts(steps), self.conditions)
                if facts is not None:
                    self._visit(facts, tables, self.keys, (), found)
            except TooLongError:
                continue
            return found
        return whole

    def _visit(
        self, facts: RowFacts, tables: Sequence[_Table], keys: Sequence[Key], places: tuple[int, ...], found: Mask
    ) -> None:
        """Every way to choose a row of each table, then a value of each key."""
        if not tables and not keys:
            found[places] = True
            return
        open_conditions = [condition for condition in self.conditions if not facts.surely(condition)]
        if tables:
            for own in _with_table(facts, tables[0]):
                inside = self._passing(own, open_conditions)
                if inside is not None:
                    self._visit(inside, tables[1:], keys, places, found)
            return
        for place in candidates(facts, keys[0]):
            if len(keys) == 1 and found[(*places, place)]:
                continue
            at = at_place(facts, keys[0], place)
            inside = None if at is None else self._passing(at, open_conditions)
            if inside is not None:
                self._visit(inside, (), keys[1:], (*places, place), found)

    def _passing(self, facts: RowFacts, conditions: Sequence[Predicate]) -> RowFacts | None:
        inside = facts.passing_all(conditions)
        inside = None if inside is None else agreeing(inside, self.pairs)
        return inside if inside is not None and all(consistent(inside, key) for key in self.keys) else None


def _parts(asked: GroupedRows, catalog: Catalog) -> Iterator[tuple[tuple[int, ...], Mask]]:
    """Masks over some keys each, by their places."""
    steps, conditions = StepsLeft(MOST_STEPS), _conjuncts(asked.where)
    scans, pairs = _joined(asked.relation)
    spoken = {leaf for node in (*asked.keys, *conditions) for leaf in _leaves(node)}
    matter = _closure(spoken, scans, [pair for own in pairs.values() for pair in own[1]])
    tables = {name: table for name, scan in scans.items() if (table := _table(scan, pairs, matter, catalog))}
    inner = [pair for optional, own in pairs.values() if not optional for pair in own]
    inner = [pair for pair in inner if any(_leaf(field) in matter for field in pair)]
    groups = _Groups()
    for key in asked.keys:
        groups.join(_leaves(key))
    for condition in conditions:
        groups.join(_leaves(condition))
    for pair in inner:
        groups.join(map(_leaf, pair))
    for table in tables.values():
        groups.join(_leaf(field) for field in (*table.columns, *(own for pair in table.pairs for own in pair)))
    where = [groups.of(_leaves(key)) for key in asked.keys]
    for group in dict.fromkeys([*where, *(groups.of(_leaves(condition)) for condition in conditions)]):
        places = tuple(place for place, own in enumerate(where) if own == group)
        part = _Part(
            tuple(asked.keys[place] for place in places),
            tuple(condition for condition in conditions if groups.of(_leaves(condition)) == group),
            tuple(pair for pair in inner if groups.of([_leaf(pair[0])]) == group),
            tuple(table for table in tables.values() if groups.of(map(_leaf, table.columns)) == group),
            steps,
        )
        yield places, part.mask()


def _conjuncts(where: Predicate) -> tuple[Predicate, ...]:
    if where == Always(True):
        return ()
    return where.parts if isinstance(where, Both) else (where,)


def _joined(relation: Relation) -> tuple[dict[str, Scan], dict[str, tuple[bool, tuple[Pair, ...]]]]:
    """The public tables of a relation by their names in it; and for every joined one whether it is optional, and its
    pairs.
    """
    scans: dict[str, Scan] = {}
    pairs: dict[str, tuple[bool, tuple[Pair, ...]]] = {}
    while isinstance(relation, Join):
        pairs[relation.right.source] = relation.optional, relation.on
        if relation.right.public:
            scans[relation.right.source] = relation.right
        relation = relation.left
    if not isinstance(relation, PerUnit) and relation.public:
        scans[relation.source] = relation
    return scans, pairs


def _table(
    scan: Scan, pairs: Mapping[str, tuple[bool, tuple[Pair, ...]]], matter: frozenset[Leaf], catalog: Catalog
) -> _Table | None:
    columns = catalog.columns(scan.table)
    told = [
        column
        for column in columns.values()
        if (scan.source, column.name) in matter and isinstance(column, Category | NumberColumn | Date)
    ]
    if not told:
        return None
    rows = catalog.distinct(scan.table, tuple(column.name for column in told), MOST_PUBLIC_ROWS)
    if rows is None:
        return None
    optional, own = pairs.get(scan.source, (False, ()))
    return _Table(tuple(Field(scan.source, column) for column in told), rows, own, optional)


def _every_value(keys: Sequence[Key], tables: Sequence[_Table]) -> tuple[_Table, ...]:
    """Tables of all values of the columns of computed keys, each by itself; none where they are too many together."""
    computed = [key for key in keys if isinstance(key, BinnedKey) and not plain_keys((key,))]
    known = {column for table in tables for column in table.columns}
    columns = [
        column for column in dict.fromkeys(own for key in computed for own in fields_of(key)) if column not in known
    ]
    found = []
    for column in columns:
        values = _values_of(column)
        if values is None:
            return ()
        found.append(_Table((cast(Field, column),), tuple((value,) for value in values), (), optional=False))
    return tuple(found) if prod(len(table.rows) for table in found) <= MOST_TRIED else ()


def _values_of(column: Field | Derived) -> Sequence[Value | None] | None:
    """All that the policy declares of a column, as it sees it, and NULL; None if these are too many."""
    if isinstance(column, Derived):
        return None
    match column.column:
        case Category(values=values) if len(values) < MOST_TRIED:
            return [*values, None]
        case NumberColumn(low_index=low, high_index=high) | Date(low_index=low, high_index=high) if (
            high - low < MOST_TRIED
        ):
            return [*range(low, high + 1), None]
    return None


def _with_table(facts: RowFacts, table: _Table) -> Iterator[RowFacts]:
    """What is known of a row that is joined to each row of the table, or to none."""
    for row in table.rows:
        inside: RowFacts | None = facts
        for column, value in zip(table.columns, row, strict=True):
            inside = None if inside is None else valued(inside, column, value)
        inside = None if inside is None else agreeing(inside, table.pairs)
        if inside is not None:
            yield inside
    if table.optional:
        inside = facts
        for column in table.columns:
            inside = None if inside is None else valued(inside, column, None)
        if inside is not None:
            yield inside


# --- columns that are spoken of ---------------------------------------------------------------------------------------


def _leaf(column: Field | Derived) -> Leaf:
    return column.source, column.name


def _leaves(node: object) -> Iterator[Leaf]:
    return map(_leaf, fields_of(node))


def _closure(leaves: set[Leaf], public: Container[str], pairs: Sequence[Pair]) -> frozenset[Leaf]:
    """These columns, all that joins make equal to one, and those by which a public table of theirs is joined."""
    found, before = set(leaves), -1
    while len(found) > before:
        before = len(found)
        tables = {source for source, _ in found if source in public}
        for one, two in pairs:
            if {_leaf(one), _leaf(two)} & found or {one.source, two.source} & tables:
                found |= {_leaf(one), _leaf(two)}
    return frozenset(found)


class _Groups:
    """Columns that something speaks of together."""

    def __init__(self) -> None:
        self._parents: dict[Leaf, Leaf] = {}

    def join(self, leaves: Iterable[Leaf]) -> None:
        roots = [self._root(leaf) for leaf in leaves]
        for root in roots[1:]:
            self._parents[self._root(root)] = self._root(roots[0])

    def of(self, leaves: Iterable[Leaf]) -> Leaf | None:
        """None for what speaks of no column."""
        return next((self._root(leaf) for leaf in leaves), None)

    def _root(self, leaf: Leaf) -> Leaf:
        self._parents.setdefault(leaf, leaf)
        while self._parents[leaf] != leaf:
            leaf = self._parents[leaf]
        return leaf
