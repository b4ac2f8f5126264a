"""How the parts of a question are spelled in its identity: tags and order are fixed, names of classes are not in it.

What follows from the policy's facts is left out, because those are part of every key: the declared values of a column,
its type, and the columns that order a unit's rows. So is what only forecasts look at.
"""

from datetime import date
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from confide.policy import Category
from confide.privacy.identity import Spelled, Spelling, digest_of, nodes, spelled, written
from confide.query import question as asked
from confide.query import tree
from confide.query.conjunction import Conjunction
from confide.query.derivation import derivation
from confide.query.grid import EvenGrid, FloatingGrid
from confide.query.tabulation import Tabulation
from confide.query.weight import Weight


def _own_values(key: tree.DeclaredKey) -> tuple[object, ...] | None:
    """The values of a key, if they are other than those that its column declares."""
    column = key.field.column
    declared = isinstance(column, Category) and key.values == (*column.values, *((None,) if column.nulls else ()))
    return None if declared else key.values


def _labels(labels: tuple[tree.Label, ...]) -> tuple[str, ...]:
    """Labels of one type, after its name: a number and the text of it are two."""
    kinds = {str: "text", bool: "boolean", Fraction: "number"}
    return (kinds.get(type(labels[0]), "date"), *map(str, labels)) if labels else ()


def _plain_value(value: derivation.Plain) -> tuple[object, ...]:
    """A constant after the name of its type: a day and the text of it are two."""
    return ("date", value.isoformat()) if isinstance(value, date) else (type(value).__name__.lower(), value)


