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
    assert "this is a file of data (draft a policy from it: confide init" in result.stderr


# --- what is typed in the wrong place ---------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["sql", "plan"])
def test_sql_in_the_place_of_the_policy(run: Run, policy: Path, command: str) -> None:
    result = run(command, "SELECT COUNT(*) AS n FROM person", policy, "-e", "1")
    assert result.exit_code == 1
    assert "this is SQL (the policy comes first, and then the SQL)" in result.stderr


def test_a_number_in_quotes_or_with_commas(run: Run, unused: Path) -> None:
    text = unused.read_text()
    unused.write_text(text.replace("grain: 0.01", 'grain: "0.01"').replace("size: 2000", "size: 2,000"))
    said = " ".join(run("check", unused).stderr.split())
    assert "expected a number, found the text '0.01' (write it without quotes: 0.01)" in said
    assert "expected a number, found the text '2,000' (write it without commas: 2000)" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("sql", "POLICY", "SELECT COUNT(*) AS n FROM person", "-e", "0,1"), "written with a point, not a comma"),
        (("sql", "POLICY", "SELECT COUNT(*) AS n FROM person WHERE sex = F", "-e", "1"), "in single quotes: 'F'"),
        (("synthesize", "POLICY", "-k", "two", "-e", "1"), "write for example 3"),
        (("synthesize", "POLICY", "-k", "2", "-e", "1"), "(at the terminal --table person)"),
        (("ledger", "show", "POLICY", "--last", "x"), "write for example 20"),
        (
            ("trust", "POLICY", "SELECT COUNT(*) FROM person", "-s", "persn=x.csv", "-e", "1"),
            "the policy has no such table",
        ),
        (("demo", "--dir", "POLICY"), "this is a file; name a folder"),
        (("ledger", "export", "POLICY", "--output", "none/x.jsonl"), "there is no folder none; make it first"),
        (("init", "POLICY"), "if it is a policy, run: confide check"),
        (("init", "host=localhost dbname=x"), "is given by its address: postgresql://"),
    ],
)
def test_each_mistake_says_what_to_write(
    run: Run, policy: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(policy.parent)
    result = run(*(str(policy) if part == "POLICY" else part for part in arguments))
    assert result.exit_code in (1, 2), result.output
    assert words in " ".join(result.stderr.split())


def test_a_budget_that_does_not_hold_tells_its_amounts_apart(run: Run, policy: Path) -> None:
    policy.write_text(policy.read_text().replace("unit:", 'analysts: {ann: 0.5, "*": 2.5}\nunit:'))
    assert run("ledger", "amend", policy).exit_code == 0
    assert run("sql", policy, "SELECT COUNT(*) AS m FROM person", "-e", "2.4").exit_code == 0
    said = run("sql", policy, "SELECT COUNT(*) AS n FROM person", "-e", "2.5", "-a", "ann").stderr
    sentences = " ".join(said.split()).split(". ")
    assert sum("whole budget" in sentence for sentence in sentences) == 1
    assert sum("analyst 'ann' may spend" in sentence for sentence in sentences) == 1
    assert not any("whole budget" in sentence and "ann" in sentence for sentence in sentences)
    assert any(sentence.startswith("Nothing was charged; a question at ε ≤ 0.5") for sentence in sentences)
