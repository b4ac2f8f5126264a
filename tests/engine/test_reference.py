"""The engine against a second reading of every question: all cells of all groups, exactly."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from confide.engine.duckdb.engine import DuckDBEngine
from confide.errors import QueryError
from confide.query import Summary, bind
from confide.query.tree import Bound
from tests.engine.reference import Reference, all_groups
from tests.engine.worlds import WORLDS, Create, World, engine, evaluate, private_tables, public_tables, questions


def as_groups(exact: Any, summary: Summary) -> dict[tuple[Any, ...], tuple[int, ...]]:
    keys = exact.keys if exact.keys is not None else all_groups(summary.keys)
    cells = [[int(value) for value in column] for column in exact.cells]
    assert all(len(column) == len(keys) for column in cells)
    return {key: tuple(column[place] for column in cells) for place, key in enumerate(keys)}


def as_tallies(exact: Any, summary: Summary) -> list[dict[tuple[Any, ...], dict[int, int]]]:
    keys = exact.keys if exact.keys is not None else all_groups(summary.keys)
    result = []
    for tally in exact.tallies:
        for values, _ in tally:
            assert list(values) == sorted(set(values))
        pairs = ({int(v): int(n) for v, n in zip(*counts, strict=True)} for counts in tally)
        result.append(dict(zip(keys, pairs, strict=True)))
    return result


def unbound(summary: Summary) -> Summary:
    """The same summary with a bound that nobody reaches: which rows a bound takes is the engine's own choice."""
    if summary.bound is None:
        return summary
    return replace(summary, bound=Bound(summary.bound.unit, 10**9, 10**9))


def compare(world: World, seed: int, count: int, create: Create = DuckDBEngine) -> int:
    rng = Random(seed)
    tables = {**private_tables(world, rng), **public_tables(rng)}
    source = engine(world, tables, create=create)
    asked = 0
    try:
        for text in questions(world, rng, count):
            try:
                question = bind(text, world.policy, source)
            except QueryError:
                continue
            summary = unbound(question.summary)
            reference, exact = Reference(tables), evaluate(source, summary)
            assert as_groups(exact, summary) == reference.evaluate(summary), f"seed {seed}: {text}"
            assert as_tallies(exact, summary) == reference.tallies(summary), f"seed {seed}: {text}"
            asked += 1
    finally:
        source.close()
    return asked


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("seed", range(4))
def test_every_cell_is_what_the_plain_reading_says(name: str, seed: int) -> None:
    assert compare(WORLDS[name], seed, 12) > 6


@pytest.mark.audit
@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("seed", range(1000, 1100))
def test_every_cell_is_what_the_plain_reading_says_at_length(name: str, seed: int) -> None:
    compare(WORLDS[name], seed, 30)
