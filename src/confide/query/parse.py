"""From text to one SELECT of sqlglot's tree, or a refusal. Nothing of this tree is ever sent to a database."""

import logging
import re
from collections.abc import Iterator
from typing import Any, Final

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect, Dialects
from sqlglot.errors import ErrorLevel, SqlglotError

from confide.errors import ParameterError, QueryError
from confide.privacy.limits import LONGEST_QUERY, MOST_LEVELS
from confide.query.dialect import in_common_words
from confide.query.spelling import nearest
from confide.query.words import TOO_DEEP, OutOfStepsError, check_words, steady_parser

# The parser's own warnings repeat the text; a program that wants them sets a handler of its own.
logging.getLogger("sqlglot").addHandler(logging.NullHandler())

DIALECT: Final = "duckdb"
"""In which questions are written unless another is named."""
Select = exp.Select
Subquery = exp.Subquery
Parsed = exp.Select | exp.SetOperation

_LACKING: Final = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]*?(\w+)'>")
_TOKEN: Final = re.compile(r"<Token token_type: [^,]*, text: ([^,]*),[^>]*>")
_SHOWN_LEVELS = 6
_SHOWN_NODES = 60
_TOO_LONG = f"an expression has more than about {MOST_LEVELS} parts in a row; write it in shorter sums or products"


def parse(text: str, dialect: str = DIALECT) -> exp.Select:
    """One SELECT statement, of bounded length and depth."""
    statement = parse_query(text, dialect)
    if not isinstance(statement, exp.Select):
        raise QueryError(
            "UNION, INTERSECT and EXCEPT are not answered here; ask one SELECT at a time, "
            "or GROUP BY the column that tells them apart"
        )
    return statement


def parse_query(text: str, dialect: str = DIALECT) -> exp.Select | exp.SetOperation:
    """One SELECT, or several put together by UNION, of bounded length and depth."""
    language = _dialect(dialect)
    tokens = _tokens(_checked(text), language)
    try:
        parsed = steady_parser(language, len(tokens)).parse(tokens, text)
        statements = [statement for statement in parsed if statement is not None]
    except RecursionError:
        raise QueryError(TOO_DEEP) from None
    except OutOfStepsError:
        raise QueryError(
            "the SQL does not parse in reasonable time; write it with fewer functions within functions"
        ) from None
    except SqlglotError as error:
        raise QueryError(f"the SQL does not parse: {_first_line(error)}{_near(error, text)}") from None
    except Exception:  # whatever a parser's bug raises on odd input, it is text that does not parse
        raise QueryError("the SQL does not parse") from None
    statement = statements[0] if statements else None
    if not isinstance(statement, exp.Select | exp.SetOperation):
        kind = statement.key.upper() if isinstance(statement, exp.Expr) else "this"
        raise QueryError(f"only SELECT is answered, not {kind}; write SELECT COUNT(*) FROM a_table")
    if _depth(statement) > MOST_LEVELS:
        raise QueryError(_TOO_LONG)
    return in_common_words(statement, dialect)


def shown(node: exp.Expr) -> str:
    """The start of an expression, for a message. What is deep inside is left out: writing LEAST of another dialect
    repeats its parts, so that the text of a nested one would double with every level.
    """
    try:
        cut = _cut(node, _SHOWN_LEVELS, [_SHOWN_NODES])
        text = cut.sql(dialect=DIALECT, comments=False, unsupported_level=ErrorLevel.IGNORE)
    except Exception:  # an expression that cannot be written is still named
        text = "the expression"
    return text if len(text) <= 60 else text[:57] + "..."


def conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of a chain of AND or of OR, without recursion along the chain."""
    kind, pending = type(node), [node]
    while pending:
        part = pending.pop()
        if type(part) is kind:
            pending += [part.args["expression"], part.args["this"]]
        else:
            yield part


def _dialect(dialect: str) -> Dialect:
    known = [option.value for option in Dialects if option.value]
    if not isinstance(dialect, str):
        raise ParameterError(f"there is no dialect of type {type(dialect).__name__}; write for example duckdb")
    if dialect not in known:
        raise ParameterError(f"there is no dialect {dialect[:40]!r}; {nearest(dialect, known, 'there are')}")
    return Dialect.get_or_raise(dialect)


def _checked(text: str) -> str:
    if not isinstance(text, str):
        raise QueryError(f"a query is a text, not a {type(text).__name__}")
    if len(text) > LONGEST_QUERY:
        raise QueryError(
            f"the query has {len(text):,} characters; at most {LONGEST_QUERY:,} are read. "
            "A long IN list may be a public table instead"
        )
    if "\x00" in text or (not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)):
        raise QueryError("the query holds a NUL or half a character (a lone surrogate); write plain Unicode text")
    return text


def words_of(text: str, dialect: str = DIALECT) -> list[Token]:
    """The words of a text, whatever statements it holds."""
    return _words(text, _dialect(dialect))


def _words(text: str, language: Dialect) -> list[Token]:
    try:
        return list(language.tokenize(text))
    except SqlglotError as error:
        if text.count("'") % 2 or text.count('"') % 2:
            raise QueryError(
                "the SQL does not parse: a quote is opened and not closed; write 'text', with '' for '"
            ) from None
        raise QueryError(f"the SQL does not parse: {_first_line(error)}") from None
    except Exception:
        raise QueryError("the SQL does not parse") from None


def _tokens(text: str, language: Dialect) -> list[Token]:
    """The words of one statement, without the semicolon after it."""
    tokens = _words(text, language)
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    check_words(tokens)
    return tokens


def _cut(node: exp.Expr, levels: int, room: list[int]) -> exp.Expr:
    """A copy of the upper levels, as far as there is room for so many nodes."""
    room[0] -= 1
    if room[0] < 0 or (levels == 0 and any(True for _ in node.iter_expressions())):
        return exp.Var(this="...")

    def part(value: Any) -> Any:
        if isinstance(value, list):
            return [part(own) for own in value[: max(1, room[0])]]
        return _cut(value, levels - 1, room) if isinstance(value, exp.Expr) else value

    return type(node)(**{name: part(value) for name, value in node.args.items()})


def _depth(root: exp.Expr) -> int:
    """Levels of the tree, a chain of AND or OR counting once."""
    deepest, pending = 0, [(root, 1)]
    while pending:
        node, depth = pending.pop()
        deepest = max(deepest, depth)
        for child in node.iter_expressions():
            same_chain = type(child) is type(node) and isinstance(node, exp.And | exp.Or | exp.Union)
            pending.append((child, depth if same_chain else depth + 1))
    return deepest


def _called(name: str) -> str:
    """What people call what the parser has a class for."""
    kind = getattr(exp, name, None)
    return kind.sql_name() if isinstance(kind, type) and issubclass(kind, exp.Func) else "a part of the query"


def _near(error: SqlglotError, text: str) -> str:
    """Where a text stopped making sense, and how a SELECT goes."""
    order = (
        "a question is SELECT ... FROM ... WHERE ... GROUP BY ... HAVING ... ORDER BY ... LIMIT, with commas between"
    )
    place = next((own for own in getattr(error, "errors", ()) if own.get("highlight")), None)
    seen = "" if place is None else f" Near {place['highlight'][:40]!r}:"
    return f"{seen} {order}" if text.strip() else ""


def _first_line(error: SqlglotError) -> str:
    text = str(error).splitlines()[0] if str(error) else "unknown error"
    # A parser names classes of its own.
    text = _TOKEN.sub(lambda own: "the end" if own[1] == "SENTINEL" else own[1], text)
    text = _LACKING.sub(lambda found: f"{_called(found[1])} lacks an argument", text)
    # The parser underlines with terminal colours; a message is plain text.
    return text.replace("\x1b[4m", "").replace("\x1b[0m", "")[:300]
