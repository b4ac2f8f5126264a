"""From text to one SELECT of sqlglot's tree, or a refusal. Nothing of this tree is ever sent to a database."""

from collections.abc import Iterator

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from confide.errors import QueryError

LONGEST = 60_000
DEEPEST = 100


def parse(text: str, dialect: str = "duckdb") -> exp.Select:
    """One SELECT statement, of bounded length and depth."""
    if not isinstance(text, str):
        raise QueryError(f"a query is a text, not a {type(text).__name__}")
    if len(text) > LONGEST:
        raise QueryError(
            f"the query has {len(text):,} characters; at most {LONGEST:,} are read. A long IN list may be a public table instead"
        )
    if "\x00" in text:
        raise QueryError("the query holds a NUL character")
    if _nesting(text) > DEEPEST:
        raise QueryError(f"the query is nested more than {DEEPEST} deep; write it with fewer parentheses")
    try:
        statements = [statement for statement in sqlglot.parse(text, dialect=dialect) if statement is not None]
    except RecursionError:
        raise QueryError(f"the query is nested more than {DEEPEST} deep; write it flatter") from None
    except SqlglotError as error:
        raise QueryError(f"the SQL does not parse: {_first_line(error)}") from None
    except (ValueError, TypeError, AttributeError, KeyError, IndexError):
        # A parser bug on odd input must look like any other text that does not parse.
        raise QueryError("the SQL does not parse") from None
    if not statements:
        raise QueryError("the query is empty; write SELECT COUNT(*) FROM a_table")
    if len(statements) > 1:
        raise QueryError(f"{len(statements)} statements were given; ask one SELECT at a time")
    statement = statements[0]
    if isinstance(statement, exp.SetOperation):
        raise QueryError(
            "UNION, INTERSECT and EXCEPT are not answered; ask one SELECT at a time, or GROUP BY the column that tells them apart"
        )
    if not isinstance(statement, exp.Select):
        kind = statement.key.upper() if isinstance(statement, exp.Expr) else "this statement"
        raise QueryError(f"only SELECT is answered, not {kind}; write SELECT COUNT(*) FROM a_table")
    if _depth(statement) > 2 * DEEPEST:
        raise QueryError(f"the query is nested more than {DEEPEST} deep; write it flatter")
    return statement


def conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of a chain of AND or of OR, without recursion along the chain."""
    kind, pending = type(node), [node]
    while pending:
        part = pending.pop()
        if type(part) is kind:
            pending += [part.args["expression"], part.args["this"]]
        else:
            yield part


def _nesting(text: str) -> int:
    depth = deepest = 0
    for character in text:
        if character in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in ")]}":
            depth -= 1
    return deepest


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
