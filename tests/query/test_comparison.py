"""LIKE on public values, against the database's own."""

import time

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.query.comparison import matches


@settings(deadline=None, max_examples=60)
@given(st.text("ab%_", max_size=6), st.text("abAB", max_size=6), st.booleans())
def test_like_is_the_databases_like(pattern: str, value: str, ignore_case: bool) -> None:
    word = "ILIKE" if ignore_case else "LIKE"
    with duckdb.connect() as connection:
        row = connection.execute(f"SELECT ? {word} ?", [value, pattern]).fetchone()
    assert row is not None
    assert matches(pattern, value, ignore_case) == row[0]


@pytest.mark.parametrize("value", ["a" * 5000, "ab" * 2500])
def test_a_hostile_pattern_takes_no_time(value: str) -> None:
    begun = time.perf_counter()
    assert not matches("%a" * 100 + "%c", value, False)
    assert time.perf_counter() - begun < 2
