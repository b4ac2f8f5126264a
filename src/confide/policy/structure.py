"""What must hold between tables: names, references, and that every private row belongs to exactly one unit."""

from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import islice

from confide.policy.column import Identifier
from confide.policy.findings import nearest
from confide.policy.node import Path
from confide.policy.table import Contribution, KeyUnit, ReferenceStep, RowUnit, Table, Unit

StructureFault = tuple[Path, str, str]

ROW_HAS_NO_BOUNDS = (
    "at_most has no meaning when one row is protected",
    "leave it out, or protect a key: unit: table.column",
)


def structure_faults(unit: Unit | None, tables: Mapping[str, Table]) -> Iterator[StructureFault]:
    """Every fault between tables. A unit of None (unreadable) leaves out what depends on it."""
    if tables and all(table.public for table in tables.values()):
        yield ("tables",), "every table is public", "nothing is protected: at least one table must be private"
    yield from _name_faults(tables)
    for table in tables.values():
        yield from _reference_faults(table, tables)
    looped = False
    for cycle in _cycles(tables):
        looped = True
        way = " → ".join((*cycle, cycle[0]))
        yield ("tables", cycle[0], "references"), f"the references run in a circle: {way}", "leave one of them out"
    if isinstance(unit, RowUnit):
        yield from _row_unit_faults(tables)
    elif isinstance(unit, KeyUnit):
        fault = _key_fault(unit, tables)
        if fault is not None:
            yield fault
        meant = meant_unit(unit, tables)
        if meant is not None:
            yield from _key_unit_faults(meant, tables, walkable=fault is None and not looped)


def meant_unit(unit: KeyUnit, tables: Iterable[str]) -> KeyUnit | None:
    """The unit with its table spelled right, so that one slip of the pen is not told again for every table."""
    table = nearest(unit.table, tables)
    return None if table is None else KeyUnit(table, unit.column)


def unit_paths(unit: KeyUnit, tables: Mapping[str, Table], table: str) -> Iterator[tuple[ReferenceStep, ...]]:
    """Every chain of references from a table to the key of the unit; references must not run in a circle."""
    return _chains(unit, tables, table, _leading_to(unit, tables))


def _chains(
    unit: KeyUnit, tables: Mapping[str, Table], table: str, leading: Set[str]
) -> Iterator[tuple[ReferenceStep, ...]]:
    if table == unit.table:
        yield ()
        return
    for column, (to_table, to_column) in tables[table].references.items():
        # The last step must land on the key itself; no time goes into tables that lead nowhere.
        if to_table in leading and (to_table != unit.table or to_column == unit.column):
            for rest in _chains(unit, tables, to_table, leading):
                yield (ReferenceStep(table, column, to_table, to_column), *rest)


def _leading_to(unit: KeyUnit, tables: Mapping[str, Table]) -> Set[str]:
    leading = {unit.table}
    while True:
        more = {
            name
            for name, table in tables.items()
            if name not in leading and any(target in leading for target, _ in table.references.values())
        }
        if not more:
            return leading
        leading |= more


def _name_faults(tables: Mapping[str, Table]) -> Iterator[StructureFault]:
    yield from ((("tables", name), *fault) for name, fault in _spelling_faults(tables, "table"))
    for name in tables:
        if "." in name:
            yield ("tables", name), "the name of a table holds a dot", "rename it: a dot parts a table from its column"
    for table in tables.values():
        place: Path = ("tables", table.name, "columns")
        yield from (((*place, name), *fault) for name, fault in _spelling_faults(table.columns, "column"))


def _spelling_faults(names: Mapping[str, object], kind: str) -> Iterator[tuple[str, tuple[str, str]]]:
    folded: dict[str, str] = {}
    for name in names:
        if not name.strip() or not name.isprintable() or name != name.strip() or len(name) > 128:
            yield name, (f"{name!r} is no name for a {kind}", "use 1 to 128 printable characters, no space at the ends")
        other = folded.setdefault(name.casefold(), name)
        if other != name:
            yield name, (f"{name!r} and {other!r} are the same {kind} to SQL", "names must differ in more than case")


