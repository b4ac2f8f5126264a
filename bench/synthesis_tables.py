"""Two tables that refer to each other, beside the data: a generated world, and customers with their orders of TPC-H.

Of questions on both tables the total variation of the groups: the share of rows that is in another group than in the
data. How many children there are, by a column of the parent, and joins by columns of both. TPC-H is made by
`tpchgen-cli` (CONFIDE_TPCH may name a folder with its Parquet files), at scale 0.1 (CONFIDE_SCALE).
"""

import os
import time
from typing import Any

import duckdb
import numpy as np
import polars as pl

import confide
import confide.testing
from bench.joins_tpch import tpch

CUSTOMERS = (
    "SELECT c_custkey, c_mktsegment, c_nationkey, GREATEST(c_acctbal, 0)::DOUBLE AS c_acctbal "
    "FROM '{folder}/customer.parquet'"
)
ORDERS = (
    "SELECT o_orderkey, o_custkey, o_orderstatus, o_orderpriority, o_orderdate, o_totalprice::DOUBLE AS o_totalprice "
    "FROM '{folder}/orders.parquet'"
)
EPSILONS = (0.5, 2, 8)


def main() -> None:
    _show("generated", *_generated())
    with tpch(float(os.environ.get("CONFIDE_SCALE", "0.1"))) as folder:
        if folder is None:
            print("TPC-H: skipped, tpchgen-cli is not installed")
            return
        customer, orders = (
            pl.DataFrame(duckdb.sql(sql.format(folder=folder)).to_arrow_table()) for sql in (CUSTOMERS, ORDERS)
        )
    _show("TPC-H", *_tpch(customer, orders))


def _generated() -> tuple[dict[str, Any], dict[str, Any], str, dict[str, str]]:
    random, people = np.random.default_rng(1), 20_000
    band = random.choice(["young", "middle", "old"], people, p=[0.5, 0.3, 0.2])
    region = random.integers(1, 11, people)
    mean = np.select([band == "young", band == "middle"], [0.4, 1.2], 3.0) * (1 + region / 20)
    visits = np.minimum(random.poisson(mean), 8)
    owners = np.repeat(np.arange(people), visits)
    old = (band == "old")[owners]
    ward = np.where(random.random(len(owners)) < np.where(old, 0.7, 0.2), 1, random.integers(2, 6, len(owners)))
    cost = np.clip(np.round(random.gamma(2.0, 40.0 * ward)), 0, 2_000)
    frames = {
        "person": pl.DataFrame({"pid": np.arange(people), "band": band, "region": region}),
        "visit": pl.DataFrame({"person": owners, "ward": ward, "cost": cost}),
    }
    person = {"pid": {"type": "id"}, "band": {"values": ["young", "middle", "old"]}, "region": {"range": [1, 10]}}
    visit = {"person": {"type": "id"}, "ward": {"range": [1, 5]}, "cost": {"range": [0, 2_000], "bins": 100}}
    tables = {
        "person": {"size": people, "columns": person},
        "visit": {"references": {"person": "person.pid"}, "at_most": {"rows": 8, "groups": 5}, "columns": visit},
    }
    number = (
        "FROM (SELECT pid, band, region, COUNT(person) AS c FROM person LEFT JOIN visit ON person = pid GROUP BY ALL)"
    )
    both = "FROM visit JOIN person ON person = pid"
    return tables, frames, "person.pid", {
        "numbers": f"SELECT c, COUNT(*) AS n {number} GROUP BY c",
        "numbers by band": f"SELECT band, c, COUNT(*) AS n {number} GROUP BY band, c",
        "ward by band": f"SELECT band, ward, COUNT(*) AS n {both} GROUP BY band, ward",
        "cost by region": f"SELECT region, FLOOR(cost / 200)::INT AS k, COUNT(*) AS n {both} GROUP BY region, k",
        "three": f"SELECT band, region, ward, COUNT(*) AS n {both} GROUP BY band, region, ward",
    }  # fmt: skip


