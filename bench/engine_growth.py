"""COUNT, SUM, AVG and MEDIAN by group as rows grow: the private question beside the plain one, on the same engine.

Run as `python -m bench.engine_growth [--millions 1 10] [--engines duckdb postgresql spark] [--rounds 3]`, or with
`--millions 1 10 100` on a machine that has time. The data are one Parquet file, made in a temporary folder and removed;
PostgreSQL has a copy of it, up to 10 million rows. Every round runs all questions one after the other, and the least
time of each counts; where rounds are short there are more of them, for two seconds, since other work on the machine
disturbs short ones most. `summary` is what the engine computes exactly, `answer` the whole, in which the charge and the
noise of 20 medians are a cost that does not grow with rows. Each engine and size is a process of its own, and its peak
memory is counted: of DuckDB with the database, which lives in it; of Spark without Java and with it. Bars: 2 × the
plain question, and 500 MB.
"""

import argparse
import multiprocessing
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
from tests.servers import find_binaries, make_cluster, remove_cluster

import confide
from confide.privacy.charge import Charge
from confide.privacy.loss import PureDP
from confide.query import bind
from confide.release.sql.allocation import allocate
from confide.release.sql.request import rank_windows

CHARGE = Charge(1, "bench", PureDP(Fraction(1)), "bench", "", "bench")
GROUPS = [f"group_{place}" for place in range(20)]
TABLES = {"t": {"columns": {"region": {"values": GROUPS}, "income": {"range": [0, 20_000]}}}}
SQL = "SELECT region, COUNT(*) AS n, SUM(income) AS s, AVG(income) AS m, MEDIAN(income) AS q FROM t GROUP BY region"
BAR_TIME, BAR_MEMORY = 2.0, 500.0
MOST_ON_POSTGRES = 10
LEAST_SECONDS = 2.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millions", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--engines", nargs="+", default=["duckdb", "postgresql", "spark"])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args([] if __name__ != "__main__" else None)
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before; {len(GROUPS)} groups, {options.rounds} rounds"
    )
    print(f"{'':12}{'rows':>13}{'plain':>10}{'summary':>10}{'ratio':>7}{'answer':>10}{'ratio':>7}{'memory':>10}")
    for millions in options.millions:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "t.parquet"
            _write(place, millions * 1_000_000)
            for engine in options.engines:
                if engine != "postgresql" or millions <= MOST_ON_POSTGRES:
                    _apart(engine, place, millions, options.rounds)


def _write(place: Path, rows: int) -> None:
    """Incomes and regions by a hash of the row's number."""
    connection = duckdb.connect()
    connection.execute("SET memory_limit = '2GB'; SET enable_progress_bar = false")
    connection.execute(
        f"""COPY (SELECT 'group_' || (hash(i) % 20)::VARCHAR AS region, (hash(i * 7) % 20000)::BIGINT AS income
        FROM range({rows}) AS r(i)) TO '{place}' (ROW_GROUP_SIZE 1000000)"""
    )
    connection.close()


def _apart(engine: str, place: Path, millions: int, rounds: int) -> None:
    """In a process of its own, so that memory is its own."""
    context = multiprocessing.get_context("spawn")
    received, sent = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(engine, str(place), rounds, sent))
    process.start()
    sent.close()
    try:
        plain, summary, answer, memory, whole = received.recv()
    except EOFError:
        print(f"{engine:12}{millions:>11} M  did not run", flush=True)
        return
    finally:
        process.join()
    ratios = summary / plain, answer / plain
    within = "ok" if max(ratios) <= BAR_TIME and memory <= BAR_MEMORY else "MISSED"
    java = f"  with Java {whole:.0f} MB" if whole is not None else ""
    print(
        f"{engine:12}{millions:>11} M{plain * 1e3:8.0f}ms{summary * 1e3:8.0f}ms{ratios[0]:7.2f}"
        f"{answer * 1e3:8.0f}ms{ratios[1]:7.2f}{memory:7.0f} MB  "
        f"bars {BAR_TIME:.0f} × and {BAR_MEMORY:.0f} MB: {within}{java}",
        flush=True,
    )


