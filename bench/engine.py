"""How much more a bounded, exact summary costs than the plain query, in the same DuckDB, side by side.

Run as `python -m bench.engine [--rows 10000000] [--rounds 7]`.
Every round runs each pair of queries one after the other, and the least time of each counts, since other work on the
machine only ever adds to it. Bars: 1.4 × the plain query + 15 ms for a BIGINT column, 2 × + 15 ms for a DOUBLE column.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb

from confide.engine.duckdb.engine import DuckDBEngine
from confide.policy import Policy
from confide.privacy.charge import Charge
from confide.privacy.loss import PureDP
from confide.query import bind

CHARGE = Charge(1, "bench", PureDP(Fraction(1)), "bench", "", "bench")
GROUPS = [f"group_{place}" for place in range(20)]
COLUMNS = {
    "region": {"values": GROUPS},
    "whole": {"range": [0, 500_000]},
    "real": {"range": [0, 500_000], "grain": 0.01},
}
VISITS = {
    "person": {"columns": {"person_id": {"type": "id"}}},
    "visit": {
        "references": {"person_id": "person.person_id"},
        "at_most": {"rows": 20, "groups": 5},
        "columns": COLUMNS,
    },
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rows", type=int, default=10_000_000)
    arguments.add_argument("--rounds", type=int, default=7)
    options = arguments.parse_args()
    print(f"{options.rows:,} rows, {len(GROUPS)} groups, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before")
    print(f"{'':34}{'plain':>9}{'bounded':>10}{'ratio':>8}{'bar':>10}")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "rows.parquet"
        _write(place, options.rows)
        for stored in ("memory", "parquet"):
            _rows(place, stored, options.rounds)
        _keys(place, options.rounds)


def _write(place: Path, rows: int) -> None:
    """Incomes and regions by a hash of the row's number; ten rows for each person."""
    duckdb.connect().execute(
        f"""COPY (SELECT 'group_' || (hash(i) % 20)::VARCHAR AS region, (hash(i * 7) % 500000)::BIGINT AS whole,
        ((hash(i * 13) % 50000000) / 100)::DOUBLE AS real, (hash(i * 17) % {max(rows // 10, 1)})::BIGINT AS person_id
        FROM range({rows}) AS r(i)) TO '{place}'"""
    )


def _rows(place: Path, stored: str, rounds: int) -> None:
    policy = _policy(
        "row", {"t": {"columns": COLUMNS}}, {"t": place.name} if stored == "parquet" else None, place.parent
    )
    data = None if stored == "parquet" else {"t": _table(place, "region, whole, real")}
    engine = DuckDBEngine(policy, data)
    for column, factor in (("whole", 1.4), ("real", 2.0)):
        _compare(engine, policy, f"{stored}, unit row, {column}", column, "t", factor, rounds)
    engine.close()


def _keys(place: Path, rounds: int) -> None:
    policy = _policy("person.person_id", VISITS, None, place.parent)
    people = _table(place, "DISTINCT person_id")
    engine = DuckDBEngine(policy, {"person": people, "visit": _table(place, "person_id, region, whole, real")})
    _compare(engine, policy, "memory, unit key, 20 rows, 5 groups", "whole", "visit", None, max(1, rounds // 3))
    plain = "SELECT COUNT(*), SUM(person_id % 100) FROM person"
    question = bind("SELECT COUNT(*) AS n FROM person", policy, engine)
    best = _interleaved(
        [lambda: _fetch(engine, plain), lambda: engine.evaluate(question.summary, CHARGE, b"bench")],
        max(2, rounds // 2),
    )
    _print("memory, unit key, one row each", best, None)
    engine.close()


def _compare(
    engine: DuckDBEngine, policy: Policy, label: str, column: str, table: str, factor: float | None, rounds: int
) -> None:
    text = f"SELECT region, COUNT(*) AS n, SUM({column}) AS s, AVG({column}) AS m FROM {table} GROUP BY region"
    question = bind(text, policy, engine)
    runs: list[Callable[[], Any]] = [
        lambda: _fetch(engine, text),
        lambda: engine.evaluate(question.summary, CHARGE, b"bench"),
    ]
    _print(label, _interleaved(runs, rounds), factor)


def _interleaved(runs: list[Callable[[], Any]], rounds: int) -> list[float]:
    best = [float("inf")] * len(runs)
    for _ in range(rounds):
        for place, call in enumerate(runs):
            begun = time.perf_counter()
            call()
            best[place] = min(best[place], time.perf_counter() - begun)
    return best


def _print(label: str, best: list[float], factor: float | None) -> None:
    plain, ours = best
    bar = "" if factor is None else f"{factor * plain * 1e3 + 15:8.0f}ms"
    mark = "" if factor is None else ("  ok" if ours <= factor * plain + 0.015 else "  MISSED")
    print(f"{label:34}{plain * 1e3:7.0f}ms{ours * 1e3:8.0f}ms{ours / plain:8.2f}{bar:>10}{mark}", flush=True)


def _fetch(engine: DuckDBEngine, text: str) -> Any:
    return engine._connection.execute(text).fetchall()


def _table(place: Path, columns: str) -> Any:
    return duckdb.connect().sql(f"SELECT {columns} FROM read_parquet('{place}')").to_arrow_table()


def _policy(unit: str, tables: dict[str, Any], source: Any, base: Path) -> Policy:
    facts: dict[str, Any] = {"confide": 1, "budget": {"epsilon": 1}, "unit": unit, "tables": tables, "version": "bench"}
    return Policy.parse(facts if source is None else {**facts, "source": source}, base=base)


if __name__ == "__main__":
    main()
