"""Sensitivities against every tiny data set: what a unit may do is enumerated; the bounds hold and are reached."""

from collections.abc import Iterator
from itertools import chain, combinations, combinations_with_replacement, product

import pytest

from confide.query.sensitivity import Sensitivity, Stability, of_distinct, of_histogram, of_total

Row = tuple[int, int]
"""A group and a value."""


def units(values: list[int], groups: int, stability: Stability, exactly: bool = False) -> Iterator[tuple[Row, ...]]:
    """Everything one unit may hold: at most so many rows, in at most so many groups."""
    rows = list(product(range(groups), values))
    for count in range(stability.rows if exactly else 0, stability.rows + 1):
        for unit in combinations_with_replacement(rows, count):
            if not stability.grouped or len({group for group, _ in unit}) <= stability.groups:
                yield unit


def totals(unit: tuple[Row, ...], groups: int) -> tuple[int, ...]:
    return tuple(sum(value for group, value in unit if group == own) for own in range(groups))


def furthest(vectors: list[tuple[int, ...]], neighbours: str) -> tuple[int, int]:
    """The largest L1 and L2² distance between a unit and none, or another in its place."""
    vectors = sorted(set(vectors))
    others = [tuple(0 for _ in vectors[0])] if neighbours == "add-remove" else vectors
    changes = [tuple(a - b for a, b in zip(u, v, strict=True)) for u in vectors for v in others]
    return max(sum(map(abs, change)) for change in changes), max(sum(c * c for c in change) for change in changes)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize(("low", "high"), [(0, 2), (-1, 2), (-3, -1), (1, 2), (0, 0), (1, 1)])
def test_totals_change_by_no_more_and_by_no_less(
    neighbours: str, grouped: bool, rows: int, low: int, high: int
) -> None:
    stability = Stability(rows, rows, neighbours, grouped)  # type: ignore[arg-type]
    groups = 3 if grouped else 1
    found = [totals(unit, groups) for unit in units(list(range(low, high + 1)), groups, stability)]
    assert of_total(low, high, True, stability) == Sensitivity(*furthest(found, neighbours))


@pytest.mark.parametrize(("low", "high"), [(0, 2), (-1, 2), (-3, -1), (1, 2), (1, 1)])
def test_one_row_that_is_always_there_changes_a_total_by_the_width_of_its_range(low: int, high: int) -> None:
    stability = Stability(1, 1, "replace-one", grouped=False)
    found = [totals(unit, 1) for unit in units(list(range(low, high + 1)), 1, stability, exactly=True)]
    assert of_total(low, high, False, stability) == Sensitivity(*furthest(found, "replace-one"))


def subsets(values: list[int]) -> list[frozenset[int]]:
    return [frozenset(part) for part in chain.from_iterable(combinations(values, n) for n in range(len(values) + 1))]


