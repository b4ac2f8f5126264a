"""Making and opening ledgers on PostgreSQL: whom it lets in, what it refuses, and what it notices."""

import multiprocessing
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from confide.errors import LedgerDamaged, LedgerError, LedgerMissing, LedgerRolledBack
from confide.ledger import Ledger, PostgresLedger, PostgresPlace, restore_postgres_anchor
from confide.ledger.postgres.connection import PostgresConnection
from confide.ledger.process.anchor import read_mark
from confide.privacy.budget import Budget
from confide.privacy.loss import PureDP
from tests.servers import PASSWORD_ONLY, PostgresServer

pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'confide[postgres]'")

PART = PureDP(Fraction(1, 100))

PAGE = Path(__file__).parents[2] / "docs" / "ledger.md"
GRANTS = [line for line in PAGE.read_text().splitlines() if line.startswith("GRANT ")]


class World:
    """A fresh database, and the address of a ledger in it."""

    def __init__(self, server: PostgresServer, database: str, folder: Path) -> None:
        self.server, self.database, self.folder = server, database, folder
        self.anchor = folder / "anchor"

    def address(self, user: str = "confide", password: str | None = None, **more: str) -> str:
        parameters = {"schema": "people", "anchor": str(self.anchor), **more}
        return self.server.url(self.database, user, password, **parameters)

    def run(self, statement: str, user: str = "confide") -> list[tuple[object, ...]]:
        return self.server.run(statement, self.database, user)

    def make(self, charges: int = 3) -> None:
        with PostgresLedger.create(self.address(), Budget.of(1)) as ledger:
            for number in range(charges):
                charge = ledger.charge(PART, "a question", f"key {number}", "ann")
                ledger.store(charge, b"answer %d" % number)


@pytest.fixture
def world(postgres_server: PostgresServer, postgres_database: str, tmp_path: Path) -> World:
    return World(postgres_server, postgres_database, tmp_path)


def test_is_a_durable_ledger_that_shows_no_password(world: World) -> None:
    world.server.create_role(PASSWORD_ONLY, "s3cret")
    world.run(f"CREATE SCHEMA people AUTHORIZATION {PASSWORD_ONLY}")
    with PostgresLedger.open_or_create(world.address(PASSWORD_ONLY, "s3cret"), Budget.of(1)) as ledger:
        kept: Ledger = ledger
        assert kept.durable
        assert "schema=people" in repr(ledger)
        assert "s3cret" not in repr(ledger)
    with pytest.raises(LedgerError, match="was closed"):
        ledger.verify()


