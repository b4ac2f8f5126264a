"""Groups that are left out are empty in every data set: tried on data that hold every row there can be.

WHERE looks at one row at a time, so a group that some data set fills is filled by a row of `universe`, which has every
combination of values, NULL and undeclared ones among them; and public tables are what they are.
"""

import random
import time
from datetime import date
from itertools import product
from math import prod
from typing import Any

import numpy as np
import polars as pl
import pytest

from confide.engine.duckdb.engine import DuckDBEngine
from confide.errors import QueryError
from confide.policy import load
from confide.query import Question, bind
from confide.query import possible_groups as module
from confide.query.conjunction import bind_conjunction
from confide.query.grouping import group_count, group_places, key_size
from confide.query.key_value import spelled
from tests.engine.worlds import CHARGE

TABLES: dict[str, Any] = {
    "t": {
        "columns": {
            "a": {"values": ["x", "y", "z"], "nulls": True},
            "b": {"values": [1, 2, 4]},
            "n": {"range": [0, 5]},
            "m": {"range": [-2, 2], "grain": 0.5, "nulls": True},
            "d": {"range": [date(2024, 1, 1), date(2024, 1, 4)], "nulls": True},
            "f": {"values": [True, False]},
            "w": {"type": "text"},
        }
    },
    "p": {"public": True, "columns": {"size": {"range": [10, 40], "bins": 10}}},
    "q": {"public": True},
}
POLICY = load({"confide": 1, "budget": {"epsilon": 100, "delta": 1e-9}, "unit": "row", "tables": TABLES})


def universe() -> dict[str, Any]:
    columns = {
        "a": ["x", "y", "z", "other", None],
        "b": [1, 2, 3, 4, None],
        "n": [-1, 0, 1, 2, 3, 4, 5, 6, None],
        "m": [*(step / 2 for step in range(-4, 5)), None],
        "d": [*(date(2024, 1, day) for day in range(1, 5)), None],
        "f": [True, False, None],
        "w": ["u", "v", None],
    }
    rows = list(product(*columns.values()))
    private = pl.DataFrame(rows, schema=dict.fromkeys(columns), orient="row")
    return {
        "t": private.with_columns(pl.col("m").cast(pl.Float64)),
        "p": pl.DataFrame({"b": [1, 2, 2, 5], "kind": ["odd", "even", "prime", "odd"], "size": [10, 20, 20, 30]}),
        "q": pl.DataFrame({"kind": ["odd", "even", None], "word": ["o", "e", "n"]}),
    }


@pytest.fixture(scope="module")
def engine() -> Any:
    made = DuckDBEngine(POLICY, universe())
    yield made
    made.close()


def ask(engine: DuckDBEngine, sql: str) -> Question:
    return bind(sql, POLICY, engine)


def filled(engine: DuckDBEngine, question: Question) -> set[int]:
    """The groups that have rows where there are all rows."""
    exact = engine.evaluate(question.summary, CHARGE, b"secret")
    return set(np.flatnonzero(exact.cells[0]).tolist())


def shown(question: Any) -> list[tuple[Any, ...]]:
    return [
        tuple(spelled(key, place) for key, place in zip(question.keys, places, strict=True))
        for places in group_places(question)
    ]


NUMBERS = ["n", "m", "n + 1", "2 * n", "n - m", "-n", "ABS(m)", "n * n", "COALESCE(m, 1)", "LEAST(n, m)",
           "GREATEST(n, 2)", "CASE WHEN a = 'x' THEN n WHEN f THEN 3 END",
           "CASE WHEN n > 2 THEN 1 ELSE 0 END"]  # fmt: skip
KEYS = ["a", "b", "n", "BIN(n, 2)", "BIN(m, 1)", "BIN(n + 1, 3)", "d", "BIN(d, 2)", "f", "BIN(n - m, 1)", "m"]
JOINED = ["p.b", "kind", "size", "BIN(size, 10)"]


