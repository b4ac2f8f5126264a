"""The chain: every entry carries the hash of all that came before it.

An entry's body is a JSON object of text, whole numbers and lists of them, written in one way only (sorted keys, no
spaces, ASCII), so that a reader of an export can rebuild the exact bytes. hash(n) = SHA-256(hash(n − 1) ‖ body(n)),
and hash(0) is 32 zero bytes.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from confide.errors import LedgerDamaged

Body = dict[str, Any]
Link = tuple[int, bytes, bytes]  # the number of an entry, its bytes, its hash

ORIGIN = bytes(32)


@dataclass(frozen=True, slots=True)
class Head:
    """How far a chain goes: the number of its last entry and that entry's hash."""

    sequence: int
    hash: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One link: a genesis, a charge, an answer or an amendment, with everything it says in `body`."""

    sequence: int
    kind: str
    body: Body
    hash: str


def encode(body: Body) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def link(previous: bytes, encoded: bytes) -> bytes:
    """The hash of an entry that follows the entry with hash `previous`."""
    return hashlib.sha256(previous + encoded).digest()


def decode(sequence: int, encoded: bytes, previous: bytes, stated: bytes) -> Body:
    """The body of entry `sequence`, or `LedgerDamaged` if its hash is not what its bytes give."""
    if link(previous, encoded) != stated:
        raise LedgerDamaged(f"entry {sequence} of the ledger does not match its hash: it was altered or is damaged")
    body: Body = json.loads(encoded)
    if body.get("sequence") != sequence:
        raise LedgerDamaged(f"entry {sequence} of the ledger says that it is entry {body.get('sequence')}")
    return body
