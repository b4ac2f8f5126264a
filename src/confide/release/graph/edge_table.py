"""Which table holds the edges of a graph, in which columns their ends are, and who is protected: said by a caller."""

from confide.errors import ParameterError, QueryError
from confide.host.progress import Tell
from confide.policy import Category, Column, Identifier, KeyUnit, Policy, Table, Text
from confide.privacy.amount import shown_value
from confide.query.spelling import nearest
from confide.release.account import AUTO
from confide.release.arguments import plain_text
from confide.release.graph.request import EdgeTable, Protected
from confide.release.guard import callers
from confide.release.holdings import Holdings


def edge_table(
    holdings: Holdings,
    table: object,
    source: object,
    target: object,
    directed: object,
    unit: object,
    account: object = AUTO,
    progress: Tell | None = None,
) -> EdgeTable:
    """The edge table that a caller names, or a refusal from the policy alone."""
    policy = holdings.policy
    holdings.accounts(account)  # refuses one that there is not
    if not isinstance(directed, bool):
        raise ParameterError(f"directed={shown_value(directed)} is not True or False")
    unit = plain_text(unit)
    if unit is not None and not (isinstance(unit, str) and unit in ("edge", "node")):
        raise ParameterError(f"unit={shown_value(unit)} is not a unit of a graph; there are 'edge' and 'node'")
    found = _table(policy, plain_text(table))
    ends = [_end(found, plain_text(column)) for column in (source, target)]
    if ends[0].name == ends[1].name:
        raise QueryError(f"both ends of an edge would be {ends[0].name}; name the two columns that hold its ends")
    protected: Protected = "node" if unit == "node" else "edge"
    if isinstance(policy.unit, KeyUnit):
        protected = "node"
        own = _own_columns(policy, found)
        if not own & {column.name for column in ends} or unit == "edge":
            raise QueryError(
                f"the policy protects {policy.unit}, with all rows that refer to it, so a graph of {found.name} needs "
                f"its nodes to be that key: name {', '.join(sorted(own)) or 'a column that refers to it'} as one end"
            )
    callers(progress)  # refuses what is no function
    return EdgeTable(holdings, found.name, ends[0].name, ends[1].name, directed, protected, progress, account)


def _own_columns(policy: Policy, table: Table) -> set[str]:
    """Columns of a table that hold the unit's key itself."""
    assert isinstance(policy.unit, KeyUnit)
    if table.name == policy.unit.table:
        return {policy.unit.column}
    path = policy.unit_path(table.name)
    return {path[0].column} if len(path) == 1 else set()


def _table(policy: Policy, name: object) -> Table:
    known = {own.casefold(): table for own, table in policy.tables.items()}
    if not isinstance(name, str) or name.casefold() not in known:
        said = name if isinstance(name, str) else shown_value(name)
        raise QueryError(f"there is no table {said[:60]}; {nearest(said, policy.tables, 'the policy has')}")
    table = known[name.casefold()]
    if table.public:
        raise QueryError(f"{table.name} is public; it needs no privacy, read it directly")
    return table


def _end(table: Table, name: object) -> Column:
    known = {own.casefold(): column for own, column in table.columns.items()}
    if not isinstance(name, str) or name.casefold() not in known:
        said = name if isinstance(name, str) else shown_value(name)
        raise QueryError(f"there is no column {said[:60]}; {nearest(said, table.columns, 'the policy names')}")
    column = known[name.casefold()]
    if not isinstance(column, Identifier | Text | Category):
        raise QueryError(f"{column.name} does not name nodes; the ends of edges are columns of type id, text or values")
    return column
