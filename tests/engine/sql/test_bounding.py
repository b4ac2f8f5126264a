"""The tiers of bounding against the order itself: every row of every unit ordered, and the first of them taken."""

from decimal import Decimal
from hashlib import sha256
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from confide.engine.duckdb.engine import DuckDBEngine
from confide.engine.sql.bounding import BoundedRows, bounded_rows
from confide.engine.sql.statement import SummaryWriter
from confide.policy import Identifier, Policy, load
from confide.query import bind
from confide.query.tree import Bound, Field
from tests.engine.worlds import CHARGE

KINDS = ["a", "b", "c", "d"]
LONGEST = 10_000
LONG = ["é" * LONGEST, "é" * (LONGEST + 1), sha256(("é" * (LONGEST + 1)).encode()).hexdigest()]
"""The last is what stands for the one before it."""


def policy(rows: int, groups: int) -> Policy:
    tables = {
        "p": {"columns": {"k": {"type": "id"}}},
        "v": {
            "references": {"k": "p.k"},
            "at_most": {"rows": rows, "groups": groups},
            "columns": {"c": {"values": KINDS}, "s": {"type": "text"}, "x": {"range": [0, 50], "grain": 5}},
        },
    }
    return load({"confide": 1, "budget": {"epsilon": 1}, "unit": "p.k", "tables": tables})


def visits(seed: int) -> list[dict[str, Any]]:
    """Units of every size, with ties: NULL beside '', values that the grain makes equal, rows that are all alike."""
    rng = Random(seed)
    rows = [
        {
            "k": unit,
            "c": rng.choice([*KINDS, "zz", None]),
            "s": rng.choice([None, "", "t", "u", *LONG]),
            "x": rng.choice([0, 1, 2, 23, 24, 50, 99, None]),
        }
        for unit in range(12)
        for _ in range(rng.choice([0, 1, 2, 3, 5, 9, 30]))
    ]
    rng.shuffle(rows)
    return rows


def taken_in_order(data: list[dict[str, Any]], rows: int, groups: int, grouped: bool, secret: bytes) -> list[Any]:
    """The selection in plain Python."""
    key = sha256(b"confide order\x00" + secret).hexdigest()[:32]

    def order(hashed: list[Any]) -> str:
        parts = ["," if value is None else f",{len(str(value))}:{short(str(value))}" for value in hashed]
        return sha256("".join([key, *parts]).encode()).hexdigest()

    found = [row | {"x": index(row["x"])} for row in data if not grouped or row["c"] in KINDS]
    kept = []
    for unit in sorted({row["k"] for row in found}):
        own = [row for row in found if row["k"] == unit]
        if grouped and groups < rows:  # so many rows fall into no more groups anyway
            first = sorted({order([unit, row["c"]]) for row in own})[:groups]
            own = [row for row in own if order([unit, row["c"]]) in first]
        kept += sorted(own, key=lambda row: order([seen(row["c"]), row["k"], row["s"], row["x"]]))[:rows]
    return [(row["k"], row["c"], row["x"], row["s"]) for row in kept]


def short(value: str) -> str:
    """A text that no database could hold many of in one is told by its hash."""
    return value if len(value) <= LONGEST else sha256(value.encode()).hexdigest()


def seen(kind: str | None) -> str | None:
    """What is not declared is nothing: of rows that no query tells apart, any may be kept."""
    return kind if kind in KINDS else None


def index(value: int | None) -> int | None:
    """Of a number in [0, 50] on a grain of 5."""
    return None if value is None else (2 * max(0, min(50, value)) + 5) // 10


@pytest.mark.parametrize(("rows", "groups"), [(1, 1), (3, 1), (3, 2), (3, 3), (8, 2), (8, 8), (40, 3)])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("once", [False, True])
def test_the_tiers_take_what_the_order_takes(rows: int, groups: int, seed: int, once: bool) -> None:
    rules, data, secret = policy(rows, groups), visits(seed), f"secret {seed}".encode()
    kinds = {"k": pa.int64(), "c": pa.string(), "s": pa.string(), "x": pa.int64()}
    frame = pa.table({name: pa.array([row[name] for row in data], kind) for name, kind in kinds.items()})
    engine = DuckDBEngine(rules, {"p": pa.table({"k": list(range(12))}), "v": frame})
    engine._reads_once = once
    for grouped in (False, True):
        text = "COUNT(*) AS n, SUM(x) AS t, COUNT(x) AS m, COUNT(s) AS o FROM v"
        text = f"SELECT c, {text} GROUP BY c" if grouped else f"SELECT {text}"
        exact = engine.evaluate(bind(text, rules, engine).summary, CHARGE, secret)
        kept = taken_in_order(data, rows, groups, grouped, secret)
        for place, kind in enumerate(KINDS if grouped else [None]):
            own = [row for row in kept if not grouped or row[1] == kind]
            expected = [
                len(own),
                sum(row[2] for row in own if row[2] is not None),
                sum(row[2] is not None for row in own),
                sum(row[3] is not None for row in own),
            ]
            assert [int(cell[place]) for cell in exact.cells] == expected
    engine.close()