def condition(draw: random.Random, depth: int, joined: bool) -> str:
    if depth and draw.random() < 0.6:
        inner = [condition(draw, depth - 1, joined) for _ in range(draw.choice([2, 2, 3]))]
        word = draw.choice([" AND ", " OR "])
        return f"{'NOT ' if draw.random() < 0.2 else ''}({word.join(inner)})"
    number = draw.choice(NUMBERS)
    leaves = [
        f"{number} {draw.choice(['<', '<=', '=', '<>', '>', '>='])} {draw.choice([-3, -1, 0, 0.5, 1, 2, 3, 7])}",
        f"{number} {draw.choice(['<', '=', '<>', '>='])} {draw.choice(NUMBERS)}",
        f"n {draw.choice(['IN', 'NOT IN'])} (0, {draw.choice([1, 2, 4])}, 5)",
        f"{draw.choice(['n', 'm', 'd', 'a', 'f', 't.b', 'w'])} IS {draw.choice(['', 'NOT '])}NULL",
        f"a {draw.choice(['=', '<>'])} '{draw.choice('xyz')}'",
        f"a {draw.choice(['IN', 'NOT IN'])} ('x', '{draw.choice('xyz')}')",
        f"a {draw.choice(['LIKE', 'NOT LIKE'])} '{draw.choice(['x', '%', '_', 'q%'])}'",
        f"t.b {draw.choice(['<', '>=', '='])} {draw.choice([1, 2, 4])}",
        f"d {draw.choice(['<', '>=', '=', '<>'])} DATE '2024-01-0{draw.choice([1, 2, 3, 4])}'",
        f"d BETWEEN DATE '2024-01-02' AND DATE '2024-01-0{draw.choice([2, 3])}'",
        f"f IS {draw.choice(['', 'NOT '])}{draw.choice(['TRUE', 'FALSE'])}",
        f"w {draw.choice(['=', '<>'])} 'u'",
        "TRUE" if draw.random() < 0.8 else "FALSE",
    ]
    if joined:
        leaves += [
            f"kind {draw.choice(['=', '<>'])} '{draw.choice(['odd', 'even', 'prime'])}'",
            f"size {draw.choice(['<', '>=', '='])} {draw.choice([10, 20, 25, 30])}",
            "kind IS NULL",
            "n + 18 < size",
        ]
    return draw.choice(leaves).replace("t.b", "t.b" if joined else "b")


def questions(seed: int, count: int) -> list[str]:
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        joined = draw.random() < 0.4
        keys = draw.sample(KEYS, draw.choice([1, 2, 2, 3]))
        source = "t"
        if joined:
            keys = [("t.b" if key == "b" else key) for key in keys]
            keys = list(dict.fromkeys([*keys[:2], draw.choice(JOINED)]))
            source = f"t {draw.choice(['JOIN', 'LEFT JOIN'])} p ON t.b = p.b"
        where = condition(draw, draw.choice([0, 1, 2]), joined)
        made.append(f"SELECT COUNT(*) AS n FROM {source} WHERE {where} GROUP BY {', '.join(keys)}")
    return made


def lost(engine: DuckDBEngine, seed: int, count: int) -> tuple[int, int, int]:
    """Groups that have rows and are left out; groups that are empty; and how many of these are left out."""
    wrong = empty = told = 0
    for sql in questions(seed, count):
        question = ask(engine, sql)
        every = set(range(prod(key_size(key) or 0 for key in question.keys)))
        kept = every if question.possible is None else set(question.possible)
        full = filled(engine, question)
        wrong += len(full - kept)
        empty += len(every - full)
        told += len(every - kept)
    return wrong, empty, told


def test_what_is_left_out_is_empty_in_every_data_set(engine):
    wrong, empty, told = lost(engine, seed=1, count=90)
    assert wrong == 0
    assert told > 0.99 * empty  # and little that is empty stays in


