"""From a tree to the parts of a policy: every mistake goes to the findings, and reading goes on."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from confide.errors import ParameterError
from confide.host.address import is_postgres
from confide.policy.analyst import cap_faults
from confide.policy.column import ROWS_LIMIT, Column, Identifier
from confide.policy.column_parsing import read_column
from confide.policy.file_kind import kind_of
from confide.policy.findings import BLANK, Findings, nearest, read_flag, read_number, read_whole, say
from confide.policy.node import Block, Leaf, Listing, Node, Path
from confide.policy.structure import ROW_HAS_NO_BOUNDS, meant_unit, structure_faults
from confide.policy.table import Contribution, KeyUnit, RowUnit, Table, Unit
from confide.privacy.amount import LARGEST, SMALLEST
from confide.privacy.budget import CONCENTRATED, EITHER, PURE, Budget

FORMAT = 1
KEYS = ("confide", "source", "budget", "analysts", "unit", "tables", "ledger", "version", "summary_rows")
TABLE_KEYS = ("public", "references", "at_most", "rows", "size", "columns")

Source = dict[str, str] | str | None


@dataclass(slots=True)
class Parts:
    """The parts of a policy as read so far; those that could not be read keep their defaults."""

    unit: Unit | None = None
    budget: Budget | None = None
    tables: dict[str, Table] = field(default_factory=dict)
    analysts: dict[str, Fraction] = field(default_factory=dict)
    source: Source = None
    ledger: str | None = None
    version: str | None = None
    summary_rows: int | None = None
    notes: tuple[str, ...] = ()


def read_parts(root: Node | None, findings: Findings) -> Parts:
    """Read a whole policy."""
    parts = Parts()
    if not isinstance(root, Block):
        # A file that is no policy may be the data themselves, so its words are not repeated.
        found = "other text" if isinstance(root, Leaf) and root.value is not None else "nothing"
        found = say(root) if isinstance(root, Listing) else found
        findings.add((), f"a policy is a mapping of keys, found {found}", f"start with the keys {', '.join(KEYS[:6])}")
        return parts
    unclear: set[Path] = set()  # tables of which too little could be read to say whose rows they hold
    entries = findings.known_keys(root, (), KEYS)
    for key in ("budget", "unit", "tables"):
        if key not in entries:
            findings.add((), f"the key {key!r} is missing", _MISSING[key])
    if "confide" in entries:
        _read_format(entries["confide"], findings)
    if "budget" in entries:
        parts.budget = _read_budget(entries["budget"], findings)
    if "unit" in entries:
        parts.unit = _read_unit(entries["unit"], findings)
    if "tables" in entries:
        parts.tables = _read_tables(entries["tables"], parts.unit, findings, unclear)
    if "analysts" in entries:
        parts.analysts = _read_analysts(entries["analysts"], findings)
    if "source" in entries:
        parts.source = _read_source(entries["source"], parts.tables, findings)
    parts.ledger = _read_words(entries, "ledger", findings)
    parts.version = _read_words(entries, "version", findings)
    if "summary_rows" in entries:
        node = entries["summary_rows"]
        parts.summary_rows = read_whole(node, ("summary_rows",), findings, least=10_000, most=100_000_000)
    for path, what, advice in structure_faults(parts.unit, parts.tables):
        if path not in unclear:
            findings.add(path, what, advice)
    return parts


_MISSING = {
    "budget": "write for example budget: {epsilon: 1}",
    "unit": "say who is protected: unit: row, or unit: table.column",
    "tables": "describe at least one table under tables:",
}


def _read_format(node: Node, findings: Findings) -> None:
    if not (isinstance(node, Leaf) and node.value == FORMAT and type(node.value) is int):
        findings.add(("confide",), f"the format {say(node)} is not known", f"write confide: {FORMAT}")


def _read_budget(node: Node, findings: Findings) -> Budget | None:
    if not isinstance(node, Block):
        findings.add(("budget",), f"expected a mapping, found {say(node)}", "write budget: {epsilon: 1, delta: 1e-9}")
        return None
    entries = findings.known_keys(node, ("budget",), ("epsilon", "delta", "accounting"))
    epsilon, delta, accounting = None, Fraction(0), ""
    if "epsilon" not in entries:
        findings.add(("budget",), "epsilon is missing", "write for example budget: {epsilon: 1}")
    else:
        epsilon = _read_amount(entries["epsilon"], ("budget", "epsilon"), findings)
    if "delta" in entries:
        read = read_number(entries["delta"], ("budget", "delta"), findings)
        if read is None:
            return None
        if not (read == 0 or SMALLEST <= read < 1):
            advice = (
                "it must be 0, or from 1e-30 to far below one in the number of units; for a pure budget leave it out"
            )
            findings.add(("budget", "delta"), f"delta is {say(entries['delta'])}", advice)
            return None
        delta = read
    if "accounting" in entries:
        said = entries["accounting"]
        if not isinstance(said, Leaf) or said.value not in (PURE, CONCENTRATED, EITHER):
            advice = "write pure, concentrated or either; a budget with a delta is concentrated unless it says either"
            findings.add(("budget", "accounting"), f"the accounting {say(said)} is not known", advice)
            return None
        accounting = str(said.value)
    if epsilon is None:
        return None
    try:
        return Budget(epsilon, delta, accounting)
    except ParameterError as error:
        findings.add(("budget",), str(error))
        return None


def _read_amount(node: Node, path: Path, findings: Findings) -> Fraction | None:
    amount = read_number(node, path, findings)
    if amount is not None and not SMALLEST <= amount <= LARGEST:
        findings.add(path, f"{path[-1]} is {say(node)}", "it must be above 0, from 1e-30 to 1e6")
        return None
    return amount


def _read_unit(node: Node, findings: Findings) -> Unit | None:
    if isinstance(node, Leaf) and node.blank:
        findings.add(("unit",), BLANK, "say who is protected: row, or table.column")
        return None
    if not isinstance(node, Leaf) or not isinstance(node.value, str) or not node.value:
        findings.add(
            ("unit",), f"expected 'row' or 'table.column', found {say(node)}", "for example unit: person.person_id"
        )
        return None
    if node.value == "row":
        return RowUnit()
    table, dot, column = node.value.partition(".")
    if not (dot and table and column):
        guess = "did you mean 'row'? " if nearest(node.value, ("row", "rows", "line")) else ""
        findings.add(("unit",), f"the unit {node.value!r} is not known", f"{guess}write row, or table.column")
        return None
    return KeyUnit(table, column)


def _read_tables(node: Node, unit: Unit | None, findings: Findings, unclear: set[Path]) -> dict[str, Table]:
    if not isinstance(node, Block) or not node.entries:
        findings.add(("tables",), f"expected a mapping of tables, found {say(node)}", "describe at least one table")
        return {}
    meant = meant_unit(unit, node.entries) if isinstance(unit, KeyUnit) else unit
    return {name: _read_table(name, item, meant, findings, unclear) for name, item in node.entries.items()}


def _read_table(name: str, node: Node, unit: Unit | None, findings: Findings, unclear: set[Path]) -> Table:
    path: Path = ("tables", name)
    if not isinstance(node, Block):
        findings.add(path, f"expected a mapping, found {say(node)}", "write its columns, or {public: true}")
        unclear.add(path)
        return Table(name)
    entries = findings.known_keys(node, path, TABLE_KEYS)
    public = "public" in entries and read_flag(entries["public"], (*path, "public"), findings) is True
    columns = _read_columns(entries.get("columns"), (*path, "columns"), findings)
    size = None
    if "size" in entries:
        size = read_whole(entries["size"], (*path, "size"), findings, least=1, most=ROWS_LIMIT)
    if public:
        for key in ("references", "at_most", "rows"):
            if key in entries:
                findings.add((*path, key), f"{key} has no meaning on a public table", "leave it out")
        return Table(name, public=True, columns=columns, size=size)
    if "columns" not in entries:
        findings.add(path, "the columns are missing", "describe each column, or write public: true")
    references = _read_references(entries.get("references"), (*path, "references"), findings)
    if "references" in entries and not references:
        unclear.add(path)
    for column in references:
        columns.setdefault(column, Identifier(column))  # a column that points to a key is a key
    at_most = _read_at_most(entries.get("at_most"), name, unit, findings)
    rows = _read_rows(entries.get("rows"), (*path, "rows"), findings)
    return Table(name, False, columns, references, at_most, rows, size)


def _read_columns(node: Node | None, path: Path, findings: Findings) -> dict[str, Column]:
    if node is None:
        return {}
    if not isinstance(node, Block) or not node.entries:
        findings.add(path, f"expected a mapping of columns, found {say(node)}", "for example age: {range: [0, 115]}")
        return {}
    return {name: read_column(name, item, (*path, name), findings) for name, item in node.entries.items()}


def _read_references(node: Node | None, path: Path, findings: Findings) -> dict[str, tuple[str, str]]:
    if node is None:
        return {}
    if not isinstance(node, Block):
        findings.add(path, f"expected a mapping, found {say(node)}", "write references: {column: table.column}")
        return {}
    references = {}
    for column, target in node.entries.items():
        table, dot, key = (
            target.value.partition(".") if isinstance(target, Leaf) and isinstance(target.value, str) else ("",) * 3
        )
        if dot and table and key:
            references[column] = (table, key)
        else:
            findings.add((*path, column), f"expected table.column, found {say(target)}", "for example person.person_id")
    return references


def _read_at_most(node: Node | None, name: str, unit: Unit | None, findings: Findings) -> Contribution:
    path: Path = ("tables", name, "at_most")
    needed = isinstance(unit, KeyUnit) and unit.table != name
    advice = "write at_most: {rows: 20, groups: 5} with your own numbers"
    if node is None:
        if needed:
            findings.add(path[:-1], "the most rows that one unit may have here is missing", advice)
        return Contribution()
    if isinstance(unit, RowUnit):
        findings.add(path, *ROW_HAS_NO_BOUNDS)
        return Contribution()
    if not isinstance(node, Block):
        findings.add(path, f"expected a mapping, found {say(node)}", advice)
        return Contribution()
    entries = findings.known_keys(node, path, ("rows", "groups"))
    rows: int | None = 1
    if "rows" in entries:
        rows = read_whole(entries["rows"], (*path, "rows"), findings, least=1, most=ROWS_LIMIT)
    elif needed:
        findings.add(path, "rows is missing", advice)
        rows = None
    groups = rows
    if "groups" in entries:
        groups = read_whole(entries["groups"], (*path, "groups"), findings, least=1, most=ROWS_LIMIT)
    if rows is None or groups is None:
        return Contribution()
    if groups > rows:
        what = f"{groups} groups cannot come from {rows} row{'s' if rows != 1 else ''}"
        findings.add((*path, "groups"), what, f"write at most {rows}")
        return Contribution()
    return Contribution(rows, groups)


def _read_rows(node: Node | None, path: Path, findings: Findings) -> Literal["private", "public"]:
    if node is None:
        return "private"
    if isinstance(node, Leaf) and node.value == "public":
        return "public"
    if not (isinstance(node, Leaf) and node.value == "private"):
        advice = "write private or public; a rough number of rows goes under size"
        guess = nearest(node.text, ("private", "public")) if isinstance(node, Leaf) else None
        findings.add(
            path,
            f"expected private or public, found {say(node)}",
            f"did you mean {guess!r}? {advice}" if guess else advice,
        )
    return "private"


def _read_analysts(node: Node, findings: Findings) -> dict[str, Fraction]:
    if not isinstance(node, Block):
        findings.add(("analysts",), f"expected a mapping, found {say(node)}", 'write analysts: {ann: 1, "*": 0.5}')
        return {}
    caps = {}
    for name, item in node.entries.items():
        nothing = isinstance(item, Leaf) and item.value == 0 and not isinstance(item.value, bool)
        cap = Fraction(0) if nothing else _read_amount(item, ("analysts", name), findings)
        if cap is not None:
            caps[name] = cap
    for path, what, advice in cap_faults(node.entries):
        findings.add(path, what, advice)
    return caps


def _read_source(node: Node, tables: dict[str, Table], findings: Findings) -> Source:
    if isinstance(node, Leaf) and node.value is None:
        return None
    if isinstance(node, Leaf) and isinstance(node.value, str) and node.value.strip() and not node.blank:
        if is_postgres(node.value) or kind_of(node.value) not in ("text", "parquet"):
            return node.value
        if len(tables) == 1:
            return dict.fromkeys(tables, node.value)
        what = f"one file cannot hold {len(tables)} tables"
        findings.add(("source",), what, "write source: {table: file, ...}, or one DuckDB file")
        return None
    if not isinstance(node, Block):
        what = f"expected files or a database, found {say(node)}"
        findings.add(("source",), what, "write {table: file, ...}, a DuckDB file, postgresql://..., or spark")
        return None
    files = {}
    for name, item in node.entries.items():
        if tables and name not in tables:
            findings.unknown(("source", name), "the table", name, tables)
        if isinstance(item, Leaf) and isinstance(item.value, str) and item.value.strip() and not item.blank:
            files[name] = item.value
        else:
            findings.add(("source", name), f"expected a file, found {say(item)}", f"for example {name}: {name}.parquet")
    return files


def _read_words(entries: dict[str, Node], key: str, findings: Findings) -> str | None:
    node = entries.get(key)
    if node is None or (isinstance(node, Leaf) and node.value is None):
        return None
    if not isinstance(node, Leaf) or node.blank or not node.text.strip():
        findings.add((key,), f"expected a word, found {say(node)}")
        return None
    return node.text
