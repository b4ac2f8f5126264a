"""Functions of texts: LOWER, UPPER, TRIM, LEFT, RIGHT, SUBSTRING, REPLACE, || and CONCAT with constants.

Of a column with declared values a function is what it makes of each of them, here and before anything is read. Of a
text column without a list an engine cuts it, letter by letter (code points), which all do alike.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Category, Identifier, Text
from confide.query.comparison import lowered, not_a_number
from confide.query.literal import bare, is_text, literal_number, text
from confide.query.parse import shown
from confide.query.row_cast import is_text_type
from confide.query.scope import Scope
from confide.query.tree import Field, PartOfText, TextStep

SPACES: Final = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""What TRIM takes away: spaces of any width."""
LONGEST: Final = 256
"""Letters of a constant that a function takes."""
_LONGEST_MADE: Final = 1_000
"""Letters of what functions make of a declared value: texts that are put into each other could double with each."""
_MOST_LETTERS: Final = 4_000_000
"""Of what is made of all values of a column."""
_MOST_STEPS: Final = 4
"""Of cutting one text: each may name it three times over."""


@dataclass(frozen=True, slots=True)
class TextChange:
    """What a function does to a text. `step` is how an engine does it to any text, None if it is not asked to;
    `folds` says that it makes all letters small or large.
    """

    apply: Callable[[str], str]
    step: TextStep | None = None
    folds: Literal["", "lower", "upper"] = ""


@dataclass(frozen=True, slots=True)
class ListedText:
    """A declared column, and what functions make of its values, one for each."""

    field: Field
    images: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OpenText:
    """A text column without a list, or a part of one; `folds`: all letters made small or large."""

    subject: Field | PartOfText
    folds: Literal["", "lower", "upper"] = ""


def is_change(node: exp.Expr) -> bool:
    """Whether an expression is a function of texts that gives a text."""
    node = bare(node)
    if isinstance(node, exp.Cast):
        return is_text_type(node.to)
    return isinstance(
        node,
        exp.Lower | exp.Upper | exp.Trim | exp.Left | exp.Right | exp.Substring | exp.Replace | exp.DPipe | exp.Concat,
    )


def text_value(node: exp.Expr, scope: Scope) -> ListedText | OpenText:
    """The text that an expression is; or a refusal."""
    node = bare(node)
    scope.room.take(1)
    if isinstance(node, exp.Column):
        return _column(node, scope)
    found = change_of(node)
    if isinstance(node, exp.Concat):
        raise QueryError(f"{shown(node)}: CONCAT takes NULL as an empty text; join texts with ||")
    if found is None:
        raise QueryError(
            f"{shown(node)} is no text here; texts are columns of text, declared values, and of these LOWER, UPPER, "
            "TRIM, LEFT, RIGHT, SUBSTRING, REPLACE and || with constants"
        )
    inner, change = found
    value = text_value(inner, scope)
    if isinstance(value, ListedText):
        scope.room.take_listed(len(value.images))
        return ListedText(value.field, tuple(made(change.apply, value.images)))
    if change.folds:
        return OpenText(value.subject, change.folds)
    if change.step is None:
        if isinstance(node, exp.Cast):
            return value
        raise QueryError(
            f"{shown(node)}: {value.subject.name} has no list of values in the policy; of such a text LOWER, UPPER, "
            "TRIM, LEFT, RIGHT, SUBSTRING and LENGTH are answered, and comparing it with a constant"
        )
    return OpenText(part_of_text(value.subject, change.step), value.folds)


def made(function: Callable[[str], str], words: Iterable[str]) -> list[str]:
    """What functions make of some texts, as long as all of it can be held."""
    found, letters = [], 0
    for word in words:
        found.append(function(word))
        letters += len(found[-1])
        if letters > _MOST_LETTERS:
            raise QueryError(
                f"functions make more than {_MOST_LETTERS:,} letters of the declared values of a column; make shorter "
                "texts of them"
            )
    return found


def part_of_text(subject: Field | PartOfText, step: TextStep) -> PartOfText:
    """What is left of a text after one more step."""
    field, steps = (subject.field, subject.steps) if isinstance(subject, PartOfText) else (subject, ())
    if len(steps) >= _MOST_STEPS:
        raise QueryError(f"of a text at most {_MOST_STEPS} functions in each other are answered")
    return PartOfText(field, (*steps, step))


