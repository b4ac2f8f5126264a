"""SmartNoise metadata as a policy: database → schema → table → options and columns.

The tree is turned into the tree of a policy of ours, line by line, and read like any other. What it cannot say (a
budget, a source) stands beside it under our own keys. What is lost or chosen on the way is said in notes.
"""

from collections.abc import Iterator
from fractions import Fraction

from confide.errors import Problem
from confide.policy.column import show
from confide.policy.findings import nearest, say
from confide.policy.node import Block, Leaf, Listing, Node, Path

STEPS = 10**6
"""A float column gets the power of ten as its grain that cuts its range into STEPS to 10·STEPS steps."""

UNBOUNDED_GRAIN = Fraction(1, 1000)
"""The grain of a float column without bounds."""

OWN_KEYS = ("confide", "source", "budget", "analysts", "unit", "ledger", "version", "summary_rows")

_TYPES = ("int", "float", "string", "boolean", "datetime", "date", "unknown")
_OPTIONS = (
    "rows",
    "rows_exact",
    "row_privacy",
    "max_ids",
    "sample_max_ids",
    "censor_dims",
    "clamp_counts",
    "clamp_columns",
    "use_dpsu",
)
_COLUMN_KEYS = (
    "name",
    "type",
    "private_id",
    "lower",
    "upper",
    "cardinality",
    "nullable",
    "missing_value",
    "sensitivity",
    "bounded",
    "values",
)
_OLD_KEYS = {"min": "lower", "max": "upper", "is_key": "private_id", "categories": "values"}
_IGNORED = {
    "sensitivity": "it follows from the bounds and the unit",
    "missing_value": "NULL never counts as a value",
    "bounded": "it follows from the bounds",
}


class Translation:
    """The tree of the policy, and what was found and chosen on the way to it."""

    def __init__(self) -> None:
        self.root = Block({})
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        self.places: dict[str, str] = {}

    def spell(self, path: Path) -> str:
        """A path of the translated tree in the words of the original."""
        if len(path) < 2 or path[0] != "tables" or path[1] not in self.places:
            return ".".join(map(str, path)) or "the metadata"
        words = [self.places[path[1]]]
        if len(path) > 3 and path[2] == "columns":
            words.append(str(path[3]))
        elif len(path) > 2:
            words.append({"at_most": "max_ids", "size": "rows"}.get(str(path[2]), str(path[2])))
        return ".".join(words)


def is_smartnoise(root: Node | None) -> bool:
    """Whether a tree looks like SmartNoise metadata: a column with one of its types, four levels down."""
    if not isinstance(root, Block) or "tables" in root.entries:
        return False
    level: list[Node] = [node for key, node in root.entries.items() if key not in OWN_KEYS]
    for _ in range(3):
        level = [node for block in level if isinstance(block, Block) for node in block.entries.values()]
    return any(isinstance(column, Block) and _word(column, "type") in _TYPES for column in level)


def translate(root: Block) -> Translation:
    """The policy that the metadata stands for."""
    own = {key: node for key, node in root.entries.items() if key in OWN_KEYS}
    done = Translation()
    collections = [key for key in root.entries if key not in (*OWN_KEYS, "engine")]
    if len(collections) > 1:
        where, line = collections[1], root.key_lines.get(collections[1])
        done.problems.append(Problem(where, "there is more than one database", "keep one database in one file", line))
    tables = dict(_tables(root, collections[0], done))
    entries, lines = _rebuild(tables, done)
    unit = own.get("unit") or _choose_unit(tables, done)
    if unit is not None:
        own["unit"] = unit
        if isinstance(unit, Leaf) and isinstance(unit.value, str) and unit.value != "row":
            entries = {name: _with_reference(name, block, tables[name], unit) for name, block in entries.items()}
    own["tables"] = Block(entries, root.key_lines.get(collections[0]), lines)
    done.root = Block(own, root.line, {**root.key_lines, "tables": root.key_lines.get(collections[0], 1)})
    return done


class _Source:
    """One table of the metadata, its line, and the column that tells units apart."""

    def __init__(self, block: Block, line: int | None) -> None:
        self.block, self.line = block, line
        self.key = next(_keys(block), None)

    def flag(self, option: str) -> bool:
        return _word(self.block, option) is True


def _tables(root: Block, collection: str, done: Translation) -> Iterator[tuple[str, _Source]]:
    seen: dict[str, str] = {}
    database = root.entries[collection]
    for schema, content in database.entries.items() if isinstance(database, Block) else ():
        if not isinstance(content, Block):
            line = database.key_lines.get(schema) if isinstance(database, Block) else None
            done.problems.append(Problem(schema, f"expected a mapping of tables, found {say(content)}", "", line))
            continue
        for name, block in content.entries.items():
            line = content.key_lines.get(name)
            place = ".".join(part for part in (schema, name) if part)
            if name in seen:
                what = f"the table {name!r} is in {seen[name]!r} too"
                done.problems.append(Problem(place, what, "table names must differ, also between schemas", line))
            elif not isinstance(block, Block):
                done.problems.append(Problem(place, f"expected a mapping, found {say(block)}", "", line))
            else:
                seen[name] = schema
                done.places[name] = place
                yield name, _Source(block, line)


