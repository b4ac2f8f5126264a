"""Which clauses a SELECT may have. What sqlglot parses beyond them is refused here, so nothing is silently ignored."""

from fractions import Fraction

from sqlglot import exp

from confide.errors import QueryError
from confide.query.literal import literal_number

_OUTER = frozenset(
    ("with_", "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset")
)  # fmt: skip
_INNER = frozenset(("expressions", "from_", "joins", "where", "group"))
_ADVICE = {
    "distinct": "SELECT DISTINCT shows raw values; GROUP BY a declared column",
    "qualify": "QUALIFY is not answered; filter released numbers with HAVING",
    "windows": "window functions are not answered; GROUP BY the partition instead",
    "sample": "sampling is not answered: what it draws is not bounded; ask the whole table",
    "laterals": "LATERAL is not answered; join a table with ON a.key = b.key",
    "pivots": "PIVOT is not answered; GROUP BY both columns",
    "kind": "SELECT AS STRUCT or VALUE is not answered; list the columns",
    "exclude": "SELECT * shows rows, which never leave the data; write aggregates of columns",
    "hint": "hints are not answered; leave them out",
    "sort": "SORT BY is not answered; use ORDER BY",
    "prewhere": "PREWHERE is not answered; use WHERE",
}


def check_clauses(select: exp.Select) -> None:
    """The SELECT of a question."""
    _check(
        select, _OUTER, "{} is not answered; a query has SELECT, FROM, JOIN, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT"
    )


def check_inner_clauses(select: exp.Select) -> None:
    """The SELECT of an inner query."""
    _check(select, _INNER, "{} is not answered in an inner query; put conditions into its WHERE")


def check_subquery(node: exp.Subquery) -> None:
    for name, value in node.args.items():
        if value and name not in ("this", "alias"):
            raise QueryError(_ADVICE.get(name, f"{name.strip('_').upper()} after an inner query is not answered"))
    alias = node.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise QueryError("name the columns inside the inner query: SELECT key, SUM(x) AS total")


def whole_number(select: exp.Select, clause: str) -> int | None:
    """The number after LIMIT or OFFSET."""
    node = select.args.get(clause)
    if node is None:
        return None
    number = node.args.get("count") if isinstance(node, exp.Fetch) else node.args.get("expression")
    options = node.args.get("limit_options")
    extras = [name for name, value in (options.args.items() if options is not None else ()) if value and name != "rows"]
    extras += [name for name in ("offset", "expressions", "this") if node.args.get(name)]
    if extras or not isinstance(number, exp.Literal) or number.is_string:
        raise QueryError(f"{clause.upper()} takes a plain whole number, for example {clause.upper()} 10")
    value: Fraction = literal_number(number)
    if value.denominator != 1 or value >= 2**62:
        raise QueryError(f"{clause.upper()} takes a plain whole number, for example {clause.upper()} 10")
    return int(value)


def _check(select: exp.Select, allowed: frozenset[str], otherwise: str) -> None:
    for name, value in select.args.items():
        if value and name not in allowed:
            raise QueryError(_ADVICE.get(name, otherwise.format(name.strip("_").upper())))
