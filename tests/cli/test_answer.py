"""The command `answer`."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Run


def test_answers_are_written_and_shown_and_the_same_again_is_free(run: Run, policy: Path, tmp_path: Path) -> None:
    out = tmp_path / "ages.parquet"
    asked = ("answer", policy, "--ranges", "age", "--marginals", 2, "--columns", "sex,region", "--epsilon", "0.5")
    done = run(*asked, "--out", out)
    assert done.exit_code == 0, done.output
    assert "ranges of age" in done.output
    table = pq.read_table(out)
    assert {"age_from", "age_to", "marginal", "sex", "count", "count_low", "count_high"} <= set(table.column_names)
    assert f"all {table.num_rows} answers in" in done.output
    again = json.loads(run(*asked, "--json").output)
    assert again["stored"]
    assert again["budget"]["spent"] == pytest.approx(0.5)
    assert len(again["rows"]) == table.num_rows
    csv = tmp_path / "ages.csv"
    assert run(*asked, "--out", csv).exit_code == 0
    assert csv.read_text().startswith('"age_from","age_to"')


def test_a_plan_is_free(run: Run, policy: Path) -> None:
    asked = ("answer", policy, "--prefixes", "income", "--bins", "income=10000", "--by", "sex", "--plan")
    plan = json.loads(run(*asked, "--epsilon", "0.5", "--json").output)
    assert plan["budget"]["spent"] == 0
    assert plan["groups"][0]["title"] == "sex × prefixes of income"
    found = json.loads(run(*asked, "--within", "500", "--json").output)
    assert found["worst"] <= 500
    assert "worst" in run(*asked, "--epsilon", "0.5", "--strategy", "hierarchy").output


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ((), "say what to count"),
        (("--columns", "sex"), "say how many are taken together"),
        (("--ranges", "age,"), "a column without a name"),
        (("--ranges", "age", "--bins", "5"), "is not by column"),
        (("--ranges", "age", "--within", "5"), "--within is for --plan"),
        (("--ranges", "age", "--out", "ages.txt"), ".parquet or .csv"),
        (("--ranges", "age", "--out", "nowhere/ages.csv"), "there is no folder"),
        (("--ranges", "age", "--strategy", "best"), "there is no strategy"),
        (("--ranges", "agee"), "has a column agee; did you mean age?"),
        (("--ranges", "age", "--by", "reason"), "has all of age, reason"),
        (("--ranges", "age", "--confidence", "95"), "0.95, or 95%"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_spent(
    run: Run, policy: Path, more: tuple[str, ...], words: str
) -> None:
    done = run("answer", policy, "--epsilon", "0.5", *more)
    assert done.exit_code == 2
    assert words in done.output
    assert json.loads(run("budget", policy, "--json").output)["spent"] == 0


def test_an_epsilon_is_needed(run: Run, policy: Path) -> None:
    assert "give --epsilon" in run("answer", policy, "--ranges", "age").output
    assert "not both" in run("answer", policy, "--ranges", "age", "--plan").output
