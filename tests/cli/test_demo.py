"""The demo: what it shows is true, it can be run again, and it overwrites nothing."""

import json
import re
import tempfile
from pathlib import Path

import pytest

from confide.cli import demo
from confide.cli.demo import POLICY, DemoCell, _strip
from confide.cli.demo_questions import HIGHEST_INCOME, QUESTIONS
from confide.policy import Number, Policy
from confide.release import open_for_tests
from tests.cli.conftest import Process, Run


def test_the_demo_tells_its_story(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    result = run("demo", "--dir", folder, "--people", "3000")
    assert result.exit_code == 0, result.output
    for words in (
        "3,000 people",
        "unit: person.person_id",
        "Before asking",
        "A plan is free",
        *(f"{place} of 6 · {question.title}" for place, question in enumerate(QUESTIONS, start=1)),
        "95% interval",
        "truth",
        "refused: ",
        "nothing was read, and nothing was charged",
        "the very same answer, and free",
        "intervals hold the truth",
        "confide ledger show",
    ):
        assert words in result.stdout, words
    spent = [float(number) for number in re.findall(r"ε = ([0-9.]+) spent of 3", result.stdout)]
    assert len(spent) == 6
    assert spent == sorted(spent)
    assert spent[0] < spent[-1] < 3
    assert {file.name for file in folder.iterdir()} >= {"policy.yaml", "person.parquet", "policy.ledger"}


def test_the_demo_again_is_free_and_the_same(run: Run, tmp_path: Path) -> None:
    first = json.loads(run("demo", "--dir", tmp_path, "--people", "1000", "--json").stdout)
    again = json.loads(run("demo", "--dir", tmp_path, "--people", "1000", "--json").stdout)
    assert first["budget"] == again["budget"]
    assert [question["cells"] for question in first["questions"]] == [q["cells"] for q in again["questions"]]
    shown = run("demo", "--dir", tmp_path, "--people", "1000").stdout
    assert shown.count("answered in an earlier run, so free now") == 6


def test_most_intervals_hold_the_truth(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a fixed seed of test noise, so that it never fails by chance; about one in twenty misses."""
    monkeypatch.setattr(demo, "open_session", lambda policy, create: open_for_tests(policy, seed=5))
    story = json.loads(run("demo", "--dir", tmp_path, "--people", "20000", "--json").stdout)
    cells = [cell for question in story["questions"] for cell in question["cells"]]
    assert len(cells) >= 30
    assert sum(not cell["holds"] for cell in cells) <= 0.1 * len(cells)
    assert all(cell["low"] <= cell["estimate"] <= cell["high"] for cell in cells)
    assert "rows never leave the data" in story["refused"]["message"]


def test_a_miss_is_marked(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DemoCell, "holds", False)
    shown = run("demo", "--dir", tmp_path, "--people", "1000").stdout
    assert "✗ missed" in shown
    assert "✓" not in shown
    assert re.search(r"0 of [0-9]+ intervals hold the truth", shown)


def test_the_demo_overwrites_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "person.parquet").write_text("mine")
    result = run("demo", "--dir", tmp_path, "--people", "1000")
    assert result.exit_code == 1
    assert "person.parquet and is not overwritten" in result.stderr.replace("\n", " ")
    assert [file.name for file in tmp_path.iterdir()] == ["person.parquet"]
    assert (tmp_path / "person.parquet").read_text() == "mine"


def test_the_demo_leaves_nothing_behind_without_a_folder(process: Process, tmp_path: Path) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    done = process("demo", "--people", "1000", TMPDIR=str(place))
    assert done.returncode == 0, done.stderr
    assert "confide demo --dir demo" in done.stdout
    assert list(place.iterdir()) == []
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("people", ["3", "abc", "-5", "1e9"])
def test_a_country_has_a_sensible_size(run: Run, people: str) -> None:
    assert run("demo", f"--people={people}").exit_code == 2


def test_a_folder_that_cannot_be_made_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("demo", "--dir", tmp_path / "file" / "demo", "--people", "1000")
    assert result.exit_code == 1
    assert result.stderr.startswith("refused: ")
    assert tempfile.gettempdir() in result.stderr.replace("\n", "")


def test_the_policy_and_the_questions_agree_on_the_bounds() -> None:
    policy = Policy.parse_text(POLICY.replace("PEOPLE", "1000").replace("VISITS", "3000"))
    income = policy.tables["person"].columns["income"]
    assert isinstance(income, Number)
    assert income.high == HIGHEST_INCOME


@pytest.mark.parametrize(("truth", "place"), [(0.0, 3), (50.0, 11), (100.0, 19), (-500.0, 0), (500.0, 22)])
def test_the_picture_shows_where_the_truth_lies(truth: float, place: int) -> None:
    picture = _strip(DemoCell((), "n", 50, 0, 100, truth)).plain
    assert len(picture) == 23
    assert picture.index("◆") == place
