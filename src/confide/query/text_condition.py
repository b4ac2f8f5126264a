"""Conditions on texts, and the numbers that texts give: comparing, LIKE, STARTS_WITH, ENDS_WITH, CONTAINS, LENGTH.

Texts are in the order of their code points, on every engine. What is asked of declared values is decided here, and
becomes a list of them.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Category
from confide.query import number as arithmetic
from confide.query.comparison import HOLDS, Operation, joined, like_pattern, lowered, matches
from confide.query.literal import bare, is_text, text
from confide.query.parse import shown
from confide.query.scope import Scope
from confide.query.text_change import LONGEST, ListedText, OpenText, part_of_text, raised, text_value
from confide.query.tree import (
    Always,
    Among,
    Field,
    Known,
    Number,
    PartOfText,
    Predicate,
    TextHolds,
    TextIs,
    TextLength,
    TextLike,
    TextOrder,
    TextStep,
)

MOST_LETTERS: Final = 1_000
"""What LENGTH of a text without a list is at most: a longer one counts as this."""
_SPECIAL: Final = "%_\\"


def compared(operation: Operation, node: exp.Expr, others: Sequence[exp.Expr], scope: Scope) -> Predicate:
    """A text against a constant, or (with = and <>) against any and all of several."""
    subject = text_value(node, scope)
    wanted = [_constant(other, node) for other in others]
    holds = HOLDS[operation]
    if isinstance(subject, ListedText):
        if operation == "<>":
            return _listed(subject, lambda word: all(word != own for own in wanted), scope)
        return _listed(subject, lambda word: any(holds(word, own) for own in wanted), scope)
    if operation in ("=", "<>"):
        return _is(subject, wanted, operation == "<>")
    if subject.folds:
        raise QueryError(
            f"{shown(node)}: LOWER and UPPER are compared with = or <>, IN or LIKE; compare the text itself"
        )
    return TextOrder(subject.subject, operation, wanted[0])


def _constant(node: exp.Expr, beside: exp.Expr) -> str:
    if not is_text(node):
        raise QueryError(f"{shown(beside)} is compared with {shown(node)}; compare it with a text in quotes")
    return text(node)


def _listed(subject: ListedText, holds: Callable[[str], bool], scope: Scope) -> Predicate:
    column = subject.field.column
    assert isinstance(column, Category)
    scope.room.take_listed(len(column.values))
    pairs = zip(column.values, subject.images, strict=True)
    return Among(subject.field, tuple(value for value, image in pairs if holds(image)))


def _is(subject: OpenText, wanted: Sequence[str], negated: bool) -> Predicate:
    if not subject.folds:
        return TextIs(subject.subject, tuple(sorted(set(wanted))), negated)
    possible = sorted({own for own in wanted if own == _folded(subject, own)})
    if any(letter in _SPECIAL for own in possible for letter in own):
        raise QueryError("LOWER and UPPER of a text are compared with constants without %, _ and backslashes")
    if not possible:
        return Known(_field(subject.subject), negated=False) if negated else Always(False)
    parts = tuple(TextLike(subject.subject, lowered(own), negated, True) for own in possible)
    return joined(parts, every=negated)


def _folded(subject: OpenText, word: str) -> str:
    return lowered(word) if subject.folds == "lower" else raised(word)


def like_text(node: exp.Like | exp.ILike, negated: bool, scope: Scope) -> Predicate:
    """LIKE of a function of a text."""
    subject, pattern = text_value(node.this, scope), like_pattern(node)
    ignore_case = isinstance(node, exp.ILike)
    if isinstance(subject, ListedText):
        return _listed(subject, lambda word: matches(pattern, word, ignore_case) != negated, scope)
    if subject.folds and not ignore_case:
        if pattern != _folded(subject, pattern):
            return Known(_field(subject.subject), negated=False) if negated else Always(False)
        pattern, ignore_case = lowered(pattern), True
    return TextLike(subject.subject, pattern, negated, ignore_case)


def affix(node: exp.Expr, negated: bool, scope: Scope) -> Predicate:
    """STARTS_WITH, ENDS_WITH and CONTAINS."""
    part = bare(node.expression)
    if not is_text(part) or len(text(part)) > LONGEST:
        raise QueryError(f"{shown(node)}: what is looked for is a constant text of at most {LONGEST} letters")
    wanted, subject = text(part), text_value(node.this, scope)
    if isinstance(subject, ListedText):
        tests: dict[type[exp.Expr], Callable[[str], bool]] = {
            exp.StartsWith: lambda word: word.startswith(wanted),
            exp.EndsWith: lambda word: word.endswith(wanted),
            exp.Contains: lambda word: wanted in word,
        }
        holds = tests[type(node)]
        return _listed(subject, lambda word: holds(word) != negated, scope)
    known: Predicate = Known(_field(subject.subject), negated=False)
    if not wanted:
        return Always(False) if negated else known
    if subject.folds:
        if wanted != _folded(subject, wanted):
            return known if negated else Always(False)
        if any(letter in _SPECIAL for letter in wanted):
            raise QueryError("LOWER and UPPER of a text are compared with constants without %, _ and backslashes")
        ends = ("" if isinstance(node, exp.StartsWith) else "%", "" if isinstance(node, exp.EndsWith) else "%")
        return TextLike(subject.subject, lowered(f"{ends[0]}{wanted}{ends[1]}"), negated, True)
    if isinstance(node, exp.Contains):
        return TextHolds(subject.subject, wanted, negated)
    step: TextStep = ("from", 1, len(wanted)) if isinstance(node, exp.StartsWith) else ("last", len(wanted))
    return TextIs(part_of_text(subject.subject, step), (wanted,), negated)


def length_of(node: exp.Length, scope: Scope) -> Number:
    """How many letters a text has."""
    subject = text_value(node.this, scope)
    if isinstance(subject, ListedText):
        return _numbered(subject, len, scope)
    return TextLength(subject.subject, arithmetic.span_of(0, MOST_LETTERS, Fraction(1), True))


def position_of(node: exp.StrPosition, scope: Scope) -> Number:
    """Where a text begins in another: 1 at its first letter, 0 if it is not in it."""
    part = node.args.get("substr")
    if part is None or not is_text(part):
        raise QueryError(f"{shown(node)}: what is looked for is a constant text")
    wanted, subject = text(part), text_value(node.this, scope)
    if isinstance(subject, OpenText):
        raise QueryError(f"{shown(node)}: {subject.subject.name} has no list of values; ask CONTAINS(text, 'part')")
    return _numbered(subject, lambda word: word.find(wanted) + 1, scope)


def _numbered(subject: ListedText, function: Callable[[str], int], scope: Scope) -> Number:
    """A number of each declared value."""
    column = subject.field.column
    assert isinstance(column, Category)
    found: dict[int, list[str | int | bool]] = {}
    for value, image in zip(column.values, subject.images, strict=True):
        found.setdefault(function(image), []).append(value)
    scope.room.take(2 * len(found))
    return arithmetic.choice(
        tuple(
            (Among(subject.field, tuple(values)), arithmetic.constant(Fraction(own))) for own, values in found.items()
        ),
        None,
    )


def known_text(node: exp.Expr, negated: bool, scope: Scope) -> Predicate:
    """IS NULL of a function of a text: what is made of a text is NULL where that is."""
    subject = text_value(node, scope)
    return Known(_field(subject.field if isinstance(subject, ListedText) else subject.subject), negated)


def _field(subject: Field | PartOfText) -> Field:
    return subject.field if isinstance(subject, PartOfText) else subject
