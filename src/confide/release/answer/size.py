"""Whether a ledger has room for an answer: told from public facts, before anything is charged.

Numbers are taken to be as long as numbers are written. An answer that is longer nevertheless, against all odds, ends in
the constant failure; that is a matter of use, not of privacy.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, Final

from confide.errors import ConfideError, ParameterError, QueryError
from confide.privacy.limits import LONGEST_ANSWER
from confide.query.question import Commonest, Question, ShownValue
from confide.query.tree import BinnedKey, DeclaredKey, Key
from confide.release.answer.answer import Answer, KeyColumn
from confide.release.expected import group_count

_NUMBER: Final = 25
"""Bytes of a number and a comma."""
_ESCAPED: Final = 6
"""Of a character, at most."""
_PLACE: Final = 5
"""Of the place of a value."""
_VERDICT: Final = 2_000
"""Bytes of a verdict without its query and key."""
MOST_SHOWN: Final = 1_000_000
"""Rows of a derived table that are shown: more keys than that no ledger has room for."""


def require_room(size: int, what: str, advice: str, kind: type[ConfideError] = ParameterError) -> None:
    """Refuse what no ledger would keep."""
    if size > LONGEST_ANSWER:
        raise kind(
            f"{what} would take about {size / 2**20:,.0f} MiB, and a ledger keeps at most "
            f"{LONGEST_ANSWER / 2**20:,.0f} MiB of one answer; {advice}"
        )


def require_room_for_answer(question: Question) -> None:
    """The rows and columns of an answer; rows of keys that nobody declared are cut when they are known."""
    groups = group_count(question)
    if groups is None:
        return
    rows = groups if question.limit is None else min(groups, question.limit)
    shown = [question.keys[column.key] for column in question.columns if not isinstance(column, ShownValue)]
    values, width = len(question.columns) - len(shown), _values_width(question)
    if rows * (width + sum(map(_at_most, shown))) <= LONGEST_ANSWER:
        return
    require_room(
        rows * (width + sum(map(_key_width, shown))),
        f"{rows:,} rows with {values} estimates each",
        "use wider bins, fewer keys, fewer columns, or LIMIT",
        QueryError,
    )


def require_room_for_counts(cells: Sequence[int], advice: str) -> None:
    """Tables of counts of 64 bits."""
    require_room(8 * sum(cells), f"{len(cells):,} marginals of {sum(cells):,} counts", advice)


def require_room_for_verdicts(queries: list[tuple[str, dict[str, Any]]]) -> None:
    """Verdicts on groups, each with its query and its key."""
    size = sum(_VERDICT + len(_written(sql)) + len(_written(key)) for sql, key in queries)
    require_room(size, f"{len(queries):,} verdicts, each with its query,", "ask with fewer keys, or a shorter query")


def rows_that_fit(question: Question, keys: Sequence[tuple[Any, ...]]) -> int | None:
    """How many rows of keys that nobody declared there is room for, whichever they are; None if for all.

    It depends on the keys alone: rows that are cut by value are a choice (see `chosen`), of a number that no value has
    a say in.
    """
    values = _values_width(question)
    shown = [column.key for column in question.columns if not isinstance(column, ShownValue)]
    room = LONGEST_ANSWER * 9 // 10  # the rest is for what stands beside the rows
    longest = max((len(str(part)) for key in keys for part in key), default=0)
    if len(keys) * (values + len(shown) * (_ESCAPED * longest + 3)) <= room:
        return None
    widths = sorted((sum(1 + len(_written(key[place])) for place in shown) for key in keys), reverse=True)
    for rows, taken in enumerate(accumulate(width + values for width in widths)):
        if taken > room:
            return max(rows, 1)
    return None


def cut_to_room(answer: Answer) -> bytes:
    """An answer as it is kept. What is longer than it should be, against all odds, keeps the first rows."""
    kept = answer.to_bytes()
    while len(kept) > LONGEST_ANSWER and len(answer) > 1:
        rows = max(1, len(answer) * LONGEST_ANSWER // len(kept) * 9 // 10)
        note = too_many(len(answer))
        answer = replace(answer, columns=tuple(_first(c, rows) for c in answer.columns), notes=(*answer.notes, note))
        kept = answer.to_bytes()
    return kept


def too_many(rows: int) -> str:
    return f"only the first rows are shown: all {rows:,} would not fit; use HAVING, or ORDER BY with LIMIT"


def _first(column: Any, rows: int) -> Any:
    if isinstance(column, KeyColumn):
        return replace(column, values=column.values[:rows])
    unknown = tuple(row for row in column.unknown if row < rows)
    return replace(
        column, values=column.values[:rows], low=column.low[:rows], high=column.high[:rows], unknown=unknown,
        places=column.places[:rows],
    )  # fmt: skip


def _values_width(question: Question) -> int:
    """Bytes of the estimates of a row, with their ends; of MODE also of the places that are possible."""
    width = 0
    for column in question.columns:
        if isinstance(column, ShownValue) and isinstance(column.value, Commonest):
            places = len(question.statistics[column.value.statistic].places)
            width += 3 * _label_width(column.value.key) + _PLACE * places
        elif isinstance(column, ShownValue):
            width += 3 * _NUMBER
    return width


def _label_width(key: Key) -> int:
    labels = key.labels if isinstance(key, BinnedKey) else ()
    return 1 + max(len(_written(value)) for value in labels) if labels else _key_width(key)


def _key_width(key: Key) -> int:
    if isinstance(key, DeclaredKey):
        return 1 + max(len(_written(value)) for value in key.values)
    return _NUMBER


def _at_most(key: Key) -> int:
    """No less than the width of a key, without writing each of its values."""
    if isinstance(key, DeclaredKey):
        return 3 + _ESCAPED * max(len(str(value)) for value in key.values)
    return _NUMBER


def _written(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, default=str).encode(errors="replace")
