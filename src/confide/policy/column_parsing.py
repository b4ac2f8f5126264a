"""From a tree to a column."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from fractions import Fraction

from confide.policy.column import (
    Category,
    CategoryValue,
    Column,
    Date,
    Fault,
    Identifier,
    Number,
    Text,
    Typical,
    Unbounded,
    category_faults,
    date_faults,
    grain_faults,
    number_faults,
    typical_faults,
)
from confide.policy.findings import BLANK, HALVES_OF_A_RANGE, Findings, nearest, read_flag, read_number, say
from confide.policy.node import Block, Leaf, Listing, Node, Path, ratio, read_day
from confide.policy.value_list import file_of, read_values

_ENOUGH = 20
"""So many wrong values of one list are told, not more."""

COLUMN_KEYS = ("type", "values", "nulls", "range", "grain", "bins", "typical")
_KINDS = "{values: [...]}, {range: [low, high]}, {type: id} or {type: text}"


def read_column(name: str, node: Node, path: Path, findings: Findings) -> Column:
    """The column, or a stand-in of kind id together with findings: an id raises no further faults elsewhere."""
    stand_in = Identifier(name)
    if not isinstance(node, Block) or not node.entries:
        findings.add(path, f"nothing is said about the column, found {say(node)}", f"write {_KINDS}")
        return stand_in
    halves = HALVES_OF_A_RANGE & {key.casefold() for key in node.entries}
    node = Block(findings.known_keys(node, path, COLUMN_KEYS))
    given = [key for key in ("type", "values", "range") if key in node.entries]
    if len(given) > 1:
        findings.add(path, f"{' and '.join(given)} exclude each other", f"write one of {_KINDS}")
        return stand_in
    if not given:
        what = (
            "the bounds are missing" if {"grain", "bins"} & set(node.entries) else "the kind of the column is missing"
        )
        if not halves:
            findings.add(path, what, f"write {_KINDS}")
        return stand_in
    read = {"type": _read_type, "values": _read_category, "range": _read_range}[given[0]]
    facts = Block({key: own for key, own in node.entries.items() if key != "typical"})
    column = read(name, facts, path, findings)
    if column is not None and "typical" in node.entries:
        column = _with_typical(column, node.entries["typical"], (*path, "typical"), findings)
    return column or stand_in


def _with_typical(column: Column, node: Node, path: Path, findings: Findings) -> Column | None:
    """A column of numbers with where most of them are believed to lie."""
    if not isinstance(column, Number | Unbounded):
        findings.add(path, "typical is for columns of numbers", "leave it out")
        return None
    if not isinstance(node, Listing) or len(node.items) != 2:
        findings.add(path, f"expected two numbers, found {say(node)}", "write typical: [low, high]")
        return None
    low, high = (read_number(item, (*path, place), findings) for place, item in enumerate(node.items))
    if low is None or high is None:
        return None
    typical: Typical = (low, high)
    ends = (column.low, column.high) if isinstance(column, Number) else column.reach
    return (
        replace(column, typical=typical) if _sound(typical_faults(typical, ends), path[:-1], findings, True) else None
    )


def _read_type(name: str, node: Block, path: Path, findings: Findings) -> Column | None:
    kind = node.entries["type"]
    word = kind.value if isinstance(kind, Leaf) else None
    _only(node, ("type",) if word == "id" else ("type", "nulls"), path, findings)
    if isinstance(kind, Leaf) and kind.blank:
        findings.add((*path, "type"), BLANK, f"write one of {_KINDS}")
        return None
    if word == "id":
        return Identifier(name)
    if word == "text":
        return Text(name, _read_nulls(node, path, findings))
    guess = nearest(word, ("id", "text")) if isinstance(word, str) else None
    advice = f"did you mean {guess!r}? " if guess else ""
    findings.add((*path, "type"), f"expected id or text, found {say(kind)}", f"{advice}a column is one of {_KINDS}")
    return None


def _read_category(name: str, node: Block, path: Path, findings: Findings) -> Column | None:
    _only(node, ("values", "nulls"), path, findings)
    nulls = _read_nulls(node, path, findings)
    place: Path = (*path, "values")
    listing = node.entries["values"]
    if (file := file_of(listing)) is not None:
        found = read_values(file, name, place, findings, findings.base)
        sound = found is not None and _sound(category_faults(found), path, findings, True)
        return Category(name, found, nulls) if found is not None and sound else None
    if not isinstance(listing, Listing):
        advice = "for example values: [F, M], or values: @codes.csv for a file that lists them"
        findings.add(place, f"expected a list of values, found {say(listing)}", advice)
        return None
    values: list[CategoryValue] = []
    seen: dict[tuple[type, CategoryValue], int] = {}
    wrong = 0
    for position, item in enumerate(listing.items):
        value = _read_value(item, (*place, position), findings)
        if value is None:
            wrong += 1
            if wrong == _ENOUGH:
                break
            continue
        first = seen.setdefault((type(value), value), position)
        if first != position:
            what = f"{say(item)} is listed twice"
            findings.add((*place, position), what, f"it is value {first + 1} already; leave one out")
            wrong += 1
        values.append(value)
    if wrong and not values:
        return None
    sound = _sound(category_faults(tuple(values)), path, findings, wrong == 0)
    return Category(name, tuple(values), nulls) if sound else None


def _read_nulls(node: Block, path: Path, findings: Findings) -> bool:
    """Whether NULL is a group of its own."""
    return "nulls" in node.entries and bool(read_flag(node.entries["nulls"], (*path, "nulls"), findings))


def _read_value(item: Node, path: Path, findings: Findings) -> CategoryValue | None:
    value = item.value if isinstance(item, Leaf) else None
    if isinstance(item, Leaf) and item.blank:
        findings.add(path, BLANK, "list every value that the column may have, or write {type: text} or {type: id}")
    elif isinstance(item, Leaf) and value is None:
        findings.add(path, "NULL is not a value", "leave it out and write nulls: true")
    elif isinstance(value, date):
        findings.add(path, f"{value} is a date", "write range: [first day, last day], or put the values in quotes")
    elif isinstance(value, Fraction | float):
        findings.add(path, f"{say(item)} is not a whole number", "write range: [low, high] with a grain, or use quotes")
    elif isinstance(value, str | int):
        return value
    else:
        findings.add(
            path, f"expected a single value, found {say(item)}", "use strings, whole numbers, or true and false"
        )
    return None


def _read_range(name: str, node: Block, path: Path, findings: Findings) -> Column | None:
    place: Path = (*path, "range")
    limits = node.entries["range"]
    if isinstance(limits, Leaf) and limits.value == "unbounded":
        return _read_unbounded(name, node, path, findings)
    _only(node, ("range", "grain", "bins", "nulls"), path, findings)
    nulls = _read_nulls(node, path, findings)
    bins = read_number(node.entries["bins"], (*path, "bins"), findings) if "bins" in node.entries else None
    sound = ("bins" in node.entries) == (bins is not None)
    if not isinstance(limits, Listing) or len(limits.items) != 2:
        found = f"{len(limits.items)} bounds" if isinstance(limits, Listing) else say(limits)
        missing = isinstance(limits, Listing) and len(limits.items) == 1
        what = "a bound is missing" if missing else f"expected two bounds, found {found}"
        findings.add(place, what, "write range: [low, high], or range: unbounded")
        return None
    blanks = sum(isinstance(item, Leaf) and item.blank for item in limits.items)
    if blanks:
        what = BLANK if blanks == 1 else "both bounds are blanks that are left to fill in"
        findings.add(
            place, what, "write the lowest and the highest value that can occur; never take them from the data"
        )
    ends = [_read_end(item, (*place, position), findings) for position, item in enumerate(limits.items)]
    low, high = ends
    if isinstance(low, date) and isinstance(high, date):
        if "grain" in node.entries:
            findings.add((*path, "grain"), "a range of dates has no grain", "leave it out: the grain is one day")
            sound = False
        sound = _sound(date_faults(low, high, bins), path, findings, sound)
        return Date(name, low, high, bins, nulls) if sound else None
    grain = _read_grain(node, limits, path, findings)
    if isinstance(low, date) or isinstance(high, date):
        if low is not None and high is not None:
            findings.add(place, "one end is a date and the other a number", "both ends must be of one kind")
        return None
    if low is None or high is None or grain is None:
        return None
    return (
        Number(name, low, high, grain, bins, nulls)
        if _sound(number_faults(low, high, grain, bins), path, findings, sound)
        else None
    )


def _read_end(item: Node, path: Path, findings: Findings) -> Fraction | date | None:
    if isinstance(item, Leaf):
        if isinstance(item.value, date):
            return item.value
        if item.blank:
            return None  # told once for both ends
        if item.value is None:
            findings.add(path, "a bound is missing", "write range: [low, high]")
            return None
        if isinstance(item.value, str) and item.value[:4].isdigit() and "-" in item.value:
            day = read_day(item.value)
            if day is None:
                findings.add(path, f"{say(item)} is not a day of the calendar", "write days as 2024-01-31")
            return day
    return read_number(item, path, findings)


def _read_grain(node: Block, limits: Listing, path: Path, findings: Findings) -> Fraction | None:
    if "grain" in node.entries:
        return read_number(node.entries["grain"], (*path, "grain"), findings)
    ends = [item.value for item in limits.items if isinstance(item, Leaf)]
    if any(isinstance(end, Fraction) or (isinstance(end, str) and ratio(end) is not None) for end in ends):
        findings.add(path, "the grain is missing: the range is not in whole numbers", "add for example grain: 0.01")
        return None
    return Fraction(1)


def _read_unbounded(name: str, node: Block, path: Path, findings: Findings) -> Column | None:
    _only(node, ("range", "grain"), path, findings)
    if "grain" not in node.entries:
        findings.add(path, "the grain is missing", "an unbounded column needs one, for example grain: 1")
        return None
    grain = read_number(node.entries["grain"], (*path, "grain"), findings)
    if grain is None or not _sound(grain_faults(grain), path, findings, True):
        return None
    return Unbounded(name, grain)


def _only(node: Block, allowed: tuple[str, ...], path: Path, findings: Findings) -> None:
    for key in node.entries:
        if key not in allowed:
            findings.add((*path, key), f"{key} has no meaning beside {allowed[0]}", "leave it out")


def _sound(faults: Iterable[Fault], path: Path, findings: Findings, so_far: bool) -> bool:
    for part, what, advice in faults:
        findings.add((*path, part), what, advice)
        so_far = False
    return so_far
