"""Texts of several statements are cut at semicolons that are none of a quote or a comment."""

import pytest

from confide.errors import QueryError
from confide.query.statement_text import statements_of


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", ()),
        (" ; ;; ", ()),
        ("SELECT 1", ("SELECT 1",)),
        ("SELECT 1;\n SELECT 2 ;", ("SELECT 1", "SELECT 2")),
        ("SELECT ';' AS a; SELECT \"b;c\"", ("SELECT ';' AS a", 'SELECT "b;c"')),
        ("SELECT 1 -- one; two\n; SELECT 2 /* ; */", ("SELECT 1 -- one; two", "SELECT 2 /* ; */")),
        ("SELECT 'it''s; here'; SELECT $$a;b$$", ("SELECT 'it''s; here'", "SELECT $$a;b$$")),
    ],
)
def test_statements_are_cut_at_semicolons(text: str, wanted: tuple[str, ...]) -> None:
    assert statements_of(text) == wanted


@pytest.mark.parametrize("text", ["SELECT 'open", "SELECT 1;" * 201, "x" * 5_000_000, 7])
def test_what_is_no_such_text_is_refused(text: str) -> None:
    with pytest.raises(QueryError):
        statements_of(text)
