"""The words of a question, checked before they are parsed: a parser meets only texts that it reads in linear time.

Parsers try several readings of a text one after the other, and what they try inside of what they try multiplies. So
signs that no question of ours has are refused here, and `SteadyParser` stops where it goes back too often.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.parser import Parser

from confide.errors import QueryError
from confide.privacy.limits import MOST_NESTED

LONGEST_NAME = 4
"""Names in a row with dots between: catalogue.schema.table.column."""
TOO_DEEP = f"the query is nested more than {MOST_NESTED} deep; write it with fewer parentheses"

_FIRST = (TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN)
_OPENING = (TokenType.L_PAREN, TokenType.CASE)
_CLOSING = (TokenType.R_PAREN, TokenType.END)
_BRACKETS = (TokenType.L_BRACKET, TokenType.L_BRACE)
_SIGNS = (TokenType.PARAMETER, TokenType.EXCLAMATION)
_STEPS = 2
_MORE_STEPS = 2_000


_INSTEAD: Final = "write SELECT COUNT(*) FROM a_table"
_TABLES: Final = "session.describe(), or \\describe in confide shell, tells which tables and columns there are"
_ELSEWHERE: Final = {
    **dict.fromkeys(("SHOW", "DESCRIBE", "DESC"), _TABLES),
    "EXPLAIN": "session.plan(...), or confide plan, forecasts cost and width, for free",
    "SUMMARIZE": "session.summary(...), or confide summary, is the first look at a table",
}


def _no_question(tokens: Sequence[Token]) -> str:
    """What to write instead of what begins otherwise."""
    first = tokens[0].text.upper()[:40]
    if tokens[-1].text.lower() == "sql" and len(tokens) > 1 and tokens[-2].token_type is TokenType.DOT:
        return "this is the name of a file, not a question; at the terminal write @ before it: @questions.sql"
    return f"only SELECT is answered, not {first}; {_ELSEWHERE.get(first, _INSTEAD)}"


def check_words(tokens: Sequence[Token]) -> None:
    """One statement that begins like a SELECT, without signs that no question has."""
    if not tokens:
        raise QueryError("the query is empty; write SELECT COUNT(*) FROM a_table")
    if any(token.token_type is TokenType.SEMICOLON for token in tokens):
        raise QueryError("more than one statement was given; ask one SELECT at a time")
    if tokens[0].token_type not in _FIRST:
        raise QueryError(_no_question(tokens))
    depth = dots = 0
    before: TokenType | None = None
    for place, token in enumerate(tokens):
        kind = token.token_type
        if kind in _OPENING or kind in _CLOSING:
            depth += 1 if kind in _OPENING else -1
            if depth > MOST_NESTED:
                raise QueryError(TOO_DEEP)
        elif kind in _BRACKETS:
            raise QueryError(
                f"{token.text} is not answered: lists and structs have no place in a question; "
                "name a column, or write several aggregates"
            )
        elif kind in _SIGNS or (kind is TokenType.NOT and token.text == "!"):
            # Parsers pass over some of them, and `!x = 1` is another condition in MySQL than NOT x = 1.
            raise QueryError(f"{token.text} is not answered; write NOT for a negation, and constants as they are")
        elif kind is TokenType.DOT:
            # Counted while every second word is a dot: a.b.c.
            dots = dots + 1 if place > 1 and tokens[place - 2].token_type is TokenType.DOT else 1
            if dots >= LONGEST_NAME or before is TokenType.R_PAREN:
                raise QueryError("a dot stands after more than a table's name; write table.column")
        before = kind


class OutOfStepsError(Exception):
    """A parser went back and forth more often than any question needs."""


class _Steps:
    """How many more words a parser may look at."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


@cache
def _steady(parser: type[Parser]) -> type[Parser]:
    class SteadyParser(parser):  # type: ignore[misc, valid-type]
        """Goes over the words at most about twice, in all its attempts together."""

        __slots__ = ("steps",)
        FUNCTIONS = {**parser.FUNCTIONS, "DECODE": lambda parts: exp.DecodeCase(expressions=parts)}  # noqa: RUF012

        def _advance(self, times: int = 1) -> None:
            self.steps.left -= 1
            if self.steps.left < 0:
                raise OutOfStepsError
            super()._advance(times)

    return SteadyParser


def steady_parser(language: Dialect, words: int) -> Any:
    """The dialect's parser, for a text of so many words."""
    if language.parser_class.__name__ == "AthenaParser":
        # It hands a SELECT on to a parser of Trino's, whose steps would not be counted.
        language = Dialect.get_or_raise("trino")
    kind = _steady(language.parser_class)
    parser = kind.__new__(kind)
    parser.steps = _Steps(_STEPS * words + _MORE_STEPS)  # type: ignore[attr-defined]
    parser.__init__(dialect=language)  # type: ignore[misc]
    return parser
