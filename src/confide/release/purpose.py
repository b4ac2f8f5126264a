"""What the ledger shows to people of what was asked."""

from confide.query.parse import DIALECT


def sql_purpose(sql: str, dialect: str) -> str:
    """The text of a question, and its dialect if that is not our own."""
    return f"sql: {sql.strip()}" if dialect == DIALECT else f"sql in {dialect}: {sql.strip()}"
