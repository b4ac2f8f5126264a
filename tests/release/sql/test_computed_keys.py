"""Groups of expressions, asked end to end with next to no noise, are those of the database itself."""

from collections.abc import Callable
from datetime import date, timedelta

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import confide.testing

POLICY = {
    "confide": 1,
    "budget": {"epsilon": 1e6},
    "unit": "row",
    "tables": {
        "t": {
            "columns": {
                "age": {"range": [0, 99]},
                "balance": {"range": [-50, 50], "grain": 0.5},
                "kids": {"values": [0, 1, 2]},
                "region": {"values": ["North", "south ", "East"]},
                "day": {"range": ["2023-11-20", "2024-03-10"]},
            }
        }
    },
}
KEYS = [
    "age < 30", "FLOOR(age / 10) * 10", "age // 7", "age % 3", "FLOOR(balance)", "CEIL(balance)", "ROUND(balance)",
    "ROUND(balance, -1)", "TRUNC(balance)", "SIGN(balance)", "kids + 1", "kids * age > 20", "YEAR(day)", "QUARTER(day)",
    "MONTH(day)", "EXTRACT(YEAR FROM day)", "DATE_PART('month', day)", "DATE_TRUNC('month', day)",
    "DATE_TRUNC('week', day)", "DATE_TRUNC('year', day)", "DAY(day)", "LOWER(region)", "UPPER(TRIM(region))",
    "SUBSTRING(region, 1, 1)", "LEFT(region, 2)", "RIGHT(region, 2)", "region || '!'", "CAST(kids AS VARCHAR)",
    "CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'grown' ELSE 'old' END", "CASE kids WHEN 0 THEN 5 ELSE 7 END",
    "IF(region = 'East', 'e', 'other')", "region IN ('East', 'North')",
    "CASE WHEN age > 50 THEN day - DATE '2023-11-01' END > 30",
]  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    random, size = np.random.default_rng(4), 500
    return pa.table(
        {
            "age": random.integers(0, 100, size),
            "balance": random.integers(-100, 101, size) / 2,
            "kids": random.integers(0, 3, size),
            "region": random.choice(["North", "south ", "East"], size),
            "day": [date(2023, 11, 20) + timedelta(days=int(days)) for days in random.integers(0, 112, size)],
        }
    )


@pytest.mark.parametrize("key", KEYS)
def test_the_groups_are_those_of_the_database(key: str, rows: pa.Table) -> None:
    sql = f"SELECT {key} AS k, COUNT(*) AS n, SUM(age) AS s FROM t GROUP BY {key}"
    with confide.testing.open(POLICY, {"t": rows}, seed=1) as session:
        found = session.sql(sql, epsilon=1e5).to_arrow()
    connection = duckdb.connect()
    connection.register("t", rows)
    wanted = {group: (count, total) for group, count, total in connection.execute(sql).fetchall() if group is not None}
    keys = [_plain(group) for group in found["k"].to_pylist()]
    shown = dict(zip(keys, zip(found["n"].to_pylist(), found["s"].to_pylist(), strict=True), strict=True))
    assert {group: numbers for group, numbers in shown.items() if numbers != (0, 0)} == {
        _plain(group): (count, int(total)) for group, (count, total) in wanted.items()
    }
    assert len(shown) == found.num_rows


def _plain(value: object) -> object:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)[:10]


WIDE = 4 * 10**18


@pytest.mark.parametrize("rows", [[-1, 3, 5], [-1, 3, 5, WIDE], [-WIDE, WIDE]])
@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("SELECT COUNT(*) AS n FROM w WHERE FLOOR(x / 9000000000000000000) = -1", lambda v: v // (9 * 10**18) == -1),
        ("SELECT COUNT(*) AS n FROM w WHERE FLOOR(z / 3000000000000000000) = 1", lambda v: v // (3 * 10**18) == 1),
        ("SELECT COUNT(*) AS n FROM w WHERE FLOOR(z / 1e30 / 1e30) = -1", lambda v: v < 0),
        ("SELECT COUNT(*) AS n FROM w WHERE CEIL(z / 1e30 / 1e30) = 1", lambda v: v > 0),
    ],
)
def test_no_row_is_too_wide_to_be_floored(sql: str, wanted: Callable[[int], bool], rows: list[int]) -> None:
    columns = {"x": {"range": [-WIDE, WIDE]}, "z": {"range": [-WIDE, WIDE]}}
    policy = {**POLICY, "tables": {"w": {"columns": columns}}}
    with confide.testing.open(policy, {"w": pa.table({"x": rows, "z": rows})}, seed=1) as session:
        assert session.sql(sql, epsilon=1e5).to_arrow()["n"].to_pylist() == [sum(map(wanted, rows))]


def test_labels_of_another_type_are_another_question(rows: pa.Table) -> None:
    number = "SELECT CASE WHEN age < 30 THEN 5 ELSE 10 END AS k, COUNT(*) AS n FROM t GROUP BY k ORDER BY k LIMIT 1"
    text = number.replace("5", "'5'").replace("10", "'10'")
    with confide.testing.open(POLICY, {"t": rows}, seed=1) as session:
        assert session.sql(number, epsilon=1e4).to_arrow()["k"].to_pylist() == [5]
        assert session.sql(text, epsilon=1e4).to_arrow()["k"].to_pylist() == ["10"]


def test_having_compares_a_key_as_a_number(rows: pa.Table) -> None:
    with confide.testing.open(POLICY, {"t": rows}, seed=1) as session:
        for constant in ("1", "1.0", "1.00"):
            sql = f"SELECT balance, COUNT(*) AS n FROM t GROUP BY balance HAVING balance = {constant}"
            assert session.sql(sql, epsilon=1).to_arrow()["balance"].to_pylist() == [1.0]
