"""Judging the rows of a ledger by its chain and its anchor: quickly when it is opened, wholly when it is verified."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from confide.errors import LedgerDamaged, LedgerError, LedgerRolledBack
from confide.ledger import stored_rows as storage
from confide.ledger.page import PART, Helper, Page, Row, looked_at, page_of
from confide.ledger.process.anchor import Mark
from confide.ledger.record.entry import FORMATS, ORIGIN, Position, digest, require_kept
from confide.ledger.record.replay import Replay, Statement
from confide.ledger.record.terms import Terms
from confide.ledger.stored_rows import Connection
from confide.privacy.amount import QUANTA

# What reading rows that pass their hash, or that have none, may still raise on a ledger that was tampered with.
UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, OverflowError)

LONG = 50_000  # entries; below that a helper is not worth its start
PAGE = 30 * PART
_MOST_AHEAD = 8

Judged = Page | Future[Page | None] | None


class Site(Protocol):
    """Where a ledger is and where its anchor is, as errors name them."""

    @property
    def name(self) -> str: ...

    @property
    def anchor(self) -> Path: ...

    @property
    def set_back(self) -> str:
        """How a ledger at this place can have become older than its anchor, and what to do."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What a ledger says of itself when it is opened."""

    identity: str
    secret: bytes = field(repr=False)
    terms: Terms
    position: Position
    anchored: bool


def judged(connection: Connection, mark: Mark | None, site: Site) -> Opened:
    """The cheap check of every opening: genesis, terms, accounts, last entry, and the anchor."""
    first, _ = storage.entry(connection, 1)
    if first["format"] not in FORMATS or first["quanta"] != str(QUANTA):
        raise LedgerDamaged(f"the ledger {site.name} is of another format ({first['format']!r})")
    position = Position.of(*storage.last(connection))
    if mark is not None:
        require_mark(connection, mark, position, first["ledger"], site)
    _require_accounts(connection, position)
    terms = Terms.read(storage.entry(connection, position.terms)[0])
    if not terms.coherent:
        raise LedgerDamaged(f"the ledger {site.name} has a cap of more than the ε beside it")
    anchored = mark is not None and mark.sequence == position.sequence
    return Opened(first["ledger"], storage.secret(connection, first), terms, position, anchored)


def require_mark(connection: Connection, mark: Mark, position: Position, identity: str, site: Site) -> None:
    """Refuse a ledger that is behind its anchor, or is not the one the anchor knows."""
    if mark.ledger != identity:
        raise LedgerDamaged(f"the anchor {site.anchor} belongs to another ledger than {site.name}")
    require_not_behind(mark, position, site)
    if storage.entry(connection, mark.sequence)[1].hex() != mark.hash:
        raise forked(mark, site)


def require_not_behind(mark: Mark, position: Position, site: Site) -> None:
    if position.sequence < mark.sequence:
        raise LedgerRolledBack(
            f"the ledger {site.name} ends at entry {position.sequence}, but its anchor {site.anchor} has seen entry "
            f"{mark.sequence}: {site.set_back}"
        )
    if position.sequence == mark.sequence and position.hash.hex() != mark.hash:
        raise forked(mark, site)


def forked(mark: Mark, site: Site) -> LedgerError:
    return LedgerDamaged(
        f"entry {mark.sequence} of the ledger {site.name} is not the one that its anchor {site.anchor} has seen: "
        "the ledger was rewritten, or belongs to another anchor"
    )


def walked(connection: Connection, mark: Mark | None, site: Site) -> Statement:
    """The whole chain added up again, and every row and stored answer beside it compared with it."""
    replay = Replay()
    _walk(connection, replay, mark, site)
    statement = replay.statement()
    position = Position.of(*storage.last(connection))
    if mark is not None:
        require_mark(connection, mark, position, statement.ledger, site)
    _require_accounts(connection, position)
    storage.secret(connection, storage.entry(connection, 1)[0])
    for count, table in ((replay.charges, "charge"), (replay.answers, "answer")):
        if tuple(connection.execute(f"SELECT count(*) FROM {table}").fetchone()) != (count,):
            raise LedgerDamaged(f"the ledger {site.name} has rows of {table!r} that its chain has not")
    return statement


def _walk(connection: Connection, replay: Replay, mark: Mark | None, site: Site) -> None:
    """Every entry and row in order. Of a long ledger a process beside this one looks at some pages beforehand."""
    answered: dict[int, int] = {}
    with Helper.started(storage.last(connection)[0]["sequence"] > LONG) as helper:
        for rows, page in _pages(connection, helper):
            found = page.result() if isinstance(page, Future) else page
            if found is None or found.stretch is None or not replay.fold(found.stretch):
                found = looked_at(replay, rows)
            first, last = rows[0][0], rows[-1][0]  # and all between: the replay has seen them
            if (
                mark is not None
                and first <= mark.sequence <= last
                and rows[mark.sequence - first][2].hex() != mark.hash
            ):
                raise forked(mark, site)
            pointed = dict(found.answered)
            if len(pointed) < len(found.answered) or answered.keys() & pointed.keys():
                raise LedgerDamaged(f"two charges of the ledger {site.name} point to one answer")
            answered.update(pointed)
            for sequence, charge, kept in found.answers:
                if answered.pop(sequence, None) != charge:
                    raise LedgerDamaged(f"the answer of entry {sequence} of the ledger cannot be found by its charge")
                _require_answer(connection, sequence, kept)
    if answered:
        raise LedgerDamaged(f"the ledger points to answers that its chain has not (entry {min(answered)})")


def _pages(connection: Connection, helper: Helper | None) -> Iterator[tuple[list[Row], Judged]]:
    """All rows, a page at a time, and what was made of them; a few are read ahead while the helper is at work."""
    ahead: deque[tuple[list[Row], Judged]] = deque()
    last, previous = 0, ORIGIN
    while rows := connection.execute(
        "SELECT entry.sequence, body, hash, key, answered, seal FROM entry LEFT JOIN charge USING (sequence) "
        "WHERE entry.sequence > ? ORDER BY entry.sequence LIMIT ?",
        (last, PAGE if helper is not None else PART),
    ).fetchall():
        judged = helper.judge(previous, rows) if helper is not None and helper.idle else page_of(previous, rows)
        ahead.append((rows, judged))
        last, _, previous, *_ = rows[-1]
        while ahead and not (isinstance(ahead[0][1], Future) and not ahead[0][1].done() and len(ahead) < _MOST_AHEAD):
            yield ahead.popleft()
    yield from ahead


def _require_answer(connection: Connection, sequence: int, digest: str) -> None:
    kept = storage.stored(connection, sequence)
    if kept is None:
        raise LedgerDamaged(f"the answer of entry {sequence} of the ledger is missing")
    require_kept(kept, {"sequence": sequence, "answer": digest})


def _require_accounts(connection: Connection, position: Position) -> None:
    """Refuse accounts of analysts that are not the ones which the last entry stands for."""
    rows = connection.execute("SELECT analyst, total FROM account")
    accounts = {analyst: storage.read_account(text) for analyst, text in rows}
    if digest(accounts) != position.accounts or any(len(own) < len(position.total) for own in accounts.values()):
        raise LedgerDamaged("what the analysts have spent by their accounts is not what the chain says: it was altered")
