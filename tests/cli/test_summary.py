"""The command `summary`."""

import json
from pathlib import Path

from tests.cli.conftest import Run


def test_a_table_is_shown_and_a_page_is_written(run: Run, policy: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = run("summary", policy, "person", "--epsilon", "0.5", "--out", page)
    assert done.exit_code == 0, done.output
    assert "income" in done.output
    assert f"written to {page}" in done.output
    assert "<svg" in page.read_text(encoding="utf-8")
    again = run("summary", policy, "person", "--epsilon", "0.5", "--out", tmp_path / "picture.svg")
    assert "asked before" in again.output
    assert (tmp_path / "picture.svg").read_text(encoding="utf-8").startswith("<svg")


def test_json_and_plan(run: Run, policy: Path) -> None:
    plan = json.loads(run("summary", policy, "person", "--epsilon", "0.5", "--plan", "--json").output)
    assert plan["budget"]["spent"] == 0
    assert "income" in {column["name"] for column in plan["columns"]}
    assert "quantiles" in run("summary", policy, "person", "--epsilon", "0.5", "--plan").output
    made = json.loads(run("summary", policy, "person", "--epsilon", "0.5", "--json").output)
    assert made["rows"]["low"] <= 2_000 <= made["rows"]["high"] + 200
    assert not made["stored"]


def test_what_is_refused(run: Run, policy: Path, tmp_path: Path) -> None:
    assert "--epsilon" in run("summary", policy, "person").output
    assert "say which" in run("summary", policy, "--epsilon", "0.5").output
    assert "--out" in run("summary", policy, "person", "--epsilon", "0.5", "--out", tmp_path / "page.pdf").output
