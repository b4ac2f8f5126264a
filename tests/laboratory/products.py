"""One call of every product, on small data: what is asked, at an ε that makes the call a new one."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import polars as pl

import confide
import confide.testing
from confide.release import Session
from tests.laboratory.faults import Counting
from tests.release import samples, test_joins

Call = Callable[[Session, Fraction], Any]

BUDGET = {"epsilon": 10**6, "delta": 1e-6}
EDGES = [(a, b) for a in range(8) for b in range(a) if (a * b) % 3 != 1]
GRAPH: dict[str, Any] = {
    "confide": 1,
    "budget": BUDGET,
    "unit": "row",
    "tables": {"edge": {"columns": {"src": {"type": "id"}, "dst": {"type": "id"}}}},
}
GROUPED = (
    "SELECT region, COUNT(*) AS n, AVG(age) AS a, SUM(income) / COUNT(*) AS i, ABS(SUM(age) * 2 - 7) AS s, "
    "ROUND(STDDEV(age), 2) AS d FROM person WHERE age > 3 GROUP BY region HAVING COUNT(*) > 1 ORDER BY n DESC LIMIT 3"
)


def people() -> Session:
    return confide.testing.open(samples.policy(BUDGET), samples.frames(60), seed=1)


def rows() -> Session:
    policy = {**test_joins.ROW, "budget": BUDGET}
    return confide.testing.open(policy, test_joins.row_data(30), seed=1)


def keys() -> Session:
    policy = {**test_joins.KEY, "budget": BUDGET}
    return confide.testing.open(policy, test_joins.key_data(30), seed=1)


def graph() -> Session:
    edges = pl.DataFrame({"src": [a for a, _ in EDGES], "dst": [b for _, b in EDGES]})
    return confide.testing.open(GRAPH, {"edge": edges}, seed=1)


def _sql(text: str, **more: Any) -> Call:
    return lambda session, epsilon: session.sql(text, epsilon=epsilon, **more)


def _graph(name: str, *given: Any, unit: str | None = None, **more: Any) -> Call:
    def call(session: Session, epsilon: Fraction) -> Any:
        found = session.graph("edge", "src", "dst", unit=unit)
        return getattr(found, name)(*given, epsilon=epsilon, **more)

    return call


def _synthesize(session: Session, epsilon: Fraction) -> Any:
    workload = confide.marginals(2, ["region", "sex"])
    return session.synthesize(workload, epsilon, table="person", rows=5, select="marginals", rounds=1)


def _synthesize_by(method: str) -> Call:
    workload = confide.marginals(2, ["region", "sex"])
    return lambda session, epsilon: session.synthesize(workload, epsilon, table="person", method=method)


def _reweight(session: Session, epsilon: Fraction) -> Any:
    workload, start = confide.marginals(2, ["region", "sex"]), samples.frames(60)["person"]
    return session.synthesize(workload, epsilon, table="person", start=start, select="marginals", rounds=1)


def _tables(session: Session, epsilon: Fraction) -> Any:
    columns = ["region", "sex", "ward"]
    return session.synthesize_tables(confide.marginals(2), epsilon, "visit", columns=columns, method="mst")


def _trust(text: str) -> Call:
    return lambda session, epsilon: session.trust(text, _copy(session), 5, epsilon)


@cache
def _copy(session: Session) -> Any:
    return session.open_copy(samples.frames(50))


@dataclass(frozen=True)
class Product:
    name: str
    opened: Callable[[], Session]
    call: Call
    least: Fraction = Fraction(1)

    def open(self) -> tuple[Session, Counting]:
        """A session whose draws are counted."""
        session = self.opened()
        source = Counting(session._holdings.randomness)
        session._holdings = replace(session._holdings, randomness=source)
        return session, source


PRODUCTS = (
    Product("grouped", people, _sql(GROUPED)),
    Product("median", people, _sql("SELECT sex, MEDIAN(income) AS m, MAX(age) AS x FROM person GROUP BY sex")),
    Product("quantile by svt", people, _sql("SELECT MEDIAN(income) AS m FROM person", mechanism="svt")),
    Product("wide sum", people, _sql("SELECT SUM(income) AS m FROM person", mechanism="r2t")),
    Product("distinct", people, _sql("SELECT COUNT(DISTINCT ward) AS d, SUM(cost) AS c FROM visit")),
    Product("undeclared keys", people, _sql("SELECT town, COUNT(*) AS n FROM person GROUP BY town"), Fraction(50)),
    Product("join by residual", rows, _sql(f"SELECT COUNT(*) AS n FROM {test_joins.JOIN}", mechanism="residual")),
    Product("join by elastic", rows, _sql(f"SELECT SUM(x) AS n FROM {test_joins.JOIN}", mechanism="elastic")),
    Product("join by unit", keys, _sql("SELECT COUNT(*) AS n FROM o JOIN l ON l.oid = o.oid", mechanism="r2t")),
    Product(
        "join that units share",
        keys,
        _sql(f"SELECT COUNT(*) AS n FROM {test_joins.PAIRS} WHERE one.pid <> two.pid", mechanism="truncate"),
    ),
    Product("edges", graph, _graph("edges")),
    Product("triangles", graph, _graph("triangles")),
    Product("triangles, smooth", graph, _graph("triangles", mechanism="smooth")),
    Product("rectangles", graph, _graph("rectangles")),
    Product("cliques", graph, _graph("cliques", 4)),
    Product("rectangles of nodes", graph, _graph("rectangles", unit="node")),
    Product("stars", graph, _graph("stars", 2)),
    Product("degrees", graph, _graph("degree_histogram", up_to=5)),
    Product("triangles of nodes", graph, _graph("triangles", unit="node")),
    Product("stars of nodes", graph, _graph("stars", 2, unit="node")),
    Product("degrees of nodes", graph, _graph("degree_histogram", up_to=5, unit="node")),
    Product(
        "microdata", people, lambda session, epsilon: session.microdata(["region", "sex"], epsilon, table="person")
    ),
    Product("summary", people, lambda session, epsilon: session.summary(epsilon, "person"), Fraction(50)),
    Product("synthesis", people, _synthesize, Fraction(20)),
    Product("synthesis by mst", people, _synthesize_by("mst"), Fraction(20)),
    Product("synthesis by aim", people, _synthesize_by("aim"), Fraction(20)),
    Product("synthesis by a design", people, _synthesize_by("planned"), Fraction(20)),
    Product("synthesis by a network", people, _synthesize_by("privbayes"), Fraction(20)),
    Product("synthesis by mwem", people, _synthesize_by("mwem"), Fraction(20)),
    Product("synthesis from a start", people, _reweight, Fraction(20)),
    Product("verdict", people, _trust("SELECT AVG(age) AS a FROM person")),
    Product("verdicts", people, _trust("SELECT region, COUNT(*) AS n FROM person GROUP BY region")),
    Product("synthesis of tables", people, _tables, Fraction(20)),
)
