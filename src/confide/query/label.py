"""Texts of public domain as groups: what STRFTIME, DAYNAME, MONTHNAME, || and CONCAT make of dates and declared values.

Each is a list of conditions, of which at most one holds for a row, and the text that a row has where it does.
"""

import re
from datetime import date
from fractions import Fraction
from itertools import product
from typing import Final

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Category
from confide.query import number as arithmetic
from confide.query.calendar import PartAsked, date_constant, part_of, require_date, stretches
from confide.query.comparison import joined
from confide.query.expression import number
from confide.query.literal import bare, is_text, text
from confide.query.parse import shown
from confide.query.scope import Scope
from confide.query.text_change import change_of, made, written
from confide.query.tree import Always, Among, Field, Known, Predicate

Labels = list[tuple[Predicate, str]]

_MOST: Final = 1_000
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_CODE: Final = re.compile(r"%(-?[A-Za-z%])")
_BY_DAY: Final = frozenset(("d", "-d", "j", "a", "A", "u", "w"))


def labels_of(node: exp.Expr, scope: Scope) -> Labels | None:
    """The texts that an expression of public domain may be; None if it is no such expression."""
    node = bare(node)
    match node:
        case exp.TimeToStr():
            return _of_days(node, node.this, _format(node), scope)
        case exp.Dayname() | exp.Monthname():
            short = "" if not node.args.get("abbreviated") else "%a" if isinstance(node, exp.Dayname) else "%b"
            return _of_days(node, node.this, short or ("%A" if isinstance(node, exp.Dayname) else "%B"), scope)
        case exp.Literal() if node.is_string:
            return [(Always(True), node.name)]
        case exp.Column():
            field = scope.field(node)
            if not isinstance(field, Field) or not isinstance(field.column, Category):
                return None
            return [(Among(field, (value,)), written(value)) for value in field.column.values]
        case exp.DPipe() | exp.Concat():
            parts = [node.this, node.expression] if isinstance(node, exp.DPipe) else node.expressions
            return _joined(node, parts, isinstance(node, exp.Concat) and bool(node.args.get("coalesce")), scope)
    change = change_of(node)
    inside = None if change is None else labels_of(change[0], scope)
    if change is None or inside is None:
        return None
    changed = made(change[1].apply, (label for _, label in inside))
    return [(condition, label) for (condition, _), label in zip(inside, changed, strict=True)]


def _joined(node: exp.Expr, parts: list[exp.Expr], nulls: bool, scope: Scope) -> Labels | None:
    """Every combination of the texts of some parts; with `nulls` an unknown one is empty."""
    listed: list[Labels] = []
    for part in parts:
        own = labels_of(part, scope)
        if own is None:
            return None
        if nulls and not is_text(part):
            own = [*own, (_unknown(part, scope), "")]
        listed.append(own)
    count = 1
    for own in listed:
        count *= len(own)
    if count > _MOST:
        raise QueryError(f"{shown(node)} has more than {_MOST:,} possible values; GROUP BY its columns, one by one")
    scope.room.take(count * (1 + len(listed)))
    return [
        (joined(tuple(condition for condition, _ in chosen), every=True), "".join(label for _, label in chosen))
        for chosen in product(*listed)
    ]


def _unknown(part: exp.Expr, scope: Scope) -> Predicate:
    columns = list(part.find_all(exp.Column))
    field = scope.field(columns[0]) if len(columns) == 1 else None
    if not isinstance(field, Field):
        raise QueryError(f"CONCAT takes NULL as an empty text, which {shown(part)} may be; join texts with ||")
    return Known(field, negated=True)


def _format(node: exp.TimeToStr) -> str:
    form = node.args.get("format")
    if form is None or not is_text(form):
        raise QueryError(f"{shown(node)}: the format is a constant, for example '%Y-%m'")
    codes = set(_CODE.findall(text(form)))
    if not codes <= {"Y", "y", "m", "-m", "B", "b", "%", *_BY_DAY} or len(_CODE.sub("", text(form)).split("%")) > 1:
        raise QueryError(f"{shown(node)}: a date is written with %Y, %y, %m, %B, %b, %d, %j, %a, %A, %u and %w")
    return text(form)


def _of_days(node: exp.Expr, inner: exp.Expr, form: str, scope: Scope) -> Labels:
    """What a date is called in each stretch of days in which that stays the same."""
    while isinstance(inner, exp.Cast | exp.Paren):
        inner = inner.this
    day = number(inner, scope)
    require_date(inner, day, shown(node))
    codes = set(_CODE.findall(form))
    if codes <= {"a", "A", "u", "w", "%"}:
        nth = part_of(PartAsked("ISODOW", False, inner), day, scope)
        scope.room.repeat(nth, 7)
        return [
            (arithmetic.compare("=", nth, arithmetic.constant(Fraction(own.isoweekday()))), _spelled(form, own))
            for own in (date(1970, 1, 5 + place) for place in range(7))
        ]
    unit = "DAY" if codes & _BY_DAY else "YEAR" if codes <= {"Y", "y", "%"} else "MONTH"
    if (day.span.high - day.span.low) // {"DAY": 1, "MONTH": 28, "YEAR": 365}[unit] > _MOST:
        raise QueryError(
            f"{shown(node)} changes more than {_MOST:,} times over the range of the column; group by DATE_TRUNC, YEAR, "
            "MONTH or ISODOW of it"
        )
    found: Labels = []
    for first, last in stretches(unit, day):
        scope.room.repeat(day, 2)
        scope.room.take(5)
        ends = (arithmetic.compare(">=", day, date_constant(first)), arithmetic.compare("<=", day, date_constant(last)))
        found.append((joined(ends, every=True), _spelled(form, first)))
    return found


def _spelled(form: str, day: date) -> str:
    return _CODE.sub(lambda code: _written(code[1], day), form)


def _written(code: str, day: date) -> str:
    """One code of a format; names are English, whatever the machine speaks."""
    match code:
        case "Y":
            return f"{day.year:04d}"
        case "y":
            return f"{day.year % 100:02d}"
        case "m" | "d":
            return f"{day.month if code == 'm' else day.day:02d}"
        case "-m" | "-d":
            return str(day.month if code == "-m" else day.day)
        case "j":
            return f"{day.timetuple().tm_yday:03d}"
        case "B" | "b":
            return _MONTHS[day.month - 1] if code == "B" else _MONTHS[day.month - 1][:3]
        case "A" | "a":
            return _WEEKDAYS[day.weekday()] if code == "A" else _WEEKDAYS[day.weekday()][:3]
        case "u" | "w":
            return str(day.isoweekday() if code == "u" else day.isoweekday() % 7)
    return "%"