def _keys(table: Block) -> Iterator[str]:
    for name, column in table.entries.items():
        if isinstance(column, Block) and any(_word(column, key) is True for key in ("private_id", "is_key")):
            yield name


def _rebuild(tables: dict[str, _Source], done: Translation) -> tuple[dict[str, Node], dict[str, int]]:
    entries: dict[str, Node] = {}
    lines: dict[str, int] = {}
    for name, source in tables.items():
        entries[name] = _table(name, source, done)
        if source.line is not None:
            lines[name] = source.line
    return entries, lines


def _table(name: str, source: _Source, done: Translation) -> Block:
    block, place = source.block, done.places[name]
    columns: dict[str, Node] = {}
    entries: dict[str, Node] = {}
    lines: dict[str, int] = {}
    for key, node in block.entries.items():
        line = block.key_lines.get(key)
        if isinstance(node, Block):
            column = _column(f"{place}.{key}", node, line, done)
            if column is not None:
                columns[key] = column
        elif key not in _OPTIONS:
            guess = nearest(key, _OPTIONS)
            advice = (f"did you mean {guess!r}? " if guess else "") + f"options of a table: {', '.join(_OPTIONS)}"
            done.problems.append(Problem(f"{place}.{key}", f"the option {key!r} is not known", advice, line))
    rows = block.entries.get("rows", block.entries.get("rows_exact"))
    if rows is not None and not (isinstance(rows, Leaf) and rows.value == 0):
        entries["size"] = rows
    if "max_ids" in block.entries and not source.flag("row_privacy"):
        entries["at_most"] = Block({"rows": block.entries["max_ids"]}, block.key_lines.get("max_ids"))
    entries["columns"] = Block(columns, source.line, block.key_lines)
    lines = {
        key: block.key_lines[old] for key, old in (("size", "rows"), ("at_most", "max_ids")) if old in block.key_lines
    }
    done.notes += _option_notes(place, block)
    return Block(entries, source.line, lines)


def _option_notes(place: str, table: Block) -> Iterator[str]:
    if _word(table, "sample_max_ids") is False:
        yield f"{place}: max_ids is enforced although sample_max_ids is false"
    if _word(table, "clamp_columns") is False:
        yield f"{place}: values are clamped to their bounds although clamp_columns is false"
    if _word(table, "censor_dims") is False:
        yield f"{place}: censor_dims is false, but only declared values are group keys without a threshold"
    if _word(table, "clamp_counts") is True:
        yield f"{place}: clamp_counts is not followed: clamping at 0 would bias sums of counts"
    if "rows_exact" in table.entries:
        yield f"{place}: rows_exact is used to forecast only; write rows: public in a policy to make the number public"


def _column(place: str, node: Block, line: int | None, done: Translation) -> Block | None:
    parts = {_OLD_KEYS.get(key, key): item for key, item in node.entries.items()}
    for key in node.entries:
        if key not in _COLUMN_KEYS and key not in _OLD_KEYS:
            guess = nearest(key, _COLUMN_KEYS)
            advice = (f"did you mean {guess!r}? " if guess else "") + f"allowed: {', '.join(_COLUMN_KEYS)}"
            done.problems.append(
                Problem(f"{place}.{key}", f"the key {key!r} is not known", advice, node.key_lines.get(key))
            )
    done.notes += [f"{place}: {key} is not used: {why}" for key, why in _IGNORED.items() if key in parts]
    kind = _word(node, "type")
    if _word(node, "private_id") is True or _word(node, "is_key") is True:
        return _block(line, type=_leaf("id", line))
    if kind not in _TYPES:
        found = say(parts["type"]) if "type" in parts else "none"
        what = f"expected a type, found {found}" if "type" in parts else "the type is missing"
        done.problems.append(Problem(place, what, f"types: {', '.join(_TYPES)}", line))
        return _block(line, type=_leaf("text", line))
    nulls = {"nulls": parts["nullable"]} if _word(node, "nullable") is True else {}
    if isinstance(parts.get("values"), Listing):
        return _block(line, values=parts["values"], **nulls)
    match kind:
        case "boolean":
            return _block(line, values=Listing((_leaf(False, line), _leaf(True, line)), line), **nulls)
        case "string":
            done.notes.append(f"{place}: no list of values, so it is text: a group key only above a threshold")
            return _block(line, type=_leaf("text", line), **nulls)
        case "int" | "float":
            return _number(place, parts, line, done, nulls, whole=kind == "int")
        case "datetime" | "date" if "lower" in parts and "upper" in parts:
            return _block(line, range=Listing((parts["lower"], parts["upper"]), line), **nulls)
    done.notes.append(
        f"{place}: left out, because the metadata says nothing about its values; add lower and upper days"
    )
    return None


