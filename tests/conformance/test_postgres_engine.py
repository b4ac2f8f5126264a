"""The PostgreSQL engine against the conformance suite."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from confide.engine import Engine
from confide.engine.postgres.engine import PostgresEngine
from confide.policy import Policy
from tests.conformance.engine import CHECKS, EngineKind, Tables
from tests.engine.postgres_tables import create_engine
from tests.servers import PostgresServer

FORBIDDEN = (
    "INSERT INTO t VALUES (1)",
    "UPDATE t SET x = 1",
    "DELETE FROM t",
    "TRUNCATE t",
    "DROP TABLE t",
    "CREATE TABLE u (x int)",
    "CREATE VIEW u AS SELECT 1",
    "COPY t FROM '/etc/passwd'",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "SELECT x INTO copied FROM t",
)


def _send(engine: Engine, statement: str) -> object:
    postgres = cast(PostgresEngine, engine)
    with postgres._transaction():
        return postgres._ask(statement)


@pytest.fixture
def kind(postgres_server: PostgresServer, postgres_database: str) -> EngineKind:
    def create(policy: Policy, tables: Tables) -> Engine:
        return create_engine(postgres_server, postgres_database, policy, tables)

    def limited(policy: Policy, tables: Tables, seconds: float) -> Engine:
        return create_engine(postgres_server, postgres_database, policy, tables, seconds)

    def damage(engine: Engine) -> None:
        """Every question then casts the texts of `s` to numbers, at which the database fails and shows them."""
        (schema,) = cast(PostgresEngine, engine)._schemas or ()
        with postgres_server.connect(postgres_database) as connection:
            connection.execute(f"ALTER TABLE {schema}.t RENAME TO hidden")
            connection.execute(f"CREATE VIEW {schema}.t AS SELECT s, CAST(s AS BIGINT) AS x FROM {schema}.hidden")

    return EngineKind(create, limited, _send, FORBIDDEN, live=True, damage=damage)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_postgres(check: Callable[[EngineKind], Any], kind: EngineKind) -> None:
    check(kind)
