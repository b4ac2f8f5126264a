"""A text of several statements, taken apart: by the words of its dialect, so that no quote or comment is cut."""

from sqlglot import TokenType

from confide.errors import QueryError
from confide.privacy.limits import LONGEST_QUERY, MOST_STATEMENTS
from confide.query.parse import DIALECT, words_of


def statements_of(text: str, dialect: str = DIALECT) -> tuple[str, ...]:
    """The statements of a text, each as it stands there, without the semicolon after it. Nothing is parsed yet: each is
    checked when it is asked.
    """
    if not isinstance(text, str):
        raise QueryError(f"a text of statements is a text, not a {type(text).__name__}")
    if len(text) > LONGEST_QUERY * MOST_STATEMENTS:
        raise QueryError(f"the text has {len(text):,} characters; at most {LONGEST_QUERY * MOST_STATEMENTS:,} are read")
    found, begin, empty = [], 0, True
    for token in words_of(text, dialect):
        if token.token_type is not TokenType.SEMICOLON:
            empty = False
            continue
        if not empty:
            found.append(text[begin : token.start].strip())
        begin, empty = token.end + 1, True
    if not empty:
        found.append(text[begin:].strip())
    if len(found) > MOST_STATEMENTS:
        raise QueryError(f"the text has {len(found):,} statements; at most {MOST_STATEMENTS} are read at once")
    return tuple(found)