def _tpch(customer: pl.DataFrame, orders: pl.DataFrame) -> tuple[dict[str, Any], dict[str, Any], str, dict[str, str]]:
    most = int(orders.group_by("o_custkey").len()["len"].max() or 1)  # type: ignore[call-overload]
    segments = sorted(customer["c_mktsegment"].unique())
    of_customers = {
        "c_custkey": {"type": "id"}, "c_mktsegment": {"values": segments}, "c_nationkey": {"range": [0, 24]},
        "c_acctbal": {"range": [0, 10_000], "grain": 0.01, "bins": 1_000},
    }  # fmt: skip
    of_orders = {
        "o_orderkey": {"type": "id"}, "o_custkey": {"type": "id"}, "o_orderstatus": {"values": ["F", "O", "P"]},
        "o_orderpriority": {"values": sorted(orders["o_orderpriority"].unique())},
        "o_orderdate": {"range": ["1992-01-01", "1998-12-31"], "bins": 91},
        "o_totalprice": {"range": [0, 600_000], "grain": 0.01, "bins": 25_000},
    }  # fmt: skip
    tables = {
        "customer": {"size": len(customer), "columns": of_customers},
        "orders": {
            "size": len(orders), "references": {"o_custkey": "customer.c_custkey"}, "columns": of_orders,
            "at_most": {"rows": most, "groups": most},
        },
    }  # fmt: skip
    number = (
        "FROM (SELECT c_custkey, c_mktsegment, COUNT(o_custkey) AS c FROM customer LEFT JOIN orders ON o_custkey = "
        "c_custkey GROUP BY ALL)"
    )
    both = "FROM orders JOIN customer ON o_custkey = c_custkey"
    return tables, {"customer": customer, "orders": orders}, "customer.c_custkey", {
        "numbers": f"SELECT c, COUNT(*) AS n {number} GROUP BY c",
        "numbers by segment": f"SELECT c_mktsegment, c, COUNT(*) AS n {number} GROUP BY ALL",
        "priority by segment": f"SELECT c_mktsegment, o_orderpriority, COUNT(*) AS n {both} GROUP BY ALL",
        "status by year": f"SELECT YEAR(o_orderdate) AS y, o_orderstatus, COUNT(*) AS n {both} GROUP BY ALL",
        "price by nation": f"SELECT c_nationkey, o_totalprice::INT // 50000 AS k, COUNT(*) AS n {both} GROUP BY ALL",
    }  # fmt: skip


def _show(name: str, tables: dict[str, Any], frames: dict[str, Any], unit: str, questions: dict[str, str]) -> None:
    connection = duckdb.connect()
    for table, frame in frames.items():
        connection.register(table, frame.to_arrow())
    exact = {words: connection.execute(sql).fetchall() for words, sql in questions.items()}
    sizes = ", ".join(f"{len(frame):,} rows of {table}" for table, frame in frames.items())
    print(f"{name}: {sizes}", flush=True)
    policy = {"confide": 1, "budget": {"epsilon": 100, "delta": 1e-9}, "unit": unit, "tables": tables}
    child = list(tables)[1]
    for method in ("rap", "mst"):
        for epsilon in EPSILONS:
            with confide.testing.open(policy, frames, seed=1) as session:
                start = time.perf_counter()
                twin = session.synthesize_tables(confide.marginals(2), epsilon, child, method=method)
                made = twin.tables
                seconds = time.perf_counter() - start
            away = {words: _variation(exact[words], twin.answer(sql).to_pylist()) for words, sql in questions.items()}
            listed = ", ".join(f"{words} {value:.3f}" for words, value in away.items())
            print(
                f"  {method} ε = {epsilon:<4} {listed}; {made[child].num_rows:,} children; {seconds:.1f} s", flush=True
            )


def _variation(exact: list[tuple[Any, ...]], found: list[dict[str, Any]]) -> float:
    one = {row[:-1]: row[-1] for row in exact}
    two = {tuple(row.values())[:-1]: row["n"] for row in found}
    return sum(abs(one.get(key, 0) - two.get(key, 0)) for key in one.keys() | two.keys()) / 2 / sum(one.values())


if __name__ == "__main__":
    main()
