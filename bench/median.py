"""A median with its interval beside DuckDB's exact median, one million rows, in one run.

Bars: 3 times the exact median on a column of up to 10,000 distinct values, 12 times on one of about a million.
"""

import tempfile
from pathlib import Path
from typing import Any

import duckdb

import confide
from bench.query import best

ROWS = 1_000_000
COLUMNS = {"few": (10_000, 3), "many": (100_000_000, 12)}


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "rows.duckdb"
        with duckdb.connect(str(path)) as connection:
            drawn = ", ".join(f"CAST(floor(random() * {top}) AS BIGINT) AS {c}" for c, (top, _) in COLUMNS.items())
            connection.execute(f"CREATE TABLE t AS SELECT {drawn} FROM range({ROWS})")
        columns = {column: {"range": [0, top]} for column, (top, _) in COLUMNS.items()}
        tables = {"t": {"size": ROWS, "columns": columns}}
        policy: dict[str, Any] = {
            "confide": 1, "source": str(path), "budget": {"epsilon": 1000}, "unit": "row", "tables": tables,
        }  # fmt: skip
        with (
            confide.open(policy, ledger=Path(name) / "l", create=True) as session,
            duckdb.connect(str(path), read_only=True) as raw,
        ):
            for column, (_, factor) in COLUMNS.items():
                sql = f"SELECT MEDIAN({column}) AS m FROM t"
                for mechanism in ("auto", "pair", "svt", "smooth"):

                    def ask(run: int, sql: str = sql, mechanism: str = mechanism) -> object:
                        return session.sql(sql, epsilon=f"0.1{run:03d}", mechanism=mechanism)

                    ask(999)
                    ours, theirs = best(ask, lambda _, sql=sql: raw.execute(sql).fetchall())
                    bar = f"bar {factor:>2} x   {'met' if ours <= factor * theirs else 'missed'}"
                    print(
                        f"{column:<5} {mechanism:<7} exact {theirs * 1000:7.1f} ms   private {ours * 1000:7.1f} ms"
                        f"   ratio {ours / theirs:5.2f}   {bar}"
                    )


if __name__ == "__main__":
    main()
