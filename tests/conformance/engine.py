"""What any engine must do: describe one as an `EngineKind`, then call `check_engine`, or each of `CHECKS`."""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from confide.engine import Engine, Exact
from confide.engine.protocol import Counts
from confide.engine.read import multipass
from confide.engine.read.multipass import ROOM
from confide.engine.read.summary_reader import teller
from confide.errors import EngineError
from confide.policy import Category, Policy, load
from confide.query import bind
from confide.query.grid import EvenGrid
from confide.query.rewrite.constants import months_later
from confide.query.tabulation import Tabulation
from confide.query.tree import Bound
from tests.engine import joins
from tests.engine.reference import Reference
from tests.engine.test_neighbours import pairs
from tests.engine.test_reference import as_groups, as_tallies, compare
from tests.engine.worlds import CHARGE, SECRET, WORLDS

Tables = Mapping[str, pa.Table]


@dataclass(frozen=True)
class EngineKind:
    """An implementation. What an engine has no way to do is None, and the check that needs it is left out."""

    create: Callable[[Policy, Tables], Engine]
    create_limited: Callable[[Policy, Tables, float], Engine] | None = None
    """An engine whose statements may take so many seconds."""
    send: Callable[[Engine, str], object] | None = None
    """Send SQL on the engine's own connection, around everything that checks it."""
    forbidden: tuple[str, ...] = ()
    """Statements that the engine must deny even so."""
    live: bool = False
    """The data stay where they are and may change: the version names their place, not their state."""
    damage: Callable[[Engine], None] | None = None
    """Make every statement fail from now on, with a message of the database that would show values."""
    lift_limit: Callable[[Engine], None] | None = None
    """Take the limit away, where even a short statement may need as long."""


def check_engine(kind: EngineKind) -> None:
    """Run every check."""
    for check in CHECKS:
        check(kind)


# --- helpers of the checks --------------------------------------------------------------------------------------------


def policy_of(tables: Mapping[str, Any], unit: str = "row", budget: Mapping[str, Any] | None = None) -> Policy:
    limits = dict(budget or {"epsilon": 1, "delta": 1e-6})
    return load({"confide": 1, "budget": limits, "unit": unit, "tables": dict(tables)})


@contextmanager
def opened(kind: EngineKind, policy: Policy, tables: Tables) -> Iterator[Engine]:
    engine = kind.create(policy, tables)
    try:
        yield engine
    finally:
        engine.close()


def ask(engine: Engine, policy: Policy, text: str, secret: bytes = SECRET) -> Exact:
    return engine.evaluate(bind(text, policy, engine).summary, CHARGE, secret)


def integers(exact: Exact) -> list[list[int]]:
    return [[int(value) for value in cell] for cell in exact.cells]


def failure(call: Callable[[], object]) -> BaseException | None:
    try:
        call()
    except BaseException as error:
        return error
    return None


def _visits(rows: int, groups: int) -> Policy:
    return policy_of(
        {
            "person": {"columns": {"pid": {"type": "id"}, "age": {"range": [0, 100]}}},
            "visit": {
                "references": {"pid": "person.pid"},
                "at_most": {"rows": rows, "groups": groups},
                "columns": {
                    "cost": {"range": [0, 1000]},
                    "kind": {"values": ["a", "b", "c", "d"]},
                    "note": {"type": "text"},
                },
            },
        },
        unit="person.pid",
    )


