"""Functions of rows against DuckDB's own, row by row, on data that are as the policy reads them."""

import math
from collections.abc import Iterator
from datetime import date, timedelta
from fractions import Fraction
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from confide.engine.duckdb.engine import DuckDBEngine
from confide.policy import load
from confide.query import bind
from confide.query.key_value import spelled
from tests.engine.worlds import evaluate

ROWS = 150
SEED = 5
CITIES = ["Oslo", "bergen", "ÅLESUND", " Hamar ", "", "a_b%c", "Tromsø"]
WORDS = [*CITIES, "nurse", "Nurse", "NURSES", "x", "xx", "xy", "🙂🙂x", "straße", "a\tb", "   ", "z%", "z_", None]
POLICY = load(
    {
        "confide": 1,
        "budget": {"epsilon": 1, "delta": 1e-6},
        "unit": "row",
        "tables": {
            "t": {
                "columns": {
                    "k": {"range": [0, ROWS - 1]},
                    "d": {"range": ["1996-12-20", "2004-03-05"]},
                    "e": {"range": ["1996-12-20", "2004-03-05"]},
                    "old": {"range": ["0001-01-01", "9999-12-31"]},
                    "long": {"range": ["1890-05-17", "2105-08-02"]},
                    "city": {"values": CITIES},
                    "digits": {"values": ["1", "20", "007"]},
                    "word": {"type": "text"},
                    "flag": {"values": [True, False]},
                    "x": {"range": [-40, 90], "grain": 0.5},
                    "n": {"range": [-40, 90]},
                    "hours": {"range": [1, 80]},
                    "pay": {"range": [0, 5000], "grain": 0.01},
                }
            }
        },
    }
)


