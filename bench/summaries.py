"""Memory of our process for summaries at their cap: a median of a wide column, sums without a range, a million keys.

Each runs in a process of its own. Peak memory is counted above what the open session holds; on DuckDB, which lives in
this process, the database's own working memory is in it.
"""

import multiprocessing
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import duckdb
from tests.servers import PostgresServer, find_binaries, make_cluster, remove_cluster

import confide

ROWS = 3_000_000
SQL = {
    "MEDIAN, 1 M values": "SELECT MEDIAN(y) AS m FROM t",
    "MEDIAN, 10 M values": "SELECT MEDIAN(x) AS m FROM t",
    "MEDIAN by 20 groups": "SELECT g, MEDIAN(x) AS m FROM t GROUP BY g",
    "SUM without a range": "SELECT SUM(u) AS s FROM t",
    "1 M undeclared keys": "SELECT w, COUNT(*) AS n FROM t GROUP BY w",
}
BAR = 500.0  # MB, of our process
COLUMNS: dict[str, Any] = {
    "g": {"values": [f"g{place}" for place in range(20)]},
    "x": {"range": [0, 10_000_000]},
    "y": {"range": [0, 999_999]},
    "u": {"range": "unbounded", "grain": 1},
    "w": {"type": "text"},
}
_MADE = (
    "SELECT 'g' || CAST(i % 20 AS VARCHAR) AS g, (i * 2654435761) % 10000000 AS x, (i * 7919) % 1000000 AS y, "
    "i * i AS u, "
    "'key ' || CAST(i % 1000000 AS VARCHAR) AS w FROM {series} AS s(i)"
)


def policy(source: Any) -> dict[str, Any]:
    table = {"columns": COLUMNS}
    return {"budget": {"epsilon": 1000, "delta": 1e-6}, "unit": "row", "source": source, "tables": {"t": table}}


def resident() -> float:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def measured(source: Any, sql: str, ledger: str, told: Any) -> None:
    """Peak memory in MB above that of the open session, seconds, and rows of the largest summary."""
    with confide.open(policy(source), ledger=ledger, create=True) as session:
        session.sql("SELECT COUNT(*) AS n, MEDIAN(x) FILTER (WHERE x < 2) AS m FROM t", epsilon=1)
        engine: Any = session._holdings.engine
        rows = [0]
        columns, batches = engine._columns, engine._batches

        def counted(statement: str) -> Any:
            found = columns(statement)
            rows[0] = max(rows[0], len(next(iter(found.values()))))
            return found

        def streamed(statement: str) -> Any:
            for batch in batches(statement):
                rows[0] += len(batch)
                yield batch

        engine._columns, engine._batches = counted, streamed
        before, peak, done = resident(), [0.0], threading.Event()

        def watch() -> None:
            while not done.wait(0.005):
                peak[0] = max(peak[0], resident())

        watcher = threading.Thread(target=watch)
        watcher.start()
        begun = time.perf_counter()
        session.sql(sql, epsilon=1)
        seconds = time.perf_counter() - begun
        done.set()
        watcher.join()
        told.put((peak[0] - before, peak[0], seconds, rows[0]))


def on_postgres(server: PostgresServer) -> str:
    name = server.create_database()
    made = _MADE.format(series=f"generate_series(CAST(1 AS bigint), {ROWS})")
    server.run(f"CREATE TABLE t AS {made.replace('VARCHAR', 'TEXT')}", name)
    server.run("ANALYZE t", name)
    return server.url(name)


def on_file(folder: Path) -> dict[str, str]:
    with duckdb.connect() as connection:
        made = _MADE.format(series=f"range(1, {ROWS + 1})")
        connection.execute(f"COPY ({made}) TO '{folder}/t.parquet'")
    return {"t": str(folder / "t.parquet")}


def main() -> None:
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        sources: dict[str, Any] = {"DuckDB": on_file(folder)}
        binaries = find_binaries()
        server = None if binaries is None else make_cluster(binaries)
        try:
            if server is not None:
                sources["PostgreSQL"] = on_postgres(server)
            print(f"{ROWS:,} rows; our process, peak MB (bar {BAR:.0f}):")
            print(f"{'engine':<11} {'question':<21} {'rows read':>10} {'seconds':>8} {'above open':>11} {'in all':>7}")
            for engine, source in sources.items():
                for place, (label, sql) in enumerate(SQL.items()):
                    told = context.Queue()
                    ledger = str(folder / f"{engine}{place}.ledger")
                    process = context.Process(target=measured, args=(source, sql, ledger, told))
                    process.start()
                    above, peak, seconds, rows = told.get(timeout=600)
                    process.join()
                    print(f"{engine:<11} {label:<21} {rows:>10,} {seconds:>8.2f} {above:>11.0f} {peak:>7.0f}")
        finally:
            if server is not None:
                remove_cluster(server)


if __name__ == "__main__":
    main()