CASES = [
    ("a = 'x'", "a", [("x",)]),
    ("a <> 'x'", "a", [("y",), ("z",)]),  # NULL differs from nothing
    ("a IS NOT NULL", "a", [("x",), ("y",), ("z",)]),
    ("a IS NULL", "a", [(None,)]),
    ("a = 'x' AND b > 1", "a, b", [("x", 2), ("x", 4)]),
    ("(a = 'x' AND b = 2) OR (a = 'y' AND b = 4)", "a, b", [("x", 2), ("y", 4)]),
    ("n BETWEEN 2 AND 3", "BIN(n, 2)", [(2,)]),
    ("n >= 3 AND n < 5", "BIN(n, 2)", [(2,), (4,)]),
    ("n NOT IN (2, 3)", "BIN(n, 2)", [(0,), (4,)]),
    ("n IN (0, 5)", "BIN(n, 2)", [(0,), (4,)]),
    ("n + 1 > 5", "n", [(5,)]),
    ("-n > -1", "n", [(0,)]),
    ("n = 3", "n, BIN(n, 2)", [(3, 2)]),
    ("d = DATE '2024-01-03'", "d", [(date(2024, 1, 3),)]),
    ("CASE WHEN a = 'x' THEN 1 ELSE 0 END = 0", "a", [("y",), ("z",), (None,)]),
    ("CASE WHEN n > 2 THEN 1 ELSE 0 END = 0", "b", [(1,), (2,), (4,)]),
    ("CASE WHEN n > 2 THEN 1 ELSE 0 END = 0", "BIN(n, 2)", [(0,), (2,)]),
    ("n > 3 AND n < 2", "a", []),
    ("n > 3 AND n < 2", "b", []),
    ("FALSE", "a, b", []),
    ("m > 1 OR b = 2", "f", [(True,), (False,)]),
    ("w = 'u'", "b", [(1,), (2,), (4,)]),
]


@pytest.mark.parametrize(("where", "keys", "expected"), CASES)
def test_groups_that_where_leaves(engine, where, keys, expected):
    question = ask(engine, f"SELECT {keys}, COUNT(*) AS c FROM t WHERE {where} GROUP BY {keys}")
    assert shown(question) == expected
    assert group_count(question) == len(expected)


@pytest.mark.parametrize(
    "key",
    ["b + 1", "b * 2", "b % 3", "COALESCE(b, 0)", "COALESCE(b, -7)", "LEAST(b, 3)", "ABS(b - 2)", "NULLIF(b, 1)",
     "b // 2", "ROUND(b / 3)", "CASE WHEN b > 1 THEN b ELSE 0 END", "3 * n", "n * n", "COALESCE(n, 9)", "10 * n + b",
     "CASE WHEN a = 'x' THEN 2 * n WHEN f THEN 7 END", "2 * m", "COALESCE(3 * m, n)"],
)  # fmt: skip
@pytest.mark.parametrize("where", ["", " WHERE b < 4", " WHERE n <> 2 AND a IS NOT NULL"])
def test_the_groups_of_a_computed_key_are_its_values(engine, key, where):
    """No more than them, and no fewer: of columns with few values."""
    question = ask(engine, f"SELECT {key} AS k, COUNT(*) AS c FROM t{where} GROUP BY {key}")
    every = range(prod(key_size(own) or 0 for own in question.keys))
    assert set(question.possible or every) == filled(engine, question)


@pytest.mark.parametrize(
    ("having", "expected"),
    [
        ("a = 'x'", [("x", 1), ("x", 2), ("x", 4)]),
        ("a <> 'x' AND b = 2", [("y", 2), ("z", 2)]),
        ("a = 'x' AND COUNT(*) > 5", [("x", 1), ("x", 2), ("x", 4)]),
        ("NOT (a = 'x' OR b <> 4)", [("y", 4), ("z", 4)]),
        ("b IN (1, 4) AND (a = 'z' OR a = 'y')", [("y", 1), ("y", 4), ("z", 1), ("z", 4)]),
    ],
)
def test_groups_that_having_leaves(engine, having, expected):
    question = ask(engine, f"SELECT a, b, COUNT(*) AS c FROM t GROUP BY a, b HAVING {having}")
    assert shown(question) == expected


