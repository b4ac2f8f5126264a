"""Where one question of a text ends: at semicolons, but not at those in quotes and comments."""

import time

import pytest

from confide.query.typed_lines import parted


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;", ["SELECT 1"]),
        ("SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';' ; SELECT \"a;b\";SELECT `;`", ["SELECT ';'", 'SELECT "a;b"', "SELECT `;`"]),
        ("SELECT 'it''s; so';SELECT 2", ["SELECT 'it''s; so'", "SELECT 2"]),
        ("SELECT 1 -- one; two\n; SELECT 2", ["SELECT 1 -- one; two", "SELECT 2"]),
        ("SELECT /* ; */ 1; SELECT 2", ["SELECT /* ; */ 1", "SELECT 2"]),
        ("SELECT /* ; /* ; */ ; */ 1", ["SELECT /* ; /* ; */ ; */ 1"]),
        ("-- it's a comment\nSELECT 1;", ["-- it's a comment\nSELECT 1"]),
        (" ;; -- nothing; here\n ; /* nor here */ ;", []),
        ("SELECT '--'; SELECT '/*'; SELECT 3", ["SELECT '--'", "SELECT '/*'", "SELECT 3"]),
        ("", []),
        ("SELECT 'open; SELECT 2", ["SELECT 'open; SELECT 2"]),
    ],
)
def test_statements(text: str, statements: list[str]) -> None:
    assert list(parted(text).all) == statements


@pytest.mark.parametrize(
    ("text", "inside"),
    [("SELECT '", True), ("/* a", True), ("SELECT 1 -- a", False), ("SELECT 'a'", False), ("", False)],
)
def test_the_middle_of_quotes_is_told(text: str, inside: bool) -> None:
    assert parted(text).inside is inside


@pytest.mark.parametrize("piece", ["'", ";", "/*", "*/", "-- \n", "a;", "'';", "/* */"])
def test_a_long_text_is_read_in_one_pass(piece: str) -> None:
    begun = time.monotonic()
    parted(piece * 400_000)
    assert time.monotonic() - begun < 20
