"""How many rows of a join one unit can have: public facts alone say it.

One unit has at most `at_most` rows of each private table, and a joined row is made of one row of every table; so their
product bounds the joined rows. A table adds no factor where a row of another table names its row, by a key that
references lead to. A public table adds the most of its rows that agree on the columns it is joined on: they are public.

Neighbours: one unit comes, goes or is replaced, with all its rows. An engine keeps no more rows of a unit than this
(`engine/sql/bounding`), so sensitivities that rest on it hold whatever the data are. Where the policy is right about
`at_most`, no unit has more, and nothing is lost.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from confide.errors import QueryError
from confide.policy import Contribution, KeyUnit, Policy
from confide.policy.column import ROWS_LIMIT
from confide.query.scope import Catalog, Source
from confide.query.tree import Field, Join, Relation

Sources = Mapping[str, Source]


@dataclass(frozen=True, slots=True)
class RowFactor:
    """So many rows of some sources, for each choice of rows of the others. `groups`: how many groups they make.

    `behind` are the sources through whose rows these are found, themselves among them.
    """

    sources: frozenset[str]
    rows: int
    groups: int
    words: str
    behind: frozenset[str]


@dataclass(frozen=True, slots=True)
class JoinedRows:
    """What one unit has in a join at most: the product of the factors."""

    factors: tuple[RowFactor, ...]
    least_groups: int
    """The most that the policy says of any one of its tables; a bound on groups is never below."""

    @property
    def rows(self) -> int:
        return prod(factor.rows for factor in self.factors)

    def groups(self, keyed: frozenset[str]) -> int:
        """The most groups that keys of some sources make of one unit's rows."""
        meant = frozenset().union(*(own.behind for own in self.factors if not own.sources.isdisjoint(keyed)))
        of_keys = prod(factor.groups for factor in self.factors if not factor.sources.isdisjoint(meant))
        return min(self.rows, max(self.least_groups, of_keys))

    @property
    def words(self) -> str:
        """The factors above one, as `5 of orders × 4 of tag`."""
        return " × ".join(factor.words for factor in self.factors if factor.rows > 1)


def joined_rows(relation: Relation, sources: Sequence[Source], policy: Policy, catalog: Catalog) -> JoinedRows:
    """The bound of a join under a unit with a key, or a refusal where it is beyond all tables."""
    joins = tuple(_joins(relation))
    private = {source.name: source for source in sources if source.private}
    factors = _private_factors(private, joins, policy)
    public = {source.name: source for source in sources if not source.private}
    found = JoinedRows(
        (*factors, *_public_factors(public, factors, joins, catalog)),
        max(_limit(source).groups for source in private.values()),
    )
    if found.rows > ROWS_LIMIT:
        raise QueryError(
            f"one unit could have {found.words} rows in this join, more than any table has; ask with "
            "mechanism='truncate', which learns how many it has"
        )
    return found


def _joins(relation: Relation) -> Iterator[Join]:
    while isinstance(relation, Join):
        yield relation
        relation = relation.left


def _limit(source: Source) -> Contribution:
    return source.table.at_most if source.table is not None else Contribution()


# --- private tables ---------------------------------------------------------------------------------------------------


def _private_factors(private: Sources, joins: Sequence[Join], policy: Policy) -> list[RowFactor]:
    """The rows of each source that no other names; of those that name each other, of the one that has fewest."""
    named = _named(private, joins, policy)
    factors = []
    for name, source in private.items():
        naming = {other for other in private if name in named[other]}
        alike = {name} | (naming & named[name])
        free = naming <= alike and name == min(alike, key=lambda other: (_limit(private[other]).rows, other))
        limit, own = _limit(source), frozenset((name,))
        rows = limit.rows if free else 1
        factors.append(RowFactor(own, rows, limit.groups, f"{rows:,} of {source.label}", own))
    for join in joins:
        if join.optional and join.right.source in private:
            factors = _added(factors, join, private, policy)
    return factors


def _named(private: Sources, joins: Sequence[Join], policy: Policy) -> dict[str, set[str]]:
    """Of each source those whose row its own row names, and those that these name.

    A row on the left of a LEFT JOIN is not named by the one on the right, which may be missing.
    """
    named: dict[str, set[str]] = {name: set() for name in private}
    for join in joins:
        for pair in join.on:
            for one, other in [pair] if join.optional else [pair, pair[::-1]]:
                if one.source in private and other.source in private and _is_key(private[other.source], other, policy):
                    named[one.source].add(other.source)
    for _ in named:
        for reached in named.values():
            reached |= {further for name in tuple(reached) for further in named[name]}
    return named


def _is_key(source: Source, field: Field, policy: Policy) -> bool:
    """Whether a value of the column names one row: what references lead to does, and the key of one row per unit."""
    table = source.table
    if table is None:
        return True
    if policy.unit == KeyUnit(table.name, field.name):
        return table.at_most.rows == 1
    return any((table.name, field.name) in own.references.values() for own in policy.tables.values())


def _added(factors: list[RowFactor], join: Join, private: Sources, policy: Policy) -> list[RowFactor]:
    """A LEFT JOIN of rows that name the rows on its left: with p on the left and c on the right, c of the joined rows
    have a right side at most; if there is one, at most p − 1 have none.
    """
    keys = {one.source for one, _ in join.on if one.source in private and _is_key(private[one.source], one, policy)}
    left = [own for own in factors if own.rows > 1 and len(own.sources) == 1 and own.sources <= keys]
    right = [own for own in factors if own.rows > 1 and own.sources == {join.right.source}]
    if not left or not right:
        return factors
    (first, second), rest = (left[0], right[0]), [own for own in factors if own not in (left[0], right[0])]
    both, words = first.sources | second.sources, f"({first.words} + {second.words} - 1)"
    return [RowFactor(both, first.rows + second.rows - 1, first.groups * second.groups, words, both), *rest]


# --- public tables ----------------------------------------------------------------------------------------------------


def _public_factors(
    public: Sources, private: Sequence[RowFactor], joins: Sequence[Join], catalog: Catalog
) -> Iterator[RowFactor]:
    """In an order in which each is joined to sources before it: for each row of these, so many of its own."""
    behind = {name: factor.behind for factor in private for name in factor.sources}
    pairs = [pair for join in joins for own in join.on for pair in (own, own[::-1])]
    waiting = dict(public)
    while waiting:
        name = next(two.source for one, two in pairs if one.source in behind and two.source in waiting)
        source = waiting.pop(name)
        ends = [(one, two) for one, two in pairs if one.source in behind and two.source == name]
        rows = max(1, catalog.multiplicity(source.label, tuple(dict.fromkeys(two.name for _, two in ends))))
        behind[name] = frozenset((name,)).union(*(behind[one.source] for one, _ in ends))
        yield RowFactor(frozenset((name,)), rows, rows, f"{rows:,} of {source.label}", behind[name])
