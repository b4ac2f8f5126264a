"""The command `init`."""

import gzip
import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from confide.errors import PolicyError
from confide.policy import Policy
from tests.cli.conftest import Run
from tests.servers import PostgresServer

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
        "tables": [
            {
                "name": "folk",
                "columns": [
                    {"name": name, "type": None} for name in ("person_id", "region", "age, in years", "income")
                ],
            }
        ],
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


@pytest.fixture
def office(tmp_path: Path) -> Path:
    path = tmp_path / "office.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE person (person_id BIGINT, born DATE)")
        connection.execute("CREATE TABLE visit (visit_id BIGINT, person_id BIGINT, cost DECIMAL(9, 2))")
        connection.execute("INSERT INTO person VALUES (739100001, DATE '1999-12-31')")
    return path


def test_init_takes_all_tables_of_a_database_or_one(run: Run, office: Path, tmp_path: Path) -> None:
    assert run("init", office).exit_code == 0
    text = office.with_suffix(".yaml").read_text()
    for words in (
        'source: "office.duckdb"',
        'ledger: "office.ledger"',
        "references: {person_id: person.person_id}    # guessed",
        "at_most: {rows: ____}",
        "such as person.person_id,",
        "cost: {range: [____, ____], grain: 0.01}",
    ):
        assert words in text
    assert "1999" not in text
    assert "7391" not in text
    assert run("init", office, "--table", "visit", "-o", tmp_path / "v.yaml").exit_code == 0
    assert "person.person_id" not in (tmp_path / "v.yaml").read_text()
    missing = run("init", office, "--table", "vist", "-o", tmp_path / "x.yaml")
    assert missing.exit_code == 1
    assert "has no table vist" in missing.stderr


def test_a_draft_of_several_tables_is_filled_in_to_a_policy(run: Run, office: Path) -> None:
    run("init", office)
    policy = office.with_suffix(".yaml")
    text = policy.read_text()
    for line, filled in {
        "epsilon: ____}": "epsilon: 1}",
        "unit: ____": "unit: person.person_id",
        "at_most: {rows: ____}": "at_most: {rows: 3}",
        "born: {range: [____, ____]}": "born: {range: [1900-01-01, 2030-12-31]}",
        "cost: {range: [____, ____]": "cost: {range: [0, 100]",
    }.items():
        assert line in text
        text = text.replace(line, filled)
    policy.write_text(text)
    result = run("check", policy)
    assert result.exit_code == 0, result.output
    assert Policy.load(policy).tables["visit"].references == {"person_id": ("person", "person_id")}


def test_init_names_each_file_and_refuses_names_that_clash(run: Run, csv: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table({"visit_id": [1], "cost": [2.5]}), tmp_path / "data" / "visits.parquet")
    (tmp_path / "data" / "notes.txt").write_text("not data")
    target = tmp_path / "all.yaml"
    assert run("init", csv, tmp_path / "data", "-o", target).exit_code == 0
    text = target.read_text()
    assert 'source:\n  people: "people.csv"\n  visits: "data/visits.parquet"\n' in text
    assert 'ledger: "all.ledger"' in text
    assert run("init", tmp_path / "data").exit_code == 0
    assert 'source: {visits: "visits.parquet"}' in (tmp_path / "data" / "policy.yaml").read_text()
    shutil.copy(csv, tmp_path / "data" / "People.csv")
    clash = run("init", csv, tmp_path / "data", "-o", tmp_path / "other.yaml")
    assert clash.exit_code == 1
    assert "would both be the table people" in clash.stderr


def test_the_parts_of_a_table_are_one_table(run: Run, tmp_path: Path) -> None:
    (tmp_path / "stays").mkdir()
    for part in range(2):
        pq.write_table(pa.table({"stay_id": [part], "days": [3]}), tmp_path / "stays" / f"part-{part}.parquet")
    assert run("init", tmp_path / "stays", "-o", tmp_path / "stays.yaml").exit_code == 0
    assert 'source: {stays: "stays"}' in (tmp_path / "stays.yaml").read_text()


