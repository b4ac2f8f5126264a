"""Tables and conditions put together as explicit joins, each table on one before it."""

from dataclasses import dataclass, field

from sqlglot import exp

from confide.policy import Policy, RowUnit
from confide.query.parse import conjuncts


@dataclass(slots=True)
class JoinedTable:
    """A table of a FROM under a name of its own. `optional`: a LEFT JOIN adds it, `on` its own conditions."""

    alias: str
    node: exp.Expr
    optional: bool = False
    on: list[exp.Expr] = field(default_factory=list)


def joined(select: exp.Select, entries: list[JoinedTable], conditions: list[exp.Expr], policy: Policy) -> None:
    """Give a SELECT its FROM, JOIN and WHERE.

    Equal columns of two tables become the ON of the later one; everything else is a condition on joined rows. Inner
    joins may be taken in any order, so each table comes when something connects it with the tables before; a table that
    nothing connects stays without ON, and is refused where it is bound.
    """
    parts = [own for condition in conditions for own in demands(condition)]
    pairs = [part for part in parts if _ends(part) is not None]
    rest = [part for part in parts if _ends(part) is None]
    waiting = list(entries)
    first = waiting.pop(_first(waiting, policy))
    seen, joins = {first.alias}, []
    while waiting:
        entry = next((own for own in waiting if _comes_next(own, seen, pairs)), None)
        if entry is None:
            entry = next((own for own in waiting if not own.optional), waiting[0])
        waiting.remove(entry)
        seen.add(entry.alias)
        on = entry.on
        if not entry.optional:
            on = [part for part in pairs if entry.alias in _ends(part) and _ends(part) <= seen]  # type: ignore[operator]
            pairs = [part for part in pairs if part not in on]
        joins.append(
            exp.Join(
                this=entry.node,
                **({"side": "LEFT"} if entry.optional else {}),
                **({"on": exp.and_(*on, copy=False)} if on else {}),
            )
        )
    select.set("from_", exp.From(this=first.node))
    select.set("joins", joins)
    rest += pairs
    select.set("where", exp.Where(this=exp.and_(*rest, copy=False)) if rest else None)


def demands(node: exp.Expr) -> list[exp.Expr]:
    """The conditions that an AND joins, each taken apart further."""
    node, found = node.unnest(), []
    for part in conjuncts(node) if isinstance(node, exp.And) else (node,):
        own = part.unnest()
        found += demands(own) if isinstance(own, exp.And) else _in_every_branch(own)
    return found


def _in_every_branch(node: exp.Expr) -> list[exp.Expr]:
    """What every branch of an OR demands, and the OR: (a AND b) OR (a AND c) is a AND (b OR c), NULLs included.

    The OR is left as it is: that it says `a` again changes nothing.
    """
    if not isinstance(node, exp.Or):
        return [node]
    branches = [demands(branch) for branch in conjuncts(node)]
    common = [part for part in branches[0] if all(part in branch for branch in branches[1:])]
    return [*(part.copy() for part in common if _ends(part) is not None), node]


def _ends(node: exp.Expr) -> set[str] | None:
    """The two tables whose columns an equality compares."""
    if not isinstance(node, exp.EQ):
        return None
    sides = (node.this.unnest(), node.expression.unnest())
    if not all(isinstance(side, exp.Column) for side in sides):
        return None
    tables = {side.table for side in sides}
    return tables if len(tables) == 2 else None


def _first(entries: list[JoinedTable], policy: Policy) -> int:
    """Where to begin: with the first table, or where every row is a unit with the first private one."""
    if not isinstance(policy.unit, RowUnit):
        return 0
    public = {name.casefold() for name, table in policy.tables.items() if table.public}
    private = (
        place
        for place, entry in enumerate(entries)
        if not entry.optional and not (isinstance(entry.node, exp.Table) and entry.node.name.casefold() in public)
    )
    return next(private, 0)


def _comes_next(entry: JoinedTable, seen: set[str], pairs: list[exp.Expr]) -> bool:
    if entry.optional:
        tables = {column.table for part in entry.on for column in part.find_all(exp.Column)}
        return tables <= seen | {entry.alias}
    ends = (_ends(part) or set() for part in pairs)
    return any(entry.alias in own and own - {entry.alias} <= seen for own in ends)
