"""`WHERE key IN (SELECT key FROM t GROUP BY key HAVING COUNT(*) > 3)`: rows of units of which something is true.

Where `key` is the unit's, the inner query makes one row of each unit, and the rows around it are joined to those that
pass. Every unit is in it once, so no row is there twice.
"""

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import KeyUnit, Policy
from confide.query.parse import conjuncts, shown

_KEY = "unit that passes"


def units_that_pass(select: exp.Select, policy: Policy) -> exp.Select:
    """The query with the first such condition as a join; itself, if there is none."""
    where = select.args.get("where")
    if where is None or select.find(exp.In) is None:
        return select
    inner = where.this.unnest()
    parts = list(conjuncts(inner)) if isinstance(inner, exp.And) else [inner]
    wanted = [part for part in parts if _groups(part)]
    negated = next((p for p in parts if isinstance(p.unnest(), exp.Not) and _groups(p.unnest().this)), None)
    if negated is not None:
        raise QueryError(
            f"{shown(negated)}: NOT IN of a query that groups is not answered; make one row of each unit with a LEFT "
            "JOIN, SELECT key, COUNT(b.key) AS n FROM a LEFT JOIN b ON b.key = a.key GROUP BY key, and count those rows"
        )
    if not wanted:
        return select
    unit = _unit_names(policy)
    node = wanted[0].unnest()
    query = node.args["query"].unnest()
    while isinstance(query, exp.Subquery):
        query = query.this
    key = query.args["group"].expressions[0].unnest() if len(query.args["group"].expressions) == 1 else None
    if len(wanted) > 1 or not isinstance(key, exp.Column) or key.name.casefold() not in unit or not unit:
        raise QueryError(
            f"{shown(node)}: a query in IN that groups makes one row of each unit, "
            + (f"GROUP BY {policy.unit.column}" if isinstance(policy.unit, KeyUnit) else "and each row is a unit")
            + ", and stands there once; whether a row passes must follow from rows of its own unit. For other keys "
            "write WHERE EXISTS (SELECT 1 FROM b WHERE b.key = a.key AND ...)"
        )
    return _joined(select, parts, wanted[0])


def _joined(select: exp.Select, parts: list[exp.Expr], wanted: exp.Expr) -> exp.Select:
    result = select.copy()
    node = wanted.unnest()
    query = node.args["query"].copy().unnest()
    while isinstance(query, exp.Subquery):
        query = query.this
    query.set("expressions", [exp.alias_(query.expressions[0].unalias().copy(), _KEY, quoted=True)])
    column = node.this.unnest().copy()
    clause = result.args["from_"]
    if not column.table and not result.args.get("joins"):
        column.set("table", exp.to_identifier(clause.this.alias_or_name))
    taken = exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier("units that pass", quoted=True)))
    pair = exp.EQ(this=exp.column(_KEY, "units that pass", quoted=True), expression=column)
    result.append("joins", exp.Join(this=taken, on=pair))
    rest = [part.copy() for part in parts if part is not wanted]
    result.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
    return result


def _groups(part: exp.Expr) -> bool:
    node = part.unnest()
    query = node.args.get("query") if isinstance(node, exp.In) else None
    inner = query.unnest() if isinstance(query, exp.Expr) else None
    while isinstance(inner, exp.Subquery):
        inner = inner.this
    return isinstance(inner, exp.Select) and inner.args.get("group") is not None and len(inner.expressions) == 1


def _unit_names(policy: Policy) -> set[str]:
    """What the unit's key is called in the tables of a policy, in small letters."""
    if not isinstance(policy.unit, KeyUnit):
        return set()
    found = {policy.unit.column.casefold()}
    for table in policy.private_tables:
        for column, target in table.references.items():
            if ".".join(target) == str(policy.unit):
                found.add(column.casefold())
    return found
