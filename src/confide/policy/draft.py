"""The draft of a policy from column names and types alone. Every decision is a blank: invalid until filled in."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, assert_never

from confide.policy.canonical import quote

BLANK = "____"

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WHOLE = re.compile(
    r"(tiny|small|big|huge|u|ubig|usmall|utiny|uhuge)?int(eger|[0-9]+)?|int[0-9]+|uint[0-9]+|long|short"
)
_REAL = re.compile(r"double( precision)?|float[0-9]*|real|halffloat")
_DECIMAL = re.compile(r"(?:decimal|numeric|decimal128|decimal256)\(\s*[0-9]+\s*,\s*([0-9]+)\s*\)")
_WORDS = re.compile(
    r"(varchar|char|bpchar|character( varying)?|enum|dictionary)([(<].*[)>])?"
    r"|(large_)?string(_view)?|text|citext|utf8|object|str|category"
)
_DAYS = re.compile(r"(date|timestamp|datetime)[^\[\]]*(\[[a-z]+(, *tz=.*)?\])?")
_KEY = re.compile(r"id|uuid|.*_id|.*_uuid|.*ID|.*Id")

_ANY_KIND = (
    "fill in: {range: [low, high]} for a number or a day, {values: [a, b]} for a list, {type: text}, or {type: id}"
)

_HEADING = """\
# The policy of {name}: a draft made from the names and types of columns. {read}
# Fill in every {blank} from what is known about the subject, never from the data: a bound or a list that was
# taken from the data tells something about the people in it. The file is invalid until no blank is left.
"""
_UNREAD = "No value was read."


@dataclass(frozen=True, slots=True)
class StoredTable:
    """One table as it is stored: its name and, in order, the names and types of its columns, "" where it is unknown.

    `place` is the file that it is in, or its address; None if one source holds all tables.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    place: str | None = None


