"""Small worlds to try engines in: policies of every shape, data full of traps, neighbours, and random questions."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pyarrow as pa

from confide.engine import Engine, Exact
from confide.engine.duckdb.engine import DuckDBEngine
from confide.policy import Policy, load
from confide.privacy.charge import Charge
from confide.privacy.loss import PureDP
from confide.query.tree import Summary

Rows = list[dict[str, Any]]
Tables = dict[str, Rows]

CHARGE = Charge(1, "a key", PureDP(Fraction(1)), "a test", "", "a ledger")
SECRET = b"a secret of the tests"

_PERSON_COLUMNS: dict[str, Any] = {
    "region": {"values": ["N", "E", "S"], "nulls": True},
    "sex": {"values": ["F", "M"]},
    "kids": {"values": [0, 1, 2]},
    "member": {"values": [True, False]},
    "age": {"range": [0, 115], "bins": 20},
    "income": {"range": [-50, 400], "grain": 0.25},
    "fee": {"range": [0, 20], "grain": 0.1},
    "level": {"range": [-30, 70], "grain": 10},
    "born": {"range": ["1990-01-01", "1990-03-01"], "bins": 20},
    "seen": {"range": ["1990-01-01", "1990-03-01"]},
    "job": {"type": "text"},
}
_VISIT_COLUMNS: dict[str, Any] = {
    "vid": {"type": "id"},
    "cost": {"range": [0, 100], "grain": 0.01},
    "kind": {"values": ["a", "b", "c"]},
    "day": {"range": ["1990-01-01", "1990-03-01"]},
    "ward": {"type": "text"},
}
_TYPES: dict[str, Any] = {
    "pid": pa.int64(), "vid": pa.string(), "iid": pa.int32(), "region": pa.string(), "sex": pa.string(),
    "kids": pa.int32(), "member": pa.bool_(), "age": pa.int64(), "income": pa.float64(), "fee": pa.decimal128(9, 3),
    "level": pa.int16(), "born": pa.date32(), "seen": pa.timestamp("us"), "job": pa.string(), "cost": pa.float64(),
    "kind": pa.string(), "day": pa.date32(), "ward": pa.string(), "units": pa.uint64(), "price": pa.float32(),
    "size": pa.int64(), "tag": pa.string(), "weight": pa.float64(), "town": pa.string(), "steps": pa.int64(),
    "since": pa.date32(), "mark": pa.string(),
}  # fmt: skip


@dataclass(frozen=True)
class World:
    """A policy, how its tables are stored, and the FROM clauses and columns that questions choose from."""

    name: str
    policy: Policy
    sources: tuple[tuple[str, tuple[str, ...]], ...]
    """FROM clause → the tables (aliases) whose columns are in it."""


def _policy(unit: str, tables: Mapping[str, Any], version: str = "1") -> Policy:
    return load(
        {
            "confide": 1,
            "budget": {"epsilon": 1, "delta": 1e-6},
            "unit": unit,
            "version": version,
            "tables": dict(tables),
        }
    )


_PUBLIC: dict[str, Any] = {
    "area": {"public": True},
    "label": {"public": True},
    "scale": {"public": True, "columns": {"level": {"range": [-20, 60], "grain": 20}}},
}
_CHAIN: dict[str, Any] = {
    "visit": {"references": {"pid": "person.pid"}, "at_most": {"rows": 4, "groups": 2}, "columns": _VISIT_COLUMNS},
    "item": {
        "references": {"vid": "visit.vid"},
        "at_most": {"rows": 3, "groups": 3},
        "columns": {
            "iid": {"type": "id"},
            "units": {"range": [0, 9]},
            "price": {"range": [0, 8], "grain": "1/3"},
            "kind": {"values": ["x", "y"], "nulls": True},
        },
    },
    "part": {
        "references": {"iid": "item.iid"},
        "at_most": {"rows": 5, "groups": 1},
        "columns": {"size": {"range": [-3, 3]}, "kind": {"values": ["p", "q"]}},
    },
}
_KEYED = {"person": {"columns": {"pid": {"type": "id"}, **_PERSON_COLUMNS}}, **_CHAIN, **_PUBLIC}
_COUNTED = {
    **_KEYED,
    "person": {"rows": "public", "columns": {"pid": {"type": "id"}, **_PERSON_COLUMNS}},
}

_ROW_SOURCES = (
    ("person", ("person",)),
    ("person", ("person",)),
    ("person JOIN area ON person.region = area.region", ("person", "area")),
    ("person LEFT JOIN area USING (region)", ("person", "area")),
    ("person JOIN label ON person.kids = label.kids", ("person", "label")),
    (
        "person JOIN area ON person.region = area.region JOIN label ON area.region = label.region",
        ("person", "area", "label"),
    ),
    ("person LEFT JOIN label ON person.region = label.region AND person.kids = label.kids", ("person", "label")),
    ("person JOIN scale ON person.level = scale.level", ("person", "scale")),
    ("person JOIN scale ON person.age = scale.steps", ("person", "scale")),
    ("person LEFT JOIN scale ON person.born = scale.since", ("person", "scale")),
)
_KEY_SOURCES = (
    ("person", ("person",)),
    ("visit", ("visit",)),
    ("item", ("item",)),
    ("part", ("part",)),
    ("visit JOIN person ON visit.pid = person.pid", ("visit", "person")),
    ("person LEFT JOIN visit ON visit.pid = person.pid", ("visit", "person")),
    ("visit AS a JOIN visit AS b ON a.pid = b.pid", ("a", "b")),
    ("item JOIN visit ON item.vid = visit.vid", ("item", "visit")),
    ("visit LEFT JOIN item ON item.vid = visit.vid", ("item", "visit")),
    ("part JOIN item ON part.iid = item.iid", ("part", "item")),
    ("part JOIN item ON part.iid = item.iid JOIN visit USING (vid)", ("part", "item", "visit")),
    ("item JOIN visit USING (vid) JOIN person USING (pid)", ("item", "visit", "person")),
    ("item AS a JOIN visit USING (vid) JOIN item AS b ON b.vid = visit.vid", ("a", "visit", "b")),
    ("visit JOIN label ON visit.kind = label.kind", ("visit", "label")),
    ("item JOIN label ON item.kind = label.kind", ("item", "label")),
    ("area JOIN person ON area.region = person.region", ("area", "person")),
    ("person LEFT JOIN visit USING (pid) LEFT JOIN label ON visit.kind = label.kind", ("person", "visit", "label")),
    ("visit JOIN person USING (pid) JOIN scale ON person.level = scale.level", ("visit", "scale")),
)
_INNER_SOURCES = (
    ("(SELECT pid, SUM(cost) AS t0, COUNT(*) AS t1 FROM visit GROUP BY pid) AS t", ("t",)),
    ("(SELECT pid, LEAST(SUM(cost), 50) AS t0, MIN(day) AS t2 FROM visit WHERE kind = 'a' GROUP BY pid) AS t", ("t",)),
    (
        "(SELECT visit.pid, MAX(units) AS t0, COUNT(DISTINCT item.kind) AS t1 FROM item JOIN visit USING (vid) "
        "GROUP BY visit.pid) AS t JOIN person ON t.pid = person.pid",
        ("t", "person"),
    ),
    (
        "(SELECT pid, COUNT(*) FILTER (WHERE cost > 3) AS t1 FROM visit GROUP BY pid) AS t "
        "JOIN visit ON t.pid = visit.pid",
        ("t", "visit"),
    ),
)

WORLDS = {
    world.name: world
    for world in (
        World("rows", _policy("row", {"person": {"columns": _PERSON_COLUMNS}, **_PUBLIC}), _ROW_SOURCES),
        World(
            "public rows",
            _policy("row", {"person": {"rows": "public", "columns": _PERSON_COLUMNS}, **_PUBLIC}),
            _ROW_SOURCES,
        ),
        World("keys", _policy("person.pid", _KEYED), _KEY_SOURCES + _INNER_SOURCES),
        World("public keys", _policy("person.pid", _COUNTED), _KEY_SOURCES + _INNER_SOURCES),
    )
}

# --- data -------------------------------------------------------------------------------------------------------------

_NAN, _INF = float("nan"), float("inf")
_FLOATS = [0.0, -0.0, 1.0, 2.5, 3.125, 99.995, 1e308, -1e308, _NAN, _INF, -_INF, None, 7.77, 400.0, -50.1, 1e-300]
_VALUES: dict[str, list[Any]] = {
    "region": ["N", "E", "S", "N", "E", "Z", "n", "", None],
    "sex": ["F", "M", "F", "M", "X", None],
    "kids": [0, 1, 2, 3, -1, None],
    "member": [True, False, None],
    "age": [0, 1, 17, 30, 64, 115, 116, -1, 2**62, -(2**63), 2**63 - 1, None],
    "income": _FLOATS,
    "fee": [
        Decimal(text)
        for text in ("0.000", "0.049", "0.050", "0.051", "19.950", "20.000", "20.049", "-3.1", "999999.999")
    ] + [None],
    "level": [-32768, -36, -35, -34, -5, 4, 5, 64, 65, 66, 32767, None],
    "born": [date(1990, 1, 1), date(1990, 2, 2), date(1989, 12, 31), date(2200, 1, 1), date(1, 1, 1), None],
    "seen": [datetime(1990, 1, 1, 23, 59, 59), datetime(1990, 2, 3), datetime(1700, 1, 1), datetime(2261, 1, 1), None],  # noqa: DTZ001
    "job": ["x", "y", "", "x'y", 'x"y', "xY", "%", "a\x1fb", "☃", None],
    "cost": [*_FLOATS, 0.005, 0.015, 55.555, 12.34, 99.99, 100.01],
    "kind": ["a", "b", "c", "x", "y", "p", "q", "", None],
    "day": [date(1990, 1, 1), date(1990, 1, 20), date(1990, 3, 1), date(1800, 1, 1), None],
    "ward": ["w1", "w2", "w3", None],
    "units": [0, 3, 9, 10, 2**64 - 1, None],
    "price": [0.0, 0.5, 1.0, 2.75, float("inf"), float("nan"), 8.25, None],
    "size": [-5, -3, -1, 0, 2, 3, 9, None],
    "pid": [1, 2, 3, 4, 5, 6, 7, None],
    "vid": ["v1", "v2", "v3", "v4", "v5", "v6", "v'7", "", None],
    "iid": [1, 2, 3, 4, 5, None],
}  # fmt: skip


def public_tables(rng: Random) -> Tables:
    """`area`: several rows for a region; `label`: repeated keys of several kinds."""
    area = [
        {"region": rng.choice(["N", "E", "S", "Z", None]), "town": rng.choice(["t1", "t2", "t3"]), "weight": weight}
        for weight in (0.5, 1.0, 2.0, 4.0)[: rng.randint(1, 4)]
    ]
    label = [
        {
            "region": rng.choice(["N", "E"]),
            "kids": rng.choice([0, 1, 2, 7]),
            "kind": rng.choice(["a", "b", "x"]),
            "tag": tag,
        }
        for tag in ("l1", "l2", "l3", "l4", "l5")[: rng.randint(2, 5)]
    ]
    scale = [
        {
            "level": rng.choice([-35, -30, -11, -10, 5, 9, 10, 31, 70, 99, None]),
            "steps": rng.choice([0, 17, 30, 115, 116, None]),
            "since": rng.choice([date(1990, 1, 1), date(1990, 2, 2), date(2200, 1, 1), None]),
            "mark": mark,
        }
        for mark in ("m1", "m2", "m3", "m4", "m5", "m6")
    ]
    return {"area": area, "label": label, "scale": scale}


def row_of(world: World, table: str, rng: Random) -> dict[str, Any]:
    return {column: rng.choice(_VALUES[column]) for column in world.policy.tables[table].columns}


def private_tables(world: World, rng: Random) -> Tables:
    tables: Tables = {}
    for table in world.policy.private_tables:
        count = rng.choice([0, 1, 3, 8, 8, 14])
        tables[table.name] = [row_of(world, table.name, rng) for _ in range(count)]
    if "visit" in tables and tables["visit"] and rng.random() < 0.5:
        # One unit with far more rows than its bound, half of them alike.
        heavy = rng.choice([1, 2])
        tables["visit"] += [{**row_of(world, "visit", rng), "pid": heavy} for _ in range(12)]
        tables["visit"] += [dict(tables["visit"][-1]) for _ in range(8)]
    if "person" in tables and "visit" in tables and world.policy.tables["person"].rows == "public":
        # The number of people is public, so each has one row.
        kept = {row["pid"]: row for row in tables["person"] if row["pid"] is not None}
        tables["person"] = list(kept.values())
    return tables


def neighbour(world: World, tables: Tables, rng: Random) -> Tables | None:
    """The same data with one unit gone, or another in its place."""
    if str(world.policy.unit) == "row":
        return _row_neighbour(world, tables, rng)
    pids = sorted({row["pid"] for row in (*tables["person"], *tables["visit"]) if row["pid"] is not None})
    if not pids:
        return None
    gone = rng.choice(pids)
    rest = without(tables, gone)
    if world.policy.tables["person"].rows != "public":
        return rest
    if not any(row["pid"] == gone for row in tables["person"]):
        return None
    fresh = rng.choice([gone, 99])
    rest["person"] = [*rest["person"], {**row_of(world, "person", rng), "pid": fresh}]
    rest["visit"] = rest["visit"] + [
        {**row_of(world, "visit", rng), "pid": fresh} for _ in range(rng.choice([0, 2, 9]))
    ]
    return rest


def without(tables: Tables, pid: Any) -> Tables:
    """The rows of everybody else. A row that hangs on several units stays until the last of them is gone."""
    rest = dict(tables)
    rest["person"] = [row for row in tables["person"] if row["pid"] != pid]
    rest["visit"] = [row for row in tables["visit"] if row["pid"] != pid]
    owners_of_visit: dict[Any, set[Any]] = {}
    for row in tables["visit"]:
        if row["vid"] is not None and row["pid"] is not None:
            owners_of_visit.setdefault(row["vid"], set()).add(row["pid"])
    rest["item"] = [row for row in tables["item"] if owners_of_visit.get(row["vid"]) != {pid}]
    owners_of_item: dict[Any, set[Any]] = {}
    for row in tables["item"]:
        if row["iid"] is not None:
            owners_of_item.setdefault(row["iid"], set()).update(owners_of_visit.get(row["vid"], ()))
    rest["part"] = [row for row in tables["part"] if owners_of_item.get(row["iid"]) != {pid}]
    return rest


def _row_neighbour(world: World, tables: Tables, rng: Random) -> Tables | None:
    table = world.policy.private_tables[0]
    rows = tables[table.name]
    if not rows:
        return None
    place = rng.randrange(len(rows))
    put = [row_of(world, table.name, rng)] if table.rows == "public" else []
    return {**tables, table.name: rows[:place] + put + rows[place + 1 :]}


def frames(tables: Tables, policy: Policy, rng: Random | None = None) -> dict[str, pa.Table]:
    """Arrow tables, in another order of rows if a source of chance is given."""
    result = {}
    for name, rows in tables.items():
        table = policy.tables[name]
        columns = sorted({column for row in rows for column in row}) if table.public else list(table.columns)
        ordered = list(rows)
        if rng is not None:
            rng.shuffle(ordered)
        result[name] = pa.table({c: pa.array([row[c] for row in ordered], type=_TYPES[c]) for c in columns})
    return result


Create = Callable[[Policy, Mapping[str, pa.Table]], Engine]


def engine(world: World, tables: Tables, rng: Random | None = None, create: Create = DuckDBEngine) -> Engine:
    return create(world.policy, frames(tables, world.policy, rng))


# --- questions --------------------------------------------------------------------------------------------------------


_PUBLIC_PARTNERS = (
    "person.region IN (SELECT region FROM area WHERE weight > 1)",
    "NOT EXISTS (SELECT 1 FROM label AS w WHERE w.region = person.region AND w.kids = person.kids)",
    "person.level NOT IN (SELECT level FROM scale WHERE mark <> 'm1')",
    "EXISTS (SELECT 1 FROM area AS g, label AS w WHERE g.region = person.region AND w.region = g.region)",
)
PARTNERS = {
    ("row", "person"): _PUBLIC_PARTNERS,
    ("person.pid", "person"): (
        *_PUBLIC_PARTNERS,
        "EXISTS (SELECT 1 FROM visit AS w WHERE w.pid = person.pid AND w.cost > 20)",
        "person.pid NOT IN (SELECT pid FROM visit WHERE kind = 'a')",
        "EXISTS (SELECT 1 FROM visit AS w JOIN item AS j ON j.vid = w.vid WHERE w.pid = person.pid AND j.units > 2)",
    ),
    ("person.pid", "visit"): (
        "visit.pid IN (SELECT pid FROM person WHERE age > 30)",
        "NOT EXISTS (SELECT 1 FROM item AS j WHERE j.vid = visit.vid AND j.units > 2)",
        "EXISTS (SELECT 1 FROM visit AS w WHERE w.pid = visit.pid AND w.cost > visit.cost)",
        "visit.kind IN (SELECT kind FROM label)",
    ),
    ("person.pid", "item"): (
        "item.vid IN (SELECT vid FROM visit WHERE cost > 20)",
        "NOT EXISTS (SELECT 1 FROM visit AS w WHERE w.vid = item.vid AND w.kind = 'b')",
        "EXISTS (SELECT 1 FROM item AS j WHERE j.vid = item.vid AND j.units <> item.units)",
    ),
    ("person.pid", "part"): ("EXISTS (SELECT 1 FROM part AS o WHERE o.iid = part.iid AND o.size > part.size)",),
}
"""Conditions that look for partners of a row, by the unit and the table."""


class Asker:
    """Writes random questions over the columns of one FROM clause."""

    def __init__(self, world: World, rng: Random) -> None:
        self.rng = rng
        clause, aliases = rng.choice(world.sources)
        self.clause = clause
        tables = {"a": clause.split()[0], "b": clause.split()[0]}
        self.columns: dict[str, list[str]] = {
            "number": [],
            "category": [],
            "text": [],
            "date": [],
            "id": [],
            "flag": [],
        }
        self.partners = [form for alias in aliases for form in PARTNERS.get((str(world.policy.unit), alias), ())]
        for alias in aliases:
            if alias == "t":
                known = {"t0": "number", "t1": "number", "t2": "date"}
                for column, kind in known.items():
                    if f"AS {column}" in clause:
                        self.columns[kind].append(f"t.{column}")
                continue
            self._add(world, alias, tables.get(alias, alias))

    def _add(self, world: World, alias: str, table: str) -> None:
        declared: Mapping[str, Any] = world.policy.tables[table].columns
        if table in ("area", "label", "scale"):
            names = {
                "area": {"town": "category", "weight": "number"},
                "label": {"tag": "category", "kids": "category"},
                "scale": {"mark": "category", "level": "number"},
            }
            for column, kind in names[table].items():
                self.columns[kind].append(f"{alias}.{column}")
            return
        kinds = {"Number": "number", "Date": "date", "Text": "text", "Identifier": "id"}
        for name, column in declared.items():
            kind = kinds.get(type(column).__name__, "category")
            self.columns["flag" if name == "member" else kind].append(f"{alias}.{name}")

    def question(self) -> str:
        rng = self.rng
        keys = self._keys()
        parts = [f"{self.aggregate()} AS v{place}" for place in range(rng.randint(1, 3))]
        text = f"SELECT {', '.join([*keys, *parts])} FROM {self.clause}"
        conditions = [self.predicate()] if rng.random() < 0.6 else []
        if self.partners and rng.random() < 0.3:
            conditions.append(rng.choice(self.partners))
        if conditions:
            text += f" WHERE {rng.choice([' AND ', ' OR ']).join(conditions)}"
        if keys:
            text += f" GROUP BY {', '.join(keys)}"
        return text

    def _keys(self) -> list[str]:
        options: list[Callable[[], str | None]] = [
            lambda: self._one("category"),
            lambda: self._one("category"),
            lambda: self._one("flag"),
            lambda: self._one("text"),
            lambda: (c := self._one("number")) and f"BIN({c}, 10)",
            lambda: (c := self._one("date")) and f"BIN({c}, 20)",
            lambda: (c := self._one("date")) and f"DATE_TRUNC('{self.rng.choice(('week', 'month', 'year'))}', {c})",
            lambda: (c := self._one("number")) and f"FLOOR({c} / 20) * 20",
            lambda: (c := self._one("number")) and f"CASE WHEN {c} > 20 THEN 'much' WHEN {c} > 3 THEN 'some' END",
            lambda: f"({self.predicate(depth=2)})",
        ]
        count = self.rng.choice([0, 0, 1, 1, 1, 2])
        chosen = (self.rng.choice(options)() for _ in range(count))
        return list(dict.fromkeys(key for key in chosen if key))

    def _one(self, kind: str) -> str | None:
        columns = self.columns[kind]
        return self.rng.choice(columns) if columns else None

    def aggregate(self) -> str:
        rng = self.rng
        body = rng.choice(["COUNT(*)", "COUNT(*)", "count", "distinct", "SUM", "SUM", "AVG", "VARIANCE", "MEDIAN"])
        if body == "count":
            kind = rng.choice(["number", "category", "text", "date", "id"])
            body = f"COUNT({self._one(kind) or self.number()})"
        elif body == "distinct":
            kind = rng.choice(["number", "category", "text", "date", "id"])
            body = f"COUNT(DISTINCT {self._one(kind) or self.number()})"
        elif body != "COUNT(*)":
            body = f"{body}({self.number()})"
        return body if rng.random() < 0.7 else f"{body} FILTER (WHERE {self.predicate()})"

    def number(self, depth: int = 0) -> str:
        rng = self.rng
        column = self._one("number")
        if depth > 2 or rng.random() < 0.4:
            return column if column is not None and rng.random() < 0.85 else str(rng.choice([0, 1, -2, 0.5, 3]))
        a, b = self.number(depth + 1), self.number(depth + 1)
        dates = self.columns["date"]
        condition, factor, divisor = self.predicate(depth + 1), rng.choice([2, -1, 0.5]), rng.choice([4, -3])
        forms = [
            f"({a} + {b})", f"({a} - {b})", f"{a} * {factor}", f"({a} / {divisor})", f"-({a})", f"ABS({a})",
            f"LEAST({a}, {b})", f"GREATEST({a}, {b})", f"COALESCE({a}, {b})", f"({a} * {b})",
            f"CASE WHEN {condition} THEN {a} ELSE {b} END", f"CASE WHEN {condition} THEN {a} END",
            f"FLOOR({a} / {abs(divisor)})", f"CEIL({a})", f"ROUND({a}, {rng.choice([0, 1, -1])})", f"TRUNC({a})",
            f"SIGN({a})", f"ABS({a}) // 7", f"ABS({a}) % {abs(divisor)}", f"SQRT(ABS({a}))", f"({a} / NULLIF({b}, 0))",
            f"LN(GREATEST({a}, 1))", f"EXP(LEAST({a}, 9) / 4)", f"POWER(ABS({a}), {rng.choice([0.3, 1.5, 2])})",
            f"CASE WHEN {b} > 0 THEN {a} / {b} WHEN {b} < 0 THEN LOG(2, -({b})) END", f"LOG10(2 + ABS({a}))",
        ]  # fmt: skip
        if dates:
            forms.append(f"({rng.choice(dates)} - {rng.choice(dates)})")
            parts = ["YEAR", "QUARTER", "MONTH", "DAY", "WEEK", "DAYOFWEEK", "ISODOW", "DAYOFYEAR", "ISOYEAR"]
            forms.append(f"{rng.choice(parts)}({rng.choice(dates)})")
            unit, first, last = rng.choice(["day", "week", "month", "quarter", "year"]), self.day(), self.day()
            forms.append(f"DATE_DIFF('{unit}', {first}, {last})")
        texts = [*self.columns["text"], *(c for c in self.columns["category"] if c.endswith((".region", ".kind")))]
        if texts:
            forms.append(f"LENGTH({self.text(rng.choice(texts))})")
        if self.columns["flag"]:
            forms.append(f"CAST({self._one('flag')} AS INT)")
        return rng.choice(forms)

    def day(self) -> str:
        """A date, moved or not."""
        rng, column = self.rng, self._one("date")
        amount, unit = rng.choice([1, 5, -2]), rng.choice(["DAY", "WEEK", "MONTH", "QUARTER", "YEAR"])
        return rng.choice([f"{column}", f"{column} + INTERVAL {amount} {unit}", f"LAST_DAY({column})", f"{column} - 3"])

    def text(self, column: str) -> str:
        """A text column, or what functions make of it."""
        forms = [
            "{}",
            "LEFT({}, 1)",
            "RIGHT({}, 1)",
            "SUBSTRING({}, 2, 1)",
            "TRIM({})",
            "LTRIM(RIGHT({}, 2))",
            "LOWER({})",
        ]
        forms += ["SUBSTRING({}, 2)", "UPPER({})", "TRIM(BOTH 'x' FROM {})", "UPPER(LEFT({}, 2))"]
        return self.rng.choice(forms).format(column)

    def predicate(self, depth: int = 0) -> str:
        rng = self.rng
        if depth < 2 and rng.random() < 0.4:
            a, b = self.predicate(depth + 1), self.predicate(depth + 1)
            return rng.choice([f"({a} AND {b})", f"({a} OR {b})", f"NOT ({a})"])
        limit, operation = rng.choice([0, 1, 17.5, 64, 115, 400, -50]), rng.choice(["<", "<=", "=", "<>", ">=", ">"])
        forms: list[str] = [f"{self._one('number') or '1'} {operation} {limit}"]
        if self.columns["number"]:
            column = self._one("number")
            forms += [
                f"{column} IS NULL",
                f"{column} IS NOT NULL",
                f"{column} BETWEEN 1 AND 60",
                f"{column} IN (0, 1, 17, 2.5)",
            ]
            forms += [f"{column} NOT IN (1, 2, 3)", f"{self._one('number')} > {self._one('number')}"]
        for column in self.columns["category"]:
            if column.endswith(".region"):
                forms += [
                    f"{column} = 'N'",
                    f"{column} <> 'N'",
                    f"{column} IN ('E', 'S')",
                    f"{column} IS NULL",
                    f"{column} LIKE '%'",
                ]
            if column.endswith(".kids") and "label" not in column:
                forms += [f"{column} > 0", f"NOT {column} = 1"]
            if column.endswith(".sex"):
                forms += [f"{column} = 'F'", f"NOT {column} = 'F'"]
        for column in self.columns["flag"]:
            forms += [column, f"NOT {column}", f"{column} IS NOT TRUE"]
        for column in self.columns["text"]:
            forms += [
                f"{column} = 'x'",
                f"{column} NOT IN ('x', 'w1')",
                f"{column} LIKE '%x%'",
                f"{column} NOT ILIKE 'X_'",
                f"{column} IS NULL",
                f"{column} {rng.choice(['<', '>='])} '{rng.choice(['x', '', 'w2', '☃', 'İ'])}'",
                f"STARTS_WITH({column}, '{rng.choice(['x', 'w', 'xY', ''])}')",
                f"ENDS_WITH({column}, '{rng.choice(['y', '2', '%', '_'])}')",
                f"NOT CONTAINS({column}, '{rng.choice(['x', '%', '🙂', ''])}')",
                f"{self.text(column)} IN ('x', 'X', 'a', 'w')",
                f"{self.text(column)} LIKE '_'",
                f"{self.text(column)} IS NULL",
            ]
        for column in self.columns["date"]:
            forms += [
                f"{self.day()} > {self.day()}",
                f"{self.day()} <= DATE '1990-01-31'",
            ]
            forms += [f"{column} >= DATE '1990-01-20'", f"{column} < '1990-02-01'", f"{column} IS NOT NULL"]
        return rng.choice(forms)


def questions(world: World, rng: Random, count: int) -> Iterable[str]:
    return (Asker(world, rng).question() for _ in range(count))


def evaluate(source: Engine, summary: Summary) -> Exact:
    return source.evaluate(summary, CHARGE, SECRET)
