"""Where a policy's ledger is, and the whole path of a question with a ledger on PostgreSQL."""

import io
from pathlib import Path

import pytest

import confide
from confide.errors import BudgetError, LedgerError, LedgerMissing, ParameterError
from confide.ledger import PostgresPlace, check_export
from confide.policy import Policy
from confide.release import ledger_place
from confide.release.custody import books
from confide.release.custody.ledgers import exists
from tests.servers import PASSWORD_ONLY, PostgresServer

TEXT = """\
source: {t: t.parquet}
budget: {epsilon: 1}
unit: row
tables:
  t:
    columns:
      x: {range: [0, 10]}
"""
DATA = {"t": {"x": [1, 2, 3]}}
ADDRESS = "postgresql://ann:s3cret@host/db?schema=people"


def write(folder: Path, ledger: str | None = None) -> Policy:
    path = folder / "people.yaml"
    path.write_text(TEXT + (f"ledger: {ledger}\n" if ledger else ""))
    return Policy.load(path)


def test_a_file_beside_the_policy(tmp_path: Path) -> None:
    assert ledger_place(write(tmp_path), None) == tmp_path / "people.ledger"
    assert ledger_place(write(tmp_path, "x/y.ledger"), None) == tmp_path / "x" / "y.ledger"
    assert ledger_place(write(tmp_path), "z.ledger") == Path("z.ledger")


def test_other_addresses_are_refused_without_their_password(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="a ledger is a file, or a schema on PostgreSQL") as caught:
        ledger_place(write(tmp_path, "mysql://ann:s3cret@host/db"), None)
    assert "s3cret" not in str(caught.value)


def test_places_that_are_none(tmp_path: Path) -> None:
    policy = write(tmp_path)
    with pytest.raises(ParameterError, match="give a path or an address"):
        ledger_place(policy, 5)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="a user not known here"):
        ledger_place(policy, "~nobody-of-that-name/people.ledger")
    with pytest.raises(LedgerError, match="cannot be made"):
        books.create(policy, str(tmp_path / ("x" * 300)))


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="does not exist"):
        exists(tmp_path / "none" / "x.ledger")


def test_the_anchor_of_an_address_lies_beside_the_policy(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    place = ledger_place(write(tmp_path, ADDRESS), None)
    assert isinstance(place, PostgresPlace)
    assert (place.anchor, place.schema) == (tmp_path / "people.anchor", "people")
    assert ledger_place(write(tmp_path), ADDRESS) == place
    elsewhere = ledger_place(write(tmp_path, f"{ADDRESS}&anchor=far/a.anchor"), None)
    assert isinstance(elsewhere, PostgresPlace)
    assert elsewhere.anchor == tmp_path / "far" / "a.anchor"
    one, two = (ledger_place(Policy.parse_text(TEXT), ADDRESS.replace("s3cret", word)) for word in ("one", "two"))
    assert isinstance(one, PostgresPlace)
    assert isinstance(two, PostgresPlace)
    assert one.anchor == two.anchor, "the name of a file tells of a password"


def test_a_policy_does_not_show_a_password(tmp_path: Path) -> None:
    policy = write(tmp_path, ADDRESS)
    assert policy.ledger == ADDRESS
    assert "s3cret" not in repr(policy)


@pytest.fixture
def policy(postgres_server: PostgresServer, postgres_database: str, tmp_path: Path) -> Policy:
    pytest.importorskip("psycopg")
    postgres_server.create_role(PASSWORD_ONLY, "s3cret")
    postgres_server.run(f"CREATE SCHEMA people AUTHORIZATION {PASSWORD_ONLY}", postgres_database)
    return write(tmp_path, postgres_server.url(postgres_database, PASSWORD_ONLY, "s3cret", schema="people"))


def ask(policy: Policy, epsilon: str) -> str:
    with confide.open(policy, DATA, create=True) as session:
        return session.sql("SELECT COUNT(*) AS n FROM t", epsilon=epsilon).to_json()


def test_questions_are_paid_for_and_answered_from_there(policy: Policy) -> None:
    found = books.look(policy)
    assert (found.exists, found.entries, found.budget.left) == (False, 0, 1)
    with pytest.raises(LedgerMissing):
        books.read_lines(policy)
    first = ask(policy, "0.25")
    assert ask(policy, "0.25") == first
    with pytest.raises(BudgetError, match=r"ε = 0.75 is left"):
        ask(policy, "0.8")
    found = books.look(policy, epsilon="0.25")
    assert (found.exists, found.entries, found.budget.spent, found.answers_left) == (True, 3, 0.25, 3)
    assert [line.kind for line in books.read_lines(policy)] == ["opened", "charge"]
    stream = io.StringIO()
    assert books.export(policy, stream) == books.verify(policy) == check_export(stream.getvalue().splitlines()).head
    assert "s3cret" not in stream.getvalue() + repr(found)


def test_terms_that_differ_and_are_amended(policy: Policy, tmp_path: Path) -> None:
    ask(policy, "0.25")
    path = tmp_path / "people.yaml"
    path.write_text(path.read_text().replace("epsilon: 1", "epsilon: 2"))
    changed = Policy.load(path)
    with pytest.raises(LedgerError, match=r"asked for is ε = 2.*holds a budget of ε = 1"):
        ask(changed, "0.25")
    (difference,) = books.amend(changed)
    assert str(difference) == "the budget is ε = 1 in the ledger, and ε = 2 in the policy"
    ask(changed, "1.5")
    assert [line.kind for line in books.read_lines(changed)] == ["opened", "charge", "amendment", "charge"]


def test_a_lost_anchor_and_a_restored_database(
    policy: Policy, postgres_server: PostgresServer, postgres_database: str
) -> None:
    ask(policy, "0.25")
    with pytest.raises(LedgerError, match="nothing to restore"):
        books.restore_anchor(policy)
    postgres_server.run("UPDATE people.ledger SET incarnation = 'another server'", postgres_database)
    with pytest.raises(LedgerError, match="confide ledger restore-anchor"):
        books.look(policy)
    place, anchor = books.restore_anchor(policy)
    assert isinstance(place, PostgresPlace)
    assert anchor == place.anchor
    assert books.look(policy).budget.spent == 0.25