def test_one_reading_is_one_reading() -> None:
    """A relation that gives other rows at every look cannot give a unit more than its bound."""
    rules = policy(3, 2)
    engine = DuckDBEngine(rules, {"p": pa.table({"k": [1]}), "v": pa.table(visits_of_one(50))})
    summary = bind("SELECT c, COUNT(*) AS n FROM v GROUP BY c", rules, engine).summary
    once, tiers = (SummaryWriter(summary, engine._storages, b"secret", once).statement() for once in (True, False))
    assert once.count('main."v"') == 1
    assert tiers.count('main."v"') > 1
    engine.close()


def visits_of_one(count: int) -> dict[str, Any]:
    return {"k": [1] * count, "c": ["a"] * count, "s": ["t"] * count, "x": [5] * count}


def test_a_bound_that_cannot_bind_is_left_out_and_changes_nothing() -> None:
    rules = policy(30, 30)
    engine = DuckDBEngine(
        rules,
        {"p": pa.table({"k": [1, 2, 3]}), "v": pa.table({"k": [1, 2], "c": ["a", "b"], "s": ["x", None], "x": [5, 6]})},
    )
    summary = bind("SELECT c, SUM(x) AS t FROM v JOIN p USING (k) GROUP BY c", rules, engine).summary
    assert engine._bounded_anyway(summary)
    writer = SummaryWriter(summary, engine._storages, b"secret")
    bare, bounded = (engine._rows(writer.statement(bounding)) for bounding in (False, True))
    assert "ROW_NUMBER" in writer.statement(True)
    assert "ROW_NUMBER" not in writer.statement(False)
    assert sorted(bare) == sorted(bounded)
    engine.close()


def test_a_repeated_key_is_not_taken_for_a_unique_one() -> None:
    tables = {"p": {"columns": {"k": {"type": "id"}, "x": {"range": [0, 9]}}}}
    rules = load({"confide": 1, "budget": {"epsilon": 1}, "unit": "p.k", "tables": tables})
    for keys, expected in (([1, 2, 3], 3), ([1, 1, 1], 1), ([1, None, None], 1)):
        engine = DuckDBEngine(rules, {"p": pa.table({"k": pa.array(keys, pa.int64()), "x": [1, 2, 3]})})
        exact = engine.evaluate(bind("SELECT COUNT(*) AS n FROM p", rules, engine).summary, CHARGE, b"")
        assert int(exact.cells[0][0]) == expected
        engine.close()


def test_what_a_public_table_repeats_counts_towards_the_bound() -> None:
    tables = {
        "p": {"columns": {"k": {"type": "id"}}},
        "v": {"references": {"k": "p.k"}, "at_most": {"rows": 2}, "columns": {"c": {"values": KINDS}}},
        "w": {"public": True},
    }
    rules = load({"confide": 1, "budget": {"epsilon": 1}, "unit": "p.k", "tables": tables})
    data = {"p": pa.table({"k": [1]}), "v": pa.table({"k": [1] * 9, "c": ["a"] * 9}), "w": pa.table({"c": ["a"] * 5})}
    engine = DuckDBEngine(rules, data)
    question = bind("SELECT COUNT(*) AS n FROM v JOIN w ON v.c = w.c", rules, engine)
    assert question.summary.bound is not None
    assert question.summary.bound.rows == 2 * 5
    assert int(engine.evaluate(question.summary, CHARGE, b"").cells[0][0]) == 2 * 5
    engine.close()