def rows() -> list[dict[str, Any]]:
    rng = Random(SEED)

    def day(low: date, high: date) -> date | None:
        ends = [low, high, date(2000, 2, 29), date(1999, 12, 31), date(2001, 1, 1), None]
        within = low + timedelta(days=rng.randrange((high - low).days + 1))
        return rng.choice([within, within, within, rng.choice(ends)])

    narrow, wide = (date(1996, 12, 20), date(2004, 3, 5)), (date(1, 1, 1), date(9999, 12, 31))
    return [
        {
            "k": place, "d": day(*narrow), "e": day(*narrow), "old": day(*wide), "city": rng.choice([*CITIES, None]),
            "digits": rng.choice(["1", "20", "007"]), "word": rng.choice(WORDS), "x": rng.randint(-80, 180) / 2,
            "flag": rng.choice([True, False, None]), "n": rng.choice([rng.randint(-40, 90), None]),
            "hours": rng.randint(1, 80), "pay": rng.randint(0, 500_000) / 100,
            "long": day(date(1890, 5, 17), date(2105, 8, 2)),
        }
        for place in range(ROWS)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def table() -> pa.Table:
    kinds = {
        "d": pa.date32(),
        "e": pa.date32(),
        "old": pa.date32(),
        "long": pa.date32(),
        "word": pa.string(),
        "n": pa.int64(),
    }
    found = rows()
    return pa.table({c: pa.array([row[c] for row in found], type=kinds.get(c)) for c in found[0]})


@pytest.fixture(scope="module")
def engine(table: pa.Table) -> Iterator[DuckDBEngine]:
    source = DuckDBEngine(POLICY, {"t": table})
    yield source
    source.close()


def ours(engine: DuckDBEngine, expression: str) -> list[Fraction | None]:
    """The expression of every row, as it is summed; None where it is NULL."""
    question = bind(f"SELECT k, SUM({expression}) AS s, COUNT({expression}) AS c FROM t GROUP BY k", POLICY, engine)
    exact = evaluate(engine, question.summary)
    total = next(place for place, cell in enumerate(question.summary.cells) if cell.kind == "total")
    known = next((place for place, cell in enumerate(question.summary.cells) if cell.kind == "known"), None)
    grain = question.summary.cells[total].subject.span.grain  # type: ignore[union-attr]
    sums = [int(value) * grain for value in exact.cells[total]]
    counts = [1] * ROWS if known is None else [int(value) for value in exact.cells[known]]
    return [value if count else None for value, count in zip(sums, counts, strict=True)]


def theirs(table: pa.Table, expression: str) -> list[Any]:
    with duckdb.connect() as database:
        database.register("t", table)
        return [row[0] for row in database.execute(f"SELECT {expression} FROM t ORDER BY k").fetchall()]


NUMBERS = [
    *(f"{part}(d)" for part in ("YEAR", "QUARTER", "MONTH", "DAY", "WEEK", "DAYOFWEEK", "ISODOW", "DAYOFYEAR")),
    *(f"{part}(old)" for part in ("DAYOFWEEK", "ISODOW", "MONTH", "QUARTER", "DAY")), "ISOYEAR(d)",
    "WEEKOFYEAR(d)", "WEEKDAY(d)",
    "EXTRACT(week FROM d)", "EXTRACT(doy FROM d)", "DATE_PART('dow', d)", "DATE_PART('isodow', d)",
    *(f"DATE_DIFF('{unit}', d, e)" for unit in ("day", "week", "month", "quarter", "year", "decade", "century")),
    *(f"DATE_DIFF('{unit}', old, d)" for unit in ("week", "month", "year")), "d - e", "DATE '2001-03-01' - d",
    "CAST(d + INTERVAL 1 MONTH AS DATE) - e", "CAST(d - INTERVAL 7 MONTH AS DATE) - e", "(d + 31) - e",
    "CAST(d + INTERVAL 1 YEAR AS DATE) - DATE '2000-01-01'", "CAST(d + INTERVAL 2 QUARTER AS DATE) - e",
    *(f"CAST(long + INTERVAL {months} MONTH AS DATE) - e" for months in (1, 25, 240)), "LAST_DAY(long) - e",
    *(f"CAST(long - INTERVAL {months} MONTH AS DATE) - e" for months in (1, 600)),
    "CAST(d + INTERVAL '3 days' AS DATE) - e", "LAST_DAY(d) - d", "CAST(DATE_TRUNC('week', d) AS DATE) - e",
    "LENGTH(word)", "LENGTH(city)", "LENGTH(TRIM(word))", "LENGTH(RIGHT(word, 2))", "LENGTH(SUBSTRING(word, 2))",
    "LENGTH(UPPER(city))", "STRPOS(city, 'a')", "CAST(digits AS INT)", "digits::DOUBLE + 1", "flag::INT",
    "CAST(n AS DOUBLE)", "n::DECIMAL(10, 2)", "x::DECIMAL(10, 1)", "NULLIF(n, 4)", "IFNULL(n, -3)", "IF(n > 3, x, 2)",
    "(n > 3)::INT", "CASE city WHEN 'Oslo' THEN 1 WHEN 'bergen' THEN 2 END",
]  # fmt: skip
CONDITIONS = [
    "word < 'nurse'", "word >= 'Tromsø'", "word BETWEEN 'a' AND 'x'", "word NOT BETWEEN 'a' AND 'x'", "word > '🙂'",
    "city < 'a'", "LOWER(word) = 'nurse'", "UPPER(word) IN ('NURSE', 'X', 'oslo')", "LOWER(word) LIKE 'n%'",
    "UPPER(word) LIKE '%RSE%'", "LOWER(word) <> 'x'", "LEFT(word, 2) = 'xx'", "LEFT(word, 1) IN ('x', 'z', '')",
    "RIGHT(word, 2) = '🙂x'", "RIGHT(word, 1) < 'm'", "SUBSTRING(word, 2, 1) = 'x'", "SUBSTRING(word, 2) = ''",
    "TRIM(word) = ''", "LTRIM(word, 'x') = 'y'", "RTRIM(word, '%_') = 'z'", "TRIM(city) = 'Hamar'",
    "STARTS_WITH(word, 'z%')", "NOT STARTS_WITH(word, 'x')", "ENDS_WITH(word, '_')", "CONTAINS(word, '_b%')",
    "NOT CONTAINS(word, 'u')", "CONTAINS(word, '')", "STARTS_WITH(word, '')", "ENDS_WITH(city, 'o')", "city LIKE '%o'",
    "UPPER(city) = 'OSLO'", "REPLACE(city, 'o', '0') = 'Osl0'", "city || '!' = 'Oslo!'", "'>' || city LIKE '>b%'",
    "LOWER(city) IN ('oslo', 'tromsø')", "LEFT(word, 1) IS NULL", "UPPER(city) IS NOT NULL", "LENGTH(word) > 2",
    "d + INTERVAL 1 MONTH > e", "d < e - INTERVAL 2 WEEK", "d > '2000-02-29'", "LOWER(LEFT(word, 1)) = 'n'",
    "LEFT(LOWER(TRIM(word)), 3) LIKE 'nu_'", "digits::TEXT LIKE '0%'", "CAST(flag AS TEXT) = 'true'",
]  # fmt: skip
KEYS = [
    "STRFTIME(d, '%Y-%m')", "STRFTIME(d, '%b %y')", "DAYNAME(d)", "MONTHNAME(d)", "city || '-' || digits",
    "CONCAT(city, '/', digits)", "UPPER(LEFT(city, 2))", "REPLACE(city, 'o', '*')",
    "CAST(DATE_TRUNC('quarter', d) AS DATE)", "CAST(DATE_TRUNC('quarter', long) AS DATE)",
    "CAST(DATE_TRUNC('month', long) AS DATE)", "MONTH(long)", "QUARTER(long)", "DAY(long)",
    "STRFTIME(d, '%A')", "EXTRACT(week FROM d)", "LENGTH(city)", "CAST(digits AS INT)", "NULLIF(n, 4)",
]  # fmt: skip


@pytest.mark.parametrize("expression", NUMBERS)
def test_a_number_of_a_row_is_what_duckdb_says(engine: DuckDBEngine, table: pa.Table, expression: str) -> None:
    found, wanted = ours(engine, expression), theirs(table, expression)
    assert [None if value is None else float(value) for value in found] == [
        None if value is None else float(value) for value in wanted
    ]
    assert len(set(wanted)) > 1


ROUNDED = [
    "SQRT(pay)", "SQRT(ABS(x))", "LN(hours)", "LOG(hours)", "LOG10(hours)", "LOG2(hours)", "LOG(3, hours)",
    "POWER(hours, 0.3)", "POWER(hours, -1.5)", "POWER(hours, 1.5)", "LN(GREATEST(n, 1))", "LN(pay + 0.01)",
    "CASE WHEN n > 0 THEN LN(n) END", "CASE WHEN n <= 0 THEN 0 ELSE SQRT(n) END", "pay / hours", "x / hours",
    "n / NULLIF(x, 0)", "pay / NULLIF(n, 0)", "CASE WHEN n > 3 THEN x / n END", "CASE WHEN n = 0 THEN 0 ELSE x / n END",
    "hours / (pay + 1)", "EXP(-ABS(x))", "EXP(x / 10)",
]  # fmt: skip
EXACT = ["POWER(n, 2)", "POWER(x, 3)", "hours ^ 2", "x ** 2", "POWER(n, 0)", "(hours * 3) // hours", "k // hours"]


@pytest.mark.parametrize("expression", ROUNDED)
def test_a_rounded_number_is_within_half_a_grain_of_duckdbs(
    engine: DuckDBEngine, table: pa.Table, expression: str
) -> None:
    question = bind(f"SELECT SUM({expression}) AS s FROM t", POLICY, engine)
    (grain,) = {cell.subject.span.grain for cell in question.summary.cells if cell.kind == "total"}  # type: ignore[union-attr]
    found, wanted = ours(engine, expression), theirs(table, expression)
    assert [value is None for value in found] == [value is None for value in wanted]
    pairs = [(float(one), two) for one, two in zip(found, wanted, strict=True) if one is not None]
    assert max(abs(one - two) for one, two in pairs) <= float(grain) * 0.5000001
    assert float(grain) <= max(abs(two) for _, two in pairs) / 1000


@pytest.mark.parametrize("expression", EXACT)
def test_an_exact_number_is_duckdbs(engine: DuckDBEngine, table: pa.Table, expression: str) -> None:
    found, wanted = ours(engine, expression), theirs(table, expression)
    assert [None if value is None else float(value) for value in found] == wanted


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_holds_where_duckdb_says(engine: DuckDBEngine, table: pa.Table, condition: str) -> None:
    question = bind(f"SELECT k, COUNT(*) AS n FROM t WHERE {condition} GROUP BY k", POLICY, engine)
    exact = evaluate(engine, question.summary)
    held = {place for place in range(ROWS) if int(exact.cells[0][place])}
    wanted = {place for place, value in enumerate(theirs(table, condition)) if value}
    assert held == wanted


@pytest.mark.parametrize("key", KEYS)
def test_groups_are_called_what_duckdb_calls_them(engine: DuckDBEngine, table: pa.Table, key: str) -> None:
    question = bind(f"SELECT {key} AS g, COUNT(*) AS n FROM t GROUP BY {key}", POLICY, engine)
    exact = evaluate(engine, question.summary)
    found = {spelled(question.keys[0], place): int(count) for place, count in enumerate(exact.cells[0]) if int(count)}
    wanted: dict[Any, int] = {}
    for value in theirs(table, key):
        if value is not None:
            wanted[value] = wanted.get(value, 0) + 1
    assert found == wanted


def test_the_data_are_not_all_alike() -> None:
    found = rows()
    assert len({row["word"] for row in found}) > 10
    assert not any(isinstance(value, float) and math.isnan(value) for row in found for value in row.values())
