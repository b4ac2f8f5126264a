"""The command `check`."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import PEOPLE, Run


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


def test_check_says_how_the_data_fit_and_for_whom(run: Run, unused: Path) -> None:
    unused.write_text(unused.read_text().replace("sex: {values: [F, M]}", "sex: {values: [female, male]}"))
    result = run("check", unused)
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert "for the custodian's eyes only" in said
    assert "WARNING: person.sex: NONE of the 2 declared values (female, male) occurs" in said
    assert "the policy holds, but its data does not fit it" in said
    facts = json.loads(run("check", unused, "--json").stdout)["examination"]
    assert "for the custodian's eyes only" in facts["for"]
    sex = next(column for column in facts["tables"][0]["columns"] if column["name"] == "sex")
    assert (sex["outside"], sex["absent"]) == (PEOPLE, ["female", "male"])
    quick = run("check", unused, "--no-values")
    assert "custodian's eyes" not in quick.stdout
    assert "the policy holds, and its data has its columns" in quick.stdout
    assert "examination" not in json.loads(run("check", unused, "--no-values", "--json").stdout)


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


def test_data_given_as_a_policy_is_refused(run: Run, made: Path, tmp_path: Path) -> None:
    csv = tmp_path / "people.csv"
    csv.write_text("a,b\n1,2\n")
    assert run("check", csv).exit_code == 1
    shutil.copy(made / "person.parquet", tmp_path / "person.parquet")
    result = run("check", tmp_path / "person.parquet")
    assert result.exit_code == 1
    assert "not UTF-8 text" in result.stderr
