"""The ledger on PostgreSQL, against a real server."""

from pathlib import Path

import pytest

from tests.conformance.ledger import CHECKS
from tests.ledger.postgres_kind import ledger_kind
from tests.servers import PostgresServer

pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'confide[postgres]'")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_conforms(check, postgres_server: PostgresServer, postgres_database: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    check(ledger_kind(postgres_server, postgres_database), tmp_path)
