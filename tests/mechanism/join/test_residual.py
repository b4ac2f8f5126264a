"""Residual and elastic sensitivity, against every neighbour of every tiny database."""

import math
import tracemalloc
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest

from confide.mechanism.join.elastic import Elastic
from confide.mechanism.join.residual import Residual, _splits, _value

TUPLES = list(product((0, 1), repeat=2))
CHAIN = ((0, ("a", "b")), (1, ("b", "c")))  # r(a, b) ⋈ s(b, c)
PATH = ((0, ("a", "b")), (0, ("b", "c")))  # r ⋈ r, copies of one table
TRIANGLE = ((0, ("a", "b")), (0, ("b", "c")), (0, ("c", "a")))


def joined(query, tables, places=None):
    """How often each assignment of variables occurs in the join of some of the atoms."""
    rows = {(): 1}
    names = ()
    for place, (table, variables) in enumerate(query):
        if places is not None and place not in places:
            continue
        grown = {}
        for values, count in rows.items():
            known = dict(zip(names, values, strict=True))
            for row in tables[table]:
                own = dict(zip(variables, row, strict=True))
                if all(known.get(name, value) == value for name, value in own.items()):
                    merged = {**known, **own}
                    key = tuple(merged[name] for name in sorted(merged))
                    grown[key] = grown.get(key, 0) + count
        names = tuple(sorted({*names, *variables}))
        rows = grown
    return names, rows


def size(query, tables):
    return sum(joined(query, tables)[1].values())


def residuals(query, tables):
    """T by atoms taken away, as the largest group by what is shared with them."""
    result = {}
    every = range(len(query))
    for count in range(1, len(query) + 1):
        for removed in combinations(every, count):
            left = [place for place in every if place not in removed]
            if not left:
                result[frozenset(removed)] = 1
                continue
            names, rows = joined(query, tables, left)
            shared = [name for name in names if any(name in query[place][1] for place in removed)]
            groups = {}
            for values, number in rows.items():
                key = tuple(value for name, value in zip(names, values, strict=True) if name in shared)
                groups[key] = groups.get(key, 0) + number
            result[frozenset(removed)] = max(groups.values(), default=0)
    return result


def bound(query, tables):
    count = max(table for table, _ in query) + 1
    copies = tuple(tuple(place for place, (own, _) in enumerate(query) if own == table) for table in range(count))
    return Residual(copies, residuals(query, tables))


def databases(tables, rows):
    choices = [list(combinations_with_replacement(TUPLES, number)) for number in range(rows + 1)]
    every = [rows for choice in choices for rows in choice]
    return product(every, repeat=tables)


def larger(tables):
    for place, rows in enumerate(tables):
        for row in TUPLES:
            yield place, tuple((*own, row) if own is rows and at == place else own for at, own in enumerate(tables))


def local(query, tables):
    here = size(query, tables)
    return max(size(query, other) - here for _, other in larger(tables))


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (CHAIN, 2),
        (PATH, 4),
        (TRIANGLE, 3),
        pytest.param(CHAIN, 4, marks=pytest.mark.audit),
        pytest.param(TRIANGLE, 4, marks=pytest.mark.audit),
    ],
    ids=["chain", "copies", "triangle", "chain of 4", "triangle of 4"],
)
def test_no_row_changes_more_than_the_bound(query, rows):
    """At distance 0, 1 and 2: adding a row to any database within reach. Removing one is adding it the other way."""
    count = max(table for table, _ in query) + 1
    for tables in databases(count, rows):
        residual = bound(query, tables)
        assert local(query, tables) <= residual.local((0,) * count)
        for place, near in larger(tables):
            once = tuple(int(at == place) for at in range(count))
            assert local(query, near) <= residual.local(once)


def test_the_bound_of_a_neighbour_is_one_step_further():
    for tables in list(databases(2, 2))[::4]:
        here = bound(CHAIN, tables)
        for place, near in larger(tables):
            there = bound(CHAIN, near)
            for added in ((0, 0), (1, 0), (0, 1), (2, 3)):
                more = tuple(number + (at == place) for at, number in enumerate(added))
                assert there.local(added) <= here.local(more)


@pytest.mark.parametrize("query", [CHAIN, PATH, TRIANGLE], ids=["chain", "copies", "triangle"])
@pytest.mark.parametrize("alpha", [0.5, 0.05])
def test_smoothness(query, alpha):
    count = max(table for table, _ in query) + 1
    for tables in list(databases(count, 2))[::11]:
        here = bound(query, tables).smooth(alpha)
        assert here >= local(query, tables)
        for _, near in larger(tables):
            there = bound(query, near).smooth(alpha)
            assert abs(math.log(there) - math.log(here)) <= alpha + 1e-9


