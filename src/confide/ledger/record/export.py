"""A ledger as JSON lines that anybody can add up again, with no more than this page and SHA-256.

Each line is {"entry": {...}, "hash": "..."}. The hash of a line is SHA-256 over the hash of the line before (as bytes;
32 zero bytes before the first) followed by the entry as JSON with sorted keys, no spaces, and ASCII only. Amounts are
whole numbers, as text, in units of 1/quanta, where the first entry states quanta: [ε] for a pure budget, [ρ, δ] for an
(ε, δ) one, and [ρ, δ, ε] for a pure charge to one whose accounting is either; such a sum has an ε only if all of its
parts have one, and is within its cap if the ε is, or if ρ and δ are.
An entry of a charge says for people what it was for (`purpose`) and for programs what was asked (`request`, see
`privacy.identity`). The ledger's secret and the answers themselves are not exported; the hashes of both are. The key of
a charge is made under the secret, so that it tells nobody what the data were; equal keys would be one request, and
there are none.
"""

import json
from collections.abc import Iterable
from typing import IO

from confide.errors import LedgerDamaged, LedgerError
from confide.ledger.protocol import Ledger
from confide.ledger.record.entry import EARLIER, Head, encode
from confide.ledger.record.replay import Replay, Statement


def export(ledger: Ledger, stream: IO[str]) -> Head:
    """Write every entry, one a line, and return how far the export goes."""
    head = Head(0, "")
    for entry in ledger.entries():
        if entry.body.get("format") == EARLIER:
            raise LedgerError(
                "this ledger is of an earlier version, whose keys are plain hashes of questions and data: whoever "
                "guesses the data could check the guess in an export, so there is none. confide ledger verify works"
            )
        stream.write(f'{{"entry":{encode(entry.body).decode()},"hash":"{entry.hash}"}}\n')
        head = Head(entry.sequence, entry.hash)
    return head


def check_export(lines: Iterable[str]) -> Statement:
    """Check the chain of an export and add it up again, without the ledger.

    An export that was cut off at the end is a shorter chain, and still a chain: compare the head in the statement with
    the one that the ledger shows.
    """
    replay, keys = Replay(), set()
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            encoded, digest = encode(record["entry"]), bytes.fromhex(record["hash"])
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise LedgerDamaged(f"line {number} of the export is not an entry") from error
        (body,) = replay.add([(number, encoded, digest)])
        if body["kind"] == "charge":
            if body["key"] in keys:
                raise LedgerDamaged(f"line {number} of the export charges a key for the second time")
            keys.add(body["key"])
    return replay.statement()
