"""The command `init`."""

import gzip
import json
import shlex
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from confide.errors import PolicyError
from confide.policy import Policy
from tests.cli.conftest import Run

CANARY = "CANARY-7391"


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(f'person_id,region,"age, in years",income\n1,{CANARY},33,100.5\n2,{CANARY},44,NA\n')
    return path


def test_init_writes_a_draft_that_is_refused_until_it_is_filled_in(run: Run, csv: Path) -> None:
    result = run("init", csv)
    assert result.exit_code == 0, result.output
    policy = csv.with_suffix(".yaml")
    text = policy.read_text()
    for words in ("people.csv", "person_id: {type: id}", "region: ____", '"age, in years": ____', "unit: ____"):
        assert words in text
    assert CANARY not in text + result.output
    assert "confide check" in result.stdout
    refused = run("check", policy)
    assert refused.exit_code == 1
    assert "blank" in refused.stderr
    with pytest.raises(PolicyError):
        Policy.load(policy)


def test_a_draft_that_is_filled_in_is_a_policy_of_its_data(run: Run, csv: Path) -> None:
    run("init", csv)
    policy = csv.with_suffix(".yaml")
    filled = (
        policy.read_text()
        .replace("epsilon: ____", "epsilon: 1")
        .replace("unit: ____", "unit: row")
        .replace("region: ____", "region: {type: text}")
        .replace('"age, in years": ____', '"age, in years": {range: [0, 115]}')
        .replace("income: ____", "income: {range: [0, 1000], grain: 0.5}")
    )
    policy.write_text(filled)
    result = run("check", policy)
    assert result.exit_code == 0, result.output
    assert run("ledger", "create", policy).exit_code == 0
    assert csv.with_suffix(".ledger").exists()
    assert run("sql", policy, 'SELECT AVG("age, in years") AS age FROM people', "-e", "1").exit_code == 0


def test_init_does_not_overwrite(run: Run, csv: Path) -> None:
    policy = csv.with_suffix(".yaml")
    policy.write_text("mine")
    result = run("init", csv)
    assert result.exit_code == 1
    assert "not overwritten" in result.stderr
    assert policy.read_text() == "mine"


def test_init_names_the_data_from_where_the_policy_is(run: Run, csv: Path, tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    target = tmp_path / "policies" / "p.yaml"
    report = run("init", csv, "--output", target, "--table", "folk", "--json")
    assert report.exit_code == 0
    assert json.loads(report.stdout) == {
        "policy": str(target),
        "table": "folk",
        "columns": [{"name": name, "type": None} for name in ("person_id", "region", "age, in years", "income")],
        "blanks": 5,
    }
    assert "../people.csv" in target.read_text()


def test_what_to_type_next_can_be_typed(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "our people.csv"
    data.write_text("x\n1\n")
    shown = run("init", data).stdout.splitlines()[-1]
    assert shlex.split(shown) == ["confide", "check", str(tmp_path / "our people.yaml")]


def test_init_reads_the_schema_of_parquet_and_of_compressed_text(run: Run, csv: Path, tmp_path: Path) -> None:
    table = pa.table({"id": [1], "day": pa.array([0], pa.date32()), "cost": [1.5], "ok": [True], "what": [CANARY]})
    pq.write_table(table, tmp_path / "visits-2024.parquet")
    assert run("init", tmp_path / "visits-2024.parquet").exit_code == 0
    text = (tmp_path / "visits-2024.yaml").read_text()
    for words in (
        "visits_2024:",
        "id: {type: id}",
        "day: {range: [____, ____]}",
        "grain: ____",
        "values: [false, true]",
    ):
        assert words in text
    assert CANARY not in text
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress(csv.read_bytes()))
    assert run("init", packed).exit_code == 0
    assert "region: ____" in (tmp_path / "packed.yaml").read_text()


def test_init_takes_one_table_of_a_database(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "office.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE person (person_id BIGINT, born DATE)")
        connection.execute("CREATE TABLE visit (person_id BIGINT, cost DECIMAL(9, 2))")
    several = run("init", path)
    assert several.exit_code == 1
    assert "person, visit" in several.stderr
    assert run("init", path, "--table", "visit").exit_code == 0
    assert "cost: {range: [____, ____], grain: 0.01}" in path.with_suffix(".yaml").read_text()
    missing = run("init", path, "--table", "vist", "-o", tmp_path / "x.yaml")
    assert missing.exit_code == 1
    assert "has no table vist" in missing.stderr


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("missing.csv", None, "does not exist"),
        ("empty.csv", b"", "empty"),
        ("blank.csv", b"\n\n", "empty"),
        ("twice.csv", b"a,a\n1,2\n", "twice"),
        ("binary.csv", bytes(range(128, 256)) * 9, "is it a CSV file"),
        ("cut.parquet", b"PAR1 no more", "truncated"),
        ("odd.duckdb", b"not a database", "not a DuckDB file"),
        ("notes.txt", b"a,b", "not of a known kind"),
    ],
)
def test_init_refuses_what_is_not_data(run: Run, tmp_path: Path, name: str, content: bytes | None, words: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    result = run("init", path)
    assert result.exit_code == 1
    assert words in result.stderr.replace("\n", " ")
    assert result.stderr.startswith("refused: ")
    assert not path.with_suffix(".yaml").exists()


def test_init_refuses_a_folder_and_a_place_it_cannot_write(run: Run, csv: Path, tmp_path: Path) -> None:
    assert "is a folder" in run("init", tmp_path).stderr
    result = run("init", csv, "-o", tmp_path / "none" / "p.yaml")
    assert result.exit_code == 1
    assert "No such file or directory" in result.stderr
