"""GROUP BY an expression of columns whose domain is public: its groups are what the expression makes of that domain.

Texts, conditions and choices become numbers of labels: a row has the number of the label it falls under.
"""

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from fractions import Fraction
from typing import Final

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Category, Text
from confide.query import number as arithmetic
from confide.query.calendar import part_asked_for, require_date
from confide.query.expression import COMPARISONS, choices, number, predicate
from confide.query.label import labels_of
from confide.query.literal import bare, is_text, text
from confide.query.month import has_many_months, month_key
from confide.query.parse import shown
from confide.query.scope import Scope
from confide.query.text_change import OpenText, change_of, made, text_value, written
from confide.query.tree import Among, BinnedKey, Choice, Constant, Field, Label, Number, Predicate, TextIs

MOST_PLAIN: Final = 10_000
"""A number may be grouped by its plain values when it has at most so many."""
_EPOCH: Final = date(1970, 1, 1)
_WRITTEN: Final = (exp.TimeToStr, exp.Dayname, exp.Monthname, exp.DPipe, exp.Concat)
_NO_KEYS: Final = (exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple)
_CONDITIONS: Final[tuple[type[exp.Expr], ...]] = (
    exp.And,
    exp.Or,
    exp.Not,
    exp.In,
    exp.Is,
    exp.Between,
    exp.Like,
    exp.ILike,
    *COMPARISONS,
)


def computed_key(node: exp.Expr, scope: Scope) -> BinnedKey:
    """The key that an expression is, unnamed; or a refusal."""
    if isinstance(node, _NO_KEYS) or any(isinstance(own, exp.AggFunc | exp.Query) for own in node.walk()):
        raise QueryError(f"GROUP BY {shown(node)} is not answered; group by a declared column or BIN(column, width)")
    if node.find(exp.Column) is None:
        raise QueryError(f"GROUP BY {shown(node)} is a constant; name a column")
    found = _texts(node, scope)
    if found is not None:
        return found
    found = _months(node, scope)
    if found is not None:
        return found
    subject = number(node, scope)
    if isinstance(subject, Choice) and all(isinstance(value, Constant) for value in _values(subject)):
        return _of_constants(subject)
    span = subject.span
    steps = span.high - span.low + 1
    if steps > MOST_PLAIN:
        raise QueryError(f"{shown(node)} has {steps:,} possible values; group by BIN({shown(node)}, width)")
    return BinnedKey("", subject, span.low, 1, steps, "date" if span.date else "number")


def _months(node: exp.Expr, scope: Scope) -> BinnedKey | None:
    """The months or quarters of a date that has too many of them to list."""
    inner = bare(node)
    while isinstance(inner, exp.Cast) and inner.to.is_type(exp.DataType.Type.DATE):
        inner = bare(inner.this)
    asked = part_asked_for(inner)
    if asked is None or not asked.begins or asked.unit not in ("MONTH", "QUARTER"):
        return None
    day = number(asked.day, scope)
    require_date(asked.day, day, asked.unit)
    return month_key(asked.unit, day, scope) if has_many_months(day) else None


def _texts(node: exp.Expr, scope: Scope) -> BinnedKey | None:
    """A key of texts, or of true and false; None if the expression is a number."""
    if isinstance(node, _CONDITIONS):
        return labelled([(predicate(node, scope), True), (predicate(node, scope, negated=True), False)])
    if isinstance(node, exp.Case | exp.If) and any(is_text(result) for result in _results(node)):
        return labelled(*_chosen(node, scope))
    if isinstance(node, exp.Coalesce) and len(node.expressions) == 1 and is_text(node.expressions[0]):
        field = _category(node.this, scope)
        if field is not None:
            return labelled(_images(field, str), text(node.expressions[0]))
        return None
    if isinstance(node, _WRITTEN) and not _changes_one(node):
        labels = labels_of(node, scope)
        if labels is not None:
            return labelled(labels)
    change = _change(node)
    if change is not None:
        inner, function = change
        field = _category(inner, scope)
        if field is not None:
            return labelled(_images(field, function))
        if not isinstance(node, exp.Cast):
            listed = _listed_by_where(node, scope)
            if listed is not None:
                return listed
            raise QueryError(
                f"GROUP BY {shown(node)}: {shown(inner)} has no list of values in the policy, so that groups are not "
                "public; group by a declared column or BIN(column, width)"
            )
    return None


