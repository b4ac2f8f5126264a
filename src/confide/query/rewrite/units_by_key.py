"""Inner queries with a row for each unit and key, asked for what plain aggregates say as well.

    SELECT ward, AVG(c) FROM (SELECT person_id, ward, COUNT(*) AS c FROM visit GROUP BY person_id, ward) GROUP BY ward

The inner query has a row for each person who was on a ward. So the number of its rows on a ward is the number of
persons there, its counts add up to that of the visits, and their mean is the one over the other:

    SELECT ward, COUNT(*) / COUNT(DISTINCT person_id) FROM visit GROUP BY ward

It is bound as this. What a unit may change is then what `at_most` says of its rows and groups. A sum that is NULL
because nothing in it is known counts for no row, as databases have it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import KeyUnit, Policy
from confide.privacy.limits import MOST_PARTS
from confide.query.parse import shown

_INNER: Final = frozenset(("expressions", "from_", "where", "group"))
_HELP = (
    "of an inner query with a row for each unit and key are answered COUNT(*), SUM and AVG of its COUNT and SUM "
    "columns, grouped by the same keys; for other statistics make one row of each unit: GROUP BY the unit alone"
)


def units_by_key(select: exp.Select, policy: Policy) -> exp.Select:
    """The query about the table itself that says the same; the query, if its inner one is no such."""
    found = _read(select, policy)
    if found is None:
        return select
    result = select.copy()
    for item in result.expressions:
        own = item.unalias()
        if not isinstance(item, exp.Alias):
            item.replace(exp.alias_(own.copy(), _name(own), quoted=True))
    changed = result.transform(found.replaced)
    assert isinstance(changed, exp.Select)
    result, inner = changed, found.inner
    result.set("from_", inner.args["from_"].copy())
    conditions = [part.args["where"].this.copy() for part in (inner, result) if part.args.get("where") is not None]
    if conditions:
        result.set("where", exp.Where(this=exp.and_(*conditions)))
    return result


@dataclass(slots=True)
class _Inner:
    """An inner query: the unit's column, and its columns by the names under which the outer one speaks of them."""

    inner: exp.Select
    alias: str
    unit: exp.Column
    keys: Mapping[str, exp.Expr]
    aggregates: Mapping[str, exp.Expr]
    units: frozenset[str]
    left: int = field(default=MOST_PARTS)

    def replaced(self, node: exp.Expr) -> exp.Expr:
        """A part of the outer query in terms of the table itself."""
        match node:
            case exp.Subquery():
                return exp.Table(this=exp.to_identifier("t"))  # is replaced with the whole FROM
            case exp.Count(this=exp.Star()):
                return self._units()
            case exp.Count(this=exp.Distinct(expressions=[exp.Column() as column])) if (
                self._named(column) in self.units
            ):
                return self._units()
            case exp.Count(this=exp.Column() as column) if self._named(column) in self.units:
                return self._units()
            case exp.Sum(this=exp.Column() as column) if self._named(column) in self.aggregates:
                return self._copied(self.aggregates[self._named(column)])
            case exp.Avg(this=exp.Column() as column) if self._named(column) in self.aggregates:
                total = self._copied(self.aggregates[self._named(column)])
                return exp.paren(exp.Div(this=total, expression=self._known(total)))
            case exp.AggFunc() | exp.Filter():
                raise QueryError(f"{shown(node)}: {_HELP}")
            case exp.Column() if self._named(node) in self.keys:
                return self._copied(self.keys[self._named(node)])
            case exp.Column() if self._named(node) in self.aggregates or self._named(node) in self.units:
                raise QueryError(f"{shown(node)}: {_HELP}")
        return node

    def _named(self, column: exp.Column) -> str:
        return column.name.casefold() if not column.table or column.table.casefold() == self.alias else ""

    def _units(self) -> exp.Expr:
        return exp.Count(this=exp.Distinct(expressions=[self._copied(self.unit)]))

    def _known(self, total: exp.Expr) -> exp.Expr:
        """The units of which a sum is known; all, of a count."""
        inner = total.this if isinstance(total, exp.Filter) else total
        if not isinstance(inner, exp.Sum):
            return self._units()
        known: exp.Expr = exp.Not(this=exp.Is(this=exp.paren(self._copied(inner.this)), expression=exp.Null()))
        if isinstance(total, exp.Filter):
            known = exp.and_(known, self._copied(total.expression.this))
        return exp.Filter(this=self._units(), expression=exp.Where(this=known))

    def _copied(self, node: exp.Expr) -> exp.Expr:
        """What stands in several places is as long in each of them."""
        self.left -= sum(1 for _ in node.walk())
        if self.left < 0:
            raise QueryError(
                f"the query says more than {MOST_PARTS:,} things once the columns of its inner query are written out"
            )
        return node.copy()


