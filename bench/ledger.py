"""How fast is the ledger? Durable charges a second, and opening and verifying a ledger of a million entries.

Run as `python -m bench.ledger`. Charges are forced to the disk that holds the folder for temporary files (TMPDIR).
"""

import multiprocessing
import os
import platform
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import psycopg
from tests.servers import find_binaries, make_cluster, remove_cluster

from confide.ledger import Ledger, PostgresLedger, SqliteLedger
from confide.ledger import stored_rows as storage
from confide.ledger.process.anchor import Anchor, Mark
from confide.ledger.record import entry as booking
from confide.ledger.record.entry import Body, Payment, Position, encode, link
from confide.ledger.record.terms import Quanta, Terms
from confide.ledger.sqlite.files import LedgerFiles
from confide.privacy.budget import Budget
from confide.privacy.loss import ZCDP

BUDGET = Budget(Fraction(1000), Fraction(1, 10**9))
LOSS = ZCDP(Fraction(1, 10**7))
PURPOSE = "SELECT region, COUNT(*) AS n, AVG(income) AS mean FROM person GROUP BY region"
ENTRIES = 1_000_000
ANALYSTS = 100

Row = tuple[str, str, str, str]


def opened(place: Path | str) -> Ledger:
    if isinstance(place, str):
        return PostgresLedger.open_or_create(place, BUDGET, timeout=60)
    return SqliteLedger.open_or_create(place, BUDGET, timeout=60)


def charges(place: Path | str, prefix: str, seconds: float) -> int:
    """How many charges one client gets done in the given time."""
    done = 0
    with opened(place) as ledger:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            ledger.charge(LOSS, PURPOSE, f"{prefix}-{done}", prefix)
            done += 1
    return done


def charge_rate(path: Path | str, processes: int, seconds: float = 5.0) -> float:
    """Charges a second of so many processes together."""
    opened(path).close()
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        pool.starmap(charges, [(path, f"warm{number}", 0.1) for number in range(processes)])
        done = pool.starmap(charges, [(path, f"client{number}", seconds) for number in range(processes)])
    return sum(done) / seconds


def bodies(
    position: Position, terms: Terms, accounts: dict[str, Quanta], entries: int
) -> Iterator[tuple[Body, bytes, bytes]]:
    """A valid chain of charges by many analysts, as the ledger itself would write it."""
    for number in range(entries):
        analyst = f"analyst {number % ANALYSTS}"
        payment = Payment.of(terms, LOSS, PURPOSE, f"{number:064x}", analyst, "")
        body, accounts[analyst] = booking.charge(position, terms, payment, accounts)
        encoded = encode(body)
        digest = link(position.hash, encoded)
        yield body, encoded, digest
        position = Position.of(body, digest)


def fill(path: Path, entries: int) -> None:
    """Put a long chain into a ledger in one transaction instead of a million."""
    place, terms = LedgerFiles.of(path), Terms.of(BUDGET)
    with SqliteLedger.create(path, BUDGET) as ledger:
        identity = ledger.identity
    connection = sqlite3.connect(path, isolation_level=None)
    position = Position.of(*storage.last(connection))
    connection.execute("BEGIN IMMEDIATE")
    accounts: dict[str, Quanta] = {}
    for body, encoded, digest in bodies(position, terms, accounts, entries):
        connection.execute("INSERT INTO entry VALUES (?, ?, ?)", (body["sequence"], encoded, digest))
        storage.set_charge(connection, body["sequence"], body["key"])
    for analyst, account in accounts.items():
        storage.set_account(connection, analyst, account)
    last, digest = storage.last(connection)
    connection.execute("COMMIT")
    connection.close()
    anchor = Anchor(place.anchor)
    with anchor.locked():
        anchor.write(Mark(identity, last["sequence"], digest.hex()))
    anchor.close()


def opening(path: Path) -> tuple[float, float]:
    """Seconds to open a ledger, and seconds to open and verify it."""
    started = time.perf_counter()
    with SqliteLedger.open(path) as ledger:
        opened = time.perf_counter() - started
        ledger.verify()
        return opened, time.perf_counter() - started


def commit_rate(address: str, seconds: float = 5.0) -> float:
    """One row inserted and committed, durably, by somebody who keeps no ledger."""
    done = 0
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE TABLE bare (body bytea)")
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            connection.execute("INSERT INTO bare VALUES (%s)", (bytes(600),))
            done += 1
    return done / seconds


def on_postgres(folder: Path) -> list[Row]:
    """The same on a PostgreSQL server of its own, on the same disk, through its socket."""
    binaries = find_binaries()
    if binaries is None:
        return [("durable charges a second on PostgreSQL", "-", "", "PostgreSQL is not installed")]
    server = make_cluster(binaries)
    try:
        bare = commit_rate(server.url())
        rows: list[Row] = [("bare commits a second on PostgreSQL, 1 process", f"{bare:.0f}", "", "")]
        for processes in (1, 4):
            place = server.url(schema=f"clients_{processes}", anchor=str(folder / f"anchor-{processes}"))
            what = "1 process" if processes == 1 else f"{processes} processes"
            rate = charge_rate(place, processes)
            rows.append((f"durable charges a second on PostgreSQL, {what}", f"{rate:.0f}", "", f"{rate / bare:.2f} x"))
    finally:
        remove_cluster(server)
    return rows


def table(rows: list[Row]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}".rstrip() for row in rows
    )


def main() -> None:
    entries = int(os.environ.get("CONFIDE_BENCH_ENTRIES", ENTRIES))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows: list[Row] = [("ledger", "measured", "bar", "")]
        for processes in (1, 4):
            rate = charge_rate(folder / f"charges-{processes}", processes)
            what = "1 process" if processes == 1 else f"{processes} processes"
            rows.append(
                (f"durable charges a second, {what}", f"{rate:.0f}", "≥ 150", "met" if rate >= 150 else "MISSED")
            )
        rows += on_postgres(folder)
        path = folder / "million"
        fill(path, entries)
        opened, verified = opening(path)
        size = path.stat().st_size / 2**20
        rows.append((f"open a ledger of {entries:,} entries, {size:.0f} MB", f"{opened * 1000:.0f} ms", "", ""))
        rows.append(
            ("open it and verify its whole chain", f"{verified:.1f} s", "≤ 8 s", "met" if verified <= 8 else "MISSED")
        )
    print(table(rows))
    load = os.getloadavg()[0]
    print(
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {os.cpu_count()} cores, load {load:.1f} "
        "(1 is this benchmark alone)"
    )


if __name__ == "__main__":
    main()
