"""Neighbour pairs: one call, two data sets that differ in one unit; everything that leaves is compared but the noise.

What leaves: whether the call is answered and how it fails, texts, shapes, keys, mechanisms, notes, charges, what the
ledger says, lines on stdout and stderr, warnings and logs. What is measured before noise is judged by `watching`.
"""

import logging
import os
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import confide
from confide.errors import ConfideError, EngineError
from confide.privacy.budget import of_quanta
from confide.privacy.loss import ZCDP, PureDP
from confide.release.workload.answers import WorkloadAnswers
from tests.laboratory.remembering import widths_remembered
from tests.laboratory.storing import Store, choose
from tests.laboratory.watching import Door, Stepped, violations, watched
from tests.laboratory.worlds import Call, Pair, calls, graph_pair, key_pair, plain_pair, row_pair

Open = Callable[[Pair, Any, Store, Path, int], Any]
"""From a pair, the tables of one side, how to keep them, a folder and a seed: a session."""


NAMED = ("kind", "purpose", "request", "analyst", "amount", "exact")
"""What is compared of an entry of the ledger; the rest is made under its secret, or of what was released."""


@dataclass
class Findings:
    """What a run saw."""

    asked: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def add(self, other: "Findings") -> None:
        self.asked += other.asked
        self.outcomes += other.outcomes
        self.violations += other.violations


@dataclass
class Outcome:
    """One call on one side."""

    leaves: dict[str, Any]
    doors: list[Door]
    charged: tuple[Any, ...]


def open_in_memory(pair: Pair, tables: Any, store: Store, folder: Path, seed: int) -> Any:
    policy, frames = store.keep(pair.policy, tables, pair.types, folder)
    return alike(confide.testing.open(policy, frames, seed=seed))


def alike(session: Any) -> Any:
    """Both sides have the ledger's secret in common: which rows of a unit count hangs on it, and on nothing else."""
    session._holdings.ledger.secret = b"a secret of both"
    return session


def make_pair(rng: Random) -> Pair | None:
    kind = rng.choice(["rows", "rows", "public rows", "keys", "keys", "public keys", "joins", "join keys", "graphs"])
    if kind == "joins":
        return row_pair(rng)
    if kind == "join keys":
        return key_pair(rng)
    return graph_pair(rng) if kind == "graphs" else plain_pair(kind, rng)


def try_pair(
    seed: int,
    count: int,
    opened: Open = open_in_memory,
    store: Store | None = None,
    make: Callable[[Random], Pair | None] = make_pair,
    ask: Callable[[Pair, Random, int], list[tuple[str, Call]]] = calls,
) -> Findings:
    """So many calls of two neighbours, made from a seed."""
    rng = Random(seed)
    findings = Findings()
    pair = make(rng)
    if pair is None:
        return findings
    kept = store or choose(rng)
    asked = ask(pair, rng, count)
    where = f"seed {seed}, {pair.name}, {kept.name}"
    with tempfile.TemporaryDirectory() as folder, widths_remembered(), overheard() as said:
        sessions = []
        opening: list[str] = []
        for side, tables in (("here", pair.tables), ("there", pair.neighbour)):
            place = Path(folder) / side
            place.mkdir()
            try:
                sessions.append(opened(pair, tables, kept, place, seed))
                opening.append("opened")
            except ConfideError as error:
                opening.append(f"{type(error).__name__}: {error}".replace(str(place), ""))
        if opening[0] != opening[1]:
            findings.violations.append(f"{where}: {opening}")
        try:
            if len(sessions) == 2:
                for words, call in asked:
                    one = perform(sessions[0], call)
                    two = perform(sessions[1], call, one.doors)
                    if "QUALIFY" in words:  # which rows are shown is decided by released numbers
                        for own in (one, two):
                            own.leaves.pop("keys", None)
                    findings.asked += 1
                    findings.outcomes[str(one.leaves["status"]).split(":", 1)[0]] += 1
                    for what in compare(one, two):
                        findings.violations.append(f"{where}: {words}: {what}")
        finally:
            for session in sessions:
                session.close()
    if said:
        findings.violations.append(f"{where}: words beside the answers: {said[:3]}")
    return findings


def perform(session: Any, call: Callable[[Any], Any], like: Sequence[Door] = ()) -> Outcome:
    """Call, and write down what leaves. `like`: what the other side passed, whose choices are taken."""
    ledger = session._holdings.ledger
    before = len(ledger._entries)
    leaves: dict[str, Any] = {}
    with watched(like) as doors:
        try:
            result = call(session)
            leaves["status"] = "answered"
            # One side is printed: a summary takes longer to print than to ask for.
            leaves |= told(result, rendered=not like)
        except ConfideError as error:
            leaves["status"] = f"{type(error).__name__}: {error}"
            leaves["cause"] = (error.__cause__, error.__suppress_context__ or error.__context__ is None)
            if isinstance(error, EngineError):
                leaves["status"] = "failed: a failure after a charge"
        except Exception as error:
            leaves["status"] = f"BROKEN {type(error).__name__}: {error}"
    entries = list(ledger.entries(before))
    leaves["ledger"] = [
        {name: _told_of(value) for name, value in entry.body.items() if name in NAMED} for entry in entries
    ]
    charged = tuple(
        of_quanta(tuple(int(number) for number in entry.body["amount"])) for entry in entries if entry.kind == "charge"
    )
    return Outcome(leaves, doors, charged)


