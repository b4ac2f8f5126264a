"""Sub-queries that name columns of the query around them are another number for each row: they are refused by name."""

from collections.abc import Iterator

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Identifier, Policy
from confide.query.parse import shown
from confide.query.scope import Catalog


def refuse_correlated(node: exp.Subquery, policy: Policy, catalog: Catalog) -> None:
    """Refuse a sub-query that stands for one number and is not one."""
    own = _tables(node.this)
    around = [table for outer in _around(node) for table in _tables(outer)]
    for column in node.find_all(exp.Column):
        if column.find_ancestor(exp.Subquery) is not node or _held(column, own, policy, catalog):
            continue
        table = next((table for table in around if _held(column, [table], policy, catalog)), None)
        if table is not None and _public(node.root(), policy):
            raise QueryError("the query reads public tables only; they need no privacy, read them directly")
        if table is not None:
            raise QueryError(_words(node, column, table, policy))


def _words(node: exp.Subquery, column: exp.Column, table: exp.Table, policy: Policy) -> str:
    what = f"{shown(node)} names {shown(column)} of the query around it, so it is another number for each row"
    declared = policy.tables.get(table.name)
    if declared is not None and isinstance(declared.columns.get(column.name), Identifier):
        return (
            f"{what}; make one row of each unit first, FROM (SELECT {column.name}, COUNT(*) AS n FROM t GROUP BY "
            f"{column.name}) AS u, joined on {column.name}, and compare u.n; or write EXISTS"
        )
    return (
        f"{what}: rows of other units would decide which rows count. Ask for it by itself, SELECT key, AVG(x) FROM t "
        f"GROUP BY key, and write what comes out as CASE WHEN {column.name} = 1 THEN ... END; or leave {shown(column)} "
        "out, for one number over all rows"
    )


def _around(node: exp.Expr) -> Iterator[exp.Select]:
    above = node.parent
    while above is not None:
        if isinstance(above, exp.Select):
            yield above
        above = above.parent


def _tables(select: exp.Expr) -> list[exp.Table]:
    clause = select.args.get("from_")
    nodes = [clause.this] if clause is not None else []
    nodes += [join.this for join in select.args.get("joins") or ()]
    return [node for node in nodes if isinstance(node, exp.Table)]


def _public(query: exp.Expr, policy: Policy) -> bool:
    public = {name.casefold() for name, own in policy.tables.items() if own.public}
    return all(table.name.casefold() in public for table in query.find_all(exp.Table))


def _held(column: exp.Column, tables: list[exp.Table], policy: Policy, catalog: Catalog) -> bool:
    for table in tables:
        if column.table:
            if column.table.casefold() == table.alias_or_name.casefold():
                return True
            continue
        declared = next((own for name, own in policy.tables.items() if name.casefold() == table.name.casefold()), None)
        if declared is None:
            return True  # a query of WITH: what it names is told where it is bound
        names = catalog.columns(declared.name) if declared.public else declared.columns
        if column.name.casefold() in {name.casefold() for name in names}:
            return True
    return False
