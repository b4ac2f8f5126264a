"""A private answer beside the plain exact query, in one run: COUNT + SUM + AVG by 20 groups, unit row.

Bars: 1.4 times the plain query plus 15 ms on an integer column, 2 times plus 15 ms on a DOUBLE column. The peers answer
the same question when `make bench-peers` has installed them in environments of their own. What a question costs beside
its statement is measured as the processor time of the thread that asks, which other work on the machine moves least.
"""

import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

import confide

GROUPS = 20
RUNS = 7
FIXED_RUNS = 100
PEERS = Path(".venv-peers")


def make(folder: Path, rows: int) -> Path:
    """A DuckDB file with a table of groups, whole numbers and doubles."""
    path = folder / f"rows_{rows}.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            f"""CREATE TABLE t AS SELECT 'g' || CAST(floor(random() * {GROUPS}) AS INT) AS g,
                CAST(floor(random() * 100000) AS BIGINT) AS x, random() * 1000 AS y FROM range({rows})"""
        )
        connection.execute(f"COPY t TO '{folder / f'rows_{rows}.parquet'}'")
    return path


def policy(path: Path) -> dict[str, Any]:
    columns = {
        "g": {"values": [f"g{i}" for i in range(GROUPS)]},
        "x": {"range": [0, 100_000]},
        "y": {"range": [0, 1000], "grain": 0.01},
    }
    tables = {"t": {"columns": columns}}
    return {"confide": 1, "source": str(path), "budget": {"epsilon": 1000}, "unit": "row", "tables": tables}


def best(ask: Callable[[int], object], plain: Callable[[int], object]) -> tuple[float, float]:
    """The shortest time of each, taken in turns."""
    times: tuple[list[float], list[float]] = ([], [])
    for run in range(RUNS):
        for place, call in enumerate((ask, plain)):
            start = time.perf_counter()
            call(run)
            times[place].append(time.perf_counter() - start)
    return min(times[0]), min(times[1])


def compare(folder: Path, rows: int) -> None:
    path = make(folder, rows)
    session = confide.open(policy(path), ledger=folder / f"{rows}.ledger", create=True)
    with duckdb.connect(str(path), read_only=True) as connection:
        for column, factor in (("x", 1.4), ("y", 2.0)):
            sql = f"SELECT g, COUNT(*) AS n, SUM({column}) AS s, AVG({column}) AS a FROM t GROUP BY g"

            def ask(run: int, sql: str = sql) -> object:
                return session.sql(sql, epsilon=f"0.1{run:03d}").to_dicts()

            def plain(_: int, sql: str = sql) -> object:
                return connection.execute(sql).fetchall()

            ask(999), plain(0)
            ours, theirs = best(ask, plain)
            bar = factor * theirs + 0.015
            verdict = "met" if ours <= bar else f"missed by {(ours - bar) * 1000:.0f} ms"
            kind = "integer" if column == "x" else "double"
            print(
                f"{rows:>11,} rows  {kind:<8} plain {theirs * 1000:8.1f} ms   private {ours * 1000:8.1f} ms"
                f"   ratio {ours / theirs:5.2f}   bar {bar * 1000:8.1f} ms   {verdict}"
            )
    session.close()


def fixed(folder: Path, rows: int = 100_000) -> None:
    """What a question costs beside its statement, which the engine runs in threads of its own."""
    sql = "SELECT g, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a FROM t GROUP BY g"
    with confide.open(policy(make(folder, rows)), ledger=folder / "fixed.ledger", create=True) as session:
        times = []
        for run in range(FIXED_RUNS):
            start = time.thread_time()
            session.sql(sql, epsilon=f"0.1{run:03d}").to_dicts()
            times.append(time.thread_time() - start)
    least, middle = min(times) * 1000, statistics.median(times) * 1000
    print(f"beside the statement, processor time of the asking thread: least {least:.1f} ms, median {middle:.1f} ms")


def peers(folder: Path, rows: int) -> None:
    """Each peer in a process and an environment of its own; it prints one JSON line."""
    for name in ("opendp", "smartnoise"):
        python = PEERS / name / "bin" / "python"
        if not python.exists():
            print(f"{name}: not installed; `make bench-peers` sets it up")
            continue
        command = [str(python), str(Path(__file__).parent / "_peers.py"), name, str(folder / f"rows_{rows}.parquet")]
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
        lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
        if run.returncode or not lines:
            print(f"{name}: ended with an error: {run.stderr.strip().splitlines()[-1:]}")
        for facts in lines:
            print(f"{rows:>11,} rows  {facts['column']:<8} {facts['name']:<26} {facts['seconds'] * 1000:8.1f} ms")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for rows in (1_000_000, 10_000_000):
            compare(folder, rows)
        fixed(folder)
        peers(folder, 1_000_000)


if __name__ == "__main__":
    main()
