"""Junction trees: they hold every set, and columns run through them without a gap."""

from itertools import combinations

import numpy as np
import pytest

from confide.synthesis.junction import junction_tree, tree_bytes


@pytest.mark.parametrize("seed", range(30))
def test_every_set_lies_in_a_clique_and_every_column_runs_on(seed: int) -> None:
    generator = np.random.default_rng(seed)
    sizes = tuple(int(size) for size in generator.integers(2, 6, 7))
    every = [pair for width in (1, 2, 3) for pair in combinations(range(7), width)]
    sets = [every[place] for place in generator.choice(len(every), int(generator.integers(0, 9)), replace=False)]
    tree = junction_tree(sizes, sets)
    cliques = [set(node.columns) for node in tree]
    assert all(any(set(columns) <= clique for clique in cliques) for columns in sets)
    assert sorted(column for node in tree for column in node.own) == list(range(7))
    for place, node in enumerate(tree):
        above = tree[node.parent].columns if place else ()
        # In the order of the parent, and all of the clique that any earlier one holds.
        assert node.separator == tuple(column for column in above if column in node.columns)
        earlier = set().union(*cliques[:place])
        assert cliques[place] & earlier == set(node.separator)
    assert not any(one <= two for one in cliques for two in cliques if one is not two)
    assert tree_bytes(sizes, sets) == 8 * sum(int(np.prod([sizes[c] for c in clique])) for clique in cliques)


def test_a_cycle_is_triangulated_where_it_is_cheapest() -> None:
    tree = junction_tree((2, 9, 2, 9), [(0, 1), (1, 2), (2, 3), (0, 3)])
    assert {frozenset(node.columns) for node in tree} == {frozenset({0, 1, 2}), frozenset({0, 2, 3})}
