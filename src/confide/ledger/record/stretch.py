"""Charges and answers in a row, added up by themselves, column by column, before it is known what came before them.

That is nearly all the work of adding up a chain, and it needs nothing but the entries: another process can do it.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter, sub

from confide.ledger.record.entry import Body, Link, link
from confide.ledger.record.terms import Quanta

UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, RecursionError)

_FACTS = itemgetter("sequence", "kind", "terms", "total")


@dataclass(slots=True)
class ChainStretch:
    """What some entries add up to. They are charges and answers under one set of terms, and each follows from the one
    before it, as far as they alone can show. A replay judges the rest."""

    first: int
    last: int
    after: bytes
    """The hash of the entry before the first."""
    hash: bytes
    terms: int
    total_before: Quanta
    total: Quanta
    spent: Counter[tuple[str, tuple[str, ...]]]
    """How often an analyst paid what, as it is written."""
    answers: list[tuple[int, int]]
    """The charges that are answered, and the entries that answer them."""
    accounts: str

    @property
    def entries(self) -> int:
        return self.last - self.first + 1


def stretch_of(previous: bytes, links: Sequence[Link]) -> tuple[ChainStretch, list[Body]] | None:
    """Some entries as a stretch, and their bodies; None if they are no stretch. Then they may still be right."""
    try:
        return _stretch(previous, links)
    except UNREADABLE:
        return None


def _stretch(previous: bytes, links: Sequence[Link]) -> tuple[ChainStretch, list[Body]] | None:
    sequences, encoded, hashes = zip(*links, strict=True)
    if [link(before, body) for before, body in zip((previous, *hashes), encoded, strict=False)] != list(hashes):
        return None
    bodies: list[Body] = json.loads(f"[{b','.join(encoded).decode('ascii')}]")
    numbers, kinds, places, totals = zip(*map(_FACTS, bodies), strict=True)
    first, last, width = sequences[0], sequences[-1], len(totals[0])
    plain = numbers == sequences == tuple(range(first, last + 1)) and places.count(places[0]) == len(places)
    charges = bodies if kinds.count("charge") == len(kinds) else [body for body in bodies if body["kind"] == "charge"]
    answers = [(body["charge"], body["sequence"]) for body in bodies if body["kind"] == "answer"]
    if not plain or len(charges) + len(answers) != len(bodies) or set(map(len, totals)) != {width}:
        return None
    paid = [tuple(body["amount"]) for body in charges]
    read = {written: tuple(map(int, written)) for written in set(paid)}
    nothing = (0,) * width
    if min(map(len, read.values()), default=width) < width or any(min(amount) < 0 for amount in read.values()):
        return None
    moves = iter(paid)
    moved = [read[next(moves)] if kind == "charge" else nothing for kind in kinds]
    before = tuple(map(sub, map(int, totals[0]), moved[0]))
    for part in range(width):
        running = accumulate([amount[part] for amount in moved], initial=before[part])
        next(running)
        if list(running) != [int(total[part]) for total in totals]:
            return None
    spent = Counter(zip([body["analyst"] for body in charges], paid, strict=True))
    after = tuple(map(int, totals[-1]))
    made = ChainStretch(
        first, last, previous, hashes[-1], places[0], before, after, spent, answers, bodies[-1]["accounts"]
    )
    return made, bodies


def joined(one: ChainStretch, other: ChainStretch) -> ChainStretch | None:
    """Two stretches as one, if the second follows from the first."""
    follows = other.first == one.last + 1 and other.after == one.hash and other.terms == one.terms
    if not follows or other.total_before != one.total:
        return None
    one.spent.update(other.spent)
    answers = one.answers + other.answers
    return ChainStretch(
        one.first,
        other.last,
        one.after,
        other.hash,
        one.terms,
        one.total_before,
        other.total,
        one.spent,
        answers,
        other.accounts,
    )
