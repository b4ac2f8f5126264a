"""The command `synthesize`."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import confide
from confide import cli
from confide.cli import synthesize as synthesizing
from tests.cli.conftest import Run, clean_environment, command_path
from tests.synthesis.fitting import pretend_to_fit

ARGUMENTS = ("--table", "person", "--columns", "region,sex", "--marginals", "2", "--table-rows", "5")


@pytest.fixture(autouse=True)
def _no_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_to_fit(monkeypatch)


def made(run: Run, policy: Path, *more: object) -> dict[str, Any]:
    result = run("synthesize", policy, "--epsilon", "0.5", *ARGUMENTS, *more, "--json")
    assert result.exit_code == 0, result.output
    facts: dict[str, Any] = json.loads(result.stdout)
    return facts


def test_records_are_written_and_the_second_time_is_free(run: Run, policy: Path, tmp_path: Path) -> None:
    out, kept = tmp_path / "twin.parquet", tmp_path / "twin.synthetic"
    facts = made(run, policy, "--out", out, "--records", "50", "--save", kept)
    assert facts["stored"] is False
    assert facts["columns"] == ["region", "sex"]
    assert facts["budget"]["spent"] == pytest.approx(0.5)
    assert pq.read_table(out).num_rows == 50
    assert len(confide.load_synthetic(kept)) == facts["records"]
    again = made(run, policy)
    assert again["stored"] is True
    assert again["budget"] == facts["budget"]


@pytest.mark.parametrize("name", ["report.html", "report.png", "card.yaml"])
def test_a_report_is_written_beside(run: Run, policy: Path, tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    result = run("synthesize", policy, "--epsilon", "0.5", *ARGUMENTS, "--report", place)
    assert result.exit_code == 0, result.output
    assert place.stat().st_size > 500
    for words in ("measured marginals are kept", "pairs of columns were measured together", "report in"):
        assert words in " ".join(result.stdout.split())
    assert made(run, policy, "--report", tmp_path / f"again_{name}")["report"]["marginals"]
    refused = run("synthesize", policy, "--epsilon", "0.5", *ARGUMENTS, "--report", place)
    assert refused.exit_code == 1
    assert "--report" in refused.output


def test_it_is_said_what_was_made_and_how_to_write_it(run: Run, policy: Path) -> None:
    result = run("synthesize", policy, "--epsilon", "0.5", *ARGUMENTS)
    assert result.exit_code == 0
    for words in ("synthetic person", "1 2-way marginal", "cost ε = 0.5", "--out FILE.parquet"):
        assert words in result.stdout


def test_a_plan_is_free_and_says_what_would_be_measured(run: Run, policy: Path) -> None:
    result = run("synthesize", policy, "--epsilon", "0.5", *ARGUMENTS, "--plan")
    assert result.exit_code == 0, result.output
    for words in ("noise σ", "measure every count of 2 columns", "measure every count of 1 table", "cost ε = 0.5"):
        assert words in result.stdout
    facts = json.loads(run("synthesize", policy, "--epsilon", "0.5", *ARGUMENTS, "--plan", "--json").stdout)
    assert [step["answers"] for step in facts["steps"]] == [7, 10]
    assert facts["budget"]["spent"] == 0


def test_every_kind_of_workload_is_taken(run: Run, policy: Path) -> None:
    base = (
        "synthesize",
        policy,
        "--epsilon",
        "0.2",
        "--table",
        "person",
        "--columns",
        "region,sex,age",
        "--bins",
        "age=10",
    )
    more = ("--sql", "SELECT COUNT(*) FROM person WHERE sex = 'F'", "--thresholds", "1-of-2", "--history", "--json")
    result = run(*base, *more)
    assert result.exit_code == 0, result.output
    assert "1-of-2 thresholds" in json.loads(result.stdout)["workload"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--table", "person"), "say what the data are for"),
        (("--thresholds", "three", "--table", "person"), "write for example 2-of-3"),
        (("--thresholds", "3-of-2", "--table", "person"), "write r from 1 to 2"),
        (("--marginals", "x", "--table", "person"), "not a whole number"),
        (("--marginals", "2",), "say which table"),
        (("--marginals", "2", "--table", "person", "--bins", "age"), "--bins age=10"),
        (("--marginals", "2", "--table", "person", "--out", "twin.csv"), "written as .parquet"),
        (("--marginals", "2", "--table", "person", "--out", "no/twin.parquet"), "there is no folder"),
        (("--marginals", "2", "--table", "person", "--records", "0"), "whole number from 1"),
        (("--marginals", "99", "--table", "person"), "smaller k"),
    ],
)  # fmt: skip
def test_wrong_usage_is_refused_before_anything_is_spent(
    run: Run, policy: Path, arguments: tuple[str, ...], words: str
) -> None:
    result = run("synthesize", policy, "--epsilon", "0.5", *arguments)
    assert result.exit_code == 2
    assert words in result.output.replace("\n", " ")
    assert json.loads(run("budget", policy, "--json").stdout)["spent"] == 0


def test_an_epsilon_is_needed(run: Run, policy: Path) -> None:
    result = run("synthesize", policy, *ARGUMENTS)
    assert result.exit_code == 2
    assert "--epsilon" in result.output


def test_what_was_spent_is_said_when_it_is_stopped(
    run: Run, policy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from contextlib import contextmanager  # noqa: PLC0415

    def stop(what: str, *_: object) -> None:
        if what.startswith("round 1"):
            raise KeyboardInterrupt

    @contextmanager
    def bar(what: str) -> Any:
        yield stop

    monkeypatch.setattr(synthesizing, "waiting", bar)
    result = run("synthesize", policy, "--epsilon", "0.5", *ARGUMENTS)
    assert result.exit_code == 130
    assert re.fullmatch(r"stopped: ε = .* of ε = 0.5 was spent; the same call goes on .*", cli.stop_line())
    spent = json.loads(run("budget", policy, "--json").stdout)["spent"]
    assert 0 < spent < 0.5


def test_a_bar_shows_rounds_loss_and_time_on_a_terminal(policy: Path) -> None:
    """In a process of its own with a terminal, stopped by Ctrl-C: it says what was spent and ends with 130."""
    mine, theirs = pty.openpty()
    command = [command_path(), "synthesize", str(policy), "-e", "0.5", "--table", "person", "--marginals", "2",
               "--columns", "region,sex,age", "--bins", "age=10", "--select", "marginals", "--rounds", "3"]  # fmt: skip
    environment = {**clean_environment(), "TERM": "xterm", "COLUMNS": "160"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    seen, deadline = "", time.monotonic() + 240
    stopped = False
    while time.monotonic() < deadline:
        ready, _, _ = select.select([mine], [], [], 0.2)
        if ready:
            try:
                seen += os.read(mine, 65536).decode(errors="replace")
            except OSError:
                break
        if not stopped and "round 1 of 3" in seen and "loss" in seen:
            process.send_signal(signal.SIGINT)
            stopped = True
        if process.poll() is not None and not ready:
            break
    os.close(mine)
    assert process.wait(timeout=30) in (0, 130)
    assert "round 1 of 3" in seen
    assert "loss" in seen
    if process.returncode == 130:
        assert seen.count("was spent") == 1


def test_a_method_is_asked_for_by_name_with_what_it_takes(run: Run, policy: Path) -> None:
    named = ("--table", "person", "--columns", "region,sex", "--marginals", "2", "--method")
    plain = run("synthesize", policy, "--epsilon", "0.5", *named, "mst", "--plan")
    assert plain.exit_code == 0, plain.output
    assert "mst: single columns" in plain.stdout
    model = run("synthesize", policy, "--epsilon", "0.5", *named, "aim", "--megabytes", "2", "--plan")
    assert "a model of 2 MB at most" in model.stdout
    network = run("synthesize", policy, "--epsilon", "0.5", *named, "privbayes", "--degree", "1", "--plan")
    assert "at most 1 parents" in network.stdout
    wrong = run("synthesize", policy, "--epsilon", "0.5", *named, "mst", "--degree", "1", "--plan")
    assert wrong.exit_code != 0
    assert "has no degree" in wrong.output
