"""Other ways to make one row of each unit in an inner query: DISTINCT of its key, HAVING, any place among joins.

`FROM (SELECT DISTINCT key FROM t)` groups by the key. `FROM (SELECT key FROM t GROUP BY key HAVING COUNT(*) > 1)`
counts in the inner query, and the outer one keeps the units whose count passes: units do not see each other either way.
"""

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Identifier, Policy
from confide.query.parse import shown


def rows_of_units(select: exp.Select, policy: Policy) -> exp.Select:
    """The query with such an inner query written out; itself, if there is none."""
    select = _inner_first(select)
    clause = select.args.get("from_")
    node = clause.this if clause is not None else None
    inner = node.this if isinstance(node, exp.Subquery) else None
    if not isinstance(inner, exp.Select) or not (inner.args.get("distinct") or inner.args.get("having")):
        return select
    result = select.copy()
    node = result.args["from_"].this
    inner = node.this
    if inner.args.get("distinct") is not None:
        _grouped(inner, policy)
    if inner.args.get("having") is not None and inner.args.get("distinct") is None:
        _moved(result, node, inner)
    return result


def _inner_first(select: exp.Select) -> exp.Select:
    """`FROM a JOIN (SELECT ...) t ON t.key = a.key` with the inner query first: the order of plain joins is free."""
    clause, joins = select.args.get("from_"), select.args.get("joins") or ()
    if clause is None or not isinstance(clause.this, exp.Table) or any(join.side for join in joins):
        return select
    inner = [place for place, join in enumerate(joins) if isinstance(join.this, exp.Subquery)]
    if len(inner) != 1:
        return select
    join = joins[inner[0]]
    if join.args.get("method") or str(join.args.get("kind") or "").upper() in ("SEMI", "ANTI"):
        return select
    if any(own.args.get("method") or own.args.get("using") for own in joins if own is not join):
        return select  # what they make equal is told by the tables before them
    names = {clause.this.alias_or_name.casefold(), join.this.alias_or_name.casefold()}
    on = join.args.get("on")
    if len(joins) > 1 and (on is None or any(own.table.casefold() not in names for own in on.find_all(exp.Column))):
        return select
    result = select.copy()
    clause, join = result.args["from_"], result.args["joins"][inner[0]]
    table, query = clause.this, join.this
    clause.set("this", query)
    join.set("this", table)
    result.set("joins", [join, *(own for own in result.args["joins"] if own is not join)])
    return result


def _grouped(inner: exp.Select, policy: Policy) -> None:
    """SELECT DISTINCT key as GROUP BY key."""
    distinct = inner.args["distinct"]
    keys = {name.casefold() for table in policy.tables.values() for name in _keys(table)}
    only = inner.expressions[0].unalias() if len(inner.expressions) == 1 else None
    if (
        isinstance(only, exp.Column)
        and only.name.casefold() in keys
        and not distinct.args.get("on")
        and inner.args.get("group") is None
        and inner.args.get("having") is None
    ):
        inner.set("distinct", None)
        inner.set("group", exp.Group(expressions=[only.copy()]))


def _keys(table: object) -> list[str]:
    return [name for name, column in table.columns.items() if isinstance(column, Identifier)]  # type: ignore[attr-defined]


def _moved(select: exp.Select, node: exp.Subquery, inner: exp.Select) -> None:
    """HAVING of an inner query, in the WHERE of the outer one, where every name in it is one of the inner query."""
    condition = inner.args["having"].this.copy()
    if condition.find(exp.Query) is not None:
        return
    if node.alias == "":
        node.set("alias", exp.TableAlias(this=exp.to_identifier("units having")))
    named = {item.alias.casefold(): item.alias for item in inner.expressions if isinstance(item, exp.Alias)}
    known = {item.unalias().sql(): item.alias for item in inner.expressions if isinstance(item, exp.Alias)}
    root = exp.Paren(this=condition)
    for part in list(root.walk()):
        if part.find_ancestor(exp.AggFunc, exp.Filter) is not None:
            continue
        if isinstance(part, exp.Filter) or (isinstance(part, exp.AggFunc) and not isinstance(part.parent, exp.Filter)):
            text = part.sql()
            if text not in known:
                known[text] = f"having {len(known)}"
                inner.append("expressions", exp.alias_(part.copy(), known[text], quoted=True))
            part.replace(exp.column(known[text], node.alias, quoted=True))
        elif isinstance(part, exp.Column) and not part.table and part.name.casefold() in named:
            part.replace(exp.column(named[part.name.casefold()], node.alias, quoted=True))
        elif isinstance(part, exp.Column):
            part.replace(exp.column(_key_shown(part, inner), node.alias, quoted=True))
    inner.set("having", None)
    where = select.args.get("where")
    select.set("where", exp.Where(this=exp.and_(*([] if where is None else [where.this.copy()]), root)))


def _key_shown(column: exp.Column, inner: exp.Select) -> str:
    """What an inner query calls a column that it groups by. Tables around it may have columns of the same name."""
    group = inner.args.get("group")
    keys = [own.unnest() for own in group.expressions] if group is not None else []
    if any(_same(own, column) for own in keys):
        shown_as = next((item.alias_or_name for item in inner.expressions if _same(item.unalias(), column)), None)
        if shown_as is None:
            shown_as = f"having key {len(inner.expressions)}"
            inner.append("expressions", exp.alias_(column.copy(), shown_as, quoted=True))
        return shown_as
    raise QueryError(
        f"HAVING {shown(column)}: the inner query does not group by it; put conditions on rows into its WHERE"
    )


def _same(one: exp.Expr, two: exp.Column) -> bool:
    """Whether two columns of one FROM are one, as far as their names tell."""
    if not isinstance(one, exp.Column) or one.name.casefold() != two.name.casefold():
        return False
    return not one.table or not two.table or one.table.casefold() == two.table.casefold()
