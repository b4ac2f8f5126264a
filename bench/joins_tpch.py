"""Joins of TPC-H: residual sensitivity with rows as units, races with customers and suppliers as units.

Bars: the count of nation, customer, orders, lineitem and supplier at ε = 1, β = 0.1 within the published half-width of
33,491.8 (confidence-intervals, Table 3) with coverage of at least 0.9; R2T's relative errors at ε = 0.8, β = 0.1, GS =
10^6 at most 1.2 times the published ones. Data are made by `tpchgen-cli` (CONFIDE_TPCH may name a folder with them).
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import confide
from bench._joins import Prepared, prepared

TABLES = ("nation", "region", "customer", "orders", "lineitem", "supplier", "part", "partsupp")
RUNS = 100
HALF_WIDTH = 33_491.8
DAYS = {"range": ["1992-01-01", "1998-12-31"]}
COLUMNS: dict[str, dict[str, Any]] = {
    "customer": {"c_custkey": {"type": "id"}, "c_nationkey": {"type": "id"}},
    "orders": {"o_orderkey": {"type": "id"}, "o_custkey": {"type": "id"}, "o_orderdate": DAYS},
    "lineitem": {
        "l_orderkey": {"type": "id"}, "l_suppkey": {"type": "id"}, "l_partkey": {"type": "id"}, "l_shipdate": DAYS,
        "l_quantity": {"range": [0, 50]}, "l_returnflag": {"values": ["A", "N", "R"]},
    },
    "supplier": {"s_suppkey": {"type": "id"}, "s_nationkey": {"type": "id"}},
}  # fmt: skip
LINES = "lineitem l JOIN orders o ON l.l_orderkey = o.o_orderkey JOIN customer c ON o.o_custkey = c.c_custkey"
SUPPLIED = "lineitem l JOIN supplier s ON l.l_suppkey = s.s_suppkey JOIN orders o ON l.l_orderkey = o.o_orderkey"
BOTH = f"{SUPPLIED} JOIN customer c ON o.o_custkey = c.c_custkey"
YEARS = "BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'"
Q7_LIKE = (
    "SELECT COUNT(*) AS n FROM customer c JOIN nation n ON c.c_nationkey = n.n_nationkey "
    "JOIN orders o ON o.o_custkey = c.c_custkey JOIN lineitem l ON l.l_orderkey = o.o_orderkey "
    "JOIN supplier s ON s.s_suppkey = l.l_suppkey"
)
RACES: tuple[tuple[str, str, float, str], ...] = (
    ("Q3", "customer", 0.254, f"SELECT COUNT(*) AS n FROM {LINES} WHERE o.o_orderdate < DATE '1995-03-15'"),
    ("Q5", "supplier", 1.63, f"SELECT COUNT(*) AS n FROM {BOTH} AND s.s_nationkey = c.c_nationkey"),
    ("Q7", "supplier", 0.607, f"SELECT SUM(l.l_quantity) AS n FROM {BOTH} WHERE l.l_shipdate {YEARS}"),
    ("Q8", "supplier", 1.92, f"SELECT COUNT(*) AS n FROM {BOTH} WHERE o.o_orderdate {YEARS}"),
    ("Q10", "customer", 0.174, f"SELECT COUNT(*) AS n FROM {LINES} WHERE l.l_returnflag = 'R'"),
    ("Q12", "orders", 0.0229, "SELECT COUNT(*) AS n FROM lineitem l JOIN orders o ON l.l_orderkey = o.o_orderkey"),
    ("Q12", "customer", 0.0229, f"SELECT COUNT(*) AS n FROM {LINES}"),
    ("Q18", "customer", 0.132, f"SELECT SUM(l.l_quantity) AS n FROM {LINES}"),
    ("Q20", "supplier", 0.579, "SELECT COUNT(*) AS n FROM lineitem l JOIN supplier s ON l.l_suppkey = s.s_suppkey"),
    ("Q21", "supplier", 0.654, f"SELECT COUNT(*) AS n FROM {SUPPLIED}"),
)
REFERENCES = {
    "customer": {"orders": {"o_custkey": "customer.c_custkey"}, "lineitem": {"l_orderkey": "orders.o_orderkey"}},
    "orders": {"lineitem": {"l_orderkey": "orders.o_orderkey"}},
    "supplier": {"lineitem": {"l_suppkey": "supplier.s_suppkey"}},
}
UNITS = {"customer": "customer.c_custkey", "orders": "orders.o_orderkey", "supplier": "supplier.s_suppkey"}


@contextmanager
def tpch(scale: float) -> Iterator[Path | None]:
    named = os.environ.get("CONFIDE_TPCH")
    if named:
        yield Path(named)
        return
    beside = Path(sys.executable).parent / "tpchgen-cli"
    maker = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if maker is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [maker, "parquet", "-s", str(scale), "--output-dir", folder]
        subprocess.run(command, check=True, capture_output=True)
        yield Path(folder)


def policy(folder: Path, unit: str | None, budget: dict[str, Any] | None = None) -> dict[str, Any]:
    private = set(COLUMNS) if unit is None else {unit, *REFERENCES[unit]}
    tables: dict[str, Any] = {}
    for name in TABLES:
        if name not in private:
            tables[name] = {"public": True}
            continue
        tables[name] = {"columns": COLUMNS[name]}
        if unit is not None and name != unit:
            tables[name] |= {"references": REFERENCES[unit][name], "at_most": {"rows": 1000, "groups": 1}}
    return {
        "confide": 1,
        "source": {name: str(folder / f"{name}.parquet") for name in TABLES},
        "budget": budget or {"epsilon": 10**6},
        "unit": "row" if unit is None else UNITS[unit],
        "tables": tables,
    }


def main() -> None:
    with tpch(1) as folder:
        if folder is None:
            print("skipped: tpchgen-cli is not installed (pip install tpchgen-cli)")
            return
        raw = duckdb.connect()
        for name in TABLES:
            raw.execute(f"CREATE VIEW {name} AS SELECT * FROM '{folder / name}.parquet'")
        _residual(folder, raw)
        _races(folder, raw)


def _residual(folder: Path, raw: Any) -> None:
    print("rows as units, nation ⋈ customer ⋈ orders ⋈ lineitem ⋈ supplier, ε = 1, β = 0.1, 100 runs")
    exact, plain = _timed(raw, Q7_LIKE)
    approximate = {"epsilon": 10, "delta": 1e-6}
    for mechanism, budget in (
        ("residual", None), ("residual", approximate), ("elastic", None), ("elastic", approximate)
    ):  # fmt: skip
        with confide.testing.open(policy(folder, None, budget), seed=1) as session:
            session.plan(Q7_LIKE, epsilon=1, mechanism=mechanism)
            begun = time.perf_counter()
            session.sql(Q7_LIKE, epsilon=1, confidence=0.9, mechanism=mechanism)
            took = time.perf_counter() - begun
            join = prepared(session, Q7_LIKE, 1, 0.9, mechanism)
        halves, hits, errors = [], 0, []
        for _ in range(RUNS):
            _, low, high = join.measure()
            halves.append((high - low) / 2)
            hits += low <= exact <= high
            errors.append(abs((high + low) / 2 - exact))
        half = float(np.mean(halves))
        name = mechanism if budget is None else f"{mechanism}, δ"
        print(
            f"  {name:<10} exact {exact:,}  half-width {half:>12,.1f}  (published {HALF_WIDTH:,.1f}, "
            f"{'met' if half <= HALF_WIDTH else 'not met'})  coverage {hits / RUNS:.2f}  error quantile "
            f"{np.quantile(errors, 0.9):,.1f}  {took:.2f} s, raw join {plain:.2f} s"
        )


def _races(folder: Path, raw: Any) -> None:
    print("R2T beside what is learnt (truncate), ε = 0.8, β = 0.1, GS = 10^6: relative errors in %, 100 runs,")
    print("without the best and the worst 20, as published")
    bounds = {"n": (Fraction(0), Fraction(10**6))}
    for name, unit, published, sql in RACES:
        exact, plain = _timed(raw, sql)
        with confide.testing.open(policy(folder, unit), seed=1) as session:
            session.plan(sql, epsilon="0.8", mechanism="r2t", bounds={"n": [0, 10**6]})  # facts of public tables
            begun = time.perf_counter()
            session.sql(sql, epsilon="0.8", confidence=0.9, mechanism="r2t", bounds={"n": [0, 10**6]})
            took = time.perf_counter() - begun
            race, coverage = _errors(prepared(session, sql, "0.8", 0.9, "r2t", bounds), exact)
            learnt, other = _errors(prepared(session, sql, "0.8", 0.9, "truncate", bounds), exact)
        print(
            f"  {name:<4} {unit:<9} exact {exact:>12,}  r2t {race:7.4f}  published {published:7.4f}  ratio "
            f"{race / published:5.2f} ({'met' if race <= 1.2 * published else 'not met'})  coverage {coverage:.2f}   "
            f"truncate {learnt:7.4f}  coverage {other:.2f}   {took:5.2f} s, raw {plain:5.2f} s"
        )


def _errors(join: Prepared, exact: int) -> tuple[float, float]:
    """The mean relative error in %, without the best and the worst fifth; and the coverage."""
    errors, hits = [], 0
    for _ in range(RUNS):
        estimate, low, high = join.measure()
        errors.append(abs(estimate - exact) / exact * 100)
        hits += low <= exact <= high
    kept = sorted(errors)[RUNS // 5 : -RUNS // 5]
    return float(np.mean(kept)), hits / RUNS


def _timed(raw: Any, sql: str) -> tuple[int, float]:
    begun = time.perf_counter()
    row = raw.execute(sql).fetchone()
    return int(row[0]), time.perf_counter() - begun


if __name__ == "__main__":
    main()
