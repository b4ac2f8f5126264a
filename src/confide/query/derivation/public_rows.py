"""Public tables among released ones: their rows are constants of the derivation, read as joins and keys see them."""

from collections.abc import Iterable
from datetime import timedelta
from fractions import Fraction
from typing import Any

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Category, Column, Date, Identifier, Number, Policy, Text
from confide.policy.column import EPOCH
from confide.privacy.limits import MOST_LISTED_ROWS
from confide.query.derivation.bound_table import BoundTable
from confide.query.derivation.derivation import ColumnKind, DerivedColumn, ListedRows, Plain
from confide.query.scope import Catalog


def public_table(node: exp.Expr, policy: Policy) -> str | None:
    """The name of the public table that a part of a FROM names; None if it names none."""
    if not isinstance(node, exp.Table) or node.args.get("db"):
        return None
    tables = {name.casefold(): table for name, table in policy.tables.items()}
    found = tables.get(node.name.casefold())
    return found.name if found is not None and found.public else None


def public_rows(table: str, select: exp.Select, catalog: Catalog) -> BoundTable:
    """The rows of a public table, in the columns that a query names."""
    known = catalog.columns(table)
    spoken = {own.name.casefold() for own in select.find_all(exp.Column, exp.Identifier)}
    every = select.find(exp.Star) is not None or any(join.args.get("method") for join in select.args.get("joins") or ())
    columns = tuple(name for name in known if every or name.casefold() in spoken) or tuple(known)
    if catalog.multiplicity(table, columns) > 1:
        columns = tuple(known)
    if catalog.multiplicity(table, columns) > 1:
        raise QueryError(
            f"{table} has rows that are the same in every column, so which of them are joined cannot be told; give "
            "them a column that tells them apart"
        )
    rows = catalog.distinct(table, columns, MOST_LISTED_ROWS)
    if rows is None:
        raise QueryError(
            f"{table} has more than {MOST_LISTED_ROWS:,} rows, and released numbers are joined to fewer; join it "
            "before the rows are counted, with its columns in GROUP BY"
        )
    plain = tuple(tuple(_value(own, known[name]) for own, name in zip(row, columns, strict=True)) for row in rows)
    kinds = [_kind(known[name], (row[place] for row in plain)) for place, name in enumerate(columns)]
    shown = tuple(DerivedColumn(name, kind, public=True) for name, kind in zip(columns, kinds, strict=True))
    table_of = ListedRows(tuple(sorted(plain, key=repr)))
    return BoundTable(table_of, shown, False, len(plain), 1 + len(plain) // 100, frozenset(range(len(columns))))


def keyed_by(bound: BoundTable, places: Iterable[int]) -> BoundTable:
    """A table of listed rows that no two rows share these columns of, known to be so."""
    wanted = tuple(places)
    if not isinstance(bound.table, ListedRows) or not wanted:
        return bound
    seen = {tuple(row[place] for place in wanted) for row in bound.table.rows}
    if len(seen) < len(bound.table.rows):
        return bound
    return BoundTable(bound.table, bound.columns, bound.chosen, bound.rows, bound.parts, frozenset(wanted))


def _value(value: Any, column: Column) -> Plain:
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(column, Date):
        return EPOCH + timedelta(days=int(value))
    return Fraction(int(value)) * (column.grain if isinstance(column, Number) else 1)


def _kind(column: Column, values: Iterable[Plain]) -> ColumnKind:
    match column:
        case Category(values=(bool(), *_)):
            return "boolean"
        case Category(values=(str(), *_)) | Text():
            return "text"
        case Category():
            return "integer"
        case Date():
            return "date"
        case Number():
            return "integer" if column.integer else "number"
        case Identifier() if all(isinstance(own, str | None) for own in values):
            return "text"
    return "integer"