def test_init_takes_a_schema_on_a_server(
    run: Run, tmp_path: Path, postgres_server: PostgresServer, postgres_database: str
) -> None:
    for statement in (
        "CREATE SCHEMA clinic",
        "CREATE TABLE clinic.person (id bigint PRIMARY KEY, name character varying(20), born date)",
        "CREATE TABLE clinic.visit (visit_id bigint, person_id bigint, cost numeric(8,2), at timestamptz)",
        "CREATE VIEW clinic.old AS SELECT * FROM clinic.person",
        f"INSERT INTO clinic.person VALUES (1, '{CANARY}', '1999-12-31')",
    ):
        postgres_server.run(statement, postgres_database)
    address = f"{postgres_server.url(postgres_database)}&schema=clinic"
    target = tmp_path / "clinic.yaml"
    result = run("init", address, "-o", target)
    assert result.exit_code == 0, result.output
    text = target.read_text()
    for words in (
        "schema=clinic",
        "references: {person_id: person.id}",
        "name: {values: [____]}",
        "at: {range: [____, ____]}    # fill in: the first and the last day",
        "  old:",
    ):
        assert words in text
    assert CANARY not in text
    assert "1999" not in text
    empty = run("init", f"{postgres_server.url(postgres_database)}&schema=nothing", "-o", tmp_path / "x.yaml")
    assert "the schema on the server has no tables" in empty.stderr
    both = run("init", address, target, "-o", tmp_path / "x.yaml")
    assert "give its address alone" in both.stderr


def test_init_takes_tables_of_spark(run: Run, spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame([(1, CANARY)], "person_id bigint, sex string")
    frame.createOrReplaceTempView("person")
    try:
        assert run("init", "spark", "--table", "person", "-o", tmp_path / "s.yaml").exit_code == 0
    finally:
        spark.catalog.dropTempView("person")
    text = (tmp_path / "s.yaml").read_text()
    assert 'source: "spark"' in text
    assert "sex: {values: [____]}" in text
    assert CANARY not in text
    pq.write_table(pa.table({"stay_id": [1], "days": [3]}), tmp_path / "stay.parquet")
    assert run("init", f"spark:{tmp_path}/stay.parquet", "-o", tmp_path / "f.yaml").exit_code == 0
    assert f'source: {{stay: "spark:{tmp_path}/stay.parquet"}}' in (tmp_path / "f.yaml").read_text()


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


def test_init_refuses_an_empty_folder_and_a_place_it_cannot_write(run: Run, csv: Path, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    assert "holds no data files" in run("init", tmp_path / "nothing").stderr
    assert "oracle:// is not known" in run("init", "oracle://host/x").stderr
    result = run("init", csv, "-o", tmp_path / "none" / "p.yaml")
    assert result.exit_code == 1
    assert "there is no folder" in result.stderr


# --- paid for ---------------------------------------------------------------------------------------------------------

PAID = ("--epsilon", "1", "--budget", "3", "--delta", "1e-9", "--unit", "row")


def test_bounds_and_lists_are_proposed_at_a_price(run: Run, made: Path, tmp_path: Path) -> None:
    shutil.copy(made / "person.parquet", tmp_path / "person.parquet")
    result = run("init", tmp_path / "person.parquet", *PAID)
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert "person.ledger holds what that cost: ε = " in said
    policy = tmp_path / "person.yaml"
    text = policy.read_text()
    assert "budget: {epsilon: 3, delta: 1e-9}" in text
    assert 'sex: {values: ["F", "M"]}    # proposed at ε = ' in text
    policy.write_text(text.replace("values: [____]", "type: text").replace("[____, ____]", "[0, 9]"))
    spent = json.loads(run("budget", policy, "--json").stdout)
    assert 0 < spent["spent"] <= 1
    assert run("check", policy, "--no-values").exit_code == 0


def test_nothing_is_paid_for_a_draft_that_cannot_be_written(run: Run, made: Path, tmp_path: Path) -> None:
    shutil.copy(made / "person.parquet", tmp_path / "person.parquet")
    (tmp_path / "person.yaml").write_text("mine")
    assert "not overwritten" in run("init", tmp_path / "person.parquet", *PAID).stderr
    assert not (tmp_path / "person.ledger").exists()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--epsilon", "1"), "--budget and --unit must be said first"),
        (("--epsilon", "1", "--budget", "3"), "--unit must be said first"),
        (("--budget", "3"), "--budget goes with --epsilon"),
        (("--epsilon", "x", "--budget", "3", "--unit", "row"), "epsilon"),
        (("--epsilon", "1", "--budget", "x", "--unit", "row"), "epsilon"),
        (("--epsilon", "1", "--budget", "3", "--unit", "people"), "there is no column people"),
    ],
)
def test_what_is_missing_for_a_price_is_said(run: Run, csv: Path, more: tuple[str, ...], words: str) -> None:
    result = run("init", csv, *more)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert [path.name for path in csv.parent.iterdir()] == ["people.csv"]