def test_names_of_the_policy_do_not_meet_names_of_the_statement() -> None:
    """Tables and columns may be called what parts of the statement are called."""
    tables = {
        "many": {"columns": {"u": {"type": "id"}}},
        "rel": {
            "references": {"u": "many.u"},
            "at_most": {"rows": 2, "groups": 1},
            "columns": {
                "k0": {"values": ["a"]},
                "n": {"range": [0, 9]},
                "rn": {"type": "text"},
                "s0": {"type": "text"},
            },
        },
        "r": {"references": {"u": "many.u"}, "at_most": {"rows": 2, "groups": 1}, "columns": {"c0": {"range": [0, 9]}}},
    }
    rules = load({"confide": 1, "budget": {"epsilon": 1}, "unit": "many.u", "tables": tables})
    data = {
        "many": pa.table({"u": [1]}),
        "rel": pa.table({"u": [1] * 9, "k0": ["a"] * 9, "n": [5] * 9, "rn": ["x"] * 9, "s0": ["y"] * 9}),
        "r": pa.table({"u": [1] * 9, "c0": [7] * 9}),
    }
    engine = DuckDBEngine(rules, data)
    for text, expected in (
        ("SELECT k0, COUNT(*) AS n FROM rel AS many GROUP BY k0", 2),
        ("SELECT SUM(c0) AS n FROM r AS rel", 14),
        ("SELECT COUNT(*) AS n FROM r JOIN many USING (u)", 2),
        ('SELECT COUNT(*) AS n FROM rel AS "r" JOIN r AS "w" ON "r".u = "w".u', 2 * 2),
    ):
        exact = engine.evaluate(bind(text, rules, engine).summary, CHARGE, b"x")
        assert int(exact.cells[0][0]) == expected
    engine.close()


def test_the_secret_is_not_in_the_statement() -> None:
    bound = Bound(Field("s0", Identifier("k")), 3, 2)
    relation = BoundedRows("t AS s0", [], "s0.k", [("k0", "s0.c")], [], ["s0.k"], frozenset())
    assert b"hunter2".hex() not in bounded_rows(relation, bound, b"hunter2")
    assert "hunter2" not in bounded_rows(relation, bound, b"hunter2")
    assert bounded_rows(relation, bound, b"hunter2") != bounded_rows(relation, bound, b"hunter3")


@pytest.mark.parametrize("how", ["gap", "word", "texts", "decimals"])
def test_a_row_that_changes_how_a_column_is_stored_changes_no_other_unit(how: str) -> None:
    """pandas makes floats of whole numbers with a gap, objects of those with a word: others keep the rows they kept."""
    tables = {
        "p": {"columns": {"k": {"type": "id"}}},
        "v": {
            "references": {"k": "p.k"},
            "at_most": {"rows": 2, "groups": 1},
            "columns": {
                "code": {"type": "text"},
                "other": {"type": "id"},
                "level": {"values": [0, 1, 2, 3]},
                "x": {"range": [0, 50]},
            },
        },
    }
    rules = load({"confide": 1, "budget": {"epsilon": 1}, "unit": "p.k", "tables": tables})
    rng = Random(4)
    labels = ("k", "code", "other", "level", "x")
    rows: list[tuple[Any, ...]] = [
        (place % 40, rng.randrange(10**6), rng.randrange(-(10**6), 10**6), rng.randrange(6), rng.randrange(51))
        for place in range(1000)
    ]
    new: dict[str, tuple[Any, ...]] = {"gap": (None,) * 5, "word": ("?",) * 5}
    plain = pd.DataFrame(rows, columns=list(labels))
    odd = pd.DataFrame([*rows, new[how]] if how in new else rows, columns=list(labels))
    if how == "texts":
        odd = odd.astype(dict.fromkeys(labels, str))
    if how == "decimals":
        odd = odd.map(Decimal)
    assert (odd.dtypes != plain.dtypes).all()
    sums = []
    for frame in (plain, odd):
        engine = DuckDBEngine(rules, {"p": pa.table({"k": list(range(40))}), "v": frame})
        question = bind("SELECT level, COUNT(*) AS n, SUM(x) AS s FROM v GROUP BY level", rules, engine)
        exact = engine.evaluate(question.summary, CHARGE, b"a secret")
        sums.append([[int(value) for value in cell] for cell in exact.cells])
        engine.close()
    # The row itself has no declared level, or belongs to nobody.
    assert sums[0] == sums[1]
    assert sum(sums[0][0]) == 80
