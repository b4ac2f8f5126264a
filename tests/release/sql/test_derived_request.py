"""Outer queries, windows and functions of released numbers, asked with next to no noise, are what a database says."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import duckdb
import pytest

import confide.testing
from confide.release.session import Session
from tests.release.sql.derived_questions import EVERY, POLICY, world


@pytest.fixture(scope="module")
def tables() -> dict[str, Any]:
    return world()


@pytest.fixture
def session(tables: dict[str, Any]) -> Iterator[Session]:
    with confide.testing.open(POLICY, tables, seed=5) as opened:
        yield opened


@pytest.fixture(scope="module")
def database(tables: dict[str, Any]) -> Any:
    connection = duckdb.connect()
    for name, table in tables.items():
        connection.register(name, table)
    return connection


def plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    try:
        return float(Fraction(value))
    except TypeError:
        return str(value)


def spelled(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(map(plain, row)) for row in rows), key=repr)


def assert_same(found: list[tuple[Any, ...]], wanted: list[tuple[Any, ...]]) -> None:
    assert len(found) == len(wanted)
    for one, two in zip(spelled(found), spelled(wanted), strict=True):
        assert len(one) == len(two)
        for a, b in zip(one, two, strict=True):
            assert a == (pytest.approx(b, rel=1e-6, abs=1e-6) if isinstance(b, float) else b), (one, two)


@pytest.mark.parametrize("sql", EVERY)
def test_without_noise_it_is_what_a_database_says(sql: str, session: Session, database: Any) -> None:
    answer = session.sql(sql, epsilon=10**6)
    assert_same(
        [tuple(column.values[row] for column in answer.columns) for row in range(len(answer))],
        database.execute(sql).fetchall(),
    )
    for column in answer.values:
        for value, low, high in zip(column.values, column.low, column.high, strict=True):
            assert value is None or isinstance(value, str) or low <= value <= high
