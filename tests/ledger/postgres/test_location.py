"""Addresses of ledgers on PostgreSQL: what is read in them, what is refused, and what is never shown."""

import subprocess
import sys
from pathlib import Path

import pytest

from confide.errors import LedgerError
from confide.ledger import PostgresPlace

pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'confide[postgres]'")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (
            "postgresql://ann:s3cret@host:5433/db?schema=people",
            "postgresql://ann@host:5433/db?schema=people",
        ),
        ("postgres://host/db?schema=people&password=s3cret", "postgresql://host/db?schema=people"),
        (
            "postgresql://ann@/db?host=/run/socket&port=5433&schema=my%20people&sslpassword=s3cret",
            "postgresql://ann@/db?host=/run/socket&port=5433&schema=my people",
        ),
        (
            "postgresql://one:1,two:2/db?schema=p&target_session_attrs=read-write",
            "postgresql://one,two/db?port=1,2&schema=p",
        ),
        ("POSTGRESQL://:s3cret@host/db?schema=p", "postgresql://host/db?schema=p"),
    ],
)
def test_passwords_are_read_but_not_shown(address: str, shown: str, tmp_path: Path) -> None:
    place = PostgresPlace.of(address, tmp_path / "anchor")
    assert (place.name, str(place)) == (shown, shown)
    assert "s3cret" not in repr(place)
    if "s3cret" in address:
        assert "s3cret" in place.parameters.values()


def test_an_anchor_in_the_address_goes_before(tmp_path: Path) -> None:
    address = "postgresql://host/db?schema=p&anchor=/x/y.anchor"
    assert PostgresPlace.of(address, tmp_path).anchor == Path("/x/y.anchor")
    assert PostgresPlace.of(address.replace("/x/", ""), tmp_path, tmp_path).anchor == tmp_path / "y.anchor"
    assert "anchor" not in PostgresPlace.of(address).parameters


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://host/db", "names no schema, and a schema holds one ledger: write postgresql://host/db?schema="),
        ("postgresql://ann:s3cret@host/db?sslmode=require", "write postgresql://ann@host/db?schema=people"),
        ("postgresql://host?schema=people", "names no database"),
        ("postgresql://host/?schema=people", "names no database"),
        ("postgresql://host/db?schema=", "names no schema"),
        ("postgresql://host/db?schema=pg_people", "does not allow"),
        ("postgresql://host/db?schema=" + "s" * 64, "does not allow"),
        ("postgresql://host/db?schema=people", "has no anchor"),
        ("postgresql://ann:s3cret/x@host/db?schema=people", "%2F for /"),
        ("postgresql://ann:s3cret%zz@host/db?schema=people", "%25 for %"),
        ("postgresql://host/db?schema=people&s3cret=1", "cannot be read"),
        ("postgresql://ann:s3cret%00@host/db?schema=people", "cannot be read"),
        ("postgresql://ann:s3cret?x@host/db?schema=people", "cannot be read"),
        ("mysql://ann:s3cret@host/db", "not an address of a ledger on PostgreSQL: write postgresql://"),
    ],
)
def test_what_is_wrong_is_said_without_the_password(address: str, words: str) -> None:
    with pytest.raises(LedgerError) as caught:
        PostgresPlace.of(address)
    assert words in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_the_driver_is_imported_only_when_it_is_used() -> None:
    code = "import sys, confide.release.custody.books, confide.ledger; print('psycopg' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_without_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerError, match=r"pip install 'confide\[postgres\]'"):
        PostgresPlace.of("postgresql://host/db?schema=people")
