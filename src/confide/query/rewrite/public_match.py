"""`city = (SELECT city FROM towns WHERE ...)` of a public table, as `city IN (SELECT city FROM towns WHERE ...)`.

Where the sub-query has one row both say the same; where it has several, SQL has no answer, and IN has one.
"""

from typing import TypeVar

from sqlglot import exp

from confide.policy import Policy
from confide.query.derivation.shape import has_aggregate
from confide.query.literal import bare

Query = TypeVar("Query", bound=exp.Query)
_READ = ("expressions", "from_", "joins", "where")


def public_matches(query: Query, policy: Policy) -> Query:
    """The query with such comparisons in its WHERE written as IN; itself, if there are none."""
    if not any(_match(node, policy) is not None for node in query.find_all(exp.EQ)):
        return query
    result = query.copy()
    for node in list(result.find_all(exp.EQ)):
        found = _match(node, policy)
        if found is not None:
            node.replace(exp.In(this=found[0].copy(), query=found[1].copy()))
    return result


def _match(node: exp.EQ, policy: Policy) -> tuple[exp.Column, exp.Subquery] | None:
    sides = bare(node.this), bare(node.expression)
    for column, query in (sides, sides[::-1]):
        if isinstance(column, exp.Column) and isinstance(query, exp.Subquery) and _is_public(query.this, policy):
            return (column, query) if node.find_ancestor(exp.Where, exp.Select).__class__ is exp.Where else None
    return None


def _is_public(select: exp.Expr, policy: Policy) -> bool:
    """Whether a sub-query shows one column of rows of public tables."""
    if not isinstance(select, exp.Select) or any(v for n, v in select.args.items() if n not in _READ):
        return False
    if len(select.expressions) != 1 or not isinstance(select.expressions[0].unalias(), exp.Column):
        return False
    known = {name.casefold(): table.public for name, table in policy.tables.items()}
    tables = list(select.find_all(exp.Table))
    return bool(tables) and not has_aggregate(select) and all(known.get(own.name.casefold()) for own in tables)