def _number(
    place: str, parts: dict[str, Node], line: int | None, done: Translation, nulls: dict[str, Node], whole: bool
) -> Block | None:
    lower, upper = parts.get("lower"), parts.get("upper")
    if lower is None and upper is None:
        grain = Fraction(1) if whole else UNBOUNDED_GRAIN
        done.notes.append(f"{place}: no bounds, so it cannot be summed; rounded to {show(grain)}")
        return _block(line, range=_leaf("unbounded", line), grain=_leaf(grain, line))
    if lower is None or upper is None:
        missing = "lower" if lower is None else "upper"
        done.problems.append(Problem(place, f"a bound is missing: there is no {missing}", f"add {missing}", line))
        return _block(line, type=_leaf("text", line))
    low, high = _number_of(lower), _number_of(upper)
    if low is None or high is None or low >= high:  # the reader of policies says what is wrong with it
        return _block(line, range=Listing((lower, upper), line), grain=_leaf(1, line))
    grain = Fraction(1) if whole else float_grain(high - low)
    ends = (low // grain * grain, -(-high // grain) * grain)
    if not whole:
        done.notes.append(f"{place}: a float, rounded to {show(grain)}")
    if ends != (low, high):
        done.notes.append(f"{place}: the bounds are widened to {show(ends[0])} and {show(ends[1])}")
    limits = (_leaf(ends[0], lower.line), _leaf(ends[1], upper.line))
    return _block(line, range=Listing(limits, line), grain=_leaf(grain, line))


def float_grain(width: Fraction) -> Fraction:
    """The largest power of ten that cuts the width into at least STEPS steps."""
    grain = Fraction(1)
    while width / grain < STEPS:
        grain /= 10
    while width / (grain * 10) >= STEPS:
        grain *= 10
    return grain


def _choose_unit(tables: dict[str, _Source], done: Translation) -> Leaf | None:
    if not tables:
        return None
    by_row = [name for name, source in tables.items() if source.flag("row_privacy")]
    if len(by_row) == len(tables):
        return _leaf("row", None)
    for name in by_row:
        what = "row_privacy is set here but not in every table"
        done.problems.append(
            Problem(done.places[name], what, "protect rows everywhere, or a key everywhere", tables[name].line)
        )
    keyed = [name for name, source in tables.items() if source.key is not None]
    for name, source in tables.items():
        if source.key is None and name not in by_row:
            advice = "mark a column with private_id: true, or write row_privacy: true"
            done.problems.append(Problem(done.places[name], "nothing says who is protected", advice, source.line))
    if not keyed:
        return None
    if len({(tables[name].key or "").casefold() for name in keyed}) > 1:
        line = tables[keyed[1]].line
        what = "the tables have private_id columns of different names"
        done.problems.append(
            Problem(done.places[keyed[1]], what, "say which one is the unit: unit: table.column", line)
        )
    own = next((name for name in keyed if _word(tables[name].block, "max_ids") in (1, None)), keyed[0])
    if len(keyed) > 1:
        done.notes.append(f"the unit is {own}.{tables[own].key}; the private_id columns of other tables refer to it")
    return _leaf(f"{own}.{tables[own].key}", tables[own].line)


def _with_reference(name: str, block: Node, source: _Source, unit: Leaf) -> Node:
    if not isinstance(block, Block) or source.key is None or str(unit.value).partition(".")[0] == name:
        return block
    added: dict[str, Node] = {"references": Block({source.key: unit}, source.line)}
    if "at_most" not in block.entries:
        added["at_most"] = Block({"rows": _leaf(1, source.line)}, source.line)  # SmartNoise's own default
    return Block({**added, **block.entries}, block.line, block.key_lines)


def _word(block: Block, key: str) -> object:
    node = block.entries.get(key)
    return node.value if isinstance(node, Leaf) else None


def _number_of(node: Node) -> Fraction | None:
    value = node.value if isinstance(node, Leaf) else None
    return Fraction(value) if isinstance(value, int | Fraction) and not isinstance(value, bool) else None


def _leaf(value: str | bool | int | Fraction, line: int | None) -> Leaf:
    return Leaf(value, show(value) if isinstance(value, Fraction) else str(value), line)


def _block(line: int | None, **entries: Node) -> Block:
    return Block(entries, line)
