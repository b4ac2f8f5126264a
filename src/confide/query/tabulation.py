"""Many tables of counts of one relation: what an engine computes for a workload."""

from dataclasses import dataclass

from confide.query.tree import (
    Always,
    BinnedKey,
    Both,
    Bound,
    Cell,
    DeclaredKey,
    Field,
    Known,
    Predicate,
    Relation,
    Summary,
)


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

    def summary(self, columns: tuple[int, ...], alone: bool = False) -> Summary:
        """The one GROUP BY of a set. If it is read alone, its groups tell which rows hold a value in its keys: that
        is not asked of every row once more, unless units are bounded, whose other rows would then be chosen.
        """
        keys = tuple(self.keys[column] for column in columns)
        where = self._without(keys) if alone and self.bound is None else self.where
        return Summary(self.relation, where, self.bound, keys, (Cell("rows"),), (), self.order_by)

    def _without(self, keys: tuple[DeclaredKey | BinnedKey, ...]) -> Predicate:
        """The conditions but for those that say no more than that a key has a group."""
        told = {
            Known(key.field if isinstance(key, DeclaredKey) else key.number, negated=False)
            for key in keys
            if not (None in key.values if isinstance(key, DeclaredKey) else key.nulls)
        }
        parts = self.where.parts if isinstance(self.where, Both) else (self.where,)
        kept = tuple(part for part in parts if part not in told)
        return Always(True) if not kept else kept[0] if len(kept) == 1 else Both(kept)
