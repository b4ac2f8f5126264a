"""Junction trees: the cliques of a triangulated graph of columns, in a tree along which a model of them factors.

Columns are numbers. What is public decides the tree: which sets of columns are measured, and how many places each has.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Final

BYTES_OF_A_CELL: Final = 8


@dataclass(frozen=True)
class Node:
    """One clique: what it shares with its parent first, in the order of the parent's columns, then what is its own."""

    separator: tuple[int, ...]
    own: tuple[int, ...]
    parent: int
    """The place of the node above it in the tree, always an earlier one; −1 of the root."""

    @cached_property
    def columns(self) -> tuple[int, ...]:
        return self.separator + self.own


Tree = tuple[Node, ...]


def junction_tree(sizes: Sequence[int], sets: Iterable[tuple[int, ...]]) -> Tree:
    """The tree whose cliques hold every set, and every column."""
    cliques = _cliques(sizes, sets)
    # A tree of largest separators has the running intersection, since the graph is triangulated.
    left = dict(enumerate(cliques[1:], 1))
    nodes = [Node((), tuple(sorted(cliques[0])), -1)]
    best = {place: (len(clique & cliques[0]), 0) for place, clique in left.items()}
    while left:
        place = max(left, key=lambda own: (best[own][0], -own))
        clique, parent = left.pop(place), best.pop(place)[1]
        shared = tuple(column for column in nodes[parent].columns if column in clique)
        nodes.append(Node(shared, tuple(sorted(clique - set(shared))), parent))
        for other, own in left.items():
            if len(own & clique) > best[other][0]:
                best[other] = (len(own & clique), len(nodes) - 1)
    return tuple(nodes)


def tree_bytes(sizes: Sequence[int], sets: Iterable[tuple[int, ...]]) -> int:
    """How much memory one table for each clique of the tree takes."""
    cells = sum(math.prod(sizes[column] for column in clique) for clique in _cliques(sizes, sets))
    return BYTES_OF_A_CELL * cells


def _cliques(sizes: Sequence[int], sets: Iterable[tuple[int, ...]]) -> list[frozenset[int]]:
    """The maximal cliques that remain when columns are eliminated one by one, whichever makes the smallest first."""
    near: dict[int, set[int]] = {column: set() for column in range(len(sizes))}
    for columns in sets:
        for one, two in combinations(columns, 2):
            near[one].add(two)
            near[two].add(one)
    weights = {column: _weight(sizes, column, near) for column in near}
    found: list[frozenset[int]] = []
    while near:
        column = min(near, key=lambda own: (weights[own], own))
        others = near.pop(column)
        clique = frozenset((column, *others))
        if not any(clique <= larger for larger in found):
            found.append(clique)
        for one in others:
            near[one] |= others
            near[one] -= {one, column}
        for one in others:
            weights[one] = _weight(sizes, one, near)
    return found


def _weight(sizes: Sequence[int], column: int, near: dict[int, set[int]]) -> int:
    return sizes[column] * math.prod(sizes[other] for other in near[column])
