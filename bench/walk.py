"""How far a call walks through the house: modules, functions, depth, statements, transactions of the ledger, parses.

Eight calls on a small world, each after a first one like it that loads what is loaded once. Counted are the modules and
functions of confide that are entered, how deep its calls are nested, statements that the database runs, transactions of
the ledger, and SQL texts that are parsed.
"""

import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import confide
from confide.cli import main as command

BEFORE = {
    "sql": (68, 386), "plan(within=)": (48, 216), "trust": (77, 450), "microdata": (81, 489), "synthesize": (80, 505),
    "triangles": (41, 210), "join by r2t": (63, 371), "confide sql": (99, 656),
}  # fmt: skip
"""Modules and functions before each product had a room, as they were counted then."""

POLICY = """confide: 1
source: {person: person.parquet, visit: visit.parquet, knows: knows.parquet}
budget: {epsilon: 1000}
unit: person.person_id
tables:
  person:
    size: 5000
    columns:
      person_id: {type: id}
      region: {values: [N, E, S, W]}
      sex: {values: [F, M]}
      age: {range: [0, 115], bins: 10}
      income: {range: [0, 500000]}
  visit:
    references: {person_id: person.person_id}
    at_most: {rows: 5, groups: 2}
    columns: {person_id: {type: id}, ward: {values: [1, 2, 3]}, cost: {range: [0, 1000]}}
  knows:
    references: {one: person.person_id}
    at_most: {rows: 50, groups: 50}
    columns: {one: {type: id}, other: {type: id}}
"""

EDGES = """confide: 1
source: {knows: knows.parquet}
budget: {epsilon: 1000}
unit: row
tables: {knows: {columns: {one: {type: id}, other: {type: id}}}}
"""

BY_REGION = "SELECT region, COUNT(*) AS n, AVG(income) AS mean FROM person WHERE age > 20 GROUP BY region"
JOIN = "SELECT COUNT(*) AS n FROM visit a JOIN visit b ON a.ward = b.ward WHERE a.cost > 500 AND b.cost > 900"
MARGINALS = ["sex", "region", "age", ("sex", "region")]


ROOT = str(Path(confide.__file__).parent)
WITHIN = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<lambda>", "<module>")
"""Parts of the function that holds them."""
STATEMENTS = ("run", "run_columns", "run_apart", "run_batches")


@dataclass
class Steps:
    """What one call went through."""

    modules: set[str] = field(default_factory=set)
    functions: set[tuple[str, str]] = field(default_factory=set)
    depth: int = 0
    statements: int = 0
    transactions: int = 0
    parses: int = 0
    inside: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def watch(self, frame: Any, event: str, _: Any) -> None:
        name, code = frame.f_globals.get("__name__", ""), frame.f_code
        written = code.co_filename.startswith(ROOT) and code.co_name not in WITHIN
        if not written or event not in ("call", "return"):
            return
        thread = threading.get_ident()
        self.inside[thread] += 1 if event == "call" else -1
        if event == "call":
            function = code.co_qualname
            self.statements += name.startswith("confide.engine") and code.co_name in STATEMENTS
            self.modules.add(name)
            self.functions.add((name, function))
            self.depth = max(self.depth, self.inside[thread])
            self.parses += name == "confide.query.parse" and function == "parse_query"
            ledger = name.startswith("confide.ledger")
            self.transactions += ledger and function.endswith(("Transactions.read", "Transactions.write"))


def walked(call: Callable[[], Any]) -> Steps:
    """Run a call and watch every function of confide that it enters, in all its threads."""
    steps = Steps()
    threading.setprofile(steps.watch)
    sys.setprofile(steps.watch)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return steps


def world(folder: Path, people: int = 5_000) -> dict[str, pa.Table]:
    random = np.random.default_rng(1)
    owners = np.repeat(np.arange(people), random.poisson(1.5, people))
    tables = {
        "person": {
            "person_id": np.arange(people), "region": random.choice(list("NESW"), people),
            "sex": random.choice(["F", "M"], people), "age": random.integers(0, 100, people),
            "income": random.lognormal(10.3, 0.6, people).round(),
        },
        "visit": {
            "person_id": owners, "ward": random.integers(1, 4, len(owners)),
            "cost": random.integers(0, 1000, len(owners)),
        },
        "knows": {"one": random.integers(0, 300, 2_000), "other": random.integers(0, 300, 2_000)},
    }  # fmt: skip
    made = {name: pa.table(columns) for name, columns in tables.items()}
    for name, table in made.items():
        pq.write_table(table, folder / f"{name}.parquet")
    (folder / "people.yaml").write_text(POLICY)
    return made


def run_command(arguments: list[str]) -> None:
    before = sys.argv
    sys.argv = ["confide", *arguments]
    try:
        with redirect_stdout(StringIO()):
            command()
    except SystemExit as ended:
        if ended.code:
            raise
    finally:
        sys.argv = before


def calls(
    session: confide.Session, edges: confide.Session, policy: Path, twin: pa.Table
) -> dict[str, Callable[[int], Any]]:
    """The eight walks; the argument is a number that makes each call a new one."""
    return {
        "sql": lambda n: session.sql(BY_REGION.replace("20", str(n)), epsilon=1),
        "plan(within=)": lambda n: session.plan(BY_REGION.replace("20", str(n + 20)), within="5%"),
        "trust": lambda n: session.trust(f"SELECT COUNT(*) FROM person WHERE age > {n}", twin, within=50, epsilon=1),
        "microdata": lambda n: session.microdata(MARGINALS, epsilon=n),
        "synthesize": lambda n: session.synthesize(confide.marginals(2), n, table="person", rows=20),
        "triangles": lambda n: edges.graph("knows", "one", "other").triangles(epsilon=n),
        "join by r2t": lambda n: session.sql(JOIN.replace("500", str(n)), epsilon=1, mechanism="r2t"),
        "confide sql": lambda n: run_command(["sql", str(policy), BY_REGION.replace("20", str(n)), "--epsilon", "2"]),
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        tables = world(folder)
        policy = folder / "people.yaml"
        (folder / "edges.yaml").write_text(EDGES)
        with confide.open(policy, create=True) as session, confide.open(folder / "edges.yaml", create=True) as edges:
            walks = calls(session, edges, policy, tables["person"].drop_columns(["person_id"]))
            print("walk                    modules        functions  depth  statements  ledger  parses")
            for name, call in walks.items():
                call(30)
                steps = walked(lambda call=call: call(31))  # type: ignore[misc]
                before = BEFORE[name]
                shown = (
                    f"{now:>6} of {was} {now / was:>4.2f}"
                    for now, was in zip((len(steps.modules), len(steps.functions)), before, strict=True)
                )
                if name in sys.argv[1:]:
                    for module, function in sorted(steps.functions):
                        print(f"  {module}.{function}")
                print(
                    f"{name:14} {' '.join(f'{part:>16}' for part in shown)} {steps.depth:>6} {steps.statements:>11} "
                    f"{steps.transactions:>7} {steps.parses:>7}"
                )


if __name__ == "__main__":
    main()
