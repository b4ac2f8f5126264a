"""A budget never starts anew by accident: a ledger is named, and made only by whoever says so."""

import shutil
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import confide
from confide.errors import BudgetError, LedgerError, LedgerMissing, ParameterError, SourceError
from confide.policy import Policy
from tests.servers import PostgresServer

COUNT = "SELECT COUNT(*) AS n FROM t"
TEXT = "budget: {epsilon: 1}\nunit: row\ntables: {t: {columns: {x: {range: [0, 10]}}}}\n"
FRAME = pl.DataFrame({"x": [1, 2, 3]})
SOURCES = ("csv", "parquet", "duckdb")


def rules(**also: Any) -> dict[str, Any]:
    columns = {"x": {"range": [0, 10]}}
    return {"budget": {"epsilon": 1}, "unit": "row", "tables": {"t": {"columns": columns}}, **also}


def write(folder: Path, kind: str = "parquet", ledger: str | None = None) -> Path:
    """A policy file with its data beside it."""
    data = folder / f"t.{kind}"
    if kind == "csv":
        FRAME.write_csv(data)
    elif kind == "parquet":
        FRAME.write_parquet(data)
    else:
        with duckdb.connect(str(data)) as database:
            database.execute("CREATE TABLE t AS SELECT unnest([1, 2, 3]) AS x")
    path = folder / "people.yaml"
    path.write_text(f"source: {data.name}\n{TEXT}" + (f"ledger: {ledger}\n" if ledger else ""))
    return path


def spend(*arguments: Any, **keywords: Any) -> float:
    with confide.open(*arguments, **keywords) as session:
        session.sql(COUNT, epsilon=1)
        return session.budget.left


# --- frames -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("create", [False, True])
def test_frames_need_a_ledger_with_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, create: bool) -> None:
    monkeypatch.chdir(tmp_path)
    with_source = write(tmp_path).rename(tmp_path / "sourced.yaml")
    (tmp_path / "people.yaml").write_text(TEXT)
    for policy in (rules(), Policy.parse(rules()), TEXT, tmp_path / "people.yaml", with_source):
        with pytest.raises(LedgerError, match=r"must name its ledger.* write ledger: people\.ledger in it, or give"):
            confide.open(policy, {"t": FRAME}, create=create)
    with pytest.raises(LedgerError, match="must name its ledger"):
        confide.open(rules(source={"t": "t.parquet"}), create=create)
    assert not list(tmp_path.glob("*ledger*"))


def test_one_more_row_finds_the_same_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    named = rules(ledger="people.ledger")
    assert spend(named, {"t": FRAME}, create=True) == 0
    with confide.open(named, {"t": FRAME.vstack(FRAME[:1])}, create=True) as session, pytest.raises(BudgetError):
        session.sql(COUNT, epsilon="0.1")


def test_a_dict_in_another_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    named = rules(ledger="people.ledger")
    assert spend(named, {"t": FRAME}, create=True) == 0
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(LedgerMissing, match=str(tmp_path / "elsewhere" / "people.ledger")):
        confide.open(named, {"t": FRAME})


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SOURCES)
def test_a_ledger_is_never_made_by_opening(tmp_path: Path, kind: str) -> None:
    policy = write(tmp_path, kind)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(LedgerMissing) as caught:
        confide.open(policy)
    for words in (str(tmp_path / "people.ledger"), "confide ledger create", "create=True", "--ledger"):
        assert words in str(caught.value)
    assert sorted(tmp_path.iterdir()) == before
    assert spend(policy, create=True) == 0
    with confide.open(policy) as session, pytest.raises(BudgetError):
        session.sql("SELECT SUM(x) AS s FROM t", epsilon="0.1")
    with confide.open(policy, create=True) as session, pytest.raises(BudgetError):
        session.sql("SELECT SUM(x) AS s FROM t", epsilon="0.1")