SPELLING: Final[Spelling] = {
    # numbers and conditions of rows
    tree.Field: ("column", lambda n: (n.source, n.name)),
    tree.Span: ("span", lambda n: (n.low, n.high, n.grain, n.nullable, n.date)),
    tree.Reading: ("index", lambda n: (n.field, n.span)),
    tree.Derived: ("per unit", lambda n: (n.source, n.name, n.span)),
    tree.Constant: ("constant", lambda n: (n.index, n.span)),
    tree.Scaled: ("scaled", lambda n: (n.inner, n.factor, n.offset, n.span)),
    tree.Combined: ("combined", lambda n: (n.operation, n.left, n.right, n.span)),
    tree.Absolute: ("absolute", lambda n: (n.inner, n.span)),
    tree.Floored: ("floored", lambda n: (n.inner, n.divisor, n.span)),
    tree.PartOfText: ("part of text", lambda n: (n.field, n.steps)),
    tree.Divided: ("divided", lambda n: (n.left, n.right, n.span)),
    tree.CurveValue: ("curve", lambda n: (n.kind, n.parameter, n.inner, n.written, n.span)),
    tree.TextLength: ("length", lambda n: (n.subject, n.span)),
    tree.Choice: ("case", lambda n: (n.branches, n.otherwise, n.span)),
    tree.FirstKnown: ("first known", lambda n: (n.options, n.span)),
    tree.Always: ("always", lambda n: (n.holds,)),
    tree.Compare: ("compare", lambda n: (n.operation, n.left, n.right)),
    tree.OneOf: ("one of", lambda n: (n.subject, n.indices, n.negated)),
    tree.Among: ("among", lambda n: (n.field, n.values)),
    tree.TextIs: ("text is", lambda n: (n.field, n.values, n.negated)),
    tree.TextLike: ("text like", lambda n: (n.field, n.pattern, n.negated, n.ignore_case)),
    tree.TextOrder: ("text order", lambda n: (n.field, n.operation, n.value)),
    tree.TextHolds: ("text holds", lambda n: (n.field, n.value, n.negated)),
    tree.SameField: ("same", lambda n: (n.left, n.right, n.negated)),
    tree.Known: ("known", lambda n: (n.subject, n.negated)),
    tree.Matched: ("has partner", lambda n: (n.relation, n.on, n.where, n.negated)),
    tree.Both: ("and", lambda n: (n.parts,)),
    tree.Either: ("or", lambda n: (n.parts,)),
    # relations and what is counted in them
    tree.Scan: ("table", lambda n: (n.table, n.source, n.public)),
    tree.Join: ("join", lambda n: (n.left, n.right, n.on, n.optional)),
    tree.PerUnit: ("by unit", lambda n: (n.inner, n.where, n.unit, n.columns, n.source)),
    tree.Cell: ("cell", lambda n: (n.kind, n.subject, n.where)),
    tree.Tallied: ("tally", lambda n: (n.subject, n.where, n.grid, n.sums)),
    EvenGrid: ("even grid", lambda n: (n.low, n.high, n.step)),
    FloatingGrid: ("floating grid", lambda n: (n.low, n.high, n.centre, n.digits)),
    tree.DeclaredKey: ("key", lambda n: (n.name, n.field, _own_values(n))),
    tree.BinnedKey: ("bins", lambda n: (n.name, n.number, n.first, n.width, n.count, n.kind, *_labels(n.labels))),
    tree.UnknownKey: ("open key", lambda n: (n.name, n.field)),
    tree.Bound: ("bound", lambda n: (n.unit, n.rows, n.groups)),
    tree.Summary: ("summary", lambda n: (n.relation, n.where, n.bound, n.keys, n.cells, n.tallies)),
    Tabulation: ("tabulation", lambda n: (n.relation, n.where, n.bound, n.keys, n.sets)),
    # what is measured, and shown of it
    asked.Measure: ("measure", lambda n: (n.label, n.terms, n.grain, n.l1, n.l2_squared, n.floor)),
    asked.Statistic: (
        "statistic",
        lambda n: (n.kind, n.tally, n.q, n.low, n.high, n.grain, n.rows, n.neighbours, n.mechanism, n.grid),
    ),
    asked.Estimated: ("estimated", lambda n: (n.statistic,)),
    asked.Dated: ("dated", lambda n: (n.inner,)),
    asked.Commonest: ("commonest", lambda n: (n.statistic, n.key)),
    asked.Measured: ("measured", lambda n: (n.measure,)),
    asked.Mean: ("mean", lambda n: (n.total, n.count, n.centre, n.low, n.high, n.grain)),
    asked.Spread: ("spread", lambda n: (n.squares, n.total, n.count, n.radius, n.grain, n.sample, n.root)),
    asked.Axis: ("axis", lambda n: (n.total, n.squares, n.centre, n.radius, n.grain)),
    asked.Association: ("association", lambda n: (n.kind, n.x, n.y, n.products, n.count, n.sample)),
    asked.Occurs: ("occurs", lambda n: (n.count, n.never)),
    asked.FixedNumber: ("number", lambda n: (n.value,)),
    asked.Arithmetic: ("arithmetic", lambda n: (n.operation, n.left, n.right)),
    asked.Between: ("within", lambda n: (n.inner, n.low, n.high)),
    asked.Magnitude: ("magnitude", lambda n: (n.inner,)),
    asked.Rounded: ("rounded", lambda n: (n.inner, n.digits)),
    asked.ShownKey: ("shown key", lambda n: (n.name, n.key)),
    asked.ShownValue: ("shown", lambda n: (n.name, n.value)),
    asked.Comparison: ("having", lambda n: (n.operation, n.left, n.right)),
    asked.AllOf: ("every", lambda n: (n.parts,)),
    asked.AnyOf: ("some", lambda n: (n.parts,)),
    asked.Order: ("order", lambda n: (n.by, n.descending)),
    asked.Question: (
        "question",
        lambda n: (
            n.summary, n.measures, n.statistics, n.threshold, n.columns, n.having, n.order, n.limit, n.offset,
            n.neighbours, n.unit, n.tables,
        ),
    ),
    Weight: ("weight", lambda n: (n.name, n.number, n.where)),
    Conjunction: (
        "conjunction",
        lambda n: (
            n.occurrences, n.pairs, n.where, n.keys, n.weights, n.columns, n.having, n.order, n.limit, n.offset,
            n.owners, n.neighbours, n.unit, n.optional,
        ),
    ),
    # what is made of released tables
    derivation.Taken: ("taken", lambda n: (n.column,)),
    derivation.Fixed: ("fixed", lambda n: _plain_value(n.value)),
    derivation.Called: ("called", lambda n: (n.function, n.parts)),
    derivation.OneNumber: ("one number", lambda n: (n.table,)),
    derivation.RowOrder: ("row order", lambda n: (n.by, n.descending, n.nulls_first)),
    derivation.Windowed: ("window", lambda n: (n.function, n.parts, n.partition, n.order, n.frame, n.peers)),
    derivation.Gathered: ("gathered", lambda n: (n.function, n.subject, n.where, n.share)),
    derivation.QuestionTable: ("answer of", lambda n: (n.question,)),
    derivation.OneRow: ("one row", lambda n: ()),
    derivation.ListedRows: ("listed rows", lambda n: tuple(tuple(map(_plain_value, row)) for row in n.rows)),
    derivation.KeptRows: ("kept", lambda n: (n.source, n.condition)),
    derivation.GroupedRowsOf: ("grouped", lambda n: (n.source, n.keys, n.gathered)),
    derivation.ComputedColumns: ("computed", lambda n: (n.source, n.columns)),
    derivation.FirstRows: ("first", lambda n: (n.source, n.order, n.limit, n.offset, n.width)),
    derivation.DistinctRows: ("distinct rows", lambda n: (n.source,)),
    derivation.MatchedTables: ("matched", lambda n: (n.left, n.right, n.kind, n.pairs)),
    derivation.StackedTables: ("stacked", lambda n: (n.parts,)),
    derivation.DerivedColumn: ("derived column", lambda n: (n.name,)),
    derivation.Derivation: ("derivation", lambda n: (n.questions, n.table, n.columns)),
}  # fmt: skip