def _column(node: exp.Column, scope: Scope) -> ListedText | OpenText:
    field = scope.field(node)
    if isinstance(field, Field):
        if isinstance(field.column, Category):
            return ListedText(field, tuple(map(written, field.column.values)))
        if isinstance(field.column, Text):
            return OpenText(field)
        if isinstance(field.column, Identifier):
            raise QueryError(not_a_number(field))
    raise QueryError(f"{shown(node)} is a number or a date, and no text; compare it as it is")


def written(value: str | int | bool) -> str:
    """A declared value as a text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def change_of(node: exp.Expr) -> tuple[exp.Expr, TextChange] | None:
    """The expression whose text a function changes, and how; None if it is no such function."""
    match node:
        case exp.Lower():
            return node.this, TextChange(lowered, folds="lower")
        case exp.Upper():
            return node.this, TextChange(raised, folds="upper")
        case exp.Trim():
            return node.this, _trim(node)
        case exp.Left() | exp.Right():
            many = _whole(node.expression, node, least=0)
            if isinstance(node, exp.Left):
                return node.this, TextChange(lambda word: word[:many], ("from", 1, many))
            return node.this, TextChange(lambda word: word[len(word) - min(many, len(word)) :], ("last", many))
        case exp.Substring():
            if node.args.get("start") is None:
                raise QueryError(f"{shown(node)} lacks a part; write SUBSTRING(text, start, length)")
            start = _whole(node.args["start"], node, least=1)
            length = node.args.get("length")
            if length is None:
                return node.this, TextChange(lambda word: word[start - 1 :], ("from", start))
            end = start - 1 + _whole(length, node, least=0)
            return node.this, TextChange(lambda word: word[start - 1 : end], ("from", start, end - start + 1))
        case exp.Replace():
            old, new = _constant(node.expression, node), _constant(node.args.get("replacement"), node)
            return node.this, TextChange(lambda word: _replaced(word, old, new))
        case exp.DPipe() if is_text(node.expression):
            after = text(node.expression)
            return node.this, TextChange(lambda word: _with_room(word, len(after)) + after)
        case exp.DPipe() if is_text(node.this):
            before = text(node.this)
            return node.expression, TextChange(lambda word: before + _with_room(word, len(before)))
        case exp.Cast() if is_text_type(node.to):
            return node.this, TextChange(str)
    return None


def _replaced(word: str, old: str, new: str) -> str:
    return _with_room(word, word.count(old) * (len(new) - len(old))).replace(old, new) if old else word


def _with_room(word: str, more: int) -> str:
    """A text to which so many letters may be added: told before that is done."""
    if more > 0 and len(word) + more > _LONGEST_MADE:
        raise QueryError(f"functions make texts of more than {_LONGEST_MADE:,} letters; make shorter ones")
    return word


def _trim(node: exp.Trim) -> TextChange:
    chars = SPACES if node.args.get("expression") is None else _constant(node.args["expression"], node)
    side = str(node.args.get("position") or "BOTH").upper()
    if not chars:
        return TextChange(str, ("trim", "", "BOTH"))
    strip: dict[str, Callable[[str], str]] = {
        "BOTH": lambda word: word.strip(chars),
        "LEADING": lambda word: word.lstrip(chars),
        "TRAILING": lambda word: word.rstrip(chars),
    }
    return TextChange(strip[side], ("trim", chars, side))


def raised(word: str) -> str:
    """In upper case letter by letter, as databases do it: ß stays one letter."""
    return "".join(letter.upper() if len(letter.upper()) == 1 else letter for letter in word)


def _constant(node: exp.Expr | None, around: exp.Expr) -> str:
    if node is None or not is_text(node) or len(text(node)) > LONGEST:
        raise QueryError(
            f"{shown(around)}: what is looked for and put in are constant texts of at most {LONGEST} letters"
        )
    return text(node)


def _whole(node: exp.Expr, around: exp.Expr, least: int) -> int:
    value = literal_number(node)
    if value.denominator != 1 or not least <= value < 2**31:
        raise QueryError(f"{shown(around)}: places and lengths are whole numbers from {least} on")
    return int(value)
