"""The draft of a policy from column names and types alone. Every decision is a blank: invalid until filled in."""

import re
from collections.abc import Sequence

from confide.policy.canonical import quote

BLANK = "____"

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WHOLE = re.compile(
    r"(tiny|small|big|huge|u|ubig|usmall|utiny|uhuge)?int(eger|[0-9]+)?|int[0-9]+|uint[0-9]+|long|short"
)
_REAL = re.compile(r"double( precision)?|float[0-9]*|real|halffloat")
_DECIMAL = re.compile(r"(?:decimal|numeric|decimal128|decimal256)\(\s*[0-9]+\s*,\s*([0-9]+)\s*\)")
_WORDS = re.compile(
    r"(varchar|char|bpchar|enum|dictionary)([(<].*[)>])?|(large_)?string(_view)?|text|utf8|object|str|category"
)
_DAYS = re.compile(r"(date|timestamp|datetime)[^\[\]]*(\[[a-z]+(, *tz=.*)?\])?")
_KEY = re.compile(r"id|uuid|.*_id|.*_uuid|.*ID|.*Id")

_ANY_KIND = (
    "fill in: {range: [low, high]} for a number or a day, {values: [a, b]} for a list, {type: text}, or {type: id}"
)

_HEADING = """\
# The policy of {name}: a draft made from the names and types of its columns. No value was read.
# Fill in every {blank} from what is known about the subject, never from the data: a bound or a list that was
# taken from the data tells something about the people in it. The file is invalid until no blank is left.
"""


def draft(name: str, schema: Sequence[tuple[str, str]], source_path: str) -> str:
    """The text of a policy for one table; `schema` has the name and the type of every column, "" if it is unknown."""
    table = name.replace(".", "_")
    lines = [
        _HEADING.format(name=table, blank=BLANK).rstrip(),
        "confide: 1",
        f"source: {{{_name(table)}: {quote(source_path)}}}",
        f"ledger: {quote(f'{table}.ledger')}    # the record of what is spent; confide ledger create makes it, once",
        f"budget: {{epsilon: {BLANK}}}    # fill in: how much may be spent in all, for example 1",
        "                          # add delta: 1e-9 to allow Gaussian noise and groups by text",
        f"unit: {BLANK}    # fill in: who is protected: row, or {table}.column for whoever an id stands for",
        "tables:",
        f"  {_name(table)}:",
        f"    # size: {BLANK}    # optional: roughly how many rows, to forecast errors",
        "    columns:",
    ]
    return "\n".join(lines + [f"      {_column(column, kind)}" for column, kind in schema]) + "\n"


def _column(name: str, kind: str) -> str:
    if not kind.strip() and not _KEY.fullmatch(name):
        return f"{_name(name)}: {BLANK}    # {_ANY_KIND}"
    rule, comment = _rule(name, kind.strip())
    return f"{_name(name)}: {{{rule}}}    # {comment}" if rule else f"# {_name(name)}: {comment}"


def _rule(name: str, kind: str) -> tuple[str, str]:
    low = kind.lower()
    if low in ("bool", "boolean"):
        return "values: [false, true]", "true or false"
    named_as_key = _KEY.fullmatch(name) and (not low or _WHOLE.fullmatch(low) or _WORDS.fullmatch(low))
    if low in ("uuid", "guid") or named_as_key:
        return "type: id", "a key by its name; if it is not, write a range, values, or type: text"
    ends = f"range: [{BLANK}, {BLANK}]"
    if _WHOLE.fullmatch(low):
        return ends, "fill in: the lowest and the highest whole number; or type: id for a key, values: [...] for codes"
    if decimal := _DECIMAL.fullmatch(low):
        places = int(decimal[1])
        grain = "1" if places == 0 else f"0.{'0' * (places - 1)}1"
        return f"{ends}, grain: {grain}", "fill in: the lowest and the highest number; a coarser grain is fine"
    if _REAL.fullmatch(low) or low in ("decimal", "numeric"):
        return (
            f"{ends}, grain: {BLANK}",
            "fill in: the lowest and the highest number, and what to round to, such as 0.01",
        )
    if _DAYS.fullmatch(low):
        return ends, "fill in: the first and the last day, as 2024-01-31"
    if _WORDS.fullmatch(low):
        return f"values: [{BLANK}]", "fill in: every value; or type: text if there is no list, or type: id for a key"
    return "", f"left out, because nothing can be asked about the type {' '.join(kind.split())}"


def _name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else quote(name)
