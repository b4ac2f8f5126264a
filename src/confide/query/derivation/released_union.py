"""UNION of released tables with the same columns."""

from collections.abc import Callable

from sqlglot import exp

from confide.errors import QueryError
from confide.query.derivation.bound_table import BoundTable
from confide.query.derivation.derivation import DerivedTable, DistinctRows, StackedTables
from confide.query.derivation.select_part import position_of, require_no_labels, same_columns
from confide.query.derivation.shape import Known, inner_query, with_queries
from confide.query.parse import shown


def stacked_tables(
    query: exp.SetOperation, known: Known, bind: Callable[[exp.Expr, Known], BoundTable]
) -> tuple[BoundTable, tuple[tuple[int, exp.Ordered], ...]]:
    """UNION, of tables with the same columns."""
    if not isinstance(query, exp.Union):
        raise QueryError("INTERSECT and EXCEPT are not answered; join two released tables on their keys instead")
    extras = [
        name
        for name, value in query.args.items()
        if value and name not in ("this", "expression", "distinct", "with_", "order", "limit", "offset")
    ]
    if extras:
        raise QueryError(f"UNION {extras[0].strip('_').upper()} is not answered; list the columns in the same order")
    around, parts = known, []
    pending: list[tuple[exp.Expr, Known]] = [(query, known)]
    distinct = bool(query.args.get("distinct"))
    while pending:
        node, around = pending.pop()
        own = inner_query(node)
        plain = isinstance(own, exp.Union) and (
            own is query or not any(own.args.get(name) for name in ("order", "limit", "offset"))
        )
        if plain and bool(own.args.get("distinct")) == distinct:
            inside = with_queries(own, around)
            pending += [(own.expression, inside), (own.this, inside)]
        else:
            parts.append(bind(own, around))
    columns = same_columns(parts)
    rows = None if any(part.rows is None for part in parts) else sum(part.rows or 0 for part in parts)
    table: DerivedTable = StackedTables(tuple(part.table for part in parts))
    chosen = any(part.chosen for part in parts)
    if distinct:
        require_no_labels(columns, "UNION without ALL")
    blurred = distinct and any(not column.public for column in columns)
    if distinct:
        table, chosen = DistinctRows(table), chosen or blurred
    depth = max(part.depth for part in parts)
    bound = BoundTable(table, columns, chosen, rows, 1 + sum(part.parts for part in parts), None, depth, blurred)
    order = query.args.get("order")
    orders = []
    for item in order.expressions if order is not None else ():
        at = position_of(item.this, len(columns))
        if at is None:
            names = [
                place for place, column in enumerate(columns) if column.name.casefold() == item.this.name.casefold()
            ]
            if not isinstance(item.this, exp.Column) or not names:
                raise QueryError(f"ORDER BY {shown(item.this)}: after UNION, order by a column of the result")
            at = names[0]
        orders.append((at, item))
    return bound, tuple(orders)