def test_forgetting_the_copies_is_caught():
    """A mutant that changes one copy at a time misses the rows that join with themselves."""
    caught = False
    for tables in databases(1, 3):
        full = residuals(PATH, tables)
        mutant = max(full[frozenset((0,))], full[frozenset((1,))])
        caught = caught or local(PATH, tables) > mutant
    assert caught


@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_the_maximum_is_that_of_all_splits(alpha):
    residual = Residual(
        ((0,), (1,), (2,)),
        {
            frozenset(key): value
            for key, value in {
                (0,): 7, (1,): 3, (2,): 11, (0, 1): 2, (0, 2): 1, (1, 2): 4, (0, 1, 2): 1,
            }.items()
        },
    )  # fmt: skip
    polynomials = residual.polynomials()
    plain = max(
        math.exp(-alpha * (x + y + z)) * _value(terms, (x, y, z))
        for terms in polynomials
        for x in range(0, 45)
        for y in range(0, 45)
        for z in (0, 1, 2, 3, 5, 8, 13, 18, 20, 25, 30)
    )
    assert plain * (1 - 1e-9) <= residual.smooth(alpha) <= plain * 1.02


def test_splits_are_all_of_them():
    assert len(_splits(2, 4)) == math.comb(6, 2)
    assert len(_splits(0, 4)) == 1
    assert int(_splits(3, 5).sum(axis=1).max()) == 5


def test_elastic_bounds_what_one_row_changes():
    for tables in databases(2, 2):
        frequencies = {
            (0, "b"): max((sum(row[1] == value for row in tables[0]) for value in (0, 1)), default=0),
            (1, "b"): max((sum(row[0] == value for row in tables[1]) for value in (0, 1)), default=0),
        }
        elastic = Elastic(("r", "s"), 0, ((1, (((0, "b"), (1, "b")),)),), frequencies)
        assert local(CHAIN, tables) <= elastic.local(np.zeros(1))[0]
        for _, near in larger(tables):
            assert local(CHAIN, near) <= elastic.local(np.ones(1))[0]


def test_elastic_of_copies_adds_up_both_sides():
    for tables in databases(1, 3):
        frequencies = {
            (0, "b"): max(sum(row[1] == value for row in tables[0]) for value in (0, 1)),
            (1, "b"): max(sum(row[0] == value for row in tables[0]) for value in (0, 1)),
        }
        elastic = Elastic(("r", "r"), 0, ((1, (((0, "b"), (1, "b")),)),), frequencies)
        assert local(PATH, tables) <= elastic.local(np.zeros(1))[0]
        assert elastic.smooth(0.1) >= elastic.local(np.zeros(1))[0]


NEW_VALUES = list(product((0, 1, 2), repeat=2))  # 2 occurs in no table


def _elastic_of(query, tables):
    """The bound of a chain of two, over two tables or two copies of one."""
    second = tables[query[1][0]]
    frequencies = {
        (0, "b"): max((sum(row[1] == value for row in tables[0]) for value in (0, 1, 2)), default=0),
        (1, "b"): max((sum(row[0] == value for row in second) for value in (0, 1, 2)), default=0),
    }
    return Elastic(("r", "s" if query[1][0] else "r"), 0, ((1, (((0, "b"), (1, "b")),)),), frequencies)


@pytest.mark.parametrize("query", [CHAIN, PATH], ids=["chain", "copies"])
@pytest.mark.parametrize("alpha", [0.5, 0.05])
def test_bounds_hold_for_values_that_do_not_occur_yet(query, alpha):
    """Residual and elastic: a row of new keys, and rows that join with it, are as far away as others."""
    count = max(table for table, _ in query) + 1
    for tables in list(databases(count, 2))[:: 3 * count]:
        for place, row in product(range(count), NEW_VALUES):
            near = tuple((*own, row) if at == place else own for at, own in enumerate(tables))
            change = size(query, near) - size(query, tables)
            for of in (bound, _elastic_of):
                here, there = (of(query, own).smooth(alpha) for own in (tables, near))
                assert change <= min(here, there) * (1 + 1e-9)
                assert abs(math.log(there) - math.log(here)) <= alpha + 1e-9


def test_a_small_epsilon_takes_no_more_memory():
    """Ten occurrences at the least α were 210 million steps at once, some gigabytes for each array."""
    joins = tuple((place, (((place - 1, "b"), (place, "b")),)) for place in range(1, 4))
    elastic = Elastic(("r",) * 4, 0, joins, {(place, "b"): 3 for place in range(4)})
    tracemalloc.start()
    small = elastic.smooth(4e-6)  # 4 million steps
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 64 << 20
    assert small >= float(elastic.local(np.zeros(1))[0])