LEFT_OUT: Final[dict[type, tuple[str, ...]]] = {
    tree.Field: ("column",),  # told by its name; its facts are the policy's
    tree.DeclaredKey: (),
    tree.BinnedKey: ("nulls",),  # the policy's columns say so
    tree.UnknownKey: ("nulls",),
    tree.Summary: ("order_by",),  # the policy's columns
    Tabulation: ("order_by",),
    asked.Measure: ("typical", "ceiling"),  # for forecasts; told by what is counted
    asked.Statistic: ("typical", "places"),  # for forecasts; and like the possible groups of a question
    asked.Question: ("possible", "counted"),  # follow from the rest, the policy and the state of public tables
    Conjunction: ("possible",),
    derivation.MatchedTables: ("widths",),  # follow from the tables
    derivation.ComputedColumns: ("names",),  # of inner columns; those of the result are spelled
    derivation.DerivedColumn: ("kind", "public", "depth", "label"),  # follow from what they are computed of
    derivation.Derivation: ("crossing", "gathering"),  # told by the table
}
"""Fields that are not spelled, and why that is safe."""


def question_name(question: "asked.Question | Conjunction | derivation.Derivation") -> str:
    """A name that equal questions share, however they were written."""
    return digest_of(written("question", spelled_question(question)))


def spelled_question(question: "asked.Question | Conjunction | derivation.Derivation") -> Spelled:
    """A question as it stands in a request: of one that is remembered it is written once."""
    return _spelled(_Same(question))


class _Same:
    """An object that never changes: the same if it is the same one. To compare two takes longer than to spell one."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


@lru_cache(maxsize=100)
def _spelled(question: _Same) -> Spelled:
    return spelled(question.value, SPELLING)


def spoken_of(form: list[Any]) -> tuple[tuple[str, ...], frozenset[str]]:
    """The tables of a question in its canonical form, and the columns that it filters, groups by or adds up."""
    _, summary, *_, tables = form
    _, _, where, _, *measured = summary
    return tuple(tables[1:]), frozenset(node[2] for node in nodes(["list", where, *measured], "column"))