def test_the_password_may_come_from_the_environment(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world.server.create_role(PASSWORD_ONLY, "s3cret")
    world.run(f"CREATE SCHEMA people AUTHORIZATION {PASSWORD_ONLY}")
    with pytest.raises(LedgerError, match="asks for a password: set PGPASSWORD"):
        PostgresLedger.open_or_create(world.address(PASSWORD_ONLY), Budget.of(1))
    with monkeypatch.context() as patch:
        patch.setenv("PGPASSWORD", "s3cret")
        PostgresLedger.open_or_create(world.address(PASSWORD_ONLY), Budget.of(1)).close()
    passwords = tmp_path / "pgpass"
    passwords.write_text(f"*:*:*:{PASSWORD_ONLY}:s3cret\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    PostgresLedger.open(world.address(PASSWORD_ONLY)).close()


def test_who_is_not_let_in_is_told_why(world: World, tmp_path: Path) -> None:
    world.server.create_role(PASSWORD_ONLY, "s3cret")
    server, anchor = world.server, str(tmp_path / "a")
    cases = {
        world.address(PASSWORD_ONLY, "wr0ng"): "refused the user or the password",
        world.address("nobody_here"): "no such user",
        server.url("no_such_database", schema="people", anchor=anchor): "no such database",
        world.address(host="/nowhere"): "cannot be reached",
        world.address(host="127.0.0.1", port="1"): "cannot be reached",
        world.address(sslmode="nonsense"): "an option of its address is not known|cannot be reached",
    }
    for address, words in cases.items():
        with pytest.raises(LedgerError, match=words) as caught:
            PostgresLedger.open(address)
        assert "wr0ng" not in str(caught.value) + str(caught.value.__cause__)


def test_no_ledger_is_there(world: World) -> None:
    with pytest.raises(LedgerMissing, match="there is no ledger at postgresql://"):
        PostgresLedger.open(world.address())
    assert world.run("SELECT FROM pg_namespace WHERE nspname = 'people'") == []
    world.make()
    with pytest.raises(LedgerError, match="already a ledger at"):
        PostgresLedger.create(world.address(), Budget.of(1))


def test_without_the_right_to_make_one(world: World) -> None:
    world.server.create_role("plain")
    with pytest.raises(LedgerError, match='CREATE SCHEMA "people" AUTHORIZATION'):
        PostgresLedger.open_or_create(world.address("plain"), Budget.of(1))


def test_a_service_needs_few_rights_and_says_which_it_lacks(world: World) -> None:
    world.make()
    world.server.create_role("plain")
    with pytest.raises(LedgerError, match='GRANT USAGE ON SCHEMA "people"'):
        PostgresLedger.open(world.address("plain"))
    world.run("GRANT USAGE ON SCHEMA people TO plain")
    with pytest.raises(LedgerError, match=r"lacks rights .* SELECT on entry, INSERT on entry, .* UPDATE on ledger"):
        PostgresLedger.open(world.address("plain"))
    for statement in GRANTS:
        world.run(statement.replace("TO service", "TO plain"))
    with PostgresLedger.open(world.address("plain"), Budget.of(1)) as ledger:
        charge = ledger.charge(PART, "a question", "by the service", "ann")
        assert ledger.store(charge, b"x") == b"x"
        ledger.amend(Budget.of(2))
        ledger.verify()
    for forbidden in (
        "UPDATE people.entry SET body = ''",
        "DELETE FROM people.entry",
        "UPDATE people.answer SET answer = ''",
        "UPDATE people.ledger SET incarnation = ''",
        "TRUNCATE people.charge",
        "DROP TABLE people.entry",
    ):
        with pytest.raises(Exception, match=r"permission denied|must be owner"):
            world.run(forbidden, "plain")


def test_another_budget_is_refused_with_both_numbers(world: World) -> None:
    PostgresLedger.create(world.address(), Budget.of(2), {"ann": "0.5"}).close()
    with pytest.raises(LedgerError, match=r"asked for is ε = 3.*holds a budget of ε = 2"):
        PostgresLedger.open(world.address(), Budget.of(3))
    with pytest.raises(LedgerError, match=r"asked for are \{\}.*holds \{'ann': 0.5\}"):
        PostgresLedger.open_or_create(world.address(), Budget.of(2), {})


def test_a_ledger_that_is_gone_is_not_made_again(world: World) -> None:
    world.make()
    world.run("DROP SCHEMA people CASCADE")
    for opening in (PostgresLedger.open_or_create, PostgresLedger.create, PostgresLedger.open):
        with pytest.raises(LedgerMissing, match="is gone, but its anchor"):
            opening(world.address(), Budget.of(1))
    assert world.run("SELECT FROM pg_namespace WHERE nspname = 'people'") == []


def test_another_machine_needs_no_anchor_to_begin_with(world: World) -> None:
    world.make()
    anchor = world.folder / "elsewhere"
    with PostgresLedger.open(world.address(anchor=str(anchor))) as ledger:
        mark = read_mark(anchor)
        assert mark is not None
        assert (mark.ledger, mark.sequence) == (ledger.identity, 7)
        # What it shows it also remembers.
        with PostgresLedger.open(world.address()) as other:
            charge = other.charge(PART, "a question", "new")
            other.store(charge, b"yes")
        assert ledger.answer("new") == b"yes"
        remembered = read_mark(anchor)
        assert remembered is not None
        assert remembered.sequence == 9


def test_a_place_for_the_anchor_that_cannot_be_used(world: World) -> None:
    with pytest.raises(LedgerError, match=r"folder /nowhere of the anchor does not exist.*&anchor="):
        PostgresLedger.open_or_create(world.address(anchor="/nowhere/anchor"), Budget.of(1))
    assert world.run("SELECT FROM pg_namespace WHERE nspname = 'people'") == []


def test_an_anchor_of_another_ledger(world: World) -> None:
    world.make()
    with pytest.raises(LedgerError, match=r"is gone|belongs to another ledger"):
        PostgresLedger.open(world.address(schema="others"))
    other = world.folder / "other anchor"
    PostgresLedger.create(world.address(schema="others", anchor=str(other)), Budget.of(1)).close()
    with pytest.raises(LedgerDamaged, match="belongs to another ledger"):
        PostgresLedger.open(world.address(schema="others"))


def set_back(world: World) -> None:
    """The database as it was two entries ago: what a restored backup holds."""
    world.run("DELETE FROM people.answer WHERE sequence > 5")
    world.run("DELETE FROM people.charge WHERE sequence > 5")
    world.run("UPDATE people.account SET total = (SELECT total FROM people.account LIMIT 1)")
    world.run("DELETE FROM people.entry WHERE sequence > 5")


def test_yesterdays_database_is_refused(world: World) -> None:
    world.make()
    with PostgresLedger.open(world.address()) as ledger:
        set_back(world)
        with pytest.raises(LedgerRolledBack, match=r"ends at entry 5, but its anchor .* has seen entry 7: an older"):
            ledger.charge(PART, "a question", "one more")
        with pytest.raises(LedgerRolledBack):
            ledger.answer("key 0")
    with pytest.raises(LedgerRolledBack):
        PostgresLedger.open(world.address())
    with pytest.raises(LedgerRolledBack):
        restore_postgres_anchor(PostgresPlace.of(world.address()))


def test_a_dump_that_is_restored_must_be_vouched_for(world: World) -> None:
    """Also on a machine that never saw the ledger: the tables themselves are others."""
    world.make()
    for table in ("entry", "charge", "answer", "account", "secret", "ledger"):
        world.run(f"CREATE TABLE people.copy (LIKE people.{table} INCLUDING ALL)")
        world.run(f"INSERT INTO people.copy SELECT * FROM people.{table}")
        world.run(f"DROP TABLE people.{table}")
        world.run(f"ALTER TABLE people.copy RENAME TO {table}")
    fresh = world.address(anchor=str(world.folder / "fresh"))
    for address in (world.address(), fresh):
        with pytest.raises(LedgerRolledBack, match="restored from a backup"):
            PostgresLedger.open(address)
    restore_postgres_anchor(PostgresPlace.of(world.address()))
    for address in (world.address(), fresh):
        with PostgresLedger.open(address) as ledger:
            assert ledger.spent() == PureDP(3 * PART.epsilon)
    with pytest.raises(LedgerError, match="nothing to restore"):
        restore_postgres_anchor(PostgresPlace.of(world.address()))


def test_a_copy_of_the_whole_database_must_be_vouched_for(world: World) -> None:
    """One that was made as a template has the same cluster, timeline and table, and would have the budget once more."""
    world.make()
    copied = f"{world.database}_copied"
    world.server.run(f'CREATE DATABASE "{copied}" TEMPLATE "{world.database}"')
    try:
        there = world.server.url(copied, schema="people", anchor=str(world.folder / "fresh"))
        with pytest.raises(LedgerRolledBack, match="restored from a backup"):
            PostgresLedger.open(there)
        restore_postgres_anchor(PostgresPlace.of(there))
        with PostgresLedger.open(there) as ledger:
            assert ledger.spent() == PureDP(3 * PART.epsilon)
    finally:
        world.server.drop_database(copied)
    world.run("UPDATE people.ledger SET incarnation = regexp_replace(incarnation, ':[0-9]+$', '')")  # as it was before
    PostgresLedger.open(world.address()).close()
    world.run("UPDATE people.ledger SET incarnation = regexp_replace(incarnation, '[0-9]:', '::')")
    with pytest.raises(LedgerRolledBack):
        PostgresLedger.open(world.address())


def test_settings_of_a_role_change_nothing(world: World) -> None:
    role = world.server.create_role("odd_settings")
    world.run(f"CREATE SCHEMA people AUTHORIZATION {role}")
    for setting in ("quote_all_identifiers = on", "default_transaction_read_only = on", "statement_timeout = 200"):
        world.run(f"ALTER ROLE {role} SET {setting}")
    with PostgresLedger.create(world.address(role), Budget.of(1)) as ledger:
        ledger.charge(PART, "a question", "key")
        ledger.verify()
    connection = PostgresConnection(PostgresPlace.of(world.address(role)))
    connection.begin(write=True)
    assert connection.execute("SELECT pg_sleep(0.3), 1").fetchone()[1] == 1  # type: ignore[index] # the role has 0.2 s
    connection.rollback()
    connection.close()


def test_a_damaged_anchor_is_made_again(world: World) -> None:
    world.make()
    world.anchor.write_bytes(b"x" * 8192)
    with pytest.raises(LedgerDamaged, match="is damaged"):
        PostgresLedger.open(world.address())
    restore_postgres_anchor(PostgresPlace.of(world.address()))
    PostgresLedger.open(world.address()).close()
    assert (world.folder / "anchor.damaged").exists()


TAMPERED = {
    "an unlogged table": "ALTER TABLE people.entry SET UNLOGGED",
    "another type": "ALTER TABLE people.entry ALTER sequence TYPE numeric",
    "a key that may come twice": "ALTER TABLE people.charge DROP CONSTRAINT charge_key_key",
    "hidden rows": "ALTER TABLE people.entry ENABLE ROW LEVEL SECURITY",
    "a rule": "CREATE RULE nothing AS ON INSERT TO people.entry DO INSTEAD NOTHING",
    "a lost table": "DROP TABLE people.account",
    "a view": "ALTER TABLE people.account RENAME TO accounts",
    "two rows of the ledger": "INSERT INTO people.ledger SELECT * FROM people.ledger",
    "no row of the ledger": "DELETE FROM people.ledger",
    "another version": "UPDATE people.ledger SET version = 9",
    "another identity": "UPDATE people.ledger SET identity = 'x'",
    "a changed entry": "UPDATE people.entry SET body = body || ' '::bytea WHERE sequence = 7",
    "a changed account": "UPDATE people.account SET total = '0'",
    "another secret": "UPDATE people.secret SET secret = '\\x00'",
    "an emptied chain": "TRUNCATE people.entry",
}


@pytest.mark.parametrize("statement", TAMPERED.values(), ids=TAMPERED)
def test_tables_that_were_altered(statement: str, world: World) -> None:
    world.make()
    world.run(statement)
    with pytest.raises(LedgerError) as caught:
        PostgresLedger.open(world.address())
    assert isinstance(caught.value, LedgerDamaged | LedgerRolledBack)


LATER = {
    "an answer": "UPDATE people.answer SET answer = '\\x00' WHERE sequence = 3",
    "an answer forgotten": "UPDATE people.charge SET answered = 0 WHERE sequence = 2",
    "an old entry": "UPDATE people.entry SET body = body || ' '::bytea WHERE sequence = 2",
    "a row too many": "INSERT INTO people.charge VALUES (99, 'x', 0, 0)",
}


@pytest.mark.parametrize("statement", LATER.values(), ids=LATER)
def test_verifying_finds_what_opening_does_not(statement: str, world: World) -> None:
    world.make()
    world.run(statement)
    with PostgresLedger.open(world.address()) as ledger, pytest.raises(LedgerDamaged):
        ledger.verify()


def test_a_database_in_another_encoding(world: World) -> None:
    name = f"{world.database}_latin"
    world.run(f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    try:
        address = world.server.url(name, schema="people", anchor=str(world.anchor))
        with pytest.raises(LedgerError, match="is in LATIN1: make one in UTF-8"):
            PostgresLedger.open_or_create(address, Budget.of(1))
    finally:
        world.server.drop_database(name)


def test_a_crowd_makes_one_ledger(world: World) -> None:
    context = multiprocessing.get_context("fork")
    start, results = context.Barrier(12), context.SimpleQueue()

    def client(number: int) -> None:
        try:
            start.wait(60)
            address = world.address(anchor=str(world.folder / f"anchor {number % 3}"))
            with PostgresLedger.open_or_create(address, Budget.of(1), timeout=60) as ledger:
                ledger.charge(PART, "a question", f"key {number}")
                results.put(ledger.identity)
        except BaseException as error:
            results.put(f"{type(error).__name__}: {error}")

    processes = [context.Process(target=client, args=(number,)) for number in range(12)]
    for process in processes:
        process.start()
    identities = {results.get() for _ in processes}
    for process in processes:
        process.join()
    assert len(identities) == 1, identities
    with PostgresLedger.open(world.address()) as ledger:
        assert ledger.spent() == PureDP(12 * PART.epsilon)
        ledger.verify()


@pytest.mark.parametrize("name", ['pe"ople', "people; DROP SCHEMA x", "Größe", "%s ? $1"])
def test_any_name_is_a_name(name: str, world: World) -> None:
    opening: Callable[..., PostgresLedger] = PostgresLedger.open_or_create
    with opening(world.address(schema=name), Budget.of(1)) as ledger:
        ledger.charge(PART, "a question", "key")
        ledger.verify()
    assert world.run("SELECT count(*) FROM pg_namespace WHERE nspname !~ '^(pg_|public|info)'") == [(1,)]
