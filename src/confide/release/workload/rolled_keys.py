"""The keys of ROLLUP, CUBE and GROUPING SETS: which rows count in their tables, and how their groups are spelled."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from confide.errors import QueryError
from confide.query import Question
from confide.query.grouping import key_size
from confide.query.grouping_sets import Grouping
from confide.query.key_value import key_kind, spelled
from confide.query.question import ShownKey
from confide.query.tree import Always, BinnedKey, Both, Bound, DeclaredKey, Known, Predicate, Reading
from confide.release.answer.answer import KeyColumn

ROW_BYTES: Final = 200


def plain_keys(question: Question) -> tuple[DeclaredKey | BinnedKey, ...]:
    keys = []
    for key in question.keys:
        binned = isinstance(key, BinnedKey) and isinstance(key.number, Reading) and not key.nulls
        if not (isinstance(key, DeclaredKey) or binned):
            raise QueryError("keys of ROLLUP, CUBE and GROUPING SETS are declared columns and BIN(column, width)")
        assert isinstance(key, DeclaredKey | BinnedKey)
        if isinstance(key, DeclaredKey) and None in key.values:
            raise QueryError(f"{key.name} has NULL among its groups, which is not told from a key that is summed over")
        keys.append(key)
    return tuple(keys)


def rows_with_keys(question: Question) -> tuple[Predicate, Bound | None]:
    """The rows that hold a value in every key: all tables count the same. A unit is bounded by rows alone."""
    summary = question.summary
    known = [_known(key) for key in plain_keys(question)]
    parts = (*(() if summary.where == Always(True) else (summary.where,)), *known)
    where: Predicate = Always(True) if not parts else parts[0] if len(parts) == 1 else Both(parts)
    bound = summary.bound
    return where, None if bound is None else Bound(bound.unit, bound.rows, bound.rows)


def sizes_of(question: Question) -> tuple[int, ...]:
    return tuple(key_size(key) or 0 for key in question.keys)


def cells_in(sizes: Sequence[int], keys: Sequence[int]) -> int:
    return math.prod(sizes[key] for key in keys)


def key_columns(question: Question, tables: Sequence[tuple[int, ...]]) -> Iterator[KeyColumn]:
    """One row for each group of each table, for every key that is shown; a key that a table does not have is NULL."""
    sizes = sizes_of(question)
    for column in question.columns:
        if not isinstance(column, ShownKey):
            continue
        key, number = question.keys[column.key], column.key
        labels = [spelled(key, own) for own in range(sizes[number])]
        values: list[object] = []
        for table in tables:
            shape = tuple(sizes[own] for own in table)
            if number in table:
                places = np.broadcast_to(np.arange(sizes[number]).reshape(_shape(number, table, sizes)), shape)
                values += [labels[place] for place in places.reshape(-1).tolist()]
            else:
                values += [None] * math.prod(shape)
        yield KeyColumn(column.name, key_kind(key), tuple(values))


def grouping_column(grouping: Grouping, sizes: Sequence[int], tables: Sequence[tuple[int, ...]]) -> KeyColumn:
    """Which keys are summed over: a public fact of every table."""
    values = tuple(value for own in tables for value in [grouping.value(own)] * cells_in(sizes, own))
    return KeyColumn(grouping.name, "integer", values)


def note_of(strategy: str) -> str:
    agree = (
        "parts add up to totals, so a count may be below its interval; " if strategy in ("residual", "identity") else ""
    )
    return f"{agree}NULL is a key that is summed over; rows without a value in some key are in no table"


def _shape(number: int, table: Sequence[int], sizes: Sequence[int]) -> list[int]:
    return [sizes[own] if own == number else 1 for own in table]


def _known(key: DeclaredKey | BinnedKey) -> Predicate:
    """That a row holds a value of the key."""
    return Known(key.field if isinstance(key, DeclaredKey) else key.number, negated=False)