def _listed_by_where(node: exp.Expr, scope: Scope) -> BinnedKey | None:
    """A part of a text that WHERE says is one of a list: that list is in the question, and public."""
    inner = node.find(exp.Column)
    field = None if inner is None else scope.field(inner)
    if not isinstance(field, Field) or not isinstance(field.column, Text):
        return None
    found = text_value(node, scope)
    values = scope.listed_texts.get(found.subject) if isinstance(found, OpenText) and not found.folds else None
    if not values:
        return None
    assert isinstance(found, OpenText)
    return labelled([(TextIs(found.subject, (value,), False), value) for value in values])


def _changes_one(node: exp.Expr) -> bool:
    """Whether a text is joined to constants alone."""
    change = _change(node)
    return change is not None and isinstance(bare(change[0]), exp.Column)


def labelled(branches: Sequence[tuple[Predicate, Label]], otherwise: Label | None = None) -> BinnedKey:
    """A key with the labels of some conditions, the first of which decides; a row without a label is in no group."""
    labels = tuple(dict.fromkeys([*(label for _, label in branches), *(() if otherwise is None else (otherwise,))]))
    if len({type(label) for label in labels}) > 1:
        raise QueryError("the groups are called by texts and by numbers; write all of them as one kind")
    if isinstance(labels[0], bool | Fraction | date):
        labels = tuple(sorted(labels))
    places = {label: arithmetic.constant(Fraction(place)) for place, label in enumerate(labels)}
    number = arithmetic.choice(
        tuple((condition, places[label]) for condition, label in branches),
        None if otherwise is None else places[otherwise],
    )
    return BinnedKey("", number, 0, 1, len(labels), "number", labels=labels)


def _of_constants(subject: Choice) -> BinnedKey:
    """A choice of constants, each of which is a group."""
    span = subject.span

    def label(value: Number) -> Label:
        assert isinstance(value, Constant)
        return _EPOCH + timedelta(days=value.index) if span.date else value.index * span.grain

    last = subject.otherwise
    return labelled(
        [(condition, label(value)) for condition, value in subject.branches], None if last is None else label(last)
    )


def _values(subject: Choice) -> list[Number]:
    return [*(value for _, value in subject.branches), *(() if subject.otherwise is None else (subject.otherwise,))]


def _results(node: exp.Case | exp.If) -> list[exp.Expr]:
    clauses = [node] if isinstance(node, exp.If) else node.args["ifs"]
    default = node.args.get("false" if isinstance(node, exp.If) else "default")
    return [*(clause.args["true"] for clause in clauses), *(() if default is None else (default,))]


def _chosen(node: exp.Case | exp.If, scope: Scope) -> tuple[list[tuple[Predicate, Label]], Label | None]:
    """The conditions of a CASE of texts, with the text of each, and the text where none holds."""
    branches: list[tuple[Predicate, Label]] = []
    conditions, results, default = choices(node, scope)
    for condition, result in zip(conditions, results, strict=True):
        if not is_text(result):
            raise QueryError(f"{shown(node)}: a CASE of texts has a text in every branch, or no ELSE")
        branches.append((condition, text(result)))
    if default is None:
        return branches, None
    if not is_text(default):
        raise QueryError(f"{shown(node)}: a CASE of texts has a text in every branch, or no ELSE")
    return branches, text(default)


def _category(node: exp.Expr, scope: Scope) -> Field | None:
    """A column with declared values."""
    inner = bare(node)
    found = scope.field(inner) if isinstance(inner, exp.Column) else None
    return found if isinstance(found, Field) and isinstance(found.column, Category) else None


def _images(field: Field, function: Callable[[str], str]) -> list[tuple[Predicate, Label]]:
    """What a function makes of every declared value; values with one image are one group."""
    assert isinstance(field.column, Category)
    images: dict[str, list[str | int | bool]] = {}
    texts = made(function, map(written, field.column.values))
    for value, image in zip(field.column.values, texts, strict=True):
        images.setdefault(image, []).append(value)
    return [(Among(field, tuple(values)), image) for image, values in images.items()]


def _change(node: exp.Expr) -> tuple[exp.Expr, Callable[[str], str]] | None:
    """The expression whose text a function changes, and how; functions may stand in each other."""
    if isinstance(node, exp.Paren):
        return _change(node.this)
    found = change_of(node)
    if found is None:
        return None
    inner, own = found[0], found[1].apply
    inside = _change(inner)
    if inside is None:
        return inner, own
    return inside[0], lambda word: own(inside[1](word))
