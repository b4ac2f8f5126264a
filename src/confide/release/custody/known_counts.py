"""How large groups are, as far as that was released: counts of the same groups that the same analyst was given before.

Read from the ledger: nothing private is touched and nothing is spent. Only what the session could be given again for
free is used, under its policy, on its data, and to its analyst.
"""

import json
from typing import Any, Final

from confide.errors import EngineError
from confide.privacy.identity import VERSION, form_of
from confide.query import Question
from confide.query.identity import SPELLING
from confide.release.answer.answer import Answer
from confide.release.holdings import Holdings

_NEWEST: Final = 200
"""So many of the last entries are looked through."""
_MOST_GROUPS: Final = 10_000


def known_counts(holdings: Holdings, question: Question) -> tuple[int, ...] | None:
    """The released numbers of rows of the groups that a question has; None if they were not asked for."""
    if not question.keys:
        return None
    wanted = _rows_of(form_of(question.summary, SPELLING))
    for entry in reversed(list(holdings.ledger.entries(newest=_NEWEST))):
        if entry.kind != "charge" or entry.body["analyst"] != holdings.analyst:
            continue
        request = entry.body.get("request", "")
        name = _count_of(request, wanted)
        if name is None or holdings.key(request) != entry.body["key"]:
            continue
        found = _released(holdings, request)
        column = None if found is None else next((own for own in found.values if own.name == name), None)
        if column is not None and 0 < len(column.values) <= _MOST_GROUPS:
            return tuple(max(0, round(value)) for value in column.values)
    return None


def _released(holdings: Holdings, request: str) -> Answer | None:
    """The answer that is kept for a request; None if there is none, or if it ended in a failure."""
    try:
        return holdings.known(request, Answer.from_bytes)
    except EngineError:
        return None


def _rows_of(summary: Any) -> list[Any]:
    """Which rows a summary is of, and how they are grouped."""
    return list(summary[1:5])


def _count_of(request: str, wanted: list[Any]) -> str | None:
    """The column of a past question that counts the rows of the same groups; None if there is none."""
    try:
        tag, version, kind, question, *_ = json.loads(request)
        if (tag, version, kind, question[0]) != ("request", VERSION, "sql", "question"):
            return None
        _, summary, measures, _, _, columns, having, _, limit, offset, *_ = question
        if _rows_of(summary) != wanted or having is not None or limit is not None or offset:
            return None  # of other rows, or only some of the groups
        counted = [cell[:2] == ["cell", "rows"] and cell[3] == ["always", True] for cell in summary[5][1:]]
        for column in columns[1:]:
            if column[0] != "shown" or column[2][0] != "measured":
                continue
            terms = measures[1 + column[2][1]][2]
            if len(terms) == 2 and terms[1][1] == 1 and counted[terms[1][2]]:
                return str(column[1])
    except (ValueError, TypeError, IndexError, RecursionError):
        return None
    return None