def _visit_table(rows: list[tuple[Any, Any, Any, Any]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
    types = (pa.int64(), pa.int64(), pa.string(), pa.string())
    names = ("pid", "cost", "kind", "note")
    return pa.table({name: pa.array(column, kind) for name, column, kind in zip(names, columns, types, strict=True)})


def _people(count: int) -> pa.Table:
    return pa.table({"pid": pa.array(range(count), pa.int64()), "age": pa.array([30] * count, pa.int64())})


# --- exactness --------------------------------------------------------------------------------------------------------


def sums_pass_64_bits(kind: EngineKind) -> None:
    most = 2**61
    policy = policy_of({"t": {"columns": {"x": {"range": [-most, most]}, "y": {"range": [0, 2**20]}}}})
    table = pa.table({"x": pa.array([most] * 100 + [-most] * 3, pa.int64()), "y": pa.array([2**20] * 103, pa.int64())})
    with opened(kind, policy, {"t": table}) as engine:
        exact = ask(engine, policy, "SELECT SUM(x) AS a, SUM(x * y) AS b, SUM(-x) AS c, COUNT(x) AS n FROM t")
        assert integers(exact) == [[97 * 2**61], [97 * 2**81], [103]]  # the third follows from the first


def small_integers_do_not_overflow(kind: EngineKind) -> None:
    """Constants and narrow columns are often 32 or 8 bits in a database, and their products overflow there."""
    policy = policy_of({"t": {"columns": {"x": {"range": [-100, 100]}, "k": {"values": ["a", "b"]}}}})
    table = pa.table({"x": pa.array([100, -100, 100], pa.int8()), "k": ["a", "b", None]})
    with opened(kind, policy, {"t": table}) as engine:
        flag = "(CASE WHEN k = 'a' THEN 100000 ELSE 99999 END)"
        text = (
            f"SELECT SUM({flag} * {flag} * {flag}) AS a, SUM(x * x * x * x) AS b, SUM(ABS(x) * 1000003 - x) AS c FROM t"
        )
        assert integers(ask(engine, policy, text)) == [
            [100000**3 + 2 * 99999**3],
            [3 * 100**4],
            [300 * 1000003 - 100],
        ]


def values_are_rounded_to_every_grain(kind: EngineKind) -> None:
    """Half up, in exact arithmetic for whole numbers and decimals, whatever the grain and the range."""
    whole = [-(2**63), -101, -100, -36, -35, -5, -1, 0, 1, 4, 5, 6, 14, 15, 99, 100, 101, 2**63 - 1, None]
    decimals = [Decimal(n) / 1000 for n in (-100001, -100000, -5005, -5, -1, 0, 1, 4, 5, 6, 125, 335, 99995, 100500)]
    doubles = [0.0, -0.0, 0.005, 0.125, 0.145, 1.115, 2.5, 3.5, -2.5, 99.995, 100.0, 1e300, -1e300, 1e-320, 33.33]
    doubles += [math.nan, math.inf, -math.inf]
    grains = {"g01": 0.01, "g25": 0.25, "g1": 1, "g10": 10, "g3": "1/3", "g7": "20/7"}
    for stored, kind_of in (
        (whole, pa.int64()),
        ([*decimals, None], pa.decimal128(9, 3)),
        ([*decimals, None], pa.decimal128(38, 20)),
        ([*doubles, None], pa.float64()),
        ([None if v is None else float(v) for v in whole if v is None or abs(v) < 1000], pa.float32()),
    ):
        columns = {name: {"range": [-100, 100], "grain": grain} for name, grain in grains.items()}
        policy = policy_of({"t": {"columns": columns}})
        rows = [dict.fromkeys(columns, value) for value in stored]
        table = pa.table({name: pa.array(stored, kind_of) for name in columns})
        with opened(kind, policy, {"t": table}) as engine:
            totals = ", ".join(f"SUM({name}) AS s_{name}, COUNT({name}) AS n_{name}" for name in columns)
            summary = bind(f"SELECT {totals} FROM t", policy, engine).summary
            found = as_groups(engine.evaluate(summary, CHARGE, SECRET), summary)
            assert found == Reference({"t": rows}).evaluate(summary), kind_of
            # One value at a time, so that two mistakes cannot cancel.
            text = f"SELECT {', '.join(f'MEDIAN({name}) AS m_{name}' for name in columns)} FROM t"
            summary = bind(text, policy, engine).summary
            tallies = as_tallies(engine.evaluate(summary, CHARGE, SECRET), summary)
            assert tallies == Reference({"t": rows}).tallies(summary), kind_of


def ranges_without_a_whole_number_are_kept(kind: EngineKind) -> None:
    policy = policy_of({"t": {"columns": {"x": {"range": [0.25, 0.75], "grain": 0.25}}}})
    with opened(kind, policy, {"t": pa.table({"x": pa.array([-5, 0, 1, 5], pa.int64())})}) as engine:
        assert integers(ask(engine, policy, "SELECT SUM(x) AS s FROM t")) == [[1 + 1 + 3 + 3]]


def every_question_reads_as_the_plain_reading(kind: EngineKind) -> None:
    for world in WORLDS.values():
        for seed in (21,):
            assert compare(world, seed, 12, kind.create) > 5


def days_do_not_depend_on_the_place(kind: EngineKind) -> None:
    policy = policy_of({"t": {"columns": {"at": {"range": ["2024-01-01", "2024-01-31"]}}}})
    moments = [f"2024-01-05T{hour:02}:30:00+00:00" for hour in (0, 5, 12, 23)]
    table = pa.table(
        {"at": pa.array([datetime.fromisoformat(m) for m in moments], pa.timestamp("us", tz="Asia/Tokyo"))}
    )
    with opened(kind, policy, {"t": table}) as engine:
        assert integers(ask(engine, policy, "SELECT COUNT(*) AS n FROM t WHERE at = DATE '2024-01-05'")) == [[4]]


# --- totality ---------------------------------------------------------------------------------------------------------


def capitals_are_lowered_letter_by_letter(kind: EngineKind) -> None:
    """Not by where they stand in a word, and to one letter each."""
    policy = policy_of({"t": {"columns": {"s": {"type": "text"}}}})
    words = ["ΑΣ", "ΑΣΑ", "ας", "ασ", "İé", "Ié", "ıé", "ß", "SS", "\u212a", "k", "ﬁ"]
    patterns = {"ΑΣ%": 3, "%ς": 1, "ie%": 0, "Ié": 2, "i_": 2, "İ%": 2, "ss": 1, "K": 2, "_I": 0}
    cells = ", ".join(
        f"COUNT(*) FILTER (WHERE s ILIKE '{pattern}') AS n{place}" for place, pattern in enumerate(patterns)
    )
    with opened(kind, policy, {"t": pa.table({"s": words})}) as engine:
        found = integers(ask(engine, policy, f"SELECT {cells} FROM t"))
    assert [cell for (cell,) in found] == list(patterns.values())


def nothing_in_a_row_raises(kind: EngineKind) -> None:
    """Every kind of column full of what breaks careless SQL, under every kind of expression."""
    columns = {
        "i": {"range": [-10, 10], "grain": 5},
        "f": {"range": [-1, 1], "grain": 0.5},
        "d": {"range": ["2020-01-01", "2020-12-31"]},
        "c": {"values": ["a", "b"], "nulls": True},
        "n": {"values": [0, 1]},
        "s": {"type": "text"},
        "u": {"range": "unbounded", "grain": 1},
    }
    policy = policy_of({"t": {"columns": columns}})
    size = 12
    table = pa.table(
        {
            "i": pa.array([2**63 - 1, -(2**63), 0, None] * 3, pa.int64()),
            "f": pa.array([math.nan, math.inf, -math.inf, 1e308, -1e308, None] * 2, pa.float64()),
            "d": pa.array([date(1, 1, 1), date(9999, 12, 31), None, date(2020, 2, 2)] * 3, pa.date32()),
            "c": pa.array(["a", "", "zz", None] * 3, pa.string()),
            "n": pa.array([0, -(2**31), 2**31 - 1, None] * 3, pa.int32()),
            "s": pa.array(["'; DROP TABLE t; --", 'x"y', "\x1f", "%_\\", "ﷺ" * 999, None] * 2, pa.string()),
            "u": pa.array([math.nan, math.inf, -math.inf, 1e308, 0.5, None] * 2, pa.float64()),
        }
    )
    texts = [
        "SELECT c, COUNT(*) AS a, SUM(i) AS b, AVG(f) AS m, VARIANCE(i * f) AS v, COUNT(u) AS k FROM t GROUP BY c",
        "SELECT n, COUNT(DISTINCT s) AS a, COUNT(DISTINCT f) AS b, COUNT(DISTINCT c) AS e FROM t GROUP BY n",
        "SELECT c, SUM(DISTINCT i) AS a, SUM(DISTINCT n) AS b, AVG(DISTINCT f) AS e FROM t GROUP BY c",
        "SELECT BIN(f, 0.5) AS k, BIN(d, 7) AS w, SUM(i * i * f) AS s FROM t GROUP BY k, w",
        "SELECT s, SUM(CASE WHEN f > 0 THEN i ELSE -i END) AS x FROM t GROUP BY s",
        "SELECT SUM((d - DATE '2020-06-01') * LEAST(i, f)) AS x FROM t WHERE s LIKE '%x%' OR s NOT LIKE 'y_'",
        "SELECT COUNT(*) FILTER (WHERE i + f * 3 > 0.25 AND NOT c = 'a') AS x, MEDIAN(i) AS y, MEDIAN(u) AS z FROM t",
    ]
    with opened(kind, policy, {"t": table}) as engine:
        for text in texts:
            exact = ask(engine, policy, text)
            assert all(isinstance(value, int) for cell in integers(exact) for value in cell)
        assert sum(integers(ask(engine, policy, "SELECT c, COUNT(*) AS n FROM t GROUP BY c"))[0]) == size


def values_are_tallied_by_their_places(kind: EngineKind) -> None:
    """What MODE is made of: rows by the place of their value, whatever kind it is of."""
    columns = {
        "c": {"values": ["b", "it's", "a"], "nulls": True},
        "flag": {"values": [False, True]},
        "x": {"range": [-7, 9]},
    }
    policy = policy_of({"t": {"columns": columns}})
    table = pa.table(
        {
            "c": pa.array(["a", "b", "a", "z", None, "it's", "a", "b"], pa.string()),
            "flag": pa.array([True, None, True, False, True, True, None, False], pa.bool_()),
            "x": pa.array([-7, 9, 3, 3, None, 100, -4, 0], pa.int64()),
        }
    )
    text = "SELECT MODE(c) AS a, MODE(flag) AS b, MODE(BIN(x, 4)) AS e, MODE(c) FILTER (WHERE x < 5) AS f FROM t"
    wanted = [[(0, 2), (1, 1), (2, 3)], [(0, 2), (1, 4)], [(0, 1), (1, 1), (2, 3), (4, 2)], [(0, 1), (2, 3)]]
    with opened(kind, policy, {"t": table}) as engine:
        found = ask(engine, policy, text).tallies
        assert [[(int(v), int(n)) for v, n in zip(*tally[0][:2], strict=True)] for tally in found] == wanted


def months_are_added_to_days_of_centuries(kind: EngineKind) -> None:
    low, high = date(1800, 1, 31), date(2300, 12, 31)
    policy = policy_of({"t": {"columns": {"old": {"range": [low.isoformat(), high.isoformat()]}}}})
    days = [low, high, date(1900, 1, 31), date(2000, 1, 30), date(2023, 12, 31), date(1999, 11, 30), None, low]
    with opened(kind, policy, {"t": pa.table({"old": pa.array(days, pa.date32())})}) as engine:
        for months in (1, -23, 1200):
            moved = ask(engine, policy, f"SELECT MEDIAN(old + INTERVAL {months} MONTH) AS m FROM t").tallies[0][0]
            counts: dict[int, int] = {}
            for day in days:
                if day is not None:
                    index = (months_later(day, months) - date(1970, 1, 1)).days
                    counts[index] = counts.get(index, 0) + 1
            assert {int(v): int(n) for v, n in zip(*moved[:2], strict=True)} == counts


def empty_tables_have_every_declared_group(kind: EngineKind) -> None:
    policy = policy_of(
        {"t": {"columns": {"c": {"values": ["a", "b"], "nulls": True}, "x": {"range": [0, 9]}, "s": {"type": "text"}}}}
    )
    empty = pa.table({"c": pa.array([], pa.string()), "x": pa.array([], pa.int64()), "s": pa.array([], pa.string())})
    with opened(kind, policy, {"t": empty}) as engine:
        exact = ask(engine, policy, "SELECT c, x, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY c, x")
        assert integers(exact) == [[0] * 30, [0] * 30]
        assert exact.keys is None
        assert integers(ask(engine, policy, "SELECT COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m FROM t")) == [[0], [0], [0]]
        assert ask(engine, policy, "SELECT s, COUNT(*) AS n FROM t GROUP BY s").keys == ()
        exact = ask(engine, policy, "SELECT c, MEDIAN(x) AS m FROM t GROUP BY c")
        assert [len(values) for values, _ in exact.tallies[0]] == [0, 0, 0]


def declared_groups_stand_in_the_order_of_their_domains(kind: EngineKind) -> None:
    policy = policy_of(
        {
            "t": {
                "columns": {
                    "c": {"values": ["b", "a"], "nulls": True},
                    "m": {"values": [True, False]},
                    "x": {"range": [0, 29]},
                }
            }
        }
    )
    table = pa.table({"c": ["a", "b", "q", None, "a"], "m": [True, False, True, False, None], "x": [0, 10, 29, 99, 5]})
    with opened(kind, policy, {"t": table}) as engine:
        assert integers(ask(engine, policy, "SELECT c, COUNT(*) AS n FROM t GROUP BY c")) == [[1, 2, 2]]
        assert integers(ask(engine, policy, "SELECT c, m, COUNT(*) AS n FROM t GROUP BY c, m")) == [[0, 1, 1, 0, 1, 1]]
        assert integers(ask(engine, policy, "SELECT BIN(x, 10) AS b, COUNT(*) AS n FROM t GROUP BY b")) == [[2, 1, 2]]


def open_groups_are_named_in_one_order(kind: EngineKind) -> None:
    policy = policy_of({"t": {"columns": {"s": {"type": "text"}, "c": {"values": ["a", "b"]}}}})
    names = ["z", "", "é", "a'b", 'a"b', "Z", "☃", "a b", None]
    table = pa.table({"s": names, "c": ["a", "b", "a", "b", "a", "b", "a", "b", "a"]})
    shuffled = table.take(Random(1).sample(range(9), 9))
    results = []
    for rows in (table, shuffled):
        with opened(kind, policy, {"t": rows}) as engine:
            exact = ask(engine, policy, "SELECT s, c, COUNT(*) AS n FROM t GROUP BY s, c")
            assert exact.keys is not None
            assert {key[0] for key in exact.keys} == set(names) - {None}
            results.append((exact.keys, integers(exact)))
    assert results[0] == results[1]


# --- bounds -----------------------------------------------------------------------------------------------------------


def _heavy() -> list[tuple[Any, Any, Any, Any]]:
    """Unit 0: 60 rows in four groups; unit 1: three rows; unit 2: 40 rows that are all alike; nobody: five rows."""
    rng = Random(5)
    heavy = [(0, rng.randrange(1000), rng.choice("abcd"), rng.choice(["x", "y", None, ""])) for _ in range(60)]
    light = [(1, 7, "a", "x"), (1, 8, "b", None), (1, 9, "b", "")]
    alike = [(2, 5, "c", "same")] * 40
    return heavy + light + alike + [(None, 1, "d", "nobody")] * 5


def a_unit_has_no_more_rows_and_groups_than_its_bound(kind: EngineKind) -> None:
    for rows, groups in ((1, 1), (4, 2), (10, 3), (10, 10), (50, 1), (200, 200)):
        policy = _visits(rows, groups)
        data = _heavy()
        for pid in (0, 1, 2):
            own = [row for row in data if row[0] == pid]
            with opened(kind, policy, {"person": _people(3), "visit": _visit_table(own)}) as engine:
                counts = integers(ask(engine, policy, "SELECT kind, COUNT(*) AS n FROM visit GROUP BY kind"))[0]
                present = [sum(row[2] == letter for row in own) for letter in "abcd"]
                kept = [place for place, count in enumerate(counts) if count]
                assert sum(counts) <= rows
                assert len(kept) <= groups
                assert all(count <= there for count, there in zip(counts, present, strict=True))
                # Nothing is left out that the bound would let in.
                chosen = min(groups, sum(there > 0 for there in present))
                reachable = sum(sorted(present)[-chosen:]) if chosen else 0
                if sum(counts) < rows:
                    assert sum(counts) == sum(present[place] for place in kept)
                    assert len(kept) == chosen
                assert sum(counts) <= min(rows, reachable)
                total = integers(ask(engine, policy, "SELECT COUNT(*) AS n FROM visit"))[0]
                assert total == [min(rows, len(own))]


def units_are_bounded_each_for_itself(kind: EngineKind) -> None:
    """What a unit adds does not depend on who else is there, so answers add up unit by unit."""
    policy, data = _visits(4, 2), _heavy()
    text = "SELECT kind, COUNT(*) AS n, SUM(cost) AS s, COUNT(note) AS k FROM visit GROUP BY kind"
    parts = []
    for pids in ((0,), (1,), (2,), (0, 1, 2, None)):
        rows = [row for row in data if row[0] in pids]
        with opened(kind, policy, {"person": _people(3), "visit": _visit_table(rows)}) as engine:
            parts.append(integers(ask(engine, policy, text)))
    summed = [[sum(values) for values in zip(*cells, strict=True)] for cells in zip(*parts[:3], strict=True)]
    assert parts[3] == summed


def the_bound_is_keyed_and_blind_to_order(kind: EngineKind) -> None:
    policy, data = _visits(6, 3), _heavy()
    text = "SELECT kind, COUNT(*) AS n, SUM(cost) AS s, COUNT(note) AS k FROM visit GROUP BY kind"
    seen: dict[bytes, list[Any]] = {}
    for place in range(4):
        rows = Random(place).sample(data, len(data))
        with opened(kind, policy, {"person": _people(3), "visit": _visit_table(rows)}) as engine:
            for secret in (b"one", b"two", b"three", b"four"):
                seen.setdefault(secret, []).append(integers(ask(engine, policy, text, secret)))
                seen[secret].append(integers(ask(engine, policy, text, secret)))
    assert all(results == [results[0]] * len(results) for results in seen.values())
    assert len({str(results[0]) for results in seen.values()}) > 1


def units_do_not_all_keep_the_same_groups(kind: EngineKind) -> None:
    """Else a group that comes late in the order would lose every unit at once."""
    policy = _visits(4, 1)
    rows = [(pid, 1, letter, "x") for pid in range(200) for letter in "abcd"]
    with opened(kind, policy, {"person": _people(200), "visit": _visit_table(rows)}) as engine:
        counts = integers(ask(engine, policy, "SELECT kind, COUNT(*) AS n FROM visit GROUP BY kind"))[0]
    assert sum(counts) == 200
    assert min(counts) > 20


def filters_come_before_the_bound_and_joins_too(kind: EngineKind) -> None:
    policy = _visits(3, 3)
    rows = [(0, cost, "a", "x") for cost in range(100)]
    with opened(kind, policy, {"person": _people(1), "visit": _visit_table(rows)}) as engine:
        assert integers(ask(engine, policy, "SELECT COUNT(*) AS n FROM visit WHERE cost >= 98")) == [[2]]
        joined = "SELECT COUNT(*) AS n FROM visit AS a JOIN visit AS b ON a.pid = b.pid WHERE a.cost < b.cost"
        assert integers(ask(engine, policy, joined)) == [[9]]


def joins_within_at_most_lose_no_row(kind: EngineKind) -> None:
    """What a policy allows in each table is kept in every join of them, rows and groups; what it does not is cut."""
    for seed, allowed in ((1, True), (2, True), (3, False)):
        data = joins.data_within(seed) if allowed else joins.data_beyond(seed)
        with opened(kind, joins.POLICY, data) as engine:
            for text in joins.QUESTIONS:
                found, plain = integers(ask(engine, joins.POLICY, text))[0], joins.plain_counts(text, data)
                if allowed:
                    assert [count for count in found if count] == plain, text
                else:
                    assert sum(found) <= sum(plain)
                    assert sum(found) <= joins.UNITS * bind(text, joins.POLICY, engine).measures[0].l1


def a_unit_of_a_hundred_thousand_rows_is_cut(kind: EngineKind) -> None:
    policy = _visits(20, 2)
    count = 100_000
    visits = pa.table(
        {
            "pid": pa.array([0] * count + [1], pa.int64()),
            "cost": pa.array([1000] * (count + 1), pa.int64()),
            "kind": pa.array(["a", "b", "c", "d"] * (count // 4) + ["a"], pa.string()),
            "note": pa.array(["x"] * (count + 1), pa.string()),
        }
    )
    with opened(kind, policy, {"person": _people(2), "visit": visits}) as engine:
        joined = "FROM visit JOIN person ON visit.pid = person.pid"
        assert integers(ask(engine, policy, f"SELECT SUM(cost) AS s, COUNT(*) AS n {joined}")) == [[21_000], [21]]
        counts = integers(ask(engine, policy, f"SELECT kind, COUNT(*) AS n {joined} GROUP BY kind"))[0]
        assert sum(counts) == 21
        assert sum(count > 1 for count in counts) <= 2


def neighbours_differ_by_no_more_than_the_sensitivity(kind: EngineKind) -> None:
    for world in WORLDS.values():
        for seed in (31,):
            assert not pairs(world, seed, 10, create=kind.create).violations


def windows_show_the_ranks_in_them(kind: EngineKind) -> None:
    """However few of the values are read: inside of a window ranks are exact, outside of it the side is."""
    policy = policy_of(
        {"t": {"columns": {"g": {"values": ["a", "b", "c"], "nulls": True}, "x": {"range": [-3_000, 60_000]}}}}
    )
    random = Random(8)
    rows = {
        "g": random.choices(["a", "b", None, "other"], weights=(5, 3, 2, 1), k=3_000),
        "x": [random.choice([None, 70_000, -9_999, 41, random.randrange(60_000)]) for _ in range(3_000)],
    }

    def windows(count: int) -> tuple[int, int]:
        return count // 2 - 25, count // 2 + 30

    def far(count: int) -> tuple[int, int]:
        return 9 * count // 10, 9 * count // 10 + 3

    with opened(kind, policy, {"t": pa.table(rows)}) as engine:
        grouped = "SELECT g, BIN(x, 40000) AS b, MEDIAN(x) AS m FROM t GROUP BY g, b"
        for text in ("SELECT g, MEDIAN(x) AS m FROM t GROUP BY g", "SELECT MEDIAN(x) AS m FROM t", grouped):
            summary = bind(text, policy, engine).summary
            # However many values lie between those that are wanted: with a condition for all groups, or for each.
            for grid, room in ((None, ROOM), (EvenGrid(-3_000, 60_000, 7), ROOM), (None, 0)):
                asked = replace(summary, tallies=tuple(replace(tally, grid=grid) for tally in summary.tallies))
                whole = engine.evaluate(asked, CHARGE, SECRET).tallies[0]
                with patch.object(multipass, "ROOM", room):
                    found = engine.evaluate(asked, CHARGE, SECRET, None, {0: [windows, far]}).tallies[0]
                assert sum(len(values) for values, _ in found) <= sum(len(values) for values, _ in whole)
                for one, other in zip(whole, found, strict=True):
                    count = int(one[1].sum())
                    for window in (windows, far):
                        assert_seen_alike(one, other, *window(count))


def a_tally_changes_no_cell_and_no_cell_a_tally(kind: EngineKind) -> None:
    """Counts and totals that are read together with values are those that are read alone."""
    wide = 10**15
    columns = {
        "g": {"values": ["a", "b", "c"], "nulls": True},
        "h": {"values": list(range(300))},
        "x": {"range": [-3_000, 60_000]},
        "w": {"range": [-wide, wide], "grain": 0.01},
        "i": {"type": "id"},
    }
    policy = policy_of({"t": {"columns": columns, "at_most": {"rows": 2, "groups": 2}}}, unit="t.i")
    random, size = Random(9), 600
    rows = {
        "g": random.choices(["a", "b", None, "other"], weights=(5, 3, 2, 1), k=size),
        "h": random.choices([7, 8, 299, 300, None], k=size),
        "x": [random.choice([None, 70_000, -9_999, 41, random.randrange(60_000)]) for _ in range(size)],
        "w": [random.choice([None, 2.0 * wide, -0.01, random.uniform(-wide, wide)]) for _ in range(size)],
        "i": [random.randrange(size // 3) for _ in range(size)],
    }
    each = "COUNT(*) AS n, COUNT({0}) AS k, SUM({0}) AS s, AVG({0}) AS m, MEDIAN({0}) AS q FROM t"
    texts = [f"SELECT {each.format(column)}" for column in "xw"]
    texts += [f"SELECT {key}, {each.format(column)} GROUP BY {key}" for column in "xw" for key in ("g", "h")]
    texts.append(f"SELECT BIN(x, 9000) AS b, {each.format('x')} WHERE g <> 'a' GROUP BY b")
    some = "FILTER (WHERE h = 7)"
    texts.append(f"SELECT g, COUNT(*) AS n, SUM(x) {some} AS s, MEDIAN(x) {some} AS q FROM t GROUP BY g")
    apart = [f"SELECT g, COUNT(*) AS n, SUM(x) AS s, MEDIAN(x) {some} AS q FROM t GROUP BY g"]
    apart.append(f"SELECT COUNT(*) {some} AS n, AVG(x) AS m, MEDIAN(x) AS q FROM t")
    apart.append("SELECT SUM(x) AS s, MEDIAN(w) AS q FROM t")

    def middle(count: int) -> tuple[int, int]:
        return count // 2 - 9, count // 2 + 9

    with opened(kind, policy, {"t": pa.table(rows)}) as engine:
        for text in [*texts, *apart]:
            bounded = bind(text, policy, engine).summary
            for summary in (bounded, replace(bounded, bound=None)):
                alone = engine.evaluate(replace(summary, tallies=()), CHARGE, SECRET)
                (tally,) = summary.tallies
                span = tally.subject.span
                for grid in (None, EvenGrid(span.low, span.high, span.high // 5_000)):
                    asked = replace(summary, tallies=(replace(tally, grid=grid),))
                    assert teller(asked) == (None if text in apart else 0)
                    values = engine.evaluate(replace(asked, cells=()), CHARGE, SECRET)
                    for windows in ({}, {0: [middle]}):
                        both = engine.evaluate(asked, CHARGE, SECRET, None, windows)
                        assert integers(both) == integers(alone)
                        if not windows:
                            assert integers_of(both.tallies) == integers_of(values.tallies)
                        for one, other in zip(values.tallies[0], both.tallies[0], strict=True):
                            assert_seen_alike(one, other, *middle(int(one[1].sum())))


def integers_of(tallies: Sequence[Sequence[Counts]]) -> list[Any]:
    return [[[part.tolist() for part in counts] for counts in tally] for tally in tallies]


def assert_seen_alike(one: Counts, other: Counts, first: int, last: int) -> None:
    """Two tallies show the same through a window of ranks, at every value."""
    values = np.unique(np.concatenate([ends + shift for ends in (one[0], other[0]) for shift in (-1, 0, 1)]))
    shown = []
    for own, counts in (one, other):
        upto = np.append(0, np.cumsum(counts))
        below, atmost = (upto[np.searchsorted(own, values, side=side)] for side in ("left", "right"))
        low, high = atmost <= first, below >= last
        shown.append(np.where(low, [-1], np.where(high, [-2], below * 2**31 + atmost)))
    assert np.array_equal(*shown)


def tables_of_counts_equal_their_groups(kind: EngineKind) -> None:
    """Sets of keys of every kind, within each other and not; the same bounded rows in all of them."""
    policy = policy_of(
        {
            "p": {"columns": {"id": {"type": "id"}}},
            "v": {
                "references": {"id": "p.id"},
                "at_most": {"rows": 4, "groups": 2},
                "columns": {
                    "id": {"type": "id"},
                    "g": {"values": ["a", "b", "c"], "nulls": True},
                    "flag": {"values": [True, False]},
                    "code": {"values": [3, 7]},
                    "x": {"range": [0, 9]},
                },
            },
        },
        unit="p.id",
    )
    random = Random(5)
    rows = {
        "id": [random.randrange(12) for _ in range(300)],
        "g": random.choices(["a", "b", "c", None, "other"], k=300),
        "flag": random.choices([True, False, None], weights=(4, 4, 1), k=300),
        "code": random.choices([3, 7, 8], weights=(4, 4, 1), k=300),
        "x": random.choices([0, 3, 9, 50, None], weights=(3, 3, 3, 1, 1), k=300),
    }
    with opened(kind, policy, {"p": pa.table({"id": list(range(12))}), "v": pa.table(rows)}) as engine:
        known = "flag IS NOT NULL AND code IS NOT NULL AND x IS NOT NULL"
        asked = f"SELECT g, flag, code, BIN(x, 5) AS b, COUNT(*) AS n FROM v WHERE {known} GROUP BY g, flag, code, b"
        summary = bind(asked, policy, engine).summary
        assert summary.bound is not None
        sets = ((0,), (0, 1), (1, 2, 3), (2, 3), (0, 3))
        bound = Bound(summary.bound.unit, 4, 32)  # of rows alone, as all cells together are 32
        request = Tabulation(summary.relation, summary.where, bound, summary.keys, sets, summary.order_by)  # type: ignore[arg-type]
        found = engine.tabulate(request, CHARGE, SECRET)
        assert found.sizes == (4, 2, 2, 2)
        assert 40 <= found.rows <= 48
        for columns in sets:
            groups = engine.evaluate(request.summary(columns), CHARGE, SECRET).cells[0]
            cells = found.marginal(columns, 0, found.sizes[columns[0]]).reshape(-1)
            assert cells.tolist() == [int(count) for count in groups]
            assert cells.sum() == found.rows
        rows = engine.occupied(request, CHARGE, SECRET)
        assert rows.sizes == found.sizes
        assert rows.rows == found.rows
        for columns in sets:
            assert rows.marginal(columns).tolist() == found.marginal(columns, 0, found.sizes[columns[0]]).tolist()
        for reading in (engine.tabulate, engine.occupied):
            error = failure(lambda reading=reading: reading(request, None, SECRET))  # type: ignore[misc]
            assert isinstance(error, TypeError)


# --- around the rows --------------------------------------------------------------------------------------------------


def rows_are_read_against_a_charge(kind: EngineKind) -> None:
    policy = policy_of({"t": {"columns": {"x": {"range": [0, 9]}}}})
    with opened(kind, policy, {"t": pa.table({"x": [1, 2]})}) as engine:
        summary = bind("SELECT COUNT(*) AS n FROM t", policy, engine).summary
        for wrong in (None, True, "paid", 5, replace(CHARGE).__class__):
            error = failure(lambda wrong=wrong: engine.evaluate(summary, wrong, SECRET))  # type: ignore[misc]
            assert isinstance(error, TypeError)
            assert "charge" in str(error)


def the_version_names_the_data(kind: EngineKind) -> None:
    policy = policy_of({"t": {"columns": {"x": {"range": [0, 9]}, "s": {"type": "text"}}}})
    base = pa.table({"x": [1, 2, 3], "s": ["a", "b", None]})
    same = pa.concat_tables([base.slice(0, 1), base.slice(1)])
    encoded = base.set_column(1, "s", base["s"].dictionary_encode())
    versions = []
    for table in (
        base,
        same,
        encoded,
        base.set_column(0, "x", [[1, 2, 4]]),
        base.slice(0, 2),
        base.set_column(1, "s", [["a", "c", None]]),
    ):
        with opened(kind, policy, {"t": table}) as engine:
            assert engine.version == engine.version
            versions.append(engine.version)
    if kind.live:
        return
    assert versions[0] == versions[1] == versions[2]
    assert len(set(versions[2:])) == 4


def public_facts_are_told(kind: EngineKind) -> None:
    policy = policy_of({"t": {"columns": {"k": {"type": "id"}}}, "p": {"public": True}})
    public = pa.table(
        {
            "k": pa.array([1, 1, 2, None, None, None], pa.int64()),
            "c": pa.array(["a", "b", "a", None, "a", "c"], pa.string()),
            "f": pa.array([0.5, math.nan, math.inf, 2.5, None, -3.0], pa.float64()),
            "d": pa.array([date(2020, 1, 1)] * 5 + [date(2021, 1, 1)], pa.date32()),
            "m": pa.array([True, False, None, True, True, True], pa.bool_()),
            "e": pa.array([None] * 6, pa.int64()),
            "w": pa.array([2**62, 0, 1, 2, 3, 2**63 - 1], pa.int64()),
        }
    )
    with opened(kind, policy, {"t": pa.table({"k": [1]}), "p": public}) as engine:
        columns = engine.columns("p")
        assert set(columns) == {"k", "c", "f", "d", "m", "e", "w"}
        assert columns["c"] == Category("c", ("a", "b", "c"))
        assert columns["k"] == Category("k", (1, 2))
        assert columns["m"] == Category("m", (False, True))
        assert columns["f"].low <= -3  # type: ignore[union-attr]
        assert columns["f"].high >= Fraction(5, 2)  # type: ignore[union-attr]
        assert (columns["d"].low, columns["d"].high) == (date(2020, 1, 1), date(2021, 1, 1))  # type: ignore[union-attr]
        assert engine.columns("t") == policy.tables["t"].columns
        assert engine.multiplicity("p", ("k",)) == 2
        assert engine.multiplicity("p", ("c",)) == 3
        assert engine.multiplicity("p", ("k", "c")) == 1
        assert engine.multiplicity("p", ("e",)) == 0
        assert isinstance(failure(lambda: engine.multiplicity("t", ("k",))), ValueError)
        first = (date(2020, 1, 1) - date(1970, 1, 1)).days
        assert set(engine.distinct("p", ("d",), 2) or ()) == {(first,), (first + 366,)}
        assert set(engine.distinct("p", ("c", "m"), 10) or ()) == {
            ("a", True), ("b", False), ("a", None), (None, True), ("c", True)
        }  # fmt: skip
        assert engine.distinct("p", ("c", "m"), 4) is None
        assert isinstance(failure(lambda: engine.distinct("t", ("k",), 10)), ValueError)
        assert set(engine.counted("p", ("c",), 10) or ()) == {("a", 3), ("b", 1), ("c", 1), (None, 1)}
        assert engine.counted("p", ("c",), 2) is None
        assert isinstance(failure(lambda: engine.counted("t", ("k",), 10)), ValueError)


def null_is_a_group_where_the_policy_says_so(kind: EngineKind) -> None:
    """Of every kind of key, in cells and in tallies, whether or not a unit has to be cut to its bound."""
    columns = {
        "k": {"type": "id"},
        "n": {"range": [0, 5], "nulls": True},
        "d": {"range": [date(2024, 1, 1), date(2024, 1, 3)], "nulls": True},
        "w": {"type": "text", "nulls": True},
        "x": {"range": [0, 9]},
    }
    table = pa.table(
        {
            "k": pa.array([1, 2, 3, 4, 5, 5, 5], pa.int64()),
            "n": pa.array([1, 5, None, None, 0, 0, 0], pa.int64()),
            "d": pa.array([date(2024, 1, 1), None, None, date(2024, 1, 3)] + [date(2024, 1, 2)] * 3, pa.date32()),
            "w": pa.array(["None", None, "v", None, "v", "v", "v"], pa.string()),
            "x": pa.array([1, 2, 3, 4, 5, 5, 5], pa.int64()),
        }
    )
    for unit, five in (("row", 3), ("t.k", 2)):
        bound = {} if unit == "row" else {"at_most": {"rows": 2, "groups": 1}}
        policy = policy_of({"t": {"columns": columns, **bound}}, unit)
        with opened(kind, policy, {"t": table}) as engine:
            exact = ask(engine, policy, "SELECT BIN(n, 3) AS b, COUNT(*) AS c, MEDIAN(x) AS m FROM t GROUP BY b")
            assert integers(exact) == [[1 + five, 1, 2]]
            assert integers_of(exact.tallies) == [[[[1, 5], [1, five]], [[2], [1]], [[3, 4], [1, 1]]]]
            exact = ask(engine, policy, "SELECT d, COUNT(*) AS c FROM t GROUP BY d")
            assert integers(exact) == [[1, five, 1, 2]]
            exact = ask(engine, policy, "SELECT w, COUNT(*) AS c, MEDIAN(x) AS m FROM t GROUP BY w")
            assert exact.keys == (("None",), ("v",), (None,))
            assert integers(exact)[0] == [1, 1 + five, 2]
            assert integers_of(exact.tallies) == [[[[1], [1]], [[3, 5], [1, five]], [[2, 4], [1, 1]]]]
            exact = ask(engine, policy, "SELECT w, n, COUNT(*) AS c FROM t GROUP BY w, n")
            assert exact.keys == (("None", 1), ("v", 0), ("v", 6), (None, 5), (None, 6))


def many_threads_ask_at_once(kind: EngineKind) -> None:
    policy, data = _visits(6, 3), _heavy()
    text = "SELECT kind, COUNT(*) AS n, SUM(cost) AS s FROM visit GROUP BY kind"
    with opened(kind, policy, {"person": _people(3), "visit": _visit_table(data)}) as engine:
        expected = integers(ask(engine, policy, text))
        results: list[Any] = []

        def work() -> None:
            results.append(failure(lambda: None) or integers(ask(engine, policy, text)))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [expected] * 8


def the_engine_is_locked(kind: EngineKind) -> None:
    if kind.send is None:
        return
    policy = policy_of({"t": {"columns": {"x": {"range": [0, 9]}}}})
    with opened(kind, policy, {"t": pa.table({"x": [1, 2, 3]})}) as engine:
        for statement in kind.forbidden:
            assert failure(lambda statement=statement: kind.send(engine, statement)) is not None, statement  # type: ignore[misc]
        assert integers(ask(engine, policy, "SELECT COUNT(*) AS n FROM t")) == [[3]]


CANARY = "canary-4a6f"


def a_failure_says_nothing(kind: EngineKind) -> None:
    """The text is constant; neither the error nor what hangs on it, nor a log, holds values or the database's words."""
    if kind.damage is None:
        return
    policy = policy_of({"t": {"columns": {"s": {"type": "text"}, "x": {"range": [0, 9]}}}})
    table = pa.table({"s": [CANARY, CANARY + "x"], "x": [1, 2]})
    records: list[logging.LogRecord] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    handler = Keep(level=logging.DEBUG)
    logging.getLogger().addHandler(handler)
    try:
        with opened(kind, policy, {"t": table}) as engine:
            summary = bind("SELECT s, COUNT(*) AS n, SUM(x) AS t FROM t GROUP BY s", policy, engine).summary
            kind.damage(engine)
            error = failure(lambda: engine.evaluate(summary, CHARGE, SECRET))
    finally:
        logging.getLogger().removeHandler(handler)
    assert type(error) is EngineError
    assert str(error) == str(EngineError())
    chain: list[BaseException] = [error]
    for link in chain:
        chain += [other for other in (link.__cause__, link.__context__) if other is not None]
    assert chain == [error]
    told = " ".join([str(error), repr(error), *(record.getMessage() for record in records)])
    assert CANARY not in told
    assert "rror:" not in told


def a_statement_that_takes_too_long_is_ended(kind: EngineKind) -> None:
    if kind.create_limited is None:
        return
    policy = _visits(5, 5)
    count = 3_000
    visits = _visit_table([(0, place % 1000, "a", str(place)) for place in range(count)])
    text = (
        "SELECT COUNT(*) AS n FROM visit AS a JOIN visit AS b ON a.pid = b.pid JOIN visit AS c ON a.pid = c.pid "
        "WHERE a.cost + b.cost + c.cost > 10"
    )
    engine = kind.create_limited(policy, {"person": _people(1), "visit": visits}, 0.3)
    try:
        begun = time.monotonic()
        error = failure(lambda: ask(engine, policy, text))
        assert type(error) is EngineError
        assert time.monotonic() - begun < 60
        if kind.lift_limit is not None:
            kind.lift_limit(engine)
        # And it answers the next question as if nothing had been.
        assert integers(ask(engine, policy, "SELECT COUNT(*) AS n FROM person")) == [[1]]
    finally:
        engine.close()


def closing_twice_is_fine(kind: EngineKind) -> None:
    policy = policy_of({"t": {"columns": {"x": {"range": [0, 9]}}}})
    engine = kind.create(policy, {"t": pa.table({"x": [1]})})
    engine.close()
    engine.close()
    error = failure(
        lambda: engine.evaluate(bind("SELECT COUNT(*) AS n FROM t", policy, engine).summary, CHARGE, SECRET)
    )
    assert type(error) is EngineError


def a_bound_that_nobody_reaches_changes_nothing(kind: EngineKind) -> None:
    policy, data = _visits(6, 3), [row for row in _heavy() if row[0] == 1]
    with opened(kind, policy, {"person": _people(3), "visit": _visit_table(data)}) as engine:
        summary = bind("SELECT kind, SUM(cost) AS s FROM visit GROUP BY kind", policy, engine).summary
        assert summary.bound is not None
        wide = replace(summary, bound=Bound(summary.bound.unit, 10**6, 10**6))
        assert integers(engine.evaluate(summary, CHARGE, SECRET)) == integers(engine.evaluate(wide, CHARGE, SECRET))


CHECKS: tuple[Callable[[EngineKind], None], ...] = (
    sums_pass_64_bits,
    small_integers_do_not_overflow,
    values_are_rounded_to_every_grain,
    ranges_without_a_whole_number_are_kept,
    every_question_reads_as_the_plain_reading,
    days_do_not_depend_on_the_place,
    capitals_are_lowered_letter_by_letter,
    nothing_in_a_row_raises,
    values_are_tallied_by_their_places,
    months_are_added_to_days_of_centuries,
    empty_tables_have_every_declared_group,
    declared_groups_stand_in_the_order_of_their_domains,
    open_groups_are_named_in_one_order,
    a_unit_has_no_more_rows_and_groups_than_its_bound,
    units_are_bounded_each_for_itself,
    the_bound_is_keyed_and_blind_to_order,
    units_do_not_all_keep_the_same_groups,
    filters_come_before_the_bound_and_joins_too,
    joins_within_at_most_lose_no_row,
    a_unit_of_a_hundred_thousand_rows_is_cut,
    neighbours_differ_by_no_more_than_the_sensitivity,
    a_bound_that_nobody_reaches_changes_nothing,
    windows_show_the_ranks_in_them,
    a_tally_changes_no_cell_and_no_cell_a_tally,
    tables_of_counts_equal_their_groups,
    rows_are_read_against_a_charge,
    the_version_names_the_data,
    public_facts_are_told,
    null_is_a_group_where_the_policy_says_so,
    many_threads_ask_at_once,
    the_engine_is_locked,
    a_failure_says_nothing,
    a_statement_that_takes_too_long_is_ended,
    closing_twice_is_fine,
)
