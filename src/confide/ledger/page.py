"""Rows of a ledger judged by themselves, here or in a process beside this one.

A stretch of entries and the rows that find them can be checked without anything that came before: hashes, sums, keys
and seals. So two processors can share the work of verifying a long ledger. What cannot be checked in this way, or does
not hold, is no page, and is looked at entry by entry by whoever has all that came before.
"""

import contextlib
import gc
import marshal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any, Final, Self

from confide.errors import LedgerDamaged
from confide.ledger import stored_rows as storage
from confide.ledger.record.entry import Body
from confide.ledger.record.replay import Replay
from confide.ledger.record.stretch import ChainStretch, joined, stretch_of

Row = tuple[int, bytes, bytes, str | None, int | None, int | None]
"""An entry: its number, bytes and hash; and of a charge its key, the number of its answer, and the seal of its row."""

PART: Final = 200
"""So few entries stay in the cache of the processor."""
_AHEAD: Final = 3
_START: Final = "import sys; sys.path[:] = {path!r}; from confide.ledger.page import serve; serve()"


@dataclass(frozen=True, slots=True)
class Page:
    """A stretch of entries whose rows are as they should be."""

    stretch: ChainStretch | None
    """None if it was followed already."""
    answered: list[tuple[int, int]]
    """By the rows: the entries that answer, and the charges that they answer."""
    answers: list[tuple[int, int, str]]
    """By the chain: the entries that answer, the charges that they answer, and the digests of what is stored."""


def page_of(previous: bytes, rows: Sequence[Row]) -> Page | None:
    """Some rows as a page; `previous` is the hash of the entry before them."""
    page: Page | None = None
    for start in range(0, len(rows), PART):
        part = rows[start : start + PART]
        made = stretch_of(previous, [row[:3] for row in part])
        if made is None:
            return None
        stretch, bodies = made
        for body, (sequence, _, _, key, answer, seal) in zip(bodies, part, strict=True):
            if body.get("key") != key or (key is not None and seal != storage.seal(sequence, key, answer or 0)):
                return None
        answered = [(row[4], row[0]) for row in part if row[4]]
        answers = _answers(bodies)
        if page is not None:
            assert page.stretch is not None
            both = joined(page.stretch, stretch)
            if both is None:
                return None
            stretch, answered, answers = both, page.answered + answered, page.answers + answers
        page = Page(stretch, answered, answers)
        previous = part[-1][2]
    return page


def looked_at(replay: Replay, rows: Sequence[Row]) -> Page:
    """The same, entry by entry after all that came before; the first that does not follow is `LedgerDamaged`."""
    answered, answers = [], []
    for start in range(0, len(rows), PART):
        part = rows[start : start + PART]
        bodies = replay.add([row[:3] for row in part])
        for body, (sequence, _, _, key, answer, seal) in zip(bodies, part, strict=True):
            if body.get("key") != key or (key is not None and seal != storage.seal(sequence, key, answer or 0)):
                raise LedgerDamaged(f"entry {sequence} of the ledger cannot be found by its key: a row was altered")
        answered += [(row[4], row[0]) for row in part if row[4]]
        answers += _answers(bodies)
    return Page(None, answered, answers)


def _answers(bodies: Sequence[Body]) -> list[tuple[int, int, str]]:
    return [(body["sequence"], body["charge"], body["answer"]) for body in bodies if body["kind"] == "answer"]


class Helper:
    """Judges rows in a process beside this one, one page after another; what fails there is done here."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._thread = ThreadPoolExecutor(1)
        self._waiting: list[Future[Page | None]] = []

    @classmethod
    @contextlib.contextmanager
    def started(cls, wanted: bool) -> "Iterator[Self | None]":
        """A helper, if it is wanted and a second Python can be started as this one was."""
        process = _started() if wanted else None
        if process is None:
            yield None
            return
        helper = cls(process)
        try:
            yield helper
        finally:
            process.kill()
            helper._thread.shutdown()
            process.communicate()

    @property
    def idle(self) -> bool:
        self._waiting = [page for page in self._waiting if not page.done()]
        return len(self._waiting) < _AHEAD

    def judge(self, previous: bytes, rows: Sequence[Row]) -> "Future[Page | None]":
        page = self._thread.submit(self._judged, previous, rows)
        self._waiting.append(page)
        return page

    def _judged(self, previous: bytes, rows: Sequence[Row]) -> Page | None:
        try:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            _write(self._process.stdin, (previous, rows))
            return _page(_read(self._process.stdout))
        except (OSError, EOFError, ValueError, TypeError):
            return page_of(previous, rows)


def serve() -> None:
    """What the process beside does, until nobody writes to it any more."""
    gc.disable()
    with contextlib.suppress(OSError, EOFError, KeyboardInterrupt):
        while True:
            page = page_of(*_read(sys.stdin.buffer))
            _write(sys.stdout.buffer, None if page is None else _plain(page))


def _plain(page: Page) -> tuple[Any, ...]:
    stretch = page.stretch
    parts = [getattr(stretch, field.name) for field in fields(ChainStretch)]
    return [dict(part) if isinstance(part, Counter) else part for part in parts], page.answered, page.answers


def _page(plain: tuple[Any, ...] | None) -> Page | None:
    if plain is None:
        return None
    parts, answered, answers = plain
    made: list[Any] = [Counter(part) if isinstance(part, dict) else part for part in parts]
    return Page(ChainStretch(*made), answered, answers)


def _started() -> "subprocess.Popen[bytes] | None":
    if getattr(sys, "frozen", False) or not Path(sys.executable or "").name.startswith("python"):
        return None  # a program that only holds Python would start itself
    command = [sys.executable, "-I", "-c", _START.format(path=sys.path)]
    try:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return None


def _write(stream: IO[bytes], value: Any) -> None:
    text = marshal.dumps(value)
    stream.write(len(text).to_bytes(8))
    stream.write(text)
    stream.flush()


def _read(stream: IO[bytes]) -> Any:
    text = stream.read(int.from_bytes(stream.read(8)))
    if not text:
        raise EOFError
    return marshal.loads(text)
