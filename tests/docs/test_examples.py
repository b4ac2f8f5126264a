"""Every example of the README and the documentation is run."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import confide
from confide.cli.census import make_census
from confide.cli.demo import POLICY
from confide.errors import QueryError
from confide.release import Session
from tests.docs.fences import PAGES, ROOT, Fence, commands, fences, runnable, statements

_LINK = re.compile(r"\[[^\]]*\]\(([^)#:]+)(#[^)]*)?\)")
_NUMBER = re.compile(r"[0-9][0-9,.]*(e-?[0-9]+)?|[0-9a-f]{64}")


@pytest.fixture(scope="module")
def census() -> Iterator[Session]:
    """The demo's country, smaller, with test noise: what the SQL examples ask about."""
    made = make_census(3_000)
    policy = POLICY.replace("PEOPLE", "3000").replace("VISITS", "9000").replace("epsilon: 3", "epsilon: 1000")
    rules = confide.Policy.parse_text(policy)
    data = {name: getattr(made, name) for name in ("person", "visit", "region_name")}
    with confide.testing.open(rules, data, seed=1) as session:
        yield session


@pytest.mark.parametrize("page", [page for page in PAGES if runnable(page)], ids=lambda page: page.name)
def test_examples_run_in_the_order_of_their_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples of one page are one walk in an empty folder: Python is one program, and so is the terminal."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "example"}
    for fence in runnable(page):
        if fence.language == "python":
            exec(compile("\n" * fence.line + fence.text, str(page), "exec"), names)
        else:
            _run_commands(fence, tmp_path)


@pytest.mark.parametrize("fence", fences("sql"), ids=str)
def test_sql_examples_are_answered_or_refused_as_they_say(fence: Fence, census: Session) -> None:
    for statement in statements(fence):
        if statement.refused is None:
            answer = census.sql(statement.sql, epsilon=1)
            assert len(answer) >= 0
            assert answer.values, statement.sql
            plan = census.plan(statement.sql, epsilon=1)
            assert [column.name for column in plan.columns] == [column.name for column in answer.values]
        else:
            with pytest.raises(QueryError) as caught:
                census.sql(statement.sql, epsilon=1)
            assert statement.refused.lower() in str(caught.value).lower(), statement.sql


def _run_commands(fence: Fence, folder: Path) -> None:
    """Each line shown must be printed, in order, but for the numbers in it."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "NO_COLOR": "1"}
    environment.pop("COLUMNS", None)
    for command in commands(fence):
        if command.line.startswith(("make ", "git ", "cd ", "pip ", ". ")):
            continue  # what sets the project up, not what it does
        done = subprocess.run(
            command.line, check=False, shell=True, cwd=folder, env=environment, capture_output=True, text=True,
            timeout=120,
        )  # fmt: skip
        both = done.stdout + done.stderr
        printed = iter([_masked(line) for line in both.splitlines()])
        for line in command.output:
            if line.strip() not in ("", "..."):
                assert _masked(line) in printed, f"{fence}: {command.line}\nis missing: {line}\n{both}"
        refused = any(line.startswith("refused:") for line in command.output)
        assert done.returncode == (1 if refused else 0), f"{fence}: {command.line}\n{done.stderr}"


def _masked(line: str) -> str:
    """A line with numbers and the lengths of gaps taken out."""
    line = re.sub(r"[─━█░]+", "─", line)
    return " ".join(_NUMBER.sub("#", line).split())


@pytest.mark.parametrize("fence", [f for f in fences("yaml") if "budget:" in f.text], ids=str)
def test_policies_that_are_shown_are_policies(fence: Fence) -> None:
    policy = confide.Policy.parse_text(fence.text)
    assert confide.Policy.parse_text(policy.to_yaml()) == policy


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for match in _LINK.finditer(page.read_text()):
        assert (page.parent / match[1]).exists(), f"{page.name} links to {match[1]}"


def test_there_are_examples_to_run() -> None:
    assert sum(len(statements(fence)) for fence in fences("sql")) > 30
    assert sum(len(commands(fence)) for fence in fences("console")) > 5
    assert {fence.page.name for fence in fences("python")} >= {"README.md", "ledger.md", "noise.md"}


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "index.md" or f"({page.name})" in index