def _measure(engine: str, place: str, rounds: int, sent: Any) -> None:
    """The least times of the plain question, the summary and the answer, and the peak memory of an answer."""
    with _sides(engine, Path(place)) as (plain, session):
        holdings = session._holdings
        question = bind(SQL, holdings.policy, holdings.engine)
        windows = rank_windows(question, allocate(question, holdings.standing().budget, Fraction(1), 0.95))
        best = [float("inf")] * 3
        with _watched() as found:  # before the plain question, whose memory would stay with the process
            session.sql(SQL, epsilon=2)
        turn, begun_all = 0, time.perf_counter()
        while turn < rounds or time.perf_counter() - begun_all < LEAST_SECONDS:
            turn += 1
            calls: list[Callable[[], Any]] = [
                plain,
                lambda: holdings.engine.evaluate(question.summary, CHARGE, b"bench", None, windows),
                lambda turn=turn: session.sql(SQL, epsilon=1 + turn / 1000),  # type: ignore[misc]
            ]
            for number, call in enumerate(calls):
                begun = time.perf_counter()
                call()
                best[number] = min(best[number], time.perf_counter() - begun)
    sent.send((*best, found[0], found[1] if engine == "spark" else None))


@contextmanager
def _sides(engine: str, place: Path) -> Iterator[tuple[Callable[[], Any], Any]]:
    """The plain question as a call, and an open session; the same tables behind both."""
    sides = {"duckdb": _duckdb, "spark": _spark, "postgresql": _postgres}
    with tempfile.TemporaryDirectory() as folder, sides[engine](place, Path(folder)) as both:
        yield both


@contextmanager
def _duckdb(place: Path, folder: Path) -> Iterator[tuple[Callable[[], Any], Any]]:
    with confide.open(_policy({"t": str(place)}), ledger=folder / "ledger", create=True) as session:
        connection: Any = session._holdings.engine._connection  # type: ignore[attr-defined]
        yield lambda: connection.execute(SQL).fetchall(), session


@contextmanager
def _spark(place: Path, folder: Path) -> Iterator[tuple[Callable[[], Any], Any]]:
    with confide.open(_policy({"t": f"spark:{place}"}), ledger=folder / "ledger", create=True) as session:
        spark: Any = session._holdings.engine._session.spark  # type: ignore[attr-defined]
        spark.read.parquet(str(place)).createOrReplaceTempView("t")
        yield lambda: spark.sql(SQL).toArrow(), session


@contextmanager
def _postgres(place: Path, folder: Path) -> Iterator[tuple[Callable[[], Any], Any]]:
    binaries = find_binaries()
    assert binaries is not None, "PostgreSQL is not installed"
    server = make_cluster(binaries, settings={"shared_buffers": "'1GB'", "max_wal_size": "'8GB'"})
    try:
        database = server.create_database()
        server.run("CREATE UNLOGGED TABLE t (region text, income bigint)", database)
        with server.connect(database) as connection, connection.cursor() as cursor:
            with cursor.copy("COPY t FROM STDIN") as copy:
                reader = duckdb.connect()
                reader.execute("SET enable_progress_bar = false")
                batches = reader.execute(f"SELECT region || chr(9) || income FROM '{place}'")
                while rows := batches.fetchmany(100_000):
                    copy.write("\n".join(row[0] for row in rows) + "\n")
            connection.execute("VACUUM ANALYZE t")
            plain = SQL.replace("MEDIAN(income)", "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY income)")
            connection.execute("SET work_mem = '256MB'")
            with confide.open(_policy(server.url(database)), ledger=folder / "ledger", create=True) as session:
                yield lambda: connection.execute(plain).fetchall(), session
    finally:
        remove_cluster(server)


def _policy(source: Any) -> dict[str, Any]:
    return {"budget": {"epsilon": 1000}, "unit": "row", "source": source, "tables": TABLES, "version": "bench"}


@contextmanager
def _watched() -> Iterator[list[float]]:
    """The peak memory, in MB, of this process, and of it with its children."""
    found, done = [0.0, 0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            own = _resident(os.getpid())
            found[0] = max(found[0], own)
            found[1] = max(found[1], own + sum(map(_resident, _children())))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield found
    finally:
        done.set()
        watcher.join()


def _children() -> list[int]:
    listed = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return [int(child) for child in listed.read_text().split()] if listed.exists() else []


def _resident(process: int) -> float:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)


if __name__ == "__main__":
    main()
