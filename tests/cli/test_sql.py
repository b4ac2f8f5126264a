"""The commands `plan` and `sql`."""

import json
import math
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from confide.release.answer import picture
from tests.cli.conftest import PEOPLE, Run

COUNT = "SELECT COUNT(*) AS n FROM person"
BY_REGION = "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM person GROUP BY region"
PER_PERSON = "SELECT AVG(total) AS a FROM (SELECT person_id, SUM(cost) AS total FROM visit GROUP BY person_id)"


def answered(run: Run, *arguments: object, text: str | None = None) -> dict[str, Any]:
    result = run(*arguments, "--json", text=text)
    assert result.exit_code == 0, result.output
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def spent(run: Run, policy: Path) -> float:
    return float(answered(run, "budget", policy)["spent"])


# --- plan -------------------------------------------------------------------------------------------------------------


def test_a_plan_is_free_and_says_what_it_needs(run: Run, policy: Path) -> None:
    result = run("plan", policy, BY_REGION, "--epsilon", "0.5")
    assert result.exit_code == 0
    for words in ("expected ±", "discrete gaussian", "cost ε = 0.5", "5 groups", "protects one person.person_id"):
        assert words in result.stdout
    assert spent(run, policy) == 0


def test_a_plan_within_a_width_finds_the_smallest_epsilon(run: Run, policy: Path) -> None:
    plan = answered(run, "plan", policy, COUNT, "--within", "50")
    (column,) = plan["columns"]
    assert column["half_width"] <= 50
    smaller = answered(run, "plan", policy, COUNT, "--epsilon", plan["epsilon"] * 0.97)
    assert smaller["columns"][0]["half_width"] > 50


def test_a_plan_takes_widths_per_column_and_shares(run: Run, policy: Path) -> None:
    plan = answered(run, "plan", policy, BY_REGION, "--within", "n=60,age=5%", "--rows", "100,000")
    by_name = {column["name"]: column["half_width"] for column in plan["columns"]}
    assert by_name["n"] <= 60
    even = answered(run, "plan", policy, BY_REGION, "--epsilon", "1", "--split", "n=1,age=1")
    most = answered(run, "plan", policy, BY_REGION, "--epsilon", "1", "--split", "n=9,age=1")
    assert most["columns"][0]["half_width"] < even["columns"][0]["half_width"]


def test_a_plan_that_the_budget_does_not_hold_says_so(run: Run, policy: Path) -> None:
    result = run("plan", policy, COUNT, "--epsilon", "9")
    assert result.exit_code == 0
    assert "the budget does not hold this" in result.stdout


# --- sql --------------------------------------------------------------------------------------------------------------


def test_an_answer_has_intervals_and_a_cost(run: Run, policy: Path) -> None:
    result = run("sql", policy, BY_REGION, "--epsilon", "1")
    assert result.exit_code == 0
    for words in ("region", "0.95 interval", "cost ε = 1", "has more rows than count", "budget: ε 1 spent of 3"):
        assert words in result.stdout
    assert all(f"\n{region} " in result.stdout for region in "NESWC")
    assert result.stderr == ""


def test_the_same_question_again_is_free_and_the_same(run: Run, policy: Path) -> None:
    first = answered(run, "sql", policy, BY_REGION, "--epsilon", "1")
    again = answered(run, "sql", policy, BY_REGION.replace(", ", " ,\n "), "--epsilon", "1.0")
    assert (first["stored"], again["stored"]) == (False, True)
    assert first["rows"] == again["rows"]
    assert first["budget"] == again["budget"]
    shown = run("sql", policy, BY_REGION, "--epsilon", "1")
    assert "cost nothing" in shown.stdout


def test_json_is_one_document_with_rows_and_meaning(run: Run, policy: Path) -> None:
    answer = answered(run, "sql", policy, BY_REGION, "--epsilon", "1", "--confidence", "90%")
    assert answer["confidence"] == 0.9
    assert [row["region"] for row in answer["rows"]] == list("NESWC")
    for row in answer["rows"]:
        assert row["n_low"] <= row["n"] <= row["n_high"]
        assert row["age_low"] <= row["age"] <= row["age_high"]
    assert answer["assumes"] == {"n": "at_most", "age": "at_most"}
    assert math.isclose(answer["budget"]["spent"], 1)


def test_within_asks_at_the_epsilon_that_is_needed(run: Run, policy: Path) -> None:
    answer = answered(run, "sql", policy, COUNT, "--within", "100")
    (row,) = answer["rows"]
    assert (row["n_high"] - row["n_low"]) / 2 <= 100
    assert abs(row["n"] - PEOPLE) < 600  # far more than any noise at this width


