"""Counts of what was measured, asked in SQL: estimates with their intervals, and nothing is charged."""

from collections.abc import Iterable
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from confide.errors import QueryError
from confide.query import Question
from confide.query.key_value import key_kind, spelled
from confide.query.question import Arithmetic, Measured, ShownKey
from confide.query.tree import Both, Either, Known
from confide.release.answer.answer import Answer, KeyColumn, ValueColumn
from confide.release.arguments import confidence_level, plain_text
from confide.release.count_questions import Truth, count_question, group_places, holds, key_name, names_in
from confide.release.workload.answers import whole_ends
from confide.workload.domain import Binned
from confide.workload.strategy.line import Floats

if TYPE_CHECKING:
    from confide.release.workload.answers import WorkloadAnswers

MOST_CELLS: Final = 2**22
"""Of the columns that a count speaks of."""
MOST_COUNTS: Final = 10_000
"""Groups of one question."""


class _NoCatalog:
    """There are no tables but those of the policy."""

    def __getattr__(self, name: str) -> Any:
        raise QueryError("an answer is asked about its own table alone")


def answer_sql(answers: "WorkloadAnswers", text: object, confidence: object) -> Answer:
    level = confidence_level(confidence)
    domain = answers.linear.domain
    said = plain_text(text)
    if not isinstance(said, str):
        raise QueryError("give the text of a COUNT query")
    question = count_question(said, answers.policy, _NoCatalog(), domain)
    named = [key_name(key) for key in question.keys]
    _require_measured(answers, named)
    keys = [domain.place_of(name) for name in named]
    groups = [group_places(key, domain) for key in question.keys]
    shape = [size for _, size in groups]
    if prod(shape) > MOST_COUNTS:
        raise QueryError(
            f"{prod(shape):,} groups are too many for one question, at most {MOST_COUNTS:,}; filter or bin"
        )
    found: dict[Any, list[tuple[float, float, float]]] = {}
    values = [column for column in question.columns if not isinstance(column, ShownKey)]
    for shown in values:
        weights = _weights(shown.value, question)
        found[shown.name] = [
            _count(answers, question, weights, keys, groups, np.unravel_index(place, shape) if shape else (), level)
            for place in range(prod(shape))
        ]
    places = np.unravel_index(np.arange(prod(shape)), shape) if shape else ()
    columns: list[KeyColumn | ValueColumn] = []
    for column in question.columns:
        if isinstance(column, ShownKey):
            key = question.keys[column.key]
            labels = tuple(spelled(key, int(place)) for place in places[column.key])
            columns.append(KeyColumn(column.name, key_kind(key), labels))
            continue
        numbers = np.array(found[column.name]).reshape(-1, 3)
        plain = isinstance(column.value, Measured) and len(question.measures[column.value.measure].terms) == 1
        ends = numbers[:, 1], numbers[:, 2]
        low, high = whole_ends(*ends) if plain else ends
        columns.append(
            ValueColumn(
                column.name, "number", tuple(numbers[:, 0].tolist()), tuple(low.tolist()), tuple(high.tolist()),
                answers.mechanism, "always",
            )
        )  # fmt: skip
    return Answer(
        tuple(columns), level, answers.cost, answers.unit, answers.neighbours, said, _notes(answers), answers.test_noise
    )


def _require_measured(answers: "WorkloadAnswers", names: Iterable[str]) -> None:
    domain = answers.linear.domain
    for name in names:
        if name not in domain.names:
            measured = ", ".join(domain.names)
            raise QueryError(f"{name} was not measured, only {measured}; ask the session's sql for it, at a cost")


def _require_places(answers: "WorkloadAnswers", node: Any) -> None:
    """Rows without a value are in no table, unless NULL is a place of its column: nothing is known of how many."""
    if isinstance(node, Known) and node.negated:
        for name in names_in(node):
            own = answers.linear.domain.attributes[answers.linear.domain.place_of(name)]
            if isinstance(own, Binned) or not own.column.nulls:
                raise QueryError(f"rows without a value in {name} were not measured; ask the session's sql for them")
    if isinstance(node, tuple):
        for part in node:
            _require_places(answers, part)
    elif isinstance(node, Both | Either):
        _require_places(answers, node.parts)


def _notes(answers: "WorkloadAnswers") -> tuple[str, ...]:
    """What a count is of: all tables of a workload count the rows that have a place in every column of it."""
    attributes = answers.linear.domain.attributes
    partial = [own.name for own in attributes if isinstance(own, Binned) or not own.column.nulls]
    more = f"; rows without a declared value in {' or '.join(partial)} are not counted" if partial else ""
    return (f"from what was measured before: nothing was charged for this question{more}",)


def _weights(value: Any, question: Question) -> dict[int, float]:
    """By what each cell of the summary is multiplied in a number that is shown."""
    match value:
        case Measured(measure):
            found: dict[int, float] = {}
            for coefficient, cell in question.measures[measure].terms:
                found[cell] = found.get(cell, 0.0) + float(coefficient)
            return found
        case Arithmetic("+" | "-" as operation, left, right):
            sums = _weights(left, question)
            for cell, weight in _weights(right, question).items():
                sums[cell] = sums.get(cell, 0.0) + (weight if operation == "+" else -weight)
            return sums
    raise QueryError("counts are answered as they are, or added and subtracted; do other arithmetic on the result")


def _count(
    answers: "WorkloadAnswers",
    question: Question,
    weights: dict[int, float],
    keys: list[int],
    groups: list[Any],
    group: tuple[Any, ...],
    level: float,
) -> tuple[float, float, float]:
    """One number of one group: a query of the cells of the columns that it speaks of."""
    domain = answers.linear.domain
    where = question.summary.where
    named = dict.fromkeys([domain.names[key] for key in keys])
    for cell in weights:
        named |= dict.fromkeys([*names_in(where), *names_in(question.summary.cells[cell].where)])
    _require_measured(answers, named)
    _require_places(answers, (where, *(question.summary.cells[cell].where for cell in weights)))
    columns = tuple(sorted(domain.place_of(name) for name in named))
    shape = [domain.sizes[column] for column in columns]
    if prod(shape) > MOST_CELLS:
        raise QueryError(
            f"the query speaks of columns with {prod(shape):,} cells together, at most {MOST_CELLS:,} are answered"
        )
    grid = np.meshgrid(*(np.arange(size) for size in shape), indexing="ij", sparse=True)
    places = {domain.names[column]: axis for column, axis in zip(columns, grid, strict=True)}
    inside: Truth = np.array(True)
    for key, (own, _), chosen in zip(keys, groups, group, strict=True):
        inside = inside & (own == chosen)[places[domain.names[key]]]
    query: Floats = np.zeros(shape)
    for cell, weight in weights.items():
        kept = inside & holds(where, domain, places) & holds(question.summary.cells[cell].where, domain, places)
        query = query + weight * np.broadcast_to(kept, shape)
    found = answers.measured.count(columns, query, level)
    if found is None:
        names = " × ".join(domain.names[column] for column in columns) or "the total"
        titles = "; ".join(answers.linear.title(table) for table in answers.linear.tables[:6])
        raise QueryError(
            f"{names} does not follow from what was measured, which is: {titles}; ask the session's sql for it"
        )
    return found
