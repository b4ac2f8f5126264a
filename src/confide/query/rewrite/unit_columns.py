"""Inner queries with one row per unit that also group by columns of the unit's own table.

    FROM (SELECT p.person_id, p.sex, SUM(v.cost) AS total FROM person p JOIN visit v ON ... GROUP BY p.person_id, p.sex)

A unit has one row in its own table, so such columns say nothing more of which rows go together. The inner query groups
by the unit alone, and the columns are those of the unit's row, joined to it:

    FROM (SELECT p.person_id, SUM(v.cost) AS total FROM ... GROUP BY p.person_id) t
    JOIN person own ON own.person_id = t.person_id
"""

from sqlglot import exp

from confide.policy import KeyUnit, Policy

_NAME = "unit's own row"


def unit_columns(select: exp.Select, policy: Policy) -> exp.Select:
    """The query with such columns joined from the unit's own table; itself, if there are none."""
    if not isinstance(policy.unit, KeyUnit):
        return select
    clause = select.args.get("from_")
    node = clause.this if clause is not None else None
    inner = node.this if isinstance(node, exp.Subquery) else None
    if not isinstance(inner, exp.Select) or inner.args.get("group") is None or inner.args.get("having") is not None:
        return select
    found = _columns(inner, policy)
    if found is None:
        return select
    key, others = found
    result = select.copy()
    node = result.args["from_"].this
    alias = node.alias
    shown = {item.alias_or_name.casefold(): item.unalias() for item in node.this.expressions}
    stands = {name: own.name for name, own in shown.items() if own in others}
    shown_key = next((item.alias_or_name for item in node.this.expressions if item.unalias() == key), None)
    if shown_key is None:
        shown_key = "key of the unit"
        node.this.append("expressions", exp.alias_(key.copy(), shown_key, quoted=True))
    node.this.set("expressions", [item for item in node.this.expressions if item.unalias() not in others])
    node.this.set("group", exp.Group(expressions=[key.copy()]))
    _join(result, node, alias, shown_key, policy.unit)
    _point(result, alias, stands)
    return result


def _columns(inner: exp.Select, policy: Policy) -> tuple[exp.Column, list[exp.Column]] | None:
    """The unit's key, and columns of its own table, by which an inner query groups; None if there are other keys."""
    assert isinstance(policy.unit, KeyUnit)
    joins = inner.args.get("joins") or ()
    tables = [inner.args["from_"].this, *(join.this for join in joins)] if inner.args.get("from_") else []
    if not tables or not all(isinstance(table, exp.Table) for table in tables) or any(join.side for join in joins[1:]):
        return None
    own = [table for table in tables if table.name.casefold() == policy.unit.table.casefold()]
    if len(own) != 1 or any(join.side and join.this is own[0] for join in joins):
        return None
    alias = own[0].alias_or_name.casefold()
    known = {name.casefold(): table for name, table in policy.tables.items()}
    columns = {name.casefold() for name in known[policy.unit.table.casefold()].columns}
    others = {name.casefold() for table in tables if table is not own[0] and table.name.casefold() in known
              for name in known[table.name.casefold()].columns}  # fmt: skip
    group = inner.args["group"]
    if any(value for name, value in group.args.items() if name != "expressions"):
        return None
    key: exp.Column | None = None
    found: list[exp.Column] = []
    for item in group.expressions:
        node = item.unnest()
        if not isinstance(node, exp.Column):
            return None
        name, table = node.name.casefold(), node.table.casefold()
        mine = table == alias if table else name in columns - others
        if mine and name == policy.unit.column.casefold() and key is None:
            key = node
        elif mine and name in columns:
            found.append(node)
        else:
            return None
    return None if key is None or not found else (key, found)


def _join(select: exp.Select, node: exp.Subquery, alias: str, key: str, unit: KeyUnit) -> None:
    if not alias:
        node.set("alias", exp.TableAlias(this=exp.to_identifier("units", quoted=True)))
    pair = exp.EQ(this=exp.column(unit.column, _NAME, quoted=True), expression=exp.column(key, node.alias, quoted=True))
    table = exp.alias_(exp.Table(this=exp.to_identifier(unit.table, quoted=True)), _NAME, table=True, quoted=True)
    select.set("joins", [exp.Join(this=table, on=pair), *(select.args.get("joins") or ())])


def _point(select: exp.Select, alias: str, stands: dict[str, str]) -> None:
    """What the outer query says of such columns, as the unit's own."""
    spared = {id(node) for own in [select.args["from_"], *(select.args.get("joins") or ())] for node in own.walk()}
    for column in list(select.find_all(exp.Column)):
        if id(column) in spared or column.table.casefold() not in ("", alias.casefold()):
            continue
        name = stands.get(column.name.casefold())
        if name is None:
            continue
        pointed = exp.column(name, _NAME, quoted=True)
        shown = isinstance(column.parent, exp.Select) and column.arg_key == "expressions"
        column.replace(exp.alias_(pointed, column.name, quoted=True) if shown else pointed)