def test_a_question_comes_from_standard_input_or_a_file(run: Run, policy: Path, tmp_path: Path) -> None:
    given = answered(run, "sql", policy, "-", "-e", "0.1", text=f"\ufeff{COUNT}\n")
    file = tmp_path / "question.sql"
    file.write_text(f"-- how many?\n{COUNT}")
    read = answered(run, "sql", policy, f"@{file}", "-e", "0.1")
    assert read["rows"] == given["rows"]
    assert read["stored"] is True


def test_bounds_narrow_an_inner_query(run: Run, policy: Path) -> None:
    wide = answered(run, "plan", policy, PER_PERSON, "-e", "1")
    narrow = answered(run, "plan", policy, PER_PERSON, "-e", "1", "--bounds", "total=0:2000")
    assert narrow["columns"][0]["half_width"] < wide["columns"][0]["half_width"] / 5
    assert answered(run, "sql", policy, PER_PERSON, "-e", "1", "--bounds", "total=0:2000")["rows"]


def test_a_mechanism_may_be_named(run: Run, policy: Path) -> None:
    sql = "SELECT MEDIAN(age) AS med, COUNT(*) AS n FROM person"
    plan = answered(run, "plan", policy, sql, "-e", "1", "--mechanism", "med=pair")
    assert plan["columns"][0]["mechanism"] == "pair"
    wrong = run("plan", policy, sql, "-e", "1", "--mechanism", "med=magic")
    assert wrong.exit_code == 2
    assert "there is no mechanism 'magic'" in wrong.stderr


def test_each_analyst_has_answers_and_a_cap_of_their_own(run: Run, policy: Path) -> None:
    policy.write_text(policy.read_text().replace("unit:", 'analysts: {ann: 0.5, "*": 0.2}\nunit:'))
    assert run("ledger", "amend", policy).exit_code == 0
    first = answered(run, "sql", policy, COUNT, "-e", "0.2", "--analyst", "ann")
    other = answered(run, "sql", policy, COUNT, "-e", "0.2", "--analyst", "bob")
    assert not other["stored"]
    assert first["budget"]["cap"] == 0.5
    refused = run("sql", policy, "SELECT COUNT(*) AS m FROM visit", "-e", "0.2", "--analyst", "bob")
    assert refused.exit_code == 1
    assert "Everybody without a cap of their own, together, may spend ε = 0.2" in " ".join(refused.stderr.split())
    again = run("sql", policy, COUNT, "-e", "0.2", "--analyst", "bobby")
    assert again.exit_code == 1, "a new name is not a new cap"
    misspelt = run("sql", policy, "SELECT COUNT(*) AS m FROM visit", "-e", "0.2", "--analyst", "Ann ")
    assert misspelt.exit_code == 2
    assert "is spelled 'ann' in the policy" in " ".join(misspelt.stderr.split())


def test_another_ledger_may_be_named(run: Run, unused: Path, tmp_path: Path) -> None:
    policy, other = unused, tmp_path / "other.ledger"
    for command in ("sql", "plan"):
        refused = run(command, policy, COUNT, "-e", "0.2", "--ledger", other)
        assert refused.exit_code == 1
        said = " ".join(refused.stderr.split())
        assert f"there is no ledger at {other}" in said
        assert f"confide ledger create {policy} --ledger {other}" in said
    assert run("ledger", "create", policy, "--ledger", other).exit_code == 0
    answered(run, "sql", policy, COUNT, "-e", "0.2", "--ledger", other)
    assert other.exists()
    assert not policy.with_suffix(".ledger").exists()


# --- charts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "start"), [("a.svg", b"<svg"), ("a.png", b"\x89PNG")])
def test_a_chart_is_drawn(run: Run, policy: Path, tmp_path: Path, name: str, start: bytes) -> None:
    chart = tmp_path / name
    result = run("sql", policy, BY_REGION, "-e", "1", "--plot", chart)
    assert result.exit_code == 0, result.output
    assert str(chart) in result.stdout.replace("\n", "")
    assert chart.read_bytes().lstrip().startswith(start)


def test_a_page_needs_no_network_where_it_can_be_whole(run: Run, policy: Path, tmp_path: Path) -> None:
    assert find_spec("vl_convert") is not None
    chart = tmp_path / "a.html"
    result = run("sql", policy, COUNT, "-e", "1", "--plot", chart)
    assert result.exit_code == 0, result.output
    page = chart.read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "src=" not in page[:5_000]


def test_a_page_without_the_converter_is_drawn_all_the_same(
    run: Run, policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picture, "find_spec", lambda name: None)
    chart = tmp_path / "a.html"
    assert run("sql", policy, COUNT, "-e", "1", "--plot", chart).exit_code == 0
    assert "vega" in chart.read_text()


