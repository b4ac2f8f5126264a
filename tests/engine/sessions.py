"""The same tables opened on DuckDB, PostgreSQL and Spark, with the same test noise and the same choice of rows."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from confide.cli.census import make_census
from confide.cli.demo import POLICY
from confide.engine import Engine
from confide.engine.duckdb.engine import DuckDBEngine
from confide.errors import ConfideError
from confide.ledger import MemoryLedger
from confide.mechanism import TestRandomness
from confide.policy import Policy
from confide.release.session import Session
from tests.engine import postgres_tables, spark_tables
from tests.engine.worlds import SECRET
from tests.servers import PostgresServer
from tests.spark import INTERPRETED

SEED = 7
ASKED = Path(__file__).with_name("asked.sql").read_text(encoding="utf-8")
QUESTIONS, REFUSED = (
    [line for line in part.splitlines() if line and not line.startswith("--")]
    for part in ASKED.split("-- refused")
)  # fmt: skip


def _same_sessions(
    stack: ExitStack,
    policy: Policy,
    tables: Mapping[str, pa.Table],
    postgres: tuple[PostgresServer, str],
    spark: tuple[Any, Path],
) -> dict[str, Session]:
    """One session on each engine. The secret that orders the rows of a unit is the same, so the same rows are kept."""
    policy = replace(policy, source=None)
    engines: dict[str, Engine] = {
        "DuckDB": DuckDBEngine(policy, tables),
        "PostgreSQL": postgres_tables.create_engine(*postgres, policy, tables),
        "Spark": spark_tables.create_engine(*spark, policy, tables, settings=INTERPRETED),
    }
    opened = {}
    for label, engine in engines.items():
        book = MemoryLedger(policy.budget, policy.analysts)
        book.secret = SECRET
        opened[label] = stack.enter_context(Session(policy, engine, book, randomness=TestRandomness(SEED)))
    return opened


def census_tables(people: int) -> tuple[Policy, dict[str, pa.Table]]:
    """The demo's country, small, with a budget for many questions."""
    made = make_census(people)
    text = POLICY.replace("PEOPLE", str(people)).replace("VISITS", str(3 * people))
    policy = Policy.parse_text(text.replace("epsilon: 3", "epsilon: 1000"))
    return policy, {
        name: pa.table({column: pa.array(values, from_pandas=True) for column, values in getattr(made, name).items()})
        for name in ("person", "visit", "region_name")
    }


@contextmanager
def sessions_of(
    policy: Policy, tables: Mapping[str, pa.Table], server: PostgresServer, spark: Any, folder: Path
) -> Iterator[dict[str, Session]]:
    """The same, in a database of their own."""
    database = server.create_database()
    with ExitStack() as stack:
        stack.callback(server.drop_database, database)
        yield _same_sessions(stack, policy, tables, (server, database), (spark, folder))


def differing(
    sessions: Mapping[str, Session], ask: Callable[[Session], Any], what: str, *, refused: bool = False
) -> list[str]:
    """What is said on other engines and not on DuckDB, of one call. A refusal is its words."""
    found = {label: _said(session, ask) for label, session in sessions.items()}
    assert found["DuckDB"].startswith("QueryError: ") == refused, (what, found["DuckDB"])
    return [
        f"{label}, {what}:\n{own}\ninstead of\n{found['DuckDB']}"
        for label, own in found.items()
        if own != found["DuckDB"]
    ]


def _said(session: Session, ask: Callable[[Session], Any]) -> str:
    try:
        found = ask(session)
    except ConfideError as error:
        return f"{type(error).__name__}: {error}"
    return found.to_json() if hasattr(found, "to_json") else repr(found)
