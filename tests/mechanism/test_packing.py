"""The program behind races of units that share rows: against another solver, and against every unit that leaves."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linprog

from confide.mechanism.packing import Packing


def _random(seed, entities=6, sets=14, width=2):
    random = np.random.default_rng(seed)
    return Packing(random.integers(0, entities, (sets, width)), random.integers(1, 6, sets))


def _plain(packing, most):
    size = int(packing.entities.max()) + 1
    rows = np.zeros((size, len(packing.weights)))
    for place, members in enumerate(packing.entities):
        rows[list(set(members.tolist())), place] = 1
    limits = [(0, int(weight)) for weight in packing.weights]
    return -linprog(-np.ones(len(packing.weights)), A_ub=rows, b_ub=np.full(size, most), bounds=limits).fun


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("width", [2, 3])
def test_the_optimum_is_that_of_the_whole_program(seed, width):
    packing = _random(seed, width=width)
    for most in (1, 2, 5, 11, 40):
        assert abs(packing.within(most) - _plain(packing, most)) <= 0.75


@pytest.mark.parametrize("seed", range(12))
def test_a_unit_that_leaves_takes_at_most_the_cut_off_with_it(seed):
    packing = _random(seed)
    for most in (1, 3, 8):
        whole = packing.within(most)
        for entity in range(6):
            kept = ~(packing.entities == entity).any(axis=1)
            rest = Packing(packing.entities[kept], packing.weights[kept]).within(most)
            assert -1 <= whole - rest <= most + 1


@pytest.mark.parametrize("seed", range(6))
def test_it_grows_ever_more_slowly_up_to_the_total(seed):
    packing = _random(seed)
    values = [packing.within(most) for most in range(1, 60)]
    assert values[-1] == packing.total
    assert values == sorted(values)
    steps = np.diff(values)
    assert all(later <= earlier + 2 for earlier, later in pairwise(steps))  # both are rounded


def test_dropping_whole_units_instead_would_not_do():
    """Removing every unit above the cut-off: one more unit removes another, with all it has. A mutant, caught."""
    edges = np.array([[0, place] for place in range(1, 11)] + [[1, 11]])
    weights = np.ones(len(edges), dtype=np.int64)

    def dropped(entities):
        packing = Packing(entities, weights[: len(entities)])
        heavy = np.flatnonzero(packing.contributions() > 10)
        return int((~np.isin(entities, heavy).any(axis=1)).sum())

    more = np.vstack([edges, [[0, 12]]])
    changed = abs(
        dropped(edges) - int((~np.isin(more, np.flatnonzero(np.bincount(more.ravel()) > 10)).any(axis=1)).sum())
    )
    assert changed >= 10
    assert abs(Packing(edges, weights).within(3) - Packing(more, np.ones(len(more), dtype=np.int64)).within(3)) <= 4


def test_nothing_at_all():
    assert Packing(np.empty((0, 2), dtype=np.int64), np.empty(0, dtype=np.int64)).within(4) == 0


def test_one_entity_twice_in_a_set_counts_once():
    assert Packing(np.array([[3, 3]]), np.array([7])).within(5) == 5
    assert Packing(np.array([[3, 3]]), np.array([7])).contributions().tolist() == [0, 0, 0, 7]


def test_weights_are_checked():
    with pytest.raises(ValueError, match="not negative"):
        Packing(np.array([[0, 1]]), np.array([-1]))