def _read(select: exp.Select, policy: Policy) -> _Inner | None:
    clause = select.args.get("from_")
    source = None if clause is None else clause.this
    if not isinstance(source, exp.Subquery) or select.args.get("joins") or not isinstance(policy.unit, KeyUnit):
        return None
    inner = source.this
    if not isinstance(inner, exp.Select) or inner.args.get("from_") is None:
        return None
    table = inner.args["from_"].this
    group = inner.args.get("group")
    if not isinstance(table, exp.Table) or group is None or inner.args.get("joins"):
        return None
    names = _unit_columns(table.name, policy.unit, policy)
    columns = [node.unnest() for node in group.expressions]
    units = [node for node in columns if isinstance(node, exp.Column) and node.name.casefold() in names]
    if len(units) != 1 or len(columns) < 2:
        return None
    _check(inner, columns)
    keys: dict[str, exp.Expr] = {}
    aggregates: dict[str, exp.Expr] = {}
    shown_units = set()
    grouped = {node.name.casefold() for node in columns}
    for item in inner.expressions:
        node, name = item.unalias().unnest(), item.alias_or_name.casefold()
        if isinstance(node, exp.Column) and node.name.casefold() == units[0].name.casefold():
            shown_units.add(name)
        elif isinstance(node, exp.Column) and node.name.casefold() in grouped:
            keys[name] = node
        elif _is_counted(node) and item.alias:
            aggregates[name] = node
        else:
            raise QueryError(f"{shown(item)}: {_HELP}")
    found = _Inner(inner, source.alias.casefold(), units[0], keys, aggregates, frozenset(shown_units))
    outer = select.args.get("group")
    asked = {
        keys[found._named(node)].name.casefold()
        for node in (outer.expressions if outer is not None else [])
        if isinstance(node, exp.Column) and found._named(node) in keys
    }
    if asked != grouped - {units[0].name.casefold()}:
        raise QueryError(f"the outer query does not group by all of the inner one's keys, and by no others; {_HELP}")
    return found


def _check(inner: exp.Select, columns: list[exp.Expr]) -> None:
    extras = [name for name, value in inner.args.items() if value and name not in _INNER]
    group = inner.args["group"]
    more = [name for name, value in group.args.items() if value and name != "expressions"]
    if extras or more or not all(isinstance(node, exp.Column) for node in columns):
        raise QueryError(_HELP)


def _is_counted(node: exp.Expr) -> bool:
    inner = node.this if isinstance(node, exp.Filter) else node
    plain = isinstance(inner, exp.Count | exp.Sum) and not isinstance(inner.this, exp.Distinct)
    return (plain and not inner.expressions) or isinstance(inner, exp.CountIf)


def _unit_columns(table: str, unit: KeyUnit, policy: Policy) -> frozenset[str]:
    """The columns of a table that say whose a row is."""
    own = next((found for name, found in policy.tables.items() if name.casefold() == table.casefold()), None)
    if own is None:
        return frozenset()
    names = {column for column, target in own.references.items() if target == (unit.table, unit.column)}
    if own.name == unit.table:
        names.add(unit.column)
    return frozenset(name.casefold() for name in names)


def _name(node: exp.Expr) -> str:
    column = node.find(exp.Column)
    word = node.key.lower()
    if isinstance(node, exp.Column):
        return node.name
    return f"{word}_{column.name}" if column is not None else word
