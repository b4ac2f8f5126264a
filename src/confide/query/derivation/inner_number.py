"""Sub-queries that stand for one number where rows are read: WHERE income > (SELECT AVG(income) FROM person).

Such a number is released first, by itself; then it is a constant of the question around it.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeVar

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Policy
from confide.privacy.limits import MOST_INNER_NUMBERS
from confide.query.derivation.shape import Shapes, inner_query, is_aggregate, sources_of_from, with_queries
from confide.query.parse import shown

Query = TypeVar("Query", bound=exp.Query)
_TABLES = (
    exp.From,
    exp.Join,
    exp.CTE,
    exp.SetOperation,
    exp.Subquery,
    exp.Exists,
    exp.In,
    exp.Lateral,
    exp.Any,
    exp.All,
)


def inner_numbers(query: exp.Query, policy: Policy) -> list[exp.Subquery]:
    """The sub-queries of a text that stand for one number among rows of the data, in the order of the text."""
    shapes = Shapes(policy)
    found = [
        node
        for node in query.find_all(exp.Subquery, bfs=False)
        if not isinstance(node.parent, _TABLES) and _among_rows(node, shapes)
    ]
    if len(found) > MOST_INNER_NUMBERS:
        raise QueryError(f"at most {MOST_INNER_NUMBERS} sub-queries are released before a question; use fewer")
    for node in found:
        select = inner_query(node)
        if not isinstance(select, exp.Select) or select.args.get("group") is not None or len(select.expressions) != 1:
            raise QueryError(
                f"{shown(node)} stands for one number, so it has one aggregate and no GROUP BY; ask it first, and "
                "write the number that comes out"
            )
    return found


def _among_rows(node: exp.Subquery, shapes: Shapes) -> bool:
    """Whether a sub-query stands in WHERE, or inside an aggregate, of a query over rows of the data."""
    above, inside = node.parent, False
    while above is not None and not isinstance(above, exp.Select):
        inside |= isinstance(above, exp.Where) or is_aggregate(above)
        above = above.parent
    if above is None or not inside:
        return False
    known = with_queries(above, {})
    outer = above.parent
    while outer is not None:
        if isinstance(outer, exp.Query) and outer.args.get("with_") is not None:
            known = {**with_queries(outer, {}), **known}
        outer = outer.parent
    return bool(sources_of_from(above)) and not any(shapes.released(own, known) for own in sources_of_from(above))


def with_numbers(query: Query, policy: Policy, numbers: Sequence[Fraction]) -> Query:
    """The text with its inner numbers as constants."""
    result = query.copy()
    for node, number in zip(inner_numbers(result, policy), numbers, strict=True):
        digits = exp.Literal.number(f"{float(abs(number)):.12g}")
        node.replace(exp.Paren(this=exp.Neg(this=digits) if number < 0 else digits))
    return result