@dataclass(frozen=True, slots=True)
class Decided:
    """What need not be left blank, because it was said or paid for: the budget, the unit, and rules of columns."""

    budget: str = ""
    unit: str = ""
    rules: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    """By table and column, a rule and what to say of it."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    read: str = _UNREAD


def draft(tables: Sequence[StoredTable], ledger: str, source: str | None = None, decided: Decided | None = None) -> str:
    """The text of a policy. Keys and references are guessed from names and types; `source` holds all tables, if any."""
    known = decided or Decided()
    named = [StoredTable(table.name.replace(".", "_"), table.columns, table.place) for table in tables]
    guessed = guess_references(named)
    title = named[0].name if len(named) == 1 else f"{len(named)} tables"
    lines = [_HEADING.format(name=title, blank=BLANK, read=known.read).rstrip(), "confide: 1"]
    if source is not None:
        lines.append(f"source: {quote(source)}")
    else:
        places = [f"{_name(table.name)}: {quote(table.place or BLANK)}" for table in named]
        lines += [f"source: {{{places[0]}}}"] if len(places) == 1 else ["source:", *(f"  {place}" for place in places)]
    made = "it holds what was paid for" if known.budget else "confide ledger create makes it, once"
    lines.append(f"ledger: {quote(ledger)}    # the record of what is spent; {made}")
    if known.budget:
        lines.append(f"budget: {known.budget}")
    else:
        lines += [
            f"budget: {{epsilon: {BLANK}}}    # fill in: how much may be spent in all, for example 1",
            "                          # add delta: 1e-9 to allow Gaussian noise and groups by text",
        ]
    lines.append(f"unit: {known.unit or BLANK}{'' if known.unit else f'    # {_unit_comment(named, guessed)}'}")
    lines.append("tables:")
    for table in named:
        lines += _table(table, guessed.get(table.name, {}), known, len(named) > 1)
    return "\n".join(lines) + "\n"


def guess_references(tables: Sequence[StoredTable]) -> dict[str, dict[str, tuple[str, str]]]:
    """Which columns probably hold the keys of another table: by name, and if both are stored alike.

    `person_id` refers to the key of a table `person` or `persons`, called `person_id` or `id`. A table refers to each
    other once, and never in a circle: the first that is found stays.
    """
    keys = {table.name: own for table in tables if (own := _own_key(table)) is not None}
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for table in tables:
        own_key = keys.get(table.name, ("", ""))[0]
        references: dict[str, tuple[str, str]] = {}
        for column, kind in table.columns:
            for other, (key, other_kind) in keys.items():
                if other == table.name or column in (own_key, *references) or _leads(found, other, table.name):
                    continue
                if _names(column, other, key) and _family(kind) == _family(other_kind):
                    references[column] = (other, key)
        if references:
            found[table.name] = references
    return found


def _leads(found: Mapping[str, Mapping[str, tuple[str, str]]], start: str, end: str) -> bool:
    ahead, seen = [start], {start}
    while ahead:
        for target, _ in found.get(ahead.pop(), {}).values():
            if target == end:
                return True
            if target not in seen:
                seen.add(target)
                ahead.append(target)
    return False


def _own_key(table: StoredTable) -> tuple[str, str] | None:
    """The column that tells rows of a table apart, by its name alone."""
    wanted = [f"{stem}{ending}" for stem in _stems(table.name) for ending in ("_id", "id", "_uuid", "_key")]
    for column, kind in table.columns:
        if column.casefold() in wanted:
            return column, kind
    return next(((column, kind) for column, kind in table.columns if column.casefold() in ("id", "uuid")), None)


def _names(column: str, table: str, key: str) -> bool:
    """Whether a column is called after the key of a table."""
    if column.casefold() == key.casefold():
        return column.casefold() not in ("id", "uuid")
    return column.casefold() in [f"{stem}{ending}" for stem in _stems(table) for ending in ("_id", "id", "_uuid")]


def _stems(table: str) -> list[str]:
    name = table.casefold()
    return [name, *([name[:-3] + "y"] if name.endswith("ies") else []), *([name[:-1]] if name.endswith("s") else [])]


def _family(kind: str) -> str:
    low = kind.strip().lower()
    return "whole" if _WHOLE.fullmatch(low) else "words" if _WORDS.fullmatch(low) else low


def _unit_comment(tables: Sequence[StoredTable], guessed: Mapping[str, Mapping[str, tuple[str, str]]]) -> str:
    named = list(dict.fromkeys(f"{to}.{key}" for own in guessed.values() for to, key in own.values()))
    keys = named or [f"{table.name}.{key[0]}" for table in tables if (key := _own_key(table)) is not None]
    known = f", such as {keys[0]}," if keys else f", as {tables[0].name}.column"
    return f"fill in: who is protected: row, or an id{known} for whoever it stands for"


def _table(
    table: StoredTable, references: Mapping[str, tuple[str, str]], known: Decided, several: bool
) -> Iterator[str]:
    yield f"  {_name(table.name)}:{'    # or {public: true}, if everything in it is public' if several else ''}"
    if table.name in known.sizes:
        yield f"    size: {known.sizes[table.name]}    # paid for: roughly how many rows, to forecast errors"
    else:
        yield f"    # size: {BLANK}    # optional: roughly how many rows, to forecast errors"
    if references:
        targets = ", ".join(f"{_name(column)}: {_target(*target)}" for column, target in references.items())
        yield f"    references: {{{targets}}}    # guessed from names and types; leave out what is not so"
        yield (f"    at_most: {{rows: {BLANK}}}    # fill in: the most rows of one unit; leave it out under unit: row")
    yield "    columns:"
    for column, kind in table.columns:
        if column not in references:
            rule = known.rules.get((table.name, column))
            yield f"      {_name(column)}: {{{rule[0]}}}    # {rule[1]}" if rule else f"      {_column(column, kind)}"
    if all(column in references for column, _ in table.columns):
        yield f"      {_name(table.columns[0][0])}: {{type: id}}"


def _column(name: str, kind: str) -> str:
    if guess_kind(name, kind) == "unknown":
        return f"{_name(name)}: {BLANK}    # {_ANY_KIND}"
    rule, comment = _rule(name, kind.strip())
    return f"{_name(name)}: {{{rule}}}    # {comment}" if rule else f"# {_name(name)}: {comment}"


Guess = Literal["id", "flag", "whole", "decimal", "real", "days", "words", "unknown", "other"]


def guess_kind(name: str, kind: str) -> Guess:
    """What a column probably is, by its name and its type."""
    low = kind.strip().lower()
    if low in ("bool", "boolean"):
        return "flag"
    if low in ("uuid", "guid"):
        return "id"
    if _KEY.fullmatch(name) and (not low or _WHOLE.fullmatch(low) or _WORDS.fullmatch(low)):
        return "id"
    if not low:
        return "unknown"
    patterns: tuple[tuple[Guess, re.Pattern[str]], ...] = (
        ("whole", _WHOLE), ("decimal", _DECIMAL), ("real", _REAL), ("days", _DAYS), ("words", _WORDS),
    )  # fmt: skip
    if low in ("decimal", "numeric"):
        return "real"
    return next((guess for guess, pattern in patterns if pattern.fullmatch(low)), "other")


def _rule(name: str, kind: str) -> tuple[str, str]:
    ends = f"range: [{BLANK}, {BLANK}]"
    match guess_kind(name, kind):
        case "flag":
            return "values: [false, true]", "true or false"
        case "id":
            return "type: id", "a key by its name; if it is not, write a range, values, or type: text"
        case "whole":
            advice = "fill in: the lowest and the highest whole number; or type: id for a key, values: [...] for codes"
            return ends, advice
        case "decimal":
            return (
                f"{ends}, grain: {decimal_grain(kind)}",
                "fill in: the lowest and the highest number; a coarser grain is fine",
            )
        case "real":
            advice = "fill in: the lowest and the highest number, and what to round to, such as 0.01"
            return f"{ends}, grain: {BLANK}", advice
        case "days":
            return ends, "fill in: the first and the last day, as 2024-01-31"
        case "words":
            return (
                f"values: [{BLANK}]",
                "fill in: every value, or @file.csv that lists them; or type: text without a list, or type: id",
            )
        case "unknown" | "other":
            return "", f"left out, because nothing can be asked about the type {' '.join(kind.split())}"
        case guessed:
            assert_never(guessed)


def decimal_grain(kind: str) -> str:
    """The last digit of a decimal type."""
    found = _DECIMAL.fullmatch(kind.strip().lower())
    places = int(found[1]) if found else 0
    return "1" if places == 0 else f"0.{'0' * (places - 1)}1"


def _target(table: str, key: str) -> str:
    return f"{table}.{key}" if _PLAIN.fullmatch(table) and _PLAIN.fullmatch(key) else quote(f"{table}.{key}")


def _name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else quote(name)
