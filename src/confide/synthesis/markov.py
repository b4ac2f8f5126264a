"""A Markov table: shares of all rows as a product of conditional shares along a junction tree.

It answers any marginal exactly, by sums over the tree, and records are drawn from the root on. It needs no more than
its tables: nothing that fitted them.
"""

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.synthesis.junction import Node, Tree, junction_tree

_SMALL: Final = 20_000
"""Cells of a product that is summed in one go."""

Shares = NDArray[np.float32]
Wide = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MarkovTable:
    """`shares` has a table for each clique: of its own columns, given what it shares with its parent; by its axes."""

    sizes: tuple[int, ...]
    tree: Tree
    shares: tuple[Shares, ...]

    def __post_init__(self) -> None:
        _check(self.sizes, self.tree)
        for node, table in zip(self.tree, self.shares, strict=True):
            if table.shape != tuple(self.sizes[column] for column in node.columns):
                raise ValueError(f"the table of a clique has the shape {table.shape}")

    @property
    def words(self) -> str:
        cells = sum(table.size for table in self.shares)
        return f"{len(self.tree):,} clique{'s' * (len(self.tree) != 1)} of {cells:,} cells"

    @cached_property
    def separators(self) -> tuple[Wide, ...]:
        """The shares of what each clique has in common with its parent."""
        found: list[Wide] = []
        for node in self.tree:
            if node.parent < 0:
                found.append(np.ones(()))
                continue
            above = self.tree[node.parent]
            joint = self._joint(node.parent, found)
            away = tuple(axis for axis, column in enumerate(above.columns) if column not in node.separator)
            found.append(joint.sum(axis=away))
        return tuple(found)

    def marginal(self, columns: tuple[int, ...], start: int, stop: int) -> Shares:
        """The cells whose place in the first column is in [start, stop)."""
        wanted = set(columns)
        holders = [place for place, node in enumerate(self.tree) if wanted <= set(node.columns)]
        cut = (columns[0], slice(start, stop))
        if holders:
            top = min(holders, key=lambda place: self.shares[place].size)
            needed = frozenset((top,))
        else:
            top, needed = self._reached(wanted)
        below: dict[int, list[int]] = {}
        for place in sorted(needed - {top}):
            below.setdefault(self.tree[place].parent, []).append(place)
        return self._summed(top, columns, below, wanted, cut, top=True).astype(np.float32)

    def draw(self, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Clique by clique: the records of one place of a separator are spread over the cells of its clique as evenly
        as their shares allow, in random order.
        """
        places = np.zeros((count, len(self.sizes)), dtype=np.int64)
        for node, table in zip(self.tree, self.shares, strict=True):
            given = math.prod(table.shape[: len(node.separator)])
            ladders = np.cumsum(table.reshape(given, -1).astype(np.float64), axis=1)
            ends = ladders[:, -1:]
            even = np.linspace(0, 1, ladders.shape[1] + 1)[1:]
            ladders = np.where(ends > 0, ladders / np.where(ends > 0, ends, 1), even)
            ladders[:, -1] = 1
            group = _cells(places, node.separator, self.sizes)
            order = generator.permutation(count)
            order = order[np.argsort(group[order], kind="stable")]
            many = np.bincount(group, minlength=given)
            rank = np.arange(count) - np.repeat(np.cumsum(many) - many, many)
            at = np.minimum((rank + generator.random(count)) / many[group[order]], 1 - 2.0**-40)
            # Ladders one above the other are one ladder: each stands at the number of its group.
            steps = (ladders + np.arange(given)[:, None]).reshape(-1)
            cell = np.searchsorted(steps, at + group[order], side="right") - group[order] * ladders.shape[1]
            cell = np.clip(cell, 0, ladders.shape[1] - 1)
            own = np.unravel_index(cell, [self.sizes[column] for column in node.own])
            for column, found in zip(node.own, own, strict=True):
                places[order, column] = found
        return places[generator.permutation(count)]

    def to_bytes(self) -> bytes:
        facts = [[list(node.separator), list(node.own), node.parent] for node in self.tree]
        text = json.dumps(facts).encode()
        return struct.pack("<I", len(text)) + text + b"".join(table.astype("<f4").tobytes() for table in self.shares)

    @classmethod
    def from_bytes(cls, stored: bytes, sizes: tuple[int, ...]) -> "MarkovTable":
        length = struct.unpack_from("<I", stored)[0]
        facts = json.loads(stored[4 : 4 + length])
        tree = tuple(Node(tuple(separator), tuple(own), int(parent)) for separator, own, parent in facts)
        _check(sizes, tree)
        cells = np.frombuffer(stored[4 + length :], dtype="<f4").astype(np.float32)
        shapes = [tuple(sizes[column] for column in node.columns) for node in tree]
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        if len(cells) != ends[-1] or not np.isfinite(cells).all() or (cells < 0).any():
            raise ValueError("the cells are not those of the cliques")
        parts = np.split(cells, ends[:-1])
        return cls(sizes, tree, tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)))

    # --- sums over the tree -------------------------------------------------------------------------------------------

    def _joint(self, place: int, separators: Sequence[Wide]) -> Wide:
        table, above = self.shares[place].astype(np.float64), separators[place]
        return table * above.reshape(above.shape + (1,) * (table.ndim - above.ndim))

    def _reached(self, wanted: set[int]) -> tuple[int, frozenset[int]]:
        """The lowest clique above all wanted columns, and the cliques on the ways there."""
        homes = {place for place, node in enumerate(self.tree) if wanted & set(node.own)}
        needed = set(homes)
        # Later places are lower: one by one they are replaced by their parents, until one is left.
        front = set(homes)
        while len(front) > 1:
            lowest = max(front)
            front.remove(lowest)
            front.add(self.tree[lowest].parent)
            needed.add(self.tree[lowest].parent)
        return min(front), frozenset(needed)

    def _summed(
        self,
        place: int,
        shown: Sequence[int],
        below: Mapping[int, Sequence[int]],
        wanted: set[int],
        cut: tuple[int, slice],
        top: bool = False,
    ) -> Wide:
        """The clique at `place` and all that is needed below it, summed down to the columns that are shown."""
        node = self.tree[place]
        table = self._joint(place, self.separators) if top else self.shares[place].astype(np.float64)
        column, stretch = cut
        parts: list[Any] = [table[tuple(stretch if own == column else slice(None) for own in node.columns)]]
        labels = [node.columns]
        for lower in below.get(place, ()):
            shared = self.tree[lower].separator
            kept = shared + tuple(sorted(self._wanted_below(lower, below, wanted) - set(shared)))
            parts.append(self._summed(lower, kept, below, wanted, cut))
            labels.append(kept)
        return _contracted(parts, labels, shown)

    def _wanted_below(self, place: int, below: Mapping[int, Sequence[int]], wanted: set[int]) -> set[int]:
        found = wanted & set(self.tree[place].own)
        for lower in below.get(place, ()):
            found |= self._wanted_below(lower, below, wanted)
        return found


def shares_along(tree: Tree, tables: Sequence[Wide]) -> list[Wide]:
    """The product of one table for each clique, as shares of each clique given its separator: one pass up the tree.

    Where the product is nothing, whatever the rest of the clique is, shares are even.
    """
    found, told = list(tables), dict[int, list[Wide]]()
    for place in range(len(tree) - 1, -1, -1):
        node, table = tree[place], tables[place]
        for message in told.pop(place, ()):
            table = table * message
        sums = table.sum(axis=tuple(range(len(node.separator), table.ndim)), keepdims=True)
        if sums.all():
            found[place] = table / sums
        else:
            even = 1 / math.prod(table.shape[len(node.separator) :])
            found[place] = np.where(sums > 0, table / np.where(sums > 0, sums, 1), even)
        if node.parent >= 0:
            above = tree[node.parent].columns
            sizes = dict(zip(node.columns, table.shape, strict=True))
            shape = [sizes[column] if column in node.separator else 1 for column in above]
            told.setdefault(node.parent, []).append(sums.reshape(shape))
    return found


def product_of(sizes: tuple[int, ...], factors: Sequence[tuple[tuple[int, ...], Wide]]) -> MarkovTable:
    """The table whose shares are the product of some tables, each with an axis for each of its columns."""
    tree = junction_tree(sizes, [columns for columns, _ in factors])
    tables: list[Wide] = [np.ones([sizes[column] for column in node.columns]) for node in tree]
    for columns, factor in factors:
        holders = [place for place, node in enumerate(tree) if set(columns) <= set(node.columns)]
        place = min(holders, key=lambda own: (tables[own].size, own))
        order = [columns.index(column) for column in tree[place].columns if column in columns]
        shape = [sizes[column] if column in columns else 1 for column in tree[place].columns]
        tables[place] = tables[place] * np.transpose(factor, order).reshape(shape)
    return MarkovTable(sizes, tree, tuple(own.astype(np.float32) for own in shares_along(tree, tables)))


def _contracted(parts: Sequence[Any], labels: Sequence[tuple[int, ...]], shown: Sequence[int]) -> Wide:
    """The product of some tables, summed over all columns but those shown, which are its axes in this order."""
    numbers = {column: number for number, column in enumerate(dict.fromkeys(c for own in labels for c in own))}
    given: list[Any] = []
    for part, own in zip(parts, labels, strict=True):
        given += [part, [numbers[column] for column in own]]
    sizes = {
        column: size
        for part, own in zip(parts, labels, strict=True)
        for column, size in zip(own, part.shape, strict=True)
    }
    # Looking for a good order takes longer than a small product in any order.
    worth = len(parts) > 1 and math.prod(sizes.values()) > _SMALL
    found: Wide = np.einsum(*given, [numbers[column] for column in shown], optimize=worth)
    return found


def _cells(places: NDArray[np.int64], columns: tuple[int, ...], sizes: tuple[int, ...]) -> NDArray[np.int64]:
    """The number of the cell of some columns that each record is in."""
    cells = np.zeros(len(places), dtype=np.int64)
    for column in columns:
        cells = cells * sizes[column] + places[:, column]
    return cells


def _check(sizes: tuple[int, ...], tree: Tree) -> None:
    """Every column is its own in one clique, and stands above wherever it is shared."""
    owned = sorted(column for node in tree for column in node.own)
    if owned != list(range(len(sizes))):
        raise ValueError("a tree holds every column once")
    for place, node in enumerate(tree):
        inside = node.parent < place and (place == 0) == (node.parent < 0)
        if not inside or not set(node.separator) <= set(tree[node.parent].columns if place else ()):
            raise ValueError("a clique shares columns with the one above it")
