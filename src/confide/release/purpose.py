"""What the ledger shows to people of what was asked. What was asked exactly is in the request beside it."""

from collections.abc import Sequence
from typing import Final

from confide.query.parse import DIALECT

_LISTED: Final = 2_000  # characters


def sql_purpose(sql: str, dialect: str) -> str:
    """The text of a question, and its dialect if that is not our own."""
    return f"sql: {sql.strip()}" if dialect == DIALECT else f"sql in {dialect}: {sql.strip()}"


def listed(names: Sequence[str], between: str = ", ") -> str:
    """Some names, and how many more there are."""
    shown: list[str] = []
    for name in names:
        if sum(map(len, shown)) + len(name) > _LISTED:
            break
        shown.append(name)
    more = len(names) - len(shown)
    return between.join([*shown, f"{more:,} more"] if more else shown)