def test_having_on_what_is_measured_leaves_all(engine):
    assert ask(engine, "SELECT a, COUNT(*) AS c FROM t GROUP BY a HAVING COUNT(*) > 5 OR a = 'x'").possible is None


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("p.b, kind FROM t JOIN p ON t.b = p.b", [(1, "odd"), (2, "even"), (2, "prime")]),
        ("t.b, kind FROM t LEFT JOIN p ON t.b = p.b WHERE kind IS NOT NULL", [(1, "odd"), (2, "even"), (2, "prime")]),
        ("t.b, a FROM t LEFT JOIN p ON t.b = p.b WHERE a = 'x'", [(1, "x"), (2, "x"), (4, "x")]),
        ("t.b, a FROM t JOIN p ON t.b = p.b WHERE size > 15 AND a = 'x'", [(2, "x")]),
        ("kind FROM t JOIN p ON t.b = p.b WHERE size > 25", []),  # of 5, which b never is
        ("kind, word FROM t JOIN p ON t.b = p.b JOIN q ON p.kind = q.kind", None),
    ],
)
def test_groups_that_public_tables_leave(engine, sql, expected):
    columns = sql[: sql.index(" FROM")]
    if expected is None:
        sql = sql.replace("kind,", "p.kind,")
        columns, expected = "p.kind, word", [("even", "e"), ("odd", "o")]
    assert shown(ask(engine, f"SELECT COUNT(*) AS c, {sql} GROUP BY {columns}")) == expected


def test_a_public_table_with_many_different_rows_tells_nothing(engine, monkeypatch):
    sql = "SELECT p.b, kind, COUNT(*) AS c FROM t JOIN p ON t.b = p.b WHERE t.b = 1 GROUP BY p.b, kind"
    monkeypatch.setattr(module, "MOST_PUBLIC_ROWS", 2)
    assert shown(ask(engine, sql)) == [(1, "even"), (1, "odd"), (1, "prime")]


def test_what_takes_too_long_to_tell_stays_in(engine, monkeypatch):
    monkeypatch.setattr(module, "MOST_STEPS", 20)
    sql = "SELECT a, b, COUNT(*) AS c FROM t WHERE (a = 'x' AND b = 2) OR (a = 'y' AND b = 4) GROUP BY a, b"
    assert ask(engine, sql).possible is None


def test_a_deep_case_takes_no_time(engine):
    inner = "n"
    for _ in range(12):
        inner = f"CASE WHEN {inner} > 1 THEN 2 ELSE 0 END"
    begun = time.perf_counter()
    question = ask(engine, f"SELECT n, COUNT(*) AS c FROM t WHERE {inner} = 1 GROUP BY n")
    assert time.perf_counter() - begun < 10
    assert filled(engine, question) <= set(question.possible or range(6))


def test_joins_without_bounds_leave_the_same_groups(engine):
    joined = "FROM t AS s JOIN t AS o ON s.w = o.w WHERE s.a = 'x' AND o.b > 1"
    question = bind_conjunction(f"SELECT s.a, o.b, COUNT(*) AS c {joined} GROUP BY s.a, o.b", POLICY, engine)
    assert shown(question) == [("x", 2), ("x", 4)]
    with pytest.raises(QueryError, match="no row can be in any group"):
        bind_conjunction(f"SELECT s.a, COUNT(*) AS c {joined} AND s.a = 'y' GROUP BY s.a", POLICY, engine)


def test_keys_without_a_group_for_null(engine):
    def lost_of(sql: str) -> list[str]:
        question = ask(engine, sql)
        return [question.keys[place].name for place in module.lost_nulls(question.summary)]

    assert lost_of("SELECT a, b, BIN(n, 2), COUNT(*) AS c FROM t GROUP BY 1, 2, 3") == ["b", "n_bin"]
    assert lost_of("SELECT b, n, COUNT(*) AS c FROM t WHERE b = 1 AND n IS NOT NULL GROUP BY 1, 2") == []
    assert lost_of("SELECT w, COUNT(*) AS c FROM t WHERE w LIKE 'u%' GROUP BY 1") == []
    assert lost_of("SELECT w, COUNT(*) AS c FROM t GROUP BY 1") == ["w"]
