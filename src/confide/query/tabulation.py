"""Many tables of counts of one relation: what an engine computes for a workload."""

from dataclasses import dataclass

from confide.query.tree import BinnedKey, Bound, Cell, DeclaredKey, Field, Predicate, Relation, Summary


@dataclass(frozen=True, slots=True)
class Tabulation:
    """Counts of bounded rows by each of `sets` of keys. The same rows are counted in every table.

    `where` keeps rows that hold a declared value in every key, so that all tables add up to the same number. A unit is
    bounded by rows alone: a bound on groups would choose other rows for other sets.
    """

    relation: Relation
    where: Predicate
    bound: Bound | None
    keys: tuple[DeclaredKey | BinnedKey, ...]
    sets: tuple[tuple[int, ...], ...]
    order_by: tuple[Field, ...] = ()

    def summary(self, columns: tuple[int, ...]) -> Summary:
        """The one GROUP BY of a set."""
        keys = tuple(self.keys[column] for column in columns)
        return Summary(self.relation, self.where, self.bound, keys, (Cell("rows"),), (), self.order_by)
