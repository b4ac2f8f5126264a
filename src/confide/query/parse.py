"""From text to one SELECT of sqlglot's tree, or a refusal. Nothing of this tree is ever sent to a database."""

from collections.abc import Iterator

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect, Dialects
from sqlglot.errors import ErrorLevel, SqlglotError

from confide.errors import ParameterError, QueryError
from confide.query.spelling import nearest

LONGEST = 20_000
NESTED = 30
"""Parentheses within parentheses; the parser needs some twenty calls of Python for each, of a thousand it has."""
DEEPEST = 100
"""Levels of the parsed tree: a sum of so many terms, for example."""

_FIRST = (TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN)
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END)
_TOO_DEEP = f"the query is nested more than {NESTED} deep; write it with fewer parentheses"
_TOO_LONG = f"an expression has more than about {DEEPEST} parts in a row; write it in shorter sums or products"


def parse(text: str, dialect: str = "duckdb") -> exp.Select:
    """One SELECT statement, of bounded length and depth."""
    language = _dialect(dialect)
    tokens = _tokens(_checked(text), language)
    try:
        statements = [statement for statement in language.parser().parse(tokens, text) if statement is not None]
    except RecursionError:
        raise QueryError(_TOO_DEEP) from None
    except SqlglotError as error:
        raise QueryError(f"the SQL does not parse: {_first_line(error)}") from None
    except Exception:  # whatever a parser's bug raises on odd input, it is text that does not parse
        raise QueryError("the SQL does not parse") from None
    statement = statements[0] if statements else None
    if isinstance(statement, exp.SetOperation):
        raise QueryError(
            "UNION, INTERSECT and EXCEPT are not answered; ask one SELECT at a time, "
            "or GROUP BY the column that tells them apart"
        )
    if not isinstance(statement, exp.Select):
        kind = statement.key.upper() if isinstance(statement, exp.Expr) else "this"
        raise QueryError(f"only SELECT is answered, not {kind}; write SELECT COUNT(*) FROM a_table")
    if _depth(statement) > DEEPEST:
        raise QueryError(_TOO_LONG)
    return statement


def shown(node: exp.Expr) -> str:
    """The start of an expression, for a message."""
    try:
        text = node.sql(dialect="duckdb", comments=False, unsupported_level=ErrorLevel.IGNORE)
    except Exception:  # an expression that cannot be written is still named
        text = node.key.upper()
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
    if dialect not in known:
        raise ParameterError(f"there is no dialect {str(dialect)[:40]!r}; {nearest(str(dialect), known, 'there are')}")
    return Dialect.get_or_raise(dialect)


def _checked(text: str) -> str:
    if not isinstance(text, str):
        raise QueryError(f"a query is a text, not a {type(text).__name__}")
    if len(text) > LONGEST:
        raise QueryError(
            f"the query has {len(text):,} characters; at most {LONGEST:,} are read. "
            "A long IN list may be a public table instead"
        )
    if "\x00" in text or (not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)):
        raise QueryError("the query holds a NUL or half a character (a lone surrogate); write plain Unicode text")
    return text


def _tokens(text: str, language: Dialect) -> list[Token]:
    """The words of one statement, without the semicolon after it."""
    try:
        tokens = list(language.tokenize(text))
    except SqlglotError as error:
        raise QueryError(f"the SQL does not parse: {_first_line(error)}") from None
    except Exception:
        raise QueryError("the SQL does not parse") from None
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise QueryError("the query is empty; write SELECT COUNT(*) FROM a_table")
    if any(token.token_type is TokenType.SEMICOLON for token in tokens):
        raise QueryError("more than one statement was given; ask one SELECT at a time")
    if tokens[0].token_type not in _FIRST:
        raise QueryError(
            f"only SELECT is answered, not {tokens[0].text.upper()[:40]}; write SELECT COUNT(*) FROM a_table"
        )
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth > NESTED:
            raise QueryError(_TOO_DEEP)
    return tokens


def _depth(root: exp.Expr) -> int:
    """Levels of the tree, a chain of AND or OR counting once."""
    deepest, pending = 0, [(root, 1)]
    while pending:
        node, depth = pending.pop()
        deepest = max(deepest, depth)
        for child in node.iter_expressions():
            same_chain = type(child) is type(node) and isinstance(node, exp.And | exp.Or)
            pending.append((child, depth if same_chain else depth + 1))
    return deepest


def _first_line(error: SqlglotError) -> str:
    text = str(error).splitlines()[0] if str(error) else "unknown error"
    # The parser underlines with terminal colours; a message is plain text.
    return text.replace("\x1b[4m", "").replace("\x1b[0m", "")[:300]
