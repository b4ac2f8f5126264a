"""The commands on a ledger in PostgreSQL: what they print, and what they never print."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.servers import PASSWORD_ONLY, PostgresServer

pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'confide[postgres]'")

COUNT = "SELECT COUNT(*) AS n FROM person"


@pytest.fixture
def shared(unused: Path, postgres_server: PostgresServer, postgres_database: str) -> Path:
    """A policy whose ledger is on PostgreSQL, with a password in its address."""
    postgres_server.create_role(PASSWORD_ONLY, "s3cret")
    postgres_server.run(f"CREATE SCHEMA people AUTHORIZATION {PASSWORD_ONLY}", postgres_database)
    address = postgres_server.url(postgres_database, PASSWORD_ONLY, "s3cret", schema="people")
    unused.write_text(unused.read_text().replace("ledger: policy.ledger", f"ledger: {address}"))
    return unused


def test_every_command_works_and_shows_no_password(run: Run, shared: Path, tmp_path: Path) -> None:
    results = [
        run("check", shared),
        run("ledger", "create", shared),
        run("sql", shared, COUNT, "-e", "0.5"),
        run("budget", shared, "--epsilon", "0.1"),
        run("ledger", "show", shared),
        run("ledger", "verify", shared),
        run("ledger", "export", shared, "-o", tmp_path / "export.jsonl"),
        run("ledger", "amend", shared),
        run("check", shared),
    ]
    for result in results:
        assert result.exit_code == 0, result.output
        assert "s3cret" not in result.output
    assert "confide ledger create" in " ".join(results[0].stdout.split())
    assert "schema=people" in results[5].stdout
    facts = json.loads(run("check", shared, "--json").stdout)
    assert facts["ledger"]["entries"] == 3
    assert "a password stands in the policy" in " ".join(facts["cautions"])
    assert not list(shared.parent.glob("*.ledger"))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("s3cret", "wr0ng", "refused the user or the password"),
        ("schema=people", "schema=", "names no schema"),
        ("schema=people", "schema=others", "there is no ledger at"),
        ("host=/tmp", "host=/nowhere", "cannot be reached"),
        ("postgresql://", "mysql://", "a ledger is a file, or a schema on PostgreSQL"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(run: Run, shared: Path, old: str, new: str, words: str) -> None:
    shared.write_text(shared.read_text().replace(old, new))
    result = run("sql", shared, COUNT, "-e", "0.5")
    assert result.exit_code != 0
    text = " ".join(result.output.split())
    assert words in text
    assert "s3cret" not in text
    assert "wr0ng" not in text
    assert "Traceback" not in text