def _reference_faults(table: Table, tables: Mapping[str, Table]) -> Iterator[StructureFault]:
    place: Path = ("tables", table.name, "references")
    for column, (to_table, to_column) in table.references.items():
        target = tables.get(to_table)
        if target is None:
            guess = nearest(to_table, tables)
            advice = f"did you mean {guess!r}? " if guess else ""
            yield (*place, column), f"there is no table {to_table!r}", f"{advice}tables: {', '.join(tables)}"
            continue
        if target.public:
            if target.columns and to_column not in target.columns:
                yield (
                    (*place, column),
                    f"table {to_table!r} has no column {to_column!r}",
                    _columns_advice(target, to_column),
                )
            continue
        if to_column not in target.columns:
            yield (
                (*place, column),
                f"table {to_table!r} has no column {to_column!r}",
                _columns_advice(target, to_column),
            )
        elif not isinstance(target.columns[to_column], Identifier):
            yield (
                (*place, column),
                f"{to_table}.{to_column} is not an id",
                f"declare {to_column}: {{type: id}} in {to_table}",
            )
        if not isinstance(table.columns.get(column), Identifier | None):
            yield (
                (*place, column),
                f"{table.name}.{column} is not an id",
                f"declare {column}: {{type: id}} in {table.name}",
            )


def _columns_advice(table: Table, word: str) -> str:
    guess = nearest(word, table.columns)
    advice = f"did you mean {guess!r}? " if guess else ""
    return f"{advice}columns of {table.name}: {', '.join(table.columns) or 'none declared'}"


def _cycles(tables: Mapping[str, Table]) -> Iterator[tuple[str, ...]]:
    """Circles of references, so many that no circle is left when each of them is cut."""
    ahead = {name: [to for to, _ in table.references.values() if to in tables] for name, table in tables.items()}
    while ended := [name for name, targets in ahead.items() if not any(target in ahead for target in targets)]:
        for name in ended:
            del ahead[name]
    told: set[frozenset[str]] = set()
    for start in ahead:
        way = [start]
        while (following := next(target for target in ahead[way[-1]] if target in ahead)) not in way:
            way.append(following)
        cycle = tuple(way[way.index(following) :])
        if frozenset(cycle) not in told:
            told.add(frozenset(cycle))
            yield cycle


def _row_unit_faults(tables: Mapping[str, Table]) -> Iterator[StructureFault]:
    for table in tables.values():
        if not table.public and table.at_most != Contribution():
            yield ("tables", table.name, "at_most"), *ROW_HAS_NO_BOUNDS


def _key_fault(unit: KeyUnit, tables: Mapping[str, Table]) -> StructureFault | None:
    table = tables.get(unit.table)
    if table is None:
        guess = nearest(unit.table, tables)
        advice = f"did you mean '{guess}.{unit.column}'? " if guess else ""
        return ("unit",), f"there is no table {unit.table!r}", f"{advice}tables: {', '.join(tables)}"
    if table.public:
        return ("unit",), f"the table {unit.table!r} is public", "the unit's own table must be private"
    column = table.columns.get(unit.column)
    if column is None:
        return ("unit",), f"table {unit.table!r} has no column {unit.column!r}", _columns_advice(table, unit.column)
    if not isinstance(column, Identifier):
        return ("unit",), f"{unit} is not an id", f"declare {unit.column}: {{type: id}} in {unit.table}"
    return None


def _key_unit_faults(unit: KeyUnit, tables: Mapping[str, Table], walkable: bool) -> Iterator[StructureFault]:
    for table in tables.values():
        place: Path = ("tables", table.name)
        if table.public:
            continue
        if table.rows == "public" and (table.name != unit.table or table.at_most.rows != 1):
            what = "the number of rows cannot be public here: it would say how many rows one unit has"
            advice = "rows: public needs the unit's own table with one row each, or unit: row"
            yield (*place, "rows"), what, advice
        if not walkable and (table.references or table.name == unit.table):
            continue  # once the key and the circles are right, the chain may be right too
        ways = list(islice(unit_paths(unit, tables, table.name), 3))
        if not ways:
            what = f"nothing says whose rows these are: no chain of references leads to {unit}"
            yield place, what, f"add references: {{column: {unit}}}, or make the table public: true"
        elif len(ways) > 1:
            named = " and ".join(" → ".join([table.name, *(step.to_table for step in way)]) for way in ways)
            columns = " and ".join(dict.fromkeys(way[0].column for way in ways))
            what = f"each row belongs to more than one unit (by {columns}: {named})"
            advice = "a row must belong to exactly one unit: leave all references but one out"
            yield (*place, "references"), what, advice