def distinct_changes(stability: Stability, values: int | None, per_unit: int | None, groups: int) -> tuple[int, int]:
    """The most that distinct values can change, whatever the others hold."""
    domain = list(range(values if values is not None else 2 * stability.rows))
    if per_unit == 1:
        # The unit's own key: one value that nobody else has, another one after it was replaced.
        domain, bases = [0], [tuple(frozenset() for _ in range(groups))]
    else:
        bases = list(product(subsets(domain[:2]), repeat=groups))
    possible = sorted(
        {
            tuple(frozenset(v for g, v in unit if g == own) for own in range(groups))
            for unit in units(domain, groups, stability)
        },
        key=repr,
    )
    most = (0, 0)
    for base in bases:
        counts = {tuple(len(b | own) for b, own in zip(base, unit, strict=True)) for unit in possible}
        nothing = tuple(len(b) for b in base)
        for count in counts:
            for other in [nothing] if stability.neighbours == "add-remove" else counts:
                change = [a - b for a, b in zip(count, other, strict=True)]
                most = max(most[0], sum(map(abs, change))), max(most[1], sum(c * c for c in change))
    return most


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("rows", "allowed"), [(1, 1), (2, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize(("values", "per_unit"), [(None, None), (1, None), (2, None), (None, 1)])
def test_distinct_values_change_by_no_more(
    neighbours: str, grouped: bool, rows: int, allowed: int, values: int | None, per_unit: int | None
) -> None:
    stability = Stability(rows, allowed if grouped else 1, neighbours, grouped)  # type: ignore[arg-type]
    groups = 4 if grouped and rows < 3 else 2 if grouped else 1
    if values is None and per_unit is None and groups == 4:
        groups = 3
    l1, l2_squared = distinct_changes(stability, values, per_unit, groups)
    bound = of_distinct(values, per_unit, stability)
    assert l1 <= bound.l1
    assert l2_squared <= bound.l2_squared


@pytest.mark.parametrize(
    ("stability", "values", "per_unit", "groups"),
    [
        (Stability(2, 1, "add-remove", False), None, None, 1),
        (Stability(3, 1, "add-remove", False), 2, None, 1),
        (Stability(2, 2, "add-remove", True), None, None, 2),
        (Stability(3, 2, "add-remove", True), None, 1, 3),
        (Stability(2, 2, "replace-one", True), 1, None, 4),
        (Stability(2, 2, "replace-one", True), None, 1, 4),
        (Stability(2, 1, "replace-one", False), None, None, 1),
    ],
)
def test_distinct_values_reach_their_bound(
    stability: Stability, values: int | None, per_unit: int | None, groups: int
) -> None:
    bound = of_distinct(values, per_unit, stability)
    assert distinct_changes(stability, values, per_unit, groups) == (bound.l1, bound.l2_squared)


def test_a_bound_one_too_small_would_be_noticed() -> None:
    stability = Stability(2, 2, "replace-one", grouped=True)
    found = [totals(unit, 2) for unit in units([-1, 0, 1], 2, stability)]
    right = of_total(-1, 1, True, stability)
    assert furthest(found, "replace-one") == (right.l1, right.l2_squared)
    assert furthest(found, "replace-one") != (right.l1 - 1, right.l2_squared)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("values", [[0, 1, 2], [-1, 1, 2], [-3, -2, -1], [3]])
def test_totals_of_distinct_values_change_by_no_more_than_totals(
    neighbours: str, grouped: bool, rows: int, values: list[int]
) -> None:
    """Whatever the others hold: a value that somebody else has adds nothing, so a row adds its value or nothing."""
    stability = Stability(rows, rows, neighbours, grouped)  # type: ignore[arg-type]
    groups = 2 if grouped else 1
    bound = of_total(min(values), max(values), True, stability)
    held = [
        tuple(frozenset(v for g, v in unit if g == own) for own in range(groups))
        for unit in units(values, groups, stability)
    ]
    nobody = tuple(frozenset[int]() for _ in range(groups))
    for base in product(subsets(values), repeat=groups):
        sums = [tuple(sum(b | own) for b, own in zip(base, unit, strict=True)) for unit in held]
        nothing = tuple(sum(b | own) for b, own in zip(base, nobody, strict=True))
        for one in sums:
            for other in [nothing] if neighbours == "add-remove" else sums:
                change = [a - b for a, b in zip(one, other, strict=True)]
                assert sum(map(abs, change)) <= bound.l1
                assert sum(c * c for c in change) <= bound.l2_squared


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_histogram_changes_by_the_rows_of_a_unit(neighbours: str, grouped: bool, rows: int) -> None:
    """All counts of all groups together: what MODE measures."""
    stability = Stability(rows, rows, neighbours, grouped)  # type: ignore[arg-type]
    groups = 2 if grouped else 1
    places = list(product(range(groups), range(3)))
    found = [tuple(unit.count(place) for place in places) for unit in units([0, 1, 2], groups, stability)]
    assert of_histogram(stability) == Sensitivity(*furthest(found, neighbours))