@pytest.mark.parametrize("name", ["a.pdf", "missing/a.html", "."])
def test_a_chart_that_cannot_be_drawn_is_refused_before_anything_is_spent(run: Run, policy: Path, name: str) -> None:
    result = run("sql", policy, COUNT, "-e", "1", "--plot", name)
    assert result.exit_code == 2
    assert "--plot" in result.stderr
    assert spent(run, policy) == 0


def test_pictures_need_a_converter_and_say_so(run: Run, policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture, "find_spec", lambda name: None)
    result = run("sql", policy, COUNT, "-e", "1", "--plot", "a.png")
    assert result.exit_code == 2
    assert "confide[plot]" in result.stderr
    assert spent(run, policy) == 0


# --- wrong things -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["abc", "0", "-1", "nan", "inf", "1e-400", "1e308", "", "0x1"])
def test_a_wrong_epsilon_is_wrong_usage_and_spends_nothing(run: Run, policy: Path, epsilon: str) -> None:
    result = run("sql", policy, COUNT, f"--epsilon={epsilon}")
    assert result.exit_code == 2
    assert "epsilon" in result.stderr
    assert "Give a number above 0" in result.stderr
    assert spent(run, policy) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give --epsilon"),
        (("-e", "1", "-w", "5"), "not both"),
        (("-e", "1", "--confidence", "abc"), "--confidence 'abc' is not a number"),
        (("-e", "1", "--confidence", "1"), "not between 0 and 1"),
        (("-e", "1", "--confidence", "nan"), "not between 0 and 1"),
        (("-e", "1", "--split", "x=1"), "the answer's columns are n"),
        (("-e", "1", "--split", "n"), "write for example --split n=1,avg=3"),
        (("-e", "1", "--split", "n=1,n=2"), "each column once"),
        (("-e", "1", "--split", "n=-1"), "split[n] = '-1' is refused"),
        (("-e", "1", "--bounds", "n=1"), "a low and a high end"),
        (("-e", "1", "--bounds", "n=a:b"), "must be two numbers"),
        (("-w", "abc"), "is not a width"),
        (("-w", "0"), "is not a width"),
        (("-w", "n=5,n=6"), "each column once"),
        (("-w", "1", "--rows", "many"), "--rows 'many' is not a whole number"),
        (("-w", "1%", "--rows", "0"), "is not a number of rows"),
    ],
)
def test_wrong_options_are_wrong_usage(run: Run, policy: Path, arguments: tuple[str, ...], words: str) -> None:
    result = run("sql", policy, COUNT, *arguments)
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    assert result.stderr.startswith("wrong usage: ")
    assert spent(run, policy) == 0


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("", "the query is empty"),
        ("SELEC 1", "only SELECT"),
        ("SELECT COUNT( FROM person", "does not parse"),
        ("SELECT COUNT(*) FROM person; SELECT 1", "one SELECT at a time"),
        ("DROP TABLE person", "only SELECT is answered"),
        ("SELECT * FROM person", "rows"),
        ("SELECT COUNT(*) FROM persons", "did you mean person?"),
        ("SELECT STRING_AGG(job, ',') FROM person", "is not answered"),
        ("SELECT COUNT(*) FROM person WHERE " + "(" * 5_000 + "age > 1" + ")" * 5_000, "nested"),
    ],
)
def test_sql_that_is_not_answered_is_refused_and_spends_nothing(run: Run, policy: Path, sql: str, words: str) -> None:
    result = run("sql", policy, "-", "-e", "1", text=sql)
    assert result.exit_code == 1
    assert result.stderr.startswith("refused: ")
    assert words in result.stderr
    assert result.stdout == ""
    assert spent(run, policy) == 0


def test_five_megabytes_of_sql_are_refused_at_once(run: Run, policy: Path) -> None:
    result = run(
        "sql", policy, "-", "-e", "1", text="SELECT COUNT(*) FROM person WHERE age > 1 " + "OR age > 2 " * 500_000
    )
    assert result.exit_code == 1
    assert "characters" in result.stderr


def test_a_question_that_is_not_text_is_wrong_usage(run: Run, policy: Path, tmp_path: Path) -> None:
    assert run("sql", policy, "-", "-e", "1", text=b"\xff\xfe\x00").exit_code == 2
    missing = run("sql", policy, f"@{tmp_path / 'nothing.sql'}", "-e", "1")
    assert missing.exit_code == 2
    assert "cannot be read: No such file" in missing.stderr.replace("\n", " ")


def test_more_than_the_budget_is_refused_with_numbers(run: Run, policy: Path) -> None:
    result = run("sql", policy, COUNT, "-e", "4")
    assert result.exit_code == 1
    for words in ("would cost", "is left", "Nothing was charged", "would fit"):
        assert words in result.stderr
    report = run("sql", policy, COUNT, "-e", "4", "--json")
    assert json.loads(report.stdout)["error"]["kind"] == "budget"


