"""Addresses of PostgreSQL: one reader for the data and for the ledger, and no password is ever shown."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from confide.errors import ConfideError, LedgerError, ParameterError, SourceError
from confide.host.address import has_password, is_postgres, is_settings, read_address, without_password
from confide.ledger import PostgresPlace
from confide.policy import Policy
from confide.policy.describe import describe
from confide.release.custody.ledgers import ledger_place
from confide.release.custody.sources import open_engine

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'confide[postgres]'")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://ann:s3cret@host:5432/db", "postgresql://ann:***@host:5432/db"),
        ("postgresql://ann:p@ss:w@host/db", "postgresql://ann:***@host/db"),
        ("postgresql://:s3cret@host/db", "postgresql://:***@host/db"),
        ("Postgres://ann:s3cr#et@host/db", "Postgres://ann:***@host/db"),
        ("postgresql://a#n:s3cret@[::1]:5432,two/db", "postgresql://a#n:***@[::1]:5432,two/db"),
        (
            "postgresql://host/db?user=ann&password=s3cret&sslmode=require",
            "postgresql://host/db?user=ann&password=***&sslmode=require",
        ),
        ("postgresql://host/db?sslpassword=s3cret", "postgresql://host/db?sslpassword=***"),
        ("postgresql://host/db?pass%77ord=s3cret", "postgresql://host/db?pass%77ord=***"),
        ("postgresql://host/db?oauth_client_secret=s3cret", "postgresql://host/db?oauth_client_secret=***"),
        ("postgresql://ann:s3cret/x@host/db?schema=p", "postgresql://***"),
        ("postgresql://ann:12/34@host/db?schema=p", "postgresql://***"),
        ("postgresql://ann:s3cret?x@host/db?schema=p", "postgresql://***"),
        ("postgresql://ann:s3cret?x=1@host/db?schema=p", "postgresql://***"),
        ("postgresql://ann:1234?x=1@host/db?schema=p", "postgresql://***"),
        ("host=h password = 's3cret\\' two' dbname=d", "host=h password = *** dbname=d"),
        ("dbname=d sslpassword=s3cret", "dbname=d sslpassword=***"),
        ("postgresql://ann@host/db", "postgresql://ann@host/db"),
        ("postgresql://host:5432/db", "postgresql://host:5432/db"),
        (
            "postgresql://host/db?user=ann%26bob&options=-c%20a=b",
            "postgresql://host/db?user=ann%26bob&options=-c%20a=b",
        ),
        ("sc://host:15002/;token=s3cret;user_id=ann", "sc://host:15002/;token=***;user_id=ann"),
        ("people.duckdb", "people.duckdb"),
        ("C:\\data\\a@b.duckdb", "C:\\data\\a@b.duckdb"),
    ],
)
def test_passwords_are_not_shown(address: str, shown: str) -> None:
    assert without_password(address) == shown
    assert has_password(address) is (address != shown)


def test_what_is_an_address() -> None:
    assert is_postgres("postgresql://host/db")
    assert is_postgres("Postgres://host/db")
    assert not any(map(is_postgres, ("people.ledger", "postgresql", Path("x"), "mysql://host", None)))
    assert is_settings("host=h dbname=d")
    assert not any(map(is_settings, ("people.ledger", "host", "my host=1", "postgresql://h/d?host=x")))


READ: dict[str, tuple[dict[str, str], str | None]] = {
    "postgresql://ann@host:5433/db?schema=people": (
        {"user": "ann", "host": "host", "port": "5433", "dbname": "db"},
        "people",
    ),
    "postgres://host/db?schema=p&password=s3cret": ({"host": "host", "dbname": "db", "password": "s3cret"}, "p"),
    "POSTGRESQL://:s3cret@host/db?schema=p": ({"host": "host", "dbname": "db", "password": "s3cret"}, "p"),
    "Postgres://a%40b:s3cret%2F@host/my%20db?schema=my%20people": (
        {"user": "a@b", "password": "s3cret/", "host": "host", "dbname": "my db"},
        "my people",
    ),
    "postgresql://ann@/db?host=/run/socket&port=5433&schema=p": (
        {"user": "ann", "host": "/run/socket", "port": "5433", "dbname": "db"},
        "p",
    ),
    "postgresql://one:1,two:2/db?schema=p": ({"host": "one,two", "port": "1,2", "dbname": "db"}, "p"),
    "postgresql://[::1]:5432/db.csv?&schema=p&&sslmode=disable": (
        {"host": "::1", "port": "5432", "dbname": "db.csv", "sslmode": "disable"},
        "p",
    ),
    "postgresql://host/?dbname=db&sch%65ma=p": ({"host": "host", "dbname": "db"}, "p"),
}
REFUSED = [
    "postgresql://ann:s3cret@host:port/db?schema=p",
    "postgresql://ann:s3cret@host/db?schema=p&colour=red",
    "postgresql://ann:s3cret@host/db?schema=p&sslmode",
    "postgresql://ann:s3cret@host/db?schema=p&schema=q",
    "postgresql://ann:s3cret@host/db?SCHEMA=p",
    "postgresql://ann:s3cret@host/db?schema=",
    "postgresql://ann:s3cret@host?schema=p",
    "postgresql://ann:s3cret@host/?schema=p",
    "postgresql://ann:s3cret/x@host/db?schema=p",
    "postgresql://ann:s3cret?x@host/db?schema=p",
    "postgresql://ann:s3cret%zz@host/db?schema=p",
    "postgresql://ann:s3cret%00@host/db?schema=p",
    "postgresql://ann:s3@cret@host/db?schema=p",
    "postgresql://ann:s3cret@host/db?schema=p%00",
    "mysql://ann:s3cret@host/db?schema=p",
    "host=host user=ann password=s3cret dbname=db",
    "password='s3cret' host=host",
]


def policy(**more: Any) -> Policy:
    tables = {"t": {"columns": {"a": {"range": [0, 9]}}}}
    return Policy.parse({"confide": 1, "budget": {"epsilon": 1}, "unit": "row", "tables": tables, **more})


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the driver is told when the data are opened: there is no server."""
    told: dict[str, Any] = {}

    def connect(conninfo: str = "", **options: Any) -> None:
        assert conninfo == ""
        told.update(options)
        raise psycopg.OperationalError("nobody is there")

    monkeypatch.setattr("psycopg.connect", connect)
    return told


