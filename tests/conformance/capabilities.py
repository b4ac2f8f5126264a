"""Every capability on an engine and on DuckDB: the same exact integers go in, and the same answers come out.

Noise is drawn from one seed, rows are bounded by one secret, so whatever differs comes from an engine.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

import confide
from confide.engine import Engine, Exact
from confide.engine.duckdb.engine import DuckDBEngine
from confide.engine.read.join_facts import SharedRows
from confide.engine.read.network import Network, degrees, star_count, star_pairs, triangle_facts
from confide.ledger import MemoryLedger
from confide.mechanism import TestRandomness
from confide.policy import Policy, load
from confide.release.session import Session
from tests.release import samples, test_joins
from tests.release.graph import test_graph
from tests.release.test_trust import QUERIES, copy_of

Create = Callable[[Policy, Mapping[str, pa.Table]], Engine]
Call = Callable[[Session], object]

SECRET = b"the same for all engines"


@dataclass
class Recorder:
    """An engine that remembers what it gave, written so that it does not depend on how a database numbers things."""

    inner: Engine
    seen: list[Any] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def evaluate(self, *arguments: Any, **more: Any) -> Exact:
        exact = self.inner.evaluate(*arguments, **more)
        tallies = [[[part.tolist() for part in counts] for counts in tally] for tally in exact.tallies]
        self.seen.append(([cell.tolist() for cell in exact.cells], exact.keys, tallies))
        return exact

    def tabulate(self, *arguments: Any) -> Any:
        found = self.inner.tabulate(*arguments)
        counted = {columns: (table.cells.tolist(), table.counts.tolist()) for columns, table in found.tables.items()}
        self.seen.append((found.sizes, counted))
        return found

    def occupied(self, *arguments: Any) -> Any:
        found = self.inner.occupied(*arguments)
        self.seen.append((found.sizes, sorted(zip(*(own.tolist() for own in found.places), strict=True))))
        return found

    def inquire(self, inquiry: Any, charge: Any) -> Any:
        found = self.inner.inquire(inquiry, charge)
        self.seen.append(_canonical(found))
        return found


def _canonical(found: Any) -> Any:
    if isinstance(found, Network):
        triangles = () if found.directed else triangle_facts(found)
        return found.nodes, sorted(degrees(found).tolist()), triangles, star_count(found, 3), star_pairs(found)
    if isinstance(found, tuple) and found and isinstance(found[0], SharedRows):
        return [_shares(group) for group in found]
    return found.tolist() if isinstance(found, np.ndarray) else found


def _shares(group: SharedRows) -> Any:
    pairs = sorted(zip(group.weights.tolist(), group.counts.tolist(), strict=True))
    if group.entities is None:
        return pairs
    # How often each entity occurs, and with what in all: equal whatever its number is.
    ends = group.entities.ravel()
    weights = np.repeat(group.weights, group.entities.shape[1])
    totals = np.bincount(ends, weights=weights).astype(int).tolist() if len(ends) else []
    return pairs, sorted(zip(np.bincount(ends).tolist() if len(ends) else [], totals, strict=True))


def agree(create: Create, policy: Mapping[str, Any], data: Mapping[str, pl.DataFrame], call: Call) -> None:
    """A call gives the same on an engine as on DuckDB, from the same exact numbers."""
    rules = load(dict(policy))
    tables = {name: frame.to_arrow() for name, frame in data.items()}
    outcomes = []
    for engine in (DuckDBEngine(rules, tables), create(rules, tables)):
        recorder = Recorder(engine)
        ledger = MemoryLedger(rules.budget, rules.analysts)
        ledger.secret = SECRET
        with Session(rules, recorder, ledger, "", TestRandomness(7)) as session:
            outcomes.append((call(session), recorder.seen))
    assert outcomes[0][1] == outcomes[1][1]
    assert outcomes[0][1], "nothing was read"
    assert outcomes[0][0] == outcomes[1][0]


# --- what is called ---------------------------------------------------------------------------------------------------


def joins_of_rows(create: Create) -> None:
    data = test_joins.row_data(150)
    for mechanism in ("residual", "elastic"):
        for sql in (
            f"SELECT COUNT(*) AS n FROM {test_joins.JOIN} WHERE x > 3 AND g = 'q'",
            f"SELECT g, SUM(x) AS n, COUNT(*) FILTER (WHERE y < 0.5) AS m FROM {test_joins.JOIN} GROUP BY g",
            "SELECT COUNT(*) AS n FROM r AS one JOIN r AS two ON one.b = two.b WHERE one.a <> two.a",
            "SELECT COUNT(*) AS n FROM label JOIN r ON label.a = r.a JOIN t ON t.b = r.b WHERE word = 'even'",
        ):
            agree(create, test_joins.ROW, data, _sql(sql, mechanism=mechanism))


def joins_of_units(create: Create) -> None:
    data = test_joins.key_data(60)
    for mechanism in ("truncate", "r2t"):
        for sql in (
            "SELECT COUNT(*) AS n, SUM(q) AS s FROM o JOIN l ON o.oid = l.oid",
            "SELECT g, COUNT(*) AS n FROM p JOIN o ON p.id = o.pid JOIN l ON l.oid = o.oid WHERE q > 1 GROUP BY g",
            f"SELECT COUNT(*) AS n FROM {test_joins.PAIRS} WHERE one.pid <> two.pid",
        ):
            agree(create, test_joins.KEY, data, _sql(sql, mechanism=mechanism))
    sampled = "SELECT g, COUNT(*) AS n, SUM(q) AS s FROM p JOIN o ON p.id = o.pid JOIN l ON l.oid = o.oid GROUP BY g"
    agree(create, test_joins.KEY, data, _sql(sampled, mechanism="sample"))


def views(create: Create) -> None:
    def call(session: Session) -> object:
        session.view("lines", "SELECT g, q FROM p JOIN o ON p.id = o.pid JOIN l ON l.oid = o.oid", at_most={"rows": 4})
        return session.sql("SELECT g, COUNT(*) AS n, SUM(q) AS s FROM lines GROUP BY g", epsilon=5).to_dicts()

    agree(create, test_joins.KEY, test_joins.key_data(60), call)


def graphs(create: Create) -> None:
    def call(session: Session) -> object:
        graph = session.graph("edge", "src", "dst")
        directed = session.graph("edge", "src", "dst", directed=True)
        return [
            answer.to_dicts()
            for answer in (
                graph.edges(1),
                graph.triangles(1),
                graph.stars(3, 1),
                graph.degree_histogram(1, 20),
                session.graph("edge", "src", "dst", unit="node").edges(1),
                session.graph("edge", "src", "dst", unit="node").stars(2, 1, at_most=4),
                session.graph("edge", "src", "dst", unit="node", directed=True).degree_histogram(1, 5, at_most=4),
                directed.triangles(2, mechanism="smooth"),
                directed.stars(2, 2),
            )
        ]

    pairs = [*test_graph.edges(30), (1, 1), (2, 2), (5, 4), (4, 5)]
    data = {"edge": test_graph.frame(pairs), "word": pl.DataFrame({"a": [1]})}
    agree(create, test_graph.ROW, data, call)


def tabulations(create: Create) -> None:
    def call(session: Session) -> object:
        marginals = ["region", "sex", ("region", "sex"), "BIN(age, 20)"]
        made = session.microdata(marginals, 3, fit="reweighted", table="person")
        return made.to_polars().to_dicts()

    agree(create, samples.policy(), samples.frames(300), call)


def synthesis(create: Create) -> None:
    def call(session: Session) -> object:
        workload = confide.marginals(2, ["region", "sex", "age"])
        twin = session.synthesize(workload, 5, table="person", bins={"age": 20}, rows=20, select="closure")
        return twin.to_polars().to_dicts()

    agree(create, samples.policy(), samples.frames(300), call)


def verdicts(create: Create) -> None:
    def call(session: Session) -> object:
        copied = copy_of()
        grouped = "SELECT region, SUM(income) FROM person GROUP BY region"
        found = [session.trust(sql, copied, "20%", 1) for sql, _ in QUERIES]
        found += [session.trust(grouped, copied, "20%", 1, mechanism=name) for name in ("svt", "r2t", "laplace")]
        return [str(verdict) for verdict in found]

    agree(create, samples.policy(), samples.frames(300), call)


def statistics(create: Create) -> None:
    named = "person JOIN region_name AS r ON r.region = person.region"
    owned = "visit JOIN person ON visit.person_id = person.person_id"
    for sql, mechanism in (
        ("SELECT region, MEDIAN(income) AS m, MIN(age) AS a, QUANTILE(age, 0.9) AS b FROM person GROUP BY 1", "auto"),
        ("SELECT sex, SUM(income) AS s, AVG(income) AS m FROM person GROUP BY sex", "svt"),
        (f"SELECT SUM(income) AS s, AVG(cost) AS m FROM {owned}", "tail"),
        ("SELECT town, COUNT(*) AS n, MEDIAN(age) AS m FROM person GROUP BY town", "auto"),
        (f"SELECT r.title, STDDEV(age) AS s FROM {named} GROUP BY r.title", "auto"),
        ("SELECT AVG(total) AS m FROM (SELECT person_id, SUM(cost) AS total FROM visit GROUP BY person_id)", "auto"),
    ):
        bounds = {"total": [0, 500]} if "total" in sql else None
        policy = samples.policy(samples.APPROXIMATE)
        agree(create, policy, samples.frames(300), _sql(sql, mechanism=mechanism, bounds=bounds))


def keys_of_odd_kinds(create: Create) -> None:
    """Ids as numbers here and as text there, unknown ones, empty ones, and some that look alike and are not."""
    text = ["1", "2", "02", "", None, "ä", "A", "a", " 1", "3"] * 3
    numbers = [1, 2, 3, None, 2, 1, -1, 0, 2**62, 3] * 3
    kinds = {"type": "id"}
    tables = {name: {"columns": {"k": kinds, "j": kinds, "x": {"range": [0, 9]}}} for name in ("r", "t")}
    policy = {"confide": 1, "budget": {"epsilon": 1000}, "unit": "row", "tables": tables}
    data = {
        "r": pl.DataFrame({"k": text, "j": numbers, "x": list(range(10)) * 3}),
        "t": pl.DataFrame({"k": numbers[::-1], "j": text[::-1], "x": list(range(10)) * 3}),
    }
    for condition in ("r.k = t.k", "r.k = t.j", "r.j = t.k AND r.k = t.j"):
        for mechanism in ("residual", "elastic"):
            sql = f"SELECT COUNT(*) AS n, SUM(r.x) AS s FROM r JOIN t ON {condition}"
            agree(create, policy, data, _sql(sql, mechanism=mechanism))
    for table in ("r", "t"):
        for directed in (False, True):
            agree(create, policy, data, _patterns(table, directed))


def history(create: Create) -> None:
    def call(session: Session) -> object:
        session.sql("SELECT region, COUNT(*) AS n FROM person WHERE sex = 'F' GROUP BY region", epsilon=1)
        return str(session.history("person", pad=3))

    agree(create, samples.policy(), samples.frames(300), call)


def _patterns(table: str, directed: bool) -> Call:
    def call(session: Session) -> object:
        graph = session.graph(table, "k", "j", directed=directed)
        nodes = session.graph(table, "k", "j", directed=directed, unit="node")
        # Which edges are cut follows from the order of the nodes, which must be the same everywhere.
        cut = nodes.degree_histogram(9, 4, at_most=2)
        answers = graph.triangles(9), graph.edges(9), graph.degree_histogram(9, 4), cut
        return [answer.to_dicts() for answer in answers]

    return call


def _sql(sql: str, epsilon: float = 20, **options: Any) -> Call:
    return lambda session: session.sql(sql, epsilon=epsilon, **options).to_dicts()


CAPABILITIES = (
    statistics,
    keys_of_odd_kinds,
    joins_of_rows,
    joins_of_units,
    views,
    graphs,
    tabulations,
    synthesis,
    verdicts,
    history,
)
