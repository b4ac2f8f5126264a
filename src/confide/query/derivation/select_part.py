"""Parts of a SELECT over released rows: its aggregates, its columns written out, and what becomes of their names."""

from collections.abc import Sequence

from sqlglot import exp

from confide.errors import QueryError
from confide.privacy.limits import MOST_KEYS
from confide.query.derivation.bound_table import BoundTable
from confide.query.derivation.derivation import ColumnKind, ComputedColumns, DerivedColumn, Fixed, Taken
from confide.query.derivation.released_expression import ReleasedNames
from confide.query.derivation.released_function import Meant
from confide.query.derivation.shape import alike, group_nodes, is_aggregate
from confide.query.literal import bare, literal_number


def aggregates_in(node: exp.Expr, keys: list[exp.Expr]) -> list[exp.Expr]:
    """The aggregates of an expression: not in windows, whose functions are none, and not in queries inside it."""
    found, pending = [], [node]
    while pending:
        own = pending.pop()
        if any(alike(own, key) for key in keys):
            continue
        if isinstance(own, exp.Window):
            called = own.this.this if isinstance(own.this, exp.Filter) else own.this
            pending += [*called.iter_expressions(), *(own.args.get("partition_by") or ())]
            pending += [own.args["order"]] if own.args.get("order") is not None else []
        elif is_aggregate(own):
            found.append(own)
        elif not isinstance(own, exp.Query):
            pending += own.iter_expressions()
    return found[::-1]


def clauses_with_aggregates(select: exp.Select) -> list[exp.Expr]:
    """The parts of a SELECT, beside its columns, that may hold aggregates."""
    found = [select.args[name] for name in ("having", "qualify", "order") if select.args.get(name) is not None]
    for window in select.args.get("windows") or ():
        found += window.args.get("partition_by") or ()
        found += [window.args["order"]] if window.args.get("order") is not None else []
    return found


def written_out(select: exp.Select, names: ReleasedNames) -> list[exp.Expr]:
    """The items of a SELECT, with `*` written out."""
    found: list[exp.Expr] = []
    for item in select.expressions:
        star = item.this if isinstance(item, exp.Column) else item
        if not isinstance(star, exp.Star):
            found.append(item)
            continue
        if any(star.args.values()) or not names.visible:
            raise QueryError("SELECT * shows rows, which never leave the data; write aggregates, or name the columns")
        wanted = item.table.casefold() if isinstance(item, exp.Column) else ""
        seen: set[str] = set()
        for own in names.visible:
            name = own.column.name.casefold()
            if (wanted and own.table.casefold() != wanted) or (not wanted and name in names.merged and name in seen):
                continue
            seen.add(name)
            table = exp.to_identifier(own.table, quoted=True) if own.table else None
            found.append(exp.column(exp.to_identifier(own.column.name, quoted=True), table=table))
    return found


def position_of(node: exp.Expr, width: int) -> int | None:
    inner = bare(node)
    if not isinstance(inner, exp.Literal) or inner.is_string:
        return None
    place = literal_number(inner)
    if place.denominator != 1 or not 1 <= place <= width:
        raise QueryError(f"ORDER BY {inner.name}: the SELECT has {width} columns; write one of their names")
    return int(place) - 1


def name_of_key(node: exp.Expr, select: exp.Select) -> str:
    if isinstance(node, exp.Column):
        return node.name
    return next((item.alias for item in select.expressions if item.alias and alike(item.unalias(), node)), "key")


def still_keyed(source: BoundTable, shown: list[Meant]) -> frozenset[int] | None:
    """Where the columns that tell rows apart are among those that are shown; None if one is not."""
    places = {
        own.expression.column: at for at, own in reversed(list(enumerate(shown))) if isinstance(own.expression, Taken)
    }
    if source.keyed is None or not source.keyed <= places.keys():
        return None
    return frozenset(places[key] for key in source.keyed)


def same_columns(parts: list[BoundTable]) -> tuple[DerivedColumn, ...]:
    first = parts[0].columns
    if any(len(part.columns) != len(first) for part in parts):
        raise QueryError("the parts of a UNION have different numbers of columns")
    columns = []
    for place, column in enumerate(first):
        own = [part.columns[place] for part in parts]
        told = [part.columns[place] for part in parts if not _always_null(part, place)]
        kinds: set[str] = {one.kind for one in told}
        kind: ColumnKind = told[0].kind if told else column.kind
        if kinds <= {"integer", "number"}:
            kind = "integer" if kinds == {"integer"} else "number"
        elif len(kinds) > 1:
            raise QueryError(
                f"{column.name[:60]} is of several kinds in the parts of a UNION ({', '.join(sorted(kinds))})"
            )
        public, labels = all(one.public for one in own), any(one.label for one in own)
        if labels and not all(one.label or one.public for one in own):
            require_no_labels(own, "UNION with other numbers")
        columns.append(DerivedColumn(column.name, kind, public, max(one.depth for one in own), labels))
    return tuple(columns)


def _always_null(bound: BoundTable, place: int) -> bool:
    """Whether a column is the constant NULL, which is of any kind."""
    return isinstance(bound.table, ComputedColumns) and bound.table.columns[place] == Fixed(None)


def require_no_labels(columns: Sequence[DerivedColumn], what: str) -> None:
    """Dates and values that were released with what is possible of them are shown as they are."""
    for column in columns:
        if column.label:
            raise QueryError(
                f"{what} is not answered of {column.name[:60]}, a released date or value: nothing is computed of it in "
                "an outer query; choose and sort rows by keys or numbers"
            )


def check_names(columns: tuple[DerivedColumn, ...]) -> None:
    taken: set[str] = set()
    for column in columns:
        names = [column.name] if column.public else [column.name, f"{column.name}_low", f"{column.name}_high"]
        for name in names:
            if name.casefold() in taken:
                raise QueryError(
                    f"two columns of the result would be called {name[:60]} "
                    "(each released number a comes with a_low and a_high); give one another name with AS"
                )
        taken |= {name.casefold() for name in names}


def checked_keys(select: exp.Select, held: frozenset[str]) -> list[exp.Expr]:
    """The keys of a GROUP BY over released rows."""
    keys = group_nodes(select, held)
    if len(keys) > MOST_KEYS:
        raise QueryError(f"GROUP BY has {len(keys):,} keys, at most {MOST_KEYS} are answered")
    clause = select.args.get("group")
    given = {} if clause is None else clause.args
    extras = [name for name, value in given.items() if value and name not in ("expressions", "all")]
    if extras:
        raise QueryError(f"GROUP BY {extras[0].upper()} is not answered; list the keys")
    return keys