def without_ours(options: Mapping[str, Any]) -> dict[str, Any]:
    ours = ("autocommit", "connect_timeout", "application_name")
    return {name: value for name, value in options.items() if name not in ours}


@pytest.mark.parametrize("address", READ)
def test_data_and_ledgers_are_found_by_the_same_addresses(
    address: str, told: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parameters, schema = READ[address]
    read = read_address(address, psycopg)
    assert read is not None
    assert (dict(read.parameters), read.schema) == (parameters, schema)
    assert "s3cret" not in repr(read) + read.shown
    place = PostgresPlace.of(address, tmp_path / "anchor")
    assert (dict(place.parameters), place.schema) == (parameters, schema)
    with pytest.raises(SourceError, match="cannot be reached") as caught:
        open_engine(policy(source=address))
    assert without_ours(told) == parameters
    assert "s3cret" not in repr(caught.value)
    rules = policy(ledger=address)
    assert isinstance(ledger_place(rules, None), PostgresPlace)


@pytest.mark.parametrize("address", REFUSED)
def test_data_and_ledgers_refuse_the_same_addresses_and_show_no_password(address: str, told: dict[str, Any]) -> None:
    with pytest.raises(SourceError) as caught:
        open_engine(policy(source=address))
    assert not told
    told_errors: list[ConfideError] = [caught.value]
    with pytest.raises((LedgerError, ParameterError)) as found:
        ledger_place(policy(ledger=address), None)
    told_errors.append(found.value)
    for error in told_errors:
        assert "s3cret" not in str(error)
        assert "postgresql://" in str(error)
        assert error.__cause__ is None
        assert error.__context__ is None


def test_the_schema_of_data_may_be_left_to_the_server(told: dict[str, Any]) -> None:
    with pytest.raises(SourceError, match="cannot be reached"):
        open_engine(policy(source="postgresql://host/db"))
    assert without_ours(told) == {"host": "host", "dbname": "db"}


def test_data_have_no_anchor(told: dict[str, Any]) -> None:
    with pytest.raises(SourceError, match="names an anchor, which only a ledger has"):
        open_engine(policy(source="postgresql://host/db?anchor=/x"))


@pytest.mark.parametrize("address", ["postgresql://ann:s3cret@host/db", "host=h password=s3cret"])
def test_an_address_in_the_place_of_a_file_is_not_shown(address: str) -> None:
    rules = policy(source={"t": address})
    with pytest.raises(SourceError, match="given an address, not a file") as caught:
        open_engine(rules)
    assert "s3cret" not in str(caught.value)
    described = str(describe(rules))
    assert "s3cret" not in described
    assert "a password stands in the policy" in described
