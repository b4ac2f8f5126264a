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


_ROWS = ("group", "having", "limit", "offset", "qualify", "distinct")
"""What could leave no row, or several, where a number is expected."""


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
        rest = () if not isinstance(select, exp.Select) else [select.args.get(name) for name in _ROWS]
        if not isinstance(select, exp.Select) or any(rest) or len(select.expressions) != 1:
            raise QueryError(
                f"{shown(node)} stands for one number, so it has one aggregate, and no GROUP BY, HAVING or LIMIT; ask "
                "it first, and write the number that comes out"
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


def alone(node: exp.Subquery) -> exp.Select:
    """A sub-query as a text of its own: it names queries of the WITH around it, and nothing else of the text."""
    select = inner_query(node)
    assert isinstance(select, exp.Select)
    found: list[exp.Expr] = []
    inside: exp.Expr = node
    around = node.parent
    while around is not None:
        clause = around.args.get("with_") if isinstance(around, exp.Query) else None
        if clause is not None and inside is not clause:
            found = [*clause.expressions, *found]
        elif isinstance(around, exp.With):
            # Inside a query of WITH, those before it have names.
            place = next(number for number, item in enumerate(around.expressions) if item is inside)
            found = [*around.expressions[:place], *found]
        inside, around = around, around.parent
    result = select.copy()
    named = _named_in(select, found)
    if named:
        own = result.args.get("with_")
        result.set("with_", exp.With(expressions=[*(item.copy() for item in named), *(own.expressions if own else ())]))
    return result


def _named_in(select: exp.Select, queries: list[exp.Expr]) -> list[exp.Expr]:
    """Those of some queries of WITH that a query names, or that these name."""
    used = _tables(select)
    found: list[exp.Expr] = []
    for item in reversed(queries):
        if item.alias.casefold() in used:
            found.insert(0, item)
            used |= _tables(item)
    return found


def with_numbers(query: Query, policy: Policy, numbers: Sequence[Fraction]) -> Query:
    """The text with its inner numbers as constants, without queries of WITH that only these named."""
    result = query.copy()
    before = _tables(result)
    for node, number in zip(inner_numbers(result, policy), numbers, strict=True):
        digits = exp.Literal.number(f"{float(abs(number)):.12g}")
        node.replace(exp.Paren(this=exp.Neg(this=digits) if number < 0 else digits))
    gone = before - _tables(result)
    while gone:
        for item in list(result.find_all(exp.CTE)):
            if item.alias.casefold() in gone:
                clause = item.parent
                item.pop()
                if isinstance(clause, exp.With) and not clause.expressions:
                    clause.pop()
        left = _tables(result)
        gone, before = before - left - gone, left
    return result


def _tables(query: exp.Expr) -> set[str]:
    return {table.name.casefold() for table in query.find_all(exp.Table)}
