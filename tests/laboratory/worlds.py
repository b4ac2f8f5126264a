"""More small worlds: joins that a unit may change in any number of rows, and graphs."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pyarrow as pa

import confide
from confide.errors import ConfideError
from confide.policy import Policy, load
from confide.privacy.budget import Budget
from tests.engine import worlds as engine_worlds
from tests.engine.worlds import WORLDS, Tables, World
from tests.laboratory.questions import Writer
from tests.laboratory.storing import Types
from tests.release.test_join_neighbours import BY_KEY, BY_ROW
from tests.release.test_joins import KEY, ROW

BUDGETS = (Budget.of(10**6), Budget.of(10**4, "1e-6"))
"""Large enough for every question that is asked of one world."""
FEW = 0.2
"""How often a policy says that people are few, whatever the data are."""


@dataclass(frozen=True)
class Pair:
    """A data set and a neighbour of it, under one policy."""

    name: str
    policy: Policy
    tables: Tables
    neighbour: Tables
    types: Types
    world: World | None = None


def plain_pair(name: str, rng: Random) -> Pair | None:
    """Of the worlds that engines are tried in, with their traps."""
    world = WORLDS[name]
    public = engine_worlds.public_tables(rng)
    private = engine_worlds.private_tables(world, rng)
    other = engine_worlds.neighbour(world, private, rng)
    if other is None:
        return None
    policy = replace(world.policy, budget=rng.choice(BUDGETS))
    if rng.random() < FEW:
        tables = {**policy.tables, "person": replace(policy.tables["person"], size=rng.choice([2, 4, 6]))}
        policy = replace(policy, tables=tables)
        world = replace(world, policy=policy)
    return Pair(name, policy, {**private, **public}, {**other, **public}, engine_worlds._TYPES, world)


# --- joins ------------------------------------------------------------------------------------------------------------

_ROW_POLICY, _KEY_POLICY = (replace(load(policy), version="1") for policy in (ROW, KEY))
_TYPES: Types = {
    **{name: pa.int64() for name in ("a", "b", "c", "x", "id", "oid", "pid", "item", "z", "q")},
    "y": pa.float64(), "g": pa.string(), "word": pa.string(),
}  # fmt: skip


def _maybe(value: Any, rng: Random) -> Any:
    return None if rng.random() < 0.05 else value


def _row_of(table: str, rng: Random) -> dict[str, Any]:
    few = rng.randrange(4)
    if table == "r":
        return {
            "a": _maybe(few, rng), "b": _maybe(rng.randrange(4), rng),
            "x": rng.choice([-7, -5, 0, 3, 10, 10**9, None]), "g": rng.choice(["p", "q", "z", None]),
        }  # fmt: skip
    return {"b": _maybe(few, rng), "c": _maybe(rng.randrange(5), rng), "y": rng.choice([0.0, 0.5, 1.0, 9e99, None])}


def row_pair(rng: Random) -> Pair:
    """Two private tables; a row of either comes or goes."""
    label = [{"a": place, "word": ("even", "odd")[place % 2]} for place in range(5)]
    tables: Tables = {name: [_row_of(name, rng) for _ in range(rng.choice([0, 2, 9, 20]))] for name in ("r", "t")}
    table = rng.choice(["r", "t"])
    other = {**tables, table: [*tables[table], _row_of(table, rng)]}
    policy = replace(_ROW_POLICY, budget=rng.choice(BUDGETS))
    return Pair("joined rows", policy, {**tables, "label": label}, {**other, "label": label}, _TYPES)


def key_pair(rng: Random) -> Pair:
    """People with orders and lines; one of them leaves with all of theirs."""
    people = range(rng.choice([1, 3, 8]))
    p = [{"id": person, "g": rng.choice(["u", "v", None])} for person in people]
    o: list[dict[str, Any]] = []
    for person in people:
        o += [
            {
                "oid": 100 * person + number, "pid": person, "item": _maybe(rng.randrange(5), rng),
                "x": rng.choice([0, 4, 10, 99, None]), "z": rng.choice([-9, -3, 0, 3]),
            }
            for number in range(rng.choice([0, 1, 2, 12]))
        ]  # fmt: skip
    lines = [{"oid": order["oid"], "q": rng.choice([0, 2, 5, 8, None])} for order in o for _ in range(rng.randrange(4))]
    leaves = rng.choice(list(people))
    gone = {order["oid"] for order in o if order["pid"] == leaves}
    rest = {
        "p": [row for row in p if row["id"] != leaves],
        "o": [row for row in o if row["pid"] != leaves],
        "l": [row for row in lines if row["oid"] not in gone],
    }
    policy = replace(_KEY_POLICY, budget=rng.choice(BUDGETS))
    return Pair("joined keys", policy, {"p": p, "o": o, "l": lines}, rest, _TYPES)


# --- graphs -----------------------------------------------------------------------------------------------------------


def graph_pair(rng: Random) -> Pair:
    """Edges; a row comes (the unit is the edge), or a node with all its edges goes (the column `node` says which)."""
    kind = rng.choice(["id", "text"])
    nodes: list[Any] = rng.choice(
        [list(range(7)), [1, 2, 3, 10, 20, 100, 200], [f"n{place}" for place in range(7)], ["1", "2", "x", "10", "y"]]
    )
    edges = [
        {"a": _maybe(rng.choice(nodes), rng), "b": _maybe(rng.choice(nodes), rng)}
        for _ in range(rng.choice([0, 3, 9, 20]))
    ]
    new: list[Any] = [*nodes, 77 if isinstance(nodes[0], int) else "new", None]
    by_node = rng.random() < 0.5
    if by_node:
        gone = rng.choice(nodes)
        other = [edge for edge in edges if gone not in (edge["a"], edge["b"])]
    else:
        other = [*edges, {"a": rng.choice(new), "b": rng.choice(new)}]
    policy = load(
        {
            "confide": 1,
            "budget": {"epsilon": 1},
            "unit": "row",
            "version": "1",
            "tables": {"edge": {"columns": {"a": {"type": kind}, "b": {"type": kind}}}},
        }
    )
    name = "nodes" if by_node else "edges"
    stored = pa.int64() if isinstance(nodes[0], int) else pa.string()
    types = {"a": stored, "b": stored}
    return Pair(name, replace(policy, budget=rng.choice(BUDGETS)), {"edge": edges}, {"edge": other}, types)


# --- what is asked ----------------------------------------------------------------------------------------------------

Call = Callable[[Any], Any]


def calls(pair: Pair, rng: Random, count: int) -> list[tuple[str, Call]]:
    """So many calls of a session, each with the words that name it."""
    if pair.name in ("edges", "nodes"):
        return [_graph_call(pair, rng) for _ in range(count)]
    if pair.name.startswith("joined"):
        return [_join_call(pair, rng) for _ in range(count)]
    choices = (
        [_question_call] * 120
        + [_population_call] * 9
        + [_workload_call] * 6
        + [_trust_call] * 24
        + [_microdata_call] * 9
        + [_summary_call] * 2
        + [_synthesis_call, _tables_call]
    )
    return [rng.choice(choices)(pair, rng) for _ in range(count)]


def _epsilon(rng: Random) -> Any:
    return rng.choice([0.5, 1, 2, "1/3", 10])


def _question_call(pair: Pair, rng: Random) -> tuple[str, Call]:
    assert pair.world is not None
    text = Writer(pair.world, rng).any_question()
    if "MEDIAN" in text and rng.random() < 0.5:
        text = text.replace("MEDIAN(", rng.choice(["MIN(", "MAX(", "STDDEV("]))
    epsilon, confidence = _epsilon(rng), rng.choice([0.95, 0.5, 0.999])
    return f"sql({text!r}, {epsilon!r}, {confidence})", lambda session: session.sql(text, epsilon, confidence)


def _population_call(pair: Pair, rng: Random) -> tuple[str, Call]:
    assert pair.world is not None
    text, epsilon = Writer(pair.world, rng).of_population(), _epsilon(rng)
    return (
        f"sql({text!r}, {epsilon!r}, population=True)",
        lambda session: session.sql(text, epsilon, population=True),
    )


_ONE_COLUMN = ("direct", "identity", "hierarchy", "wavelet", "prefix", "optimised", "privtree", "privtree", "dawa")
_ALL = ("auto", "exact", "direct", "identity", "hierarchy", "wavelet", "residual", "privtree")


def _workload_call(pair: Pair, rng: Random) -> tuple[str, Call]:
    """A workload of ranges, prefixes and marginals, and counts that follow from its answers."""
    few = rng.choice(
        [
            "confide.ranges('age', bins=20)", "confide.ranges('level', bins=10)", "confide.prefixes('born', bins=5)",
            "confide.prefixes('income', bins=25)", "confide.prefixes('age', bins=5)", "confide.ranges('fee', bins=2)",
        ]
    )  # fmt: skip
    many = rng.choice(
        [
            "confide.marginals(1, ['sex', 'kids'])", "confide.marginals(2, ['sex', 'kids', 'member'])",
            "confide.ranges('age', by=['sex'], bins=20)",
            "confide.ranges('age', 'level', bins={'age': 20, 'level': 20})",
            "confide.prefixes('income', bins=50) + confide.marginals(2, ['sex', 'kids'])",
            "confide.ranges('level', bins=10) + confide.prefixes('age', bins=20)",
        ]
    )  # fmt: skip
    tiny = rng.choice(["confide.marginals(2, ['sex', 'kids'])", "confide.marginals(1, ['sex', 'member'])"])
    wanted, strategy = rng.choice([(few, rng.choice(_ONE_COLUMN)), (many, rng.choice(_ALL))])
    if pair.policy.tables["person"].size in (2, 4, 6) and rng.random() < 0.5:
        wanted, strategy = tiny, "net"
    goal = "worst" if strategy in ("auto", "exact", "residual", "direct") and rng.random() < 0.3 else "typical"
    text = rng.choice(
        [
            "SELECT COUNT(*) AS n FROM person",
            "SELECT COUNT(*) AS n FROM person WHERE sex = 'F'",
            "SELECT sex, COUNT(*) AS n FROM person GROUP BY sex",
            "SELECT COUNT(*) AS n FROM person WHERE age BETWEEN 20 AND 39",
            "SELECT COUNT(*) FILTER (WHERE level >= 10) - COUNT(*) AS n FROM person",
        ]
    )
    epsilon = _epsilon(rng)
    workload = eval(wanted, {"confide": confide})

    def call(session: Any) -> Any:
        answers = session.answer(workload, epsilon, strategy=strategy, goal=goal, table="person")
        try:
            return [answers, answers.sql(text)]
        except ConfideError as error:  # what does not follow from what was measured
            return [answers, str(error)]

    return f"answer({wanted}, {epsilon!r}, strategy={strategy!r}, goal={goal!r}), sql({text!r})", call


def _join_call(pair: Pair, rng: Random) -> tuple[str, Call]:
    by_row = pair.name == "joined rows"
    text = rng.choice(BY_ROW if by_row else BY_KEY)
    names = (
        ["auto", "residual"] + ([] if pair.policy.budget.pure else ["elastic"])
        if by_row
        else ["auto", "r2t", "truncate"]
    )
    mechanism, epsilon = rng.choice(names), _epsilon(rng)
    words = f"sql({text!r}, {epsilon!r}, mechanism={mechanism!r})"
    return words, lambda session: session.sql(text, epsilon, mechanism=mechanism)


def _graph_call(pair: Pair, rng: Random) -> tuple[str, Call]:
    unit, directed = ("node", rng.random() < 0.3) if pair.name == "nodes" else ("edge", rng.random() < 0.5)
    epsilon = _epsilon(rng)
    patterns: list[tuple[str, Call]] = [
        ("edges", lambda graph: graph.edges(epsilon)),
        ("triangles", lambda graph: graph.triangles(epsilon)),
        ("stars(2)", lambda graph: graph.stars(2, epsilon)),
        ("stars(3)", lambda graph: graph.stars(3, epsilon)),
        ("degree_histogram(4)", lambda graph: graph.degree_histogram(epsilon, 4)),
        ("rectangles", lambda graph: graph.rectangles(epsilon)),
        ("cliques(4)", lambda graph: graph.cliques(4, epsilon)),
        ("cliques(5)", lambda graph: graph.cliques(5, epsilon)),
    ]
    if unit == "edge":
        patterns += [
            ("triangles smooth", lambda graph: graph.triangles(epsilon, mechanism="smooth")),
            ("stars(2) smooth", lambda graph: graph.stars(2, epsilon, mechanism="smooth")),
        ]
    else:
        patterns += [
            ("triangles r2t", lambda graph: graph.triangles(epsilon, mechanism="r2t")),
            ("rectangles r2t", lambda graph: graph.rectangles(epsilon, mechanism="r2t")),
            ("cliques(4) at most 3", lambda graph: graph.cliques(4, epsilon, at_most=3)),
            ("stars(2) at most 3", lambda graph: graph.stars(2, epsilon, at_most=3)),
        ]
    words, ask = rng.choice(patterns)
    return (
        f"graph(unit={unit}, directed={directed}).{words}, {epsilon!r}",
        lambda session: ask(session.graph("edge", "a", "b", unit=unit, directed=directed)),
    )


_TWIN: dict[str, list[Any]] = {
    "age": [3, 31, 64, 90], "sex": ["F", "M", "F", "F"], "income": [0.25, 12.5, 400.0, -50.0],
}  # fmt: skip
"""Stands for synthetic data, the same for both neighbours."""


def _trust_call(pair: Pair, rng: Random) -> tuple[str, Call]:
    table, twin = "person", _TWIN
    text = rng.choice(
        [
            f"SELECT COUNT(*) FROM {table} WHERE age > 30",
            f"SELECT COUNT(*) FROM {table}",
            f"SELECT SUM(age) FROM {table}",
            f"SELECT SUM(income) FROM {table}",
            f"SELECT sex, SUM(income) FROM {table} GROUP BY sex",
            f"SELECT SUM(income) FROM {table} WHERE sex = 'F'",
            f"SELECT AVG(age) FROM {table}",
            f"SELECT MEDIAN(age) FROM {table}",
            f"SELECT sex, COUNT(*) FROM {table} GROUP BY sex",
            f"SELECT COUNT(*) FROM {table} WHERE SQRT(ABS(income)) > 3 OR age % 2 = 1",
            f"SELECT AVG(LEAST(age, 60) / 2) FROM {table}",
            f"SELECT age >= 18, COUNT(*) FROM {table} GROUP BY age >= 18",
            f"SELECT SUM(DISTINCT age) FROM {table}",
            f"SELECT CORR(age, income) FROM {table}",
            f"SELECT sex, COUNT(*) FROM {table} GROUP BY ROLLUP(sex)",
        ]
    )
    within, epsilon = rng.choice(["1e-9", 3, 20, 1000, "10%", "50%"]), _epsilon(rng)
    prefer = rng.choice(["balanced", "balanced", "cautious"])
    words = f"trust({text!r}, within={within!r}, {epsilon!r}, prefer={prefer!r})"
    return words, lambda session: session.trust(text, twin, within, epsilon, prefer=prefer)


def _summary_call(pair: Pair, rng: Random) -> tuple[str, Call]:
    epsilon, table = rng.choice([0.1, 0.5, 2]), rng.choice(sorted(table.name for table in pair.policy.private_tables))
    return f"summary({epsilon!r}, {table!r})", lambda session: session.summary(epsilon, table)


def _microdata_call(pair: Pair, rng: Random) -> tuple[str, Call]:
    marginals = rng.choice([["sex", "kids"], [("sex", "kids"), "region"], [("region", "BIN(age, 40)")], [(), "member"]])
    epsilon = _epsilon(rng)

    def call(session: Any) -> Any:
        with warnings.catch_warnings(record=True) as warned:  # that little will be seen, by the size of the policy
            made = session.microdata(marginals, epsilon, fit="ols", table="person")
        return [made, *(str(own.message) for own in warned)]

    return f"microdata({marginals!r}, {epsilon!r})", call


def _tables_call(pair: Pair, rng: Random) -> tuple[str, Call]:
    """People and their visits; where a row is the unit, a refusal."""
    columns, method = rng.choice([["sex", "kind"], ["region", "kids", "kind"]]), rng.choice(["mst", "rap"])
    epsilon, bins = rng.choice([1, 10, 1000]), rng.choice([None, {"age": 20}])
    columns = columns if bins is None else [*columns, "age"]
    words = f"synthesize_tables({columns!r}, {epsilon!r}, method={method!r}, bins={bins!r})"
    return words, lambda session: session.synthesize_tables(
        confide.marginals(2), epsilon, "visit", columns=columns, bins=bins, method=method
    )


def _synthesis_call(pair: Pair, rng: Random) -> tuple[str, Call]:
    columns = rng.choice([["sex", "kids"], ["sex", "region"], ["region", "kids", "sex"]])
    select, more = rng.choice([("closure", {}), ("marginals", {"rounds": 1}), ("queries", {"rounds": 1, "picks": 2})])
    if rng.random() < 0.4:  # values inside of bins, by their own counts
        columns, more = [*columns, "age"], {**more, "bins": {"age": rng.choice([5, 20])}}
    epsilon = rng.choice([1, 10, 1000])
    if rng.random() < 0.3:  # by a design, and fitted without rounds
        more = {name: own for name, own in more.items() if name == "bins"} | {"method": "planned"}
        words = f"synthesize({columns!r}, {epsilon!r}, {more!r})"
        return words, lambda session: session.synthesize(confide.marginals(2, columns), epsilon, table="person", **more)
    if rng.random() < 0.4:  # aim is not among them: how many rounds it has hangs on what was released
        method = rng.choice(["mst", "mwem", "privbayes", "privbayes+model", "net"])
        more = {name: own for name, own in more.items() if name == "bins" and method != "net"} | {"method": method}
        columns = ["sex", "kids"] if method == "net" else columns
        more |= {"rows": 3} if method == "net" else {}
        words = f"synthesize({columns!r}, {epsilon!r}, {more!r})"
        return words, lambda session: session.synthesize(confide.marginals(2, columns), epsilon, table="person", **more)
    if select != "queries" and rng.random() < 0.4:  # rows that both sides begin with
        more = {**more, "start": {name: _TWIN[name] for name in ("sex", "age")}}
    else:
        more = {**more, "rows": 5}
    words = f"synthesize({columns!r}, {epsilon!r}, select={select!r}, {more!r})"
    return words, lambda session: session.synthesize(
        confide.marginals(2, columns), epsilon, table="person", select=select, **more
    )
