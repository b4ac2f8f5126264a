"""How many rows and groups there are, as far as that is public: what the policy says of its tables, shared evenly."""

from typing import Final

from confide.policy import Policy
from confide.query import Question, grouping

SLACK: Final = 4
"""A policy's size is rough: a table that may have this many times the rows still needs no grid."""


def expected_rows(question: Question, policy: Policy) -> int | None:
    """How many rows a group is publicly expected to have: the policy's size, shared evenly."""
    sizes = [size for table in question.tables if (size := policy.tables[table].size) is not None]
    return max(1, round(max(sizes) / (group_count(question) or 1))) if sizes else None


def group_count(question: Question) -> int | None:
    """How many groups the answer has before HAVING and LIMIT; None if that is private."""
    return None if question.summary.open_keys else grouping.group_count(question)


def few_rows(question: Question, policy: Policy) -> bool:
    """Whether the policy's sizes say that there are few rows. If they are wrong a summary is larger, and no more."""
    sizes = [policy.tables[table].size for table in question.tables if not policy.tables[table].public]
    known = [size for size in sizes if size is not None]
    most = policy.summary_rows
    return len(known) == len(sizes) and SLACK * max(known, default=most) <= most
