"""The commands `init` and `check`."""

import gzip
import json
import shlex
import shutil
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


# --- init -------------------------------------------------------------------------------------------------------------


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


# --- check ------------------------------------------------------------------------------------------------------------


def test_check_says_what_is_public_and_what_a_unit_may_contribute(run: Run, unused: Path) -> None:
    result = run("check", unused)
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    for words in (
        "whoever a value of person.person_id stands for",
        "ε = 3, δ = 1e-09 in all",
        "one unit may contribute 12 rows, in 4 groups",
        "0 to 150000, rounded to 10",
        "groups above a threshold",
        "region_name: public",
        "opens, and has the columns that the policy names",
        "confide ledger create",
        "the policy holds, and its data fits",
    ):
        assert words in said
    assert not unused.with_suffix(".ledger").exists()


def test_check_as_json(run: Run, unused: Path) -> None:
    facts = json.loads(run("check", unused, "--json").stdout)
    assert facts["budget"] == {"epsilon": 3.0, "delta": 1e-9, "analysts": {}}
    assert {table["name"]: table["at_most"]["rows"] for table in facts["tables"] if table["private"]} == {
        "person": 1,
        "visit": 12,
    }
    assert facts["ledger"]["exists"] is False
    assert "error" not in facts


def test_check_tells_the_state_of_the_ledger(run: Run, policy: Path) -> None:
    run("sql", policy, "SELECT COUNT(*) AS n FROM person", "-e", "0.5")
    assert "3 entries, ε 0.5 spent of 3" in run("check", policy).stdout


def test_check_lists_what_is_worth_a_second_look(run: Run, unused: Path) -> None:
    unused.write_text(unused.read_text().replace("epsilon: 3", "epsilon: 30"))
    result = run("check", unused)
    assert result.exit_code == 0
    assert "worth a second look: ε = 30 is large" in result.stdout


def test_check_reports_every_problem_of_a_policy_with_its_line(run: Run, policy: Path) -> None:
    broken = policy.read_text().replace("range: [0, 105]", "rnage: [0, 105]").replace("[0, 150000]", "[150000, 0]")
    policy.write_text(broken)
    result = run("check", policy)
    assert result.exit_code == 1
    assert "has 2 problems" in result.stderr
    assert "did you mean 'range'?" in result.stderr
    problems = json.loads(run("check", policy, "--json").stdout)["error"]["problems"]
    lines = broken.splitlines()
    assert ["rnage" in lines[problems[0]["line"] - 1], "income" in lines[problems[1]["line"] - 1]] == [True, True]


def test_check_refuses_data_that_does_not_fit_but_still_describes(run: Run, policy: Path) -> None:
    policy.write_text(policy.read_text().replace("      sex:", "      shoe_size: {range: [0, 60]}\n      sex:"))
    result = run("check", policy)
    assert result.exit_code == 1
    assert "shoe_size" in result.stderr
    assert "does not fit" in result.stdout
    assert "0 to 60" in result.stdout
    report = run("check", policy, "--json")
    assert report.exit_code == 1
    facts = json.loads(report.stdout)
    assert facts["error"]["kind"] == "source"
    assert facts["tables"]


def test_check_refuses_a_ledger_that_is_gone(run: Run, policy: Path) -> None:
    run("sql", policy, "SELECT COUNT(*) AS n FROM person", "-e", "0.5")
    policy.with_suffix(".ledger").unlink()
    result = run("check", policy)
    assert result.exit_code == 1
    assert "is gone" in result.stderr
    assert json.loads(run("check", policy, "--json").stdout)["error"]["kind"] == "ledger missing"


def test_check_of_a_policy_without_files(run: Run, policy: Path) -> None:
    policy.write_text("\n".join(line for line in policy.read_text().splitlines() if not line.startswith("source")))
    result = run("check", policy)
    assert result.exit_code == 0
    assert "not looked at" in result.stdout


@pytest.mark.parametrize(("name", "words"), [("nothing.yaml", "there is no such file"), (".", "this is a folder")])
@pytest.mark.parametrize("command", ["check", "plan", "sql", "budget", "show"])
def test_a_wrong_path_is_refused_by_every_command(
    run: Run, tmp_path: Path, command: str, name: str, words: str
) -> None:
    more = {"plan": ["SELECT 1"], "sql": ["SELECT 1", "-e", "1"]}.get(command, [])
    first = ["ledger", command] if command == "show" else [command]
    result = run(*first, tmp_path / name, *more)
    assert result.exit_code == 1
    assert words in result.stderr


def test_data_given_as_a_policy_is_refused(run: Run, csv: Path, made: Path, tmp_path: Path) -> None:
    assert run("check", csv).exit_code == 1
    shutil.copy(made / "person.parquet", tmp_path / "person.parquet")
    result = run("check", tmp_path / "person.parquet")
    assert result.exit_code == 1
    assert "not UTF-8 text" in result.stderr
