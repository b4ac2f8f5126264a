"""The command `trust`."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.cli.conftest import Run

COUNT = "SELECT COUNT(*) AS n FROM person WHERE age > 64"
BY_REGION = "SELECT region, COUNT(*) AS n FROM person GROUP BY region"


@pytest.fixture
def twin(policy: Path) -> Path:
    """Every other person, twice: close to the data, and not them."""
    people = pl.read_parquet(policy.parent / "person.parquet").gather_every(2)
    place = policy.parent / "twin.parquet"
    pl.concat([people, people]).drop("person_id").write_parquet(place)
    return place


def decided(run: Run, *arguments: object) -> dict[str, Any]:
    result = run("trust", *arguments, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_one_query_gives_one_verdict_and_the_same_again_is_free(run: Run, policy: Path, twin: Path) -> None:
    asked = (policy, COUNT, "--synthetic", twin, "--within", "30%", "--epsilon", "1")
    result = run("trust", *asked)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("yes: the synthetic answer")
    assert "decided by optimal" in result.stdout
    assert "budget: ε 1 spent" in result.stdout
    again = decided(run, *asked)
    assert again["stored"] is True
    assert again["verdicts"][0]["trusted"] is True
    assert "asked before" in run("trust", *asked).stdout


def test_groups_and_lists_are_tables(run: Run, policy: Path, twin: Path) -> None:
    result = run("trust", policy, BY_REGION, "-s", f"person={twin}", "-w", "40", "-e", "0.5")
    assert result.exit_code == 0, result.output
    assert "region = N" in result.stdout
    assert "for 5 verdicts" in result.stdout
    found = decided(run, policy, COUNT, "SELECT MEDIAN(age) FROM person", "-s", twin, "-e", "0.5")
    assert [one["mechanism"] for one in found["verdicts"]][1] == "optimal"
    assert 0.5 < found["budget"]["spent"] <= 1


def test_a_plan_is_free_and_is_drawn(run: Run, policy: Path, twin: Path, tmp_path: Path) -> None:
    chart = tmp_path / "errors.html"
    result = run("trust", policy, COUNT, "-s", twin, "-e", "0.1", "--plan", "--plot", chart)
    assert result.exit_code == 0, result.output
    assert "a wrong verdict, by the gap between the answers" in result.stdout
    assert "exponential" in chart.read_text()
    found = decided(run, policy, COUNT, "-s", twin, "--plan", "--gap", "0", "--error", "1%")
    assert found["plans"][0]["errors"][0]["error"] <= 0.0101
    assert found["budget"]["spent"] == 0


def test_a_csv_file_serves_as_well(run: Run, policy: Path, twin: Path) -> None:
    place = twin.with_suffix(".csv")
    pl.read_parquet(twin).write_csv(place)
    asked = (COUNT, "-w", "30%", "-e", "1")
    from_csv, from_parquet = (decided(run, policy, *asked, "-s", file) for file in (place, twin))
    assert from_csv["verdicts"][0]["synthetic_answer"] == from_parquet["verdicts"][0]["synthetic_answer"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-e", "1"), "give the synthetic data"),
        (("-s", "TWIN"), "give --epsilon"),
        (("-s", "TWIN", "-e", "1", "--gap", "3"), "--plan"),
        (("-s", "TWIN", "-e", "1", "-w", "abc%"), "is not a distance"),
        (("-s", "TWIN", "-e", "1", "--mechanism", "magic"), "no decider"),
        (("-s", "TWIN", "-e", "1", "--prefer", "bold"), "balanced"),
        (("-s", "nowhere.parquet", "-e", "1"), "no file"),
        (("-s", "TWIN", "-s", "TWIN", "-e", "1"), "names its table"),
        (("-s", "TWIN", "-e", "1", "--plan", "--plot", "x.pdf"), "--plot"),
    ],
)
def test_wrong_usage_says_what_to_write(
    run: Run, policy: Path, twin: Path, options: tuple[str, ...], words: str
) -> None:
    typed = [str(twin) if option == "TWIN" else option for option in options]
    result = run("trust", policy, COUNT, *typed)
    assert result.exit_code in (1, 2)
    assert words in result.output
    assert json.loads(run("budget", policy, "--json").stdout)["spent"] == 0
