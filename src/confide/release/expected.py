"""How many rows and groups there are, as far as that is public: what the policy says of its tables, shared evenly."""

from dataclasses import dataclass
from typing import Final

from confide.policy import KeyUnit, Policy
from confide.query import Question, grouping
from confide.query.tree import Field, Join, PerUnit, Relation, Scan

SLACK: Final = 4
"""A policy's size is rough: a table that may have this many times the rows still needs no grid."""


@dataclass(frozen=True, slots=True)
class Size:
    """How many rows a relation is said to have, and of which table that is the size."""

    rows: int
    table: str


def known_size(question: Question, policy: Policy) -> Size | None:
    """The size of what a question is about, if the policy says it: rows of a join are those of the table that refers to
    the others, rows of an inner query are units. None where several tables multiply.
    """
    table = _counted_table(question.summary.relation, policy)
    rows = None if table is None else policy.tables[table].size
    return None if table is None or rows is None else Size(rows, table)


def _counted_table(relation: Relation, policy: Policy) -> str | None:
    """The table each of whose rows is in one row of the relation, or none."""
    tables: dict[str, Scan] = {}
    pairs: list[tuple[Field, Field]] = []
    while isinstance(relation, Join):
        tables[relation.right.source] = relation.right
        pairs += [pair for own in relation.on for pair in (own, own[::-1])]
        relation = relation.left
    if isinstance(relation, Scan):
        tables[relation.source] = relation
    referred = {
        other.source
        for one, other in pairs
        if {one.source, other.source} <= tables.keys()
        and policy.tables[tables[one.source].table].references.get(one.name) == (tables[other.source].table, other.name)
    }
    many = [scan.table for scan in tables.values() if not scan.public and scan.source not in referred]
    if isinstance(relation, PerUnit) and isinstance(policy.unit, KeyUnit):
        many = [table for table in many if table != policy.unit.table] or [policy.unit.table]
    return many[0] if len(many) == 1 else None


def expected_rows(question: Question, policy: Policy) -> int | None:
    """How many rows a group is publicly expected to have: the size of what is asked about, shared evenly."""
    size = known_size(question, policy)
    return None if size is None else max(1, round(size.rows / (group_count(question) or 1)))


def group_count(question: Question) -> int | None:
    """How many groups the answer has before HAVING and LIMIT; None if that is private."""
    return None if question.summary.open_keys else grouping.group_count(question)


def few_rows(question: Question, policy: Policy) -> bool:
    """Whether the policy's sizes say that there are few rows. If they are wrong a summary is larger, and no more."""
    if _counted_table(question.summary.relation, policy) is None:
        return False
    sizes = [policy.tables[table].size for table in question.tables if not policy.tables[table].public]
    known = [size for size in sizes if size is not None]
    most = policy.summary_rows
    return len(known) == len(sizes) and SLACK * max(known, default=most) <= most
