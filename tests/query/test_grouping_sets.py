"""Several tables in one GROUP BY: which sets of keys a text stands for."""

import pytest

from confide.errors import QueryError
from confide.query.grouping_sets import grouping_sets
from confide.query.parse import parse


def tables(group: str) -> list[str]:
    found = grouping_sets(parse(f"SELECT COUNT(*) FROM t GROUP BY {group}"))
    assert found is not None
    keys = [key.sql() for key in found.select.args["group"].expressions]
    return ["".join(keys[place] for place in own) for own in found.tables]


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("ROLLUP(a, b)", ["ab", "a", ""]),
        ("ROLLUP(a, b, c)", ["abc", "ab", "a", ""]),
        ("CUBE(a, b)", ["ab", "a", "b", ""]),
        ("GROUPING SETS ((a, b), (a), b, ())", ["ab", "a", "b", ""]),
        ("c, ROLLUP(a, b)", ["cab", "ca", "c"]),
        ("ROLLUP((a, b), c)", ["abc", "ab", ""]),
        ("ROLLUP(a), ROLLUP(b)", ["ab", "a", "b", ""]),
        ("GROUPING SETS (ROLLUP(a, b), c)", ["ab", "a", "", "c"]),
        ("a, b WITH ROLLUP", ["ab", "a", ""]),
        ("GROUPING SETS ((a), (a))", ["a"]),
    ],
)
def test_the_tables_of_a_text(group: str, expected: list[str]) -> None:
    assert tables(group) == expected


def test_other_texts_are_left_alone() -> None:
    assert grouping_sets(parse("SELECT a, COUNT(*) FROM t GROUP BY a")) is None
    assert grouping_sets(parse("SELECT COUNT(*) FROM t")) is None


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ("GROUPING SETS (())", "names no key"),
        ("CUBE(" + ", ".join(f"k{number}" for number in range(12)) + ")", "more than 256 tables"),
        ("ROLLUP(" + ", ".join(f"k{number}" for number in range(40)) + ")", "more than 32 keys"),
        ("CUBE(a, b, c, d, e), CUBE(f, g, h, i, j)", "more than 256 tables"),
        ("ROLLUP((a, (b, c)), d)", "write the sets out"),
        ("GROUPING SETS (" + ", ".join(["a"] * 5_000) + ")", "more than 256 tables"),
    ],
)
def test_what_is_refused(group: str, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        tables(group)
