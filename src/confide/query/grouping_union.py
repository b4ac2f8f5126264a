"""The tables of ROLLUP, CUBE and GROUPING SETS as queries put together by UNION ALL, each with one plain GROUP BY.

Where they cannot be measured together each of them is measured by itself, and they share the cost.
"""

from sqlglot import exp

from confide.errors import QueryError
from confide.privacy.limits import MOST_INNER_QUESTIONS
from confide.query.derivation.shape import alike
from confide.query.grouping_sets import GroupingSets, Keys
from confide.query.parse import Parsed, shown


def tables_apart(query: Parsed, several: GroupingSets) -> Parsed:
    """The union of the tables that a text asks for; a key that a table is summed over is NULL in it."""
    if len(several.tables) > MOST_INNER_QUESTIONS:
        raise QueryError(
            f"GROUP BY asks for {len(several.tables)} tables, and at most {MOST_INNER_QUESTIONS} are measured one by "
            "one; COUNT, SUM and AVG of one table by declared columns are measured together"
        )
    keys = list(several.select.args["group"].expressions)
    parts = [_table(several, keys, own) for own in several.tables]
    found: Parsed = parts[0]
    for part in parts[1:]:
        found = exp.Union(this=found, expression=part, distinct=False)
    for clause in ("limit", "offset", "with_"):
        if query.args.get(clause) is not None:
            found.set(clause, query.args[clause].copy())
    order = query.args.get("order")
    if order is not None:
        items = [item.unalias() for item in query.expressions]
        found.set("order", exp.Order(expressions=[_placed(item, items) for item in order.expressions]))
    return found


def _table(several: GroupingSets, keys: list[exp.Expr], own: Keys) -> exp.Select:
    select = several.select.copy()
    for clause in ("order", "limit", "offset", "with_"):
        select.set(clause, None)
    aliases = {item.alias.casefold(): item.this for item in select.expressions if isinstance(item, exp.Alias)}
    written = [_stands(key, aliases, select) for key in keys]
    gone = [key for place, key in enumerate(written) if place not in own]
    items: list[exp.Expr] = []
    for item in select.expressions:
        name = item.alias_or_name
        value = exp.Null() if any(alike(item.unalias(), key) for key in gone) else item.unalias().copy()
        items.append(exp.alias_(value, name, quoted=True) if name else value)
    for grouping in several.groupings:
        number = exp.Literal.number(grouping.value(own))
        items.insert(grouping.place, exp.alias_(number, grouping.name, quoted=True))
    select.set("expressions", items)
    group = [written[place].copy() for place in own]
    select.set("group", exp.Group(expressions=group) if group else None)
    return select


def _stands(key: exp.Expr, aliases: dict[str, exp.Expr], select: exp.Select) -> exp.Expr:
    """A key of GROUP BY, with a position or an alias written out."""
    if isinstance(key, exp.Literal) and not key.is_string and key.name.isdigit():
        place = int(key.name) - 1
        if 0 <= place < len(select.expressions):
            return select.expressions[place].unalias()  # type: ignore[no-any-return]
    if isinstance(key, exp.Column) and not key.table:
        return aliases.get(key.name.casefold(), key)
    return key


def _placed(item: exp.Expr, items: list[exp.Expr]) -> exp.Expr:
    """What ORDER BY names, as a column of the result."""
    result = item.copy()
    if isinstance(item.this, exp.Column | exp.Literal):
        return result
    place = next((at for at, own in enumerate(items, 1) if alike(own, item.this)), None)
    if place is None:
        raise QueryError(f"ORDER BY {shown(item.this)}: with several tables, order by a column of the result")
    result.set("this", exp.Literal.number(place))
    return result