def test_a_changed_budget_is_refused_with_what_to_do(run: Run, policy: Path) -> None:
    answered(run, "sql", policy, COUNT, "-e", "0.1")
    policy.write_text(policy.read_text().replace("epsilon: 3", "epsilon: 4"))
    result = run("sql", policy, COUNT, "-e", "0.1")
    assert result.exit_code == 1
    assert f"confide ledger amend {policy}" in result.stderr.replace("\n", "")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda place: (place / "visit.parquet").unlink(), "does not exist"),
        (lambda place: (place / "visit.parquet").write_bytes(b""), "empty"),
        (
            lambda place: (place / "visit.parquet").write_bytes((place / "visit.parquet").read_bytes()[:-50]),
            "truncated",
        ),
        (lambda place: (place / "visit.parquet").write_text("day,reason\n1,2\n"), "Parquet"),
    ],
)
def test_data_that_cannot_be_used_is_refused(
    run: Run, policy: Path, damage: Callable[[Path], object], words: str
) -> None:
    damage(policy.parent)
    result = run("sql", policy, COUNT, "-e", "1")
    assert result.exit_code == 1
    assert result.stderr.startswith("refused: ")
    assert words in result.stderr
    assert json.loads(run("budget", policy, "--json").stdout)["spent"] == 0


# --- files ------------------------------------------------------------------------------------------------------------

GROUPS = "SELECT region, COUNT(*) AS n FROM person GROUP BY region"
SCRIPT = f"-- one; comment\n{GROUPS};\nSELECT * FROM person;\nSELECT COUNT(*) AS n FROM person WHERE region = 'N'"


@pytest.mark.parametrize("kind", ["csv", "parquet", "json", "arrow"])
def test_an_answer_is_written_with_all_digits(run: Run, policy: Path, tmp_path: Path, kind: str) -> None:
    place = tmp_path / f"n.{kind}"
    result = run("sql", policy, GROUPS, "-e", "0.5", "--out", place)
    assert result.exit_code == 0, result.output
    rows = json.loads(run("sql", policy, GROUPS, "-e", "0.5", "--json").stdout)["rows"]
    match kind:
        case "csv":
            found = pl.read_csv(place).to_dicts()
        case "parquet":
            found = pl.read_parquet(place).to_dicts()
        case "arrow":
            found = pl.read_ipc(place).to_dicts()
        case _:
            found = json.loads(place.read_text())["rows"]
    assert found == rows
    again = run("sql", policy, GROUPS, "-e", "0.5", "--out", place)
    assert again.exit_code == 1
    assert "not overwritten" in again.stderr.replace("\n", " ")


@pytest.mark.parametrize("out", ["n.txt", "nowhere/n.csv", "."])
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_spent(run: Run, policy: Path, out: str) -> None:
    assert run("sql", policy, GROUPS, "-e", "0.5", "--out", out).exit_code == 2
    assert spent(run, policy) == 0


def test_several_questions_of_a_file_stop_at_the_first_refusal(run: Run, policy: Path, tmp_path: Path) -> None:
    script = tmp_path / "questions.sql"
    script.write_text(SCRIPT)
    result = run("sql", policy, f"@{script}", "-e", "0.5", "--out", tmp_path / "n.csv")
    assert result.exit_code == 1
    assert "question 1 of 3" in result.stdout
    assert "budget: " in result.stdout
    assert "questions 3 to 3 were not asked" in result.stderr.replace("\n", " ")
    assert sorted(path.name for path in tmp_path.glob("*.csv")) == ["n-1.csv"]
    assert spent(run, policy) == 0.5


def test_several_questions_go_on_if_told_to(run: Run, policy: Path, tmp_path: Path) -> None:
    script = tmp_path / "questions.sql"
    script.write_text(SCRIPT)
    result = run("sql", policy, f"@{script}", "-e", "0.5", "--keep-going", "--json")
    assert result.exit_code == 1
    first, refused, last = map(json.loads, result.stdout.splitlines())
    assert first["sql"].endswith(GROUPS)
    assert refused["error"]["kind"] == "query"
    assert last["budget"]["spent"] == pytest.approx(spent(run, policy))
    assert 0.5 < spent(run, policy) <= 1
    assert run("sql", policy, f"@{script}", "-e", "0.5", "--plot", tmp_path / "a.svg").exit_code == 2


@pytest.mark.parametrize("piped", [False, True])
def test_a_question_that_is_typed_or_piped_is_one(run: Run, policy: Path, piped: bool) -> None:
    text = f"{GROUPS}; {GROUPS}"
    result = run("sql", policy, "-" if piped else text, "-e", "0.5", text=text)
    assert result.exit_code == 1
    assert "more than one statement" in result.stderr
    assert spent(run, policy) == 0
