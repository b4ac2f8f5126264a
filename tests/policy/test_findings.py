""""""

import pytest

from confide.policy.findings import nearest, spell_path

KEYS = ("confide", "source", "budget", "unit", "tables", "range", "values", "grain", "at_most", "references")


@pytest.mark.parametrize(
    ("word", "known"),
    [
        ("tabels", "tables"),
        ("TABLES", "tables"),
        ("buget", "budget"),
        ("sourse", "source"),
        ("atmost", "at_most"),
        ("at-most", "at_most"),
        ("reference", "references"),
        ("lower", "range"),
        ("bounds", "range"),
        ("domain", "values"),
        ("precision", "grain"),
        ("xyzzy", None),
        ("", None),
    ],
)
def test_the_nearest_key(word: str, known: str | None) -> None:
    assert nearest(word, KEYS) == known


def test_an_alias_counts_only_where_its_key_is_allowed() -> None:
    assert nearest("lower", ("rows", "groups")) is None


def test_paths() -> None:
    assert spell_path(()) == "the policy"
    assert spell_path(("tables", "a", "columns", "b", "range", 1)) == "tables.a.columns.b.range[2]"