@pytest.mark.parametrize("kind", SOURCES)
def test_renamed_mistyped_and_from_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    policy = write(tmp_path, kind)
    assert spend(policy, create=True) == 0
    renamed = policy.with_name("folk.yaml")
    shutil.copy(policy, renamed)
    for arguments in ((renamed,), (policy, None, tmp_path / "peple.ledger")):
        with pytest.raises(LedgerMissing):
            confide.open(*arguments)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for place in (policy, Path("../people.yaml")):
        with confide.open(place) as session:
            assert session.budget.left == 0


def test_a_renamed_policy_that_names_its_ledger_finds_it(tmp_path: Path) -> None:
    policy = write(tmp_path, ledger="books/people.ledger")
    (tmp_path / "books").mkdir()
    assert spend(policy, create=True) == 0
    with confide.open(policy.rename(tmp_path / "folk.yaml")) as session:
        assert session.budget.left == 0


def test_what_was_lost_is_not_made_again(tmp_path: Path) -> None:
    policy = write(tmp_path)
    assert spend(policy, create=True) == 0
    (tmp_path / "people.ledger").unlink()
    for create in (False, True):
        with pytest.raises(LedgerMissing, match="shows that it existed"):
            confide.open(policy, create=create)


def test_create_is_yes_or_no(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="create is True or False"):
        confide.open(write(tmp_path), create="no")  # type: ignore[arg-type]


# --- a ledger on PostgreSQL -------------------------------------------------------------------------------------------


def test_a_schema_is_never_made_by_opening(
    postgres_server: PostgresServer, postgres_database: str, tmp_path: Path
) -> None:
    pytest.importorskip("psycopg")
    policy = write(tmp_path, ledger=postgres_server.url(postgres_database, schema="people"))
    with pytest.raises(LedgerMissing, match=r"schema=people\. .*create=True"):
        confide.open(policy)
    assert not list(tmp_path.glob("*.anchor"))
    assert spend(policy, create=True) == 0
    with confide.open(policy, create=True) as session:
        assert session.budget.left == 0
    with pytest.raises(LedgerMissing, match="schema=peple"):
        confide.open(policy, ledger=postgres_server.url(postgres_database, schema="peple"))
    postgres_server.run("DROP SCHEMA people CASCADE", postgres_database)
    for create in (False, True):
        with pytest.raises(LedgerMissing, match="shows that it existed"):
            confide.open(policy, create=create)


@pytest.mark.parametrize("odd", [5, b"people.ledger", ["people.ledger"], "~nobody-of-this-name/people.ledger", "~\x00"])
def test_a_ledger_is_given_by_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError, match="ledger"):
        confide.open(rules(), {"t": FRAME}, ledger=odd, create=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("odd", [5, b"people.yaml", ["people.yaml"], None])
def test_a_policy_is_a_file_or_a_dict(odd: Any) -> None:
    with pytest.raises(ParameterError, match="policy"):
        confide.open(odd)


@pytest.mark.parametrize("odd", [5, "t", [FRAME]])
def test_frames_are_given_by_table(tmp_path: Path, odd: Any) -> None:
    with pytest.raises(SourceError, match="by table"):
        confide.open(rules(), odd, ledger=tmp_path / "people.ledger", create=True)


@pytest.mark.parametrize("frame", [FRAME, FRAME.to_arrow(), FRAME.to_pandas(), FRAME.lazy(), FRAME.to_dict()])
def test_one_frame_is_that_of_the_only_private_table(tmp_path: Path, frame: Any) -> None:
    with confide.open(rules(), frame, ledger=tmp_path / "people.ledger", create=True) as people:
        assert people.sql(COUNT, epsilon=1).to_dicts()
    with pytest.raises(LedgerError, match="must name its ledger"):
        confide.open(rules(), frame)


def test_one_frame_is_not_enough_for_two_private_tables(tmp_path: Path) -> None:
    policy = rules()
    policy["tables"] = {**policy["tables"], "u": {"columns": {"x": {"range": [0, 9]}}}}
    with pytest.raises(SourceError, match=r"2 private tables; give frames by table: data={'t': frame, 'u': frame}"):
        confide.open(policy, FRAME, ledger=tmp_path / "people.ledger", create=True)
    with pytest.raises(SourceError, match="the policy does not name"):
        confide.open(rules(), {"person": FRAME}, ledger=tmp_path / "people.ledger", create=True)
