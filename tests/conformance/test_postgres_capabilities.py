"""Joins, views, graphs, microdata, synthesis, verdicts and history on PostgreSQL: as on DuckDB, to the last digit."""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pytest

from confide.engine import Engine
from confide.policy import Policy
from tests.conformance.capabilities import CAPABILITIES, Create
from tests.engine.postgres_tables import create_engine
from tests.servers import PostgresServer
from tests.synthesis.fitting import pretend_to_fit


@pytest.mark.parametrize("capability", CAPABILITIES, ids=lambda capability: capability.__name__)
def test_a_capability_comes_along(
    capability: Callable[[Create], Any],
    postgres_server: PostgresServer,
    postgres_database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pretend_to_fit(monkeypatch)

    def create(policy: Policy, tables: Mapping[str, pa.Table]) -> Engine:
        return create_engine(postgres_server, postgres_database, policy, tables)

    capability(create)