def _told_of(value: Any) -> Any:
    """A later step of a synthesis names what was chosen before, by a charged mechanism; and what a verdict names under
    the ledger's secret is the state of a copy with the files beside it, which are written anew for each side.
    """
    if not isinstance(value, str):
        return value
    if value.startswith('["request",1,"trust"'):
        return re.sub('"[0-9a-f]{64}"', '""', value)
    return re.sub(r"^(synthesize, step (?!1:)\d+): .*", r"\1", value)


_RELEASED_FIRST = "a sub-query was released first"


def told(result: Any, rendered: bool = True) -> dict[str, Any]:
    """All of a result but its noisy numbers; rendering it must not fail either."""
    if isinstance(result, list):
        parts = [told(own, rendered) for own in result]
        return {"parts": parts, "notes": parts[0].get("notes", ())}
    if isinstance(result, str):
        return {"text": result}
    assert not rendered or str(result)
    facts: dict[str, Any] = {"type": type(result).__name__}
    for name in ("confidence", "unit", "neighbours", "question", "notes", "cost", "left_out", "assumes", "mechanism"):
        if hasattr(result, name):
            facts[name] = getattr(result, name)
    if "notes" in facts:  # a number that was released
        facts["notes"] = tuple(
            note.partition(":")[0] if note.startswith(_RELEASED_FIRST) else note for note in facts["notes"]
        )
    if isinstance(result, WorkloadAnswers):
        facts |= {"strategy": result.strategy, "answers": len(result)}
        listed = result.to_arrow()
        facts["keys"] = {name: listed[name].to_pylist() for name in listed.column_names if not name.startswith("count")}
    columns = getattr(result, "columns", None)
    if isinstance(columns, tuple) and columns and hasattr(columns[0], "values"):
        # Whether numbers that are computed of released ones are all whole follows from these.
        facts["columns"] = [
            (column.name, column.type.replace("integer", "number"), getattr(column, "mechanism", ""))
            for column in columns
        ]
        facts["keys"] = [column.values for column in columns if not hasattr(column, "low")]
        result.to_json()
        result.to_arrow()
    return facts


def compare(one: Outcome, two: Outcome) -> list[str]:
    """What differs although only the noise may."""
    found = []
    if "BROKEN" in str(one.leaves["status"]):
        found.append(str(one.leaves["status"]))
    if "failed" in str(one.leaves["status"]):
        found.append("a failure after the charge")
    private = _keys_are_private(one)
    differ = one.leaves["status"] != two.leaves["status"]
    for name in ["status", "ledger"] if differ else sorted({*one.leaves, *two.leaves}):
        if name == "keys" and private:
            continue
        if one.leaves.get(name) != two.leaves.get(name):
            found.append(f"{name}: {one.leaves.get(name)!r} and {two.leaves.get(name)!r}")
    if not found and not private and one.charged:
        found += violations(one.doors, two.doors, _charged(one))
    return found


def _charged(outcome: Outcome) -> Any:
    """Of a synthesis that of its first step, which is judged alone; else of all that was asked one after the other."""
    if any(isinstance(door, Stepped) for door in outcome.doors):
        return outcome.charged[0]
    first = outcome.charged[0]
    if isinstance(first, PureDP):
        return PureDP(sum((own.epsilon for own in outcome.charged), Fraction(0)))
    return ZCDP(sum((own.rho for own in outcome.charged), Fraction(0)))


def _keys_are_private(outcome: Outcome) -> bool:
    """Keys of no declared domain: which are shown is decided by noise, and told in a note."""
    return any("are left out" in note for note in outcome.leaves.get("notes", ()))


@contextmanager
def overheard() -> Iterator[list[str]]:
    """Whatever is written to stdout, stderr, warnings or logs inside."""
    said: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(f"log: {record.getMessage()}")

    listener = Listener(logging.INFO)
    logging.getLogger().addHandler(listener)
    with tempfile.TemporaryFile() as spoken, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        kept = [os.dup(number) for number in (1, 2)]
        for number in (1, 2):
            os.dup2(spoken.fileno(), number)
        try:
            yield said
        finally:
            for number, own in zip((1, 2), kept, strict=True):
                os.dup2(own, number)
                os.close(own)
            logging.getLogger().removeHandler(listener)
            spoken.seek(0)
            text = spoken.read().decode(errors="replace")
            said += [text] if text else []
            said += [f"warning: {warning.message}" for warning in warned]
