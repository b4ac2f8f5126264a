"""A small country made by the demo, for commands to work on."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from confide.cli.app import app
from confide.cli.census import make_census
from confide.cli.demo import POLICY

PEOPLE = 2_000

Run = Callable[..., Result]
Process = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run() -> Run:
    """Runs a command in this process."""

    def invoke(*arguments: object, text: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], input=text, prog_name="confide")

    return invoke


@pytest.fixture
def process(tmp_path: Path) -> Process:
    """Runs the command as a user does, in a process of its own and without a terminal."""

    def start(*arguments: object, text: str | None = None, **environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [command_path(), *map(str, arguments)],
            check=False,
            input=text,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**clean_environment(), **environment},
            timeout=120,
        )

    return start


def command_path() -> str:
    return str(Path(sys.executable).with_name("confide"))


def clean_environment() -> dict[str, str]:
    """The environment without what a developer or a continuous integration may have set for colours and widths."""
    decided = (
        "COLUMNS",
        "LINES",
        "NO_COLOR",
        "FORCE_COLOR",
        "PY_COLORS",
        "GITHUB_ACTIONS",
        "TERM",
        "CONFIDE_TRACEBACK",
    )
    return {name: value for name, value in os.environ.items() if name not in decided}


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a country without a ledger."""
    place = tmp_path_factory.mktemp("country")
    make_census(PEOPLE).write(place)
    text = POLICY.replace("PEOPLE", str(PEOPLE)).replace("VISITS", "6000")
    (place / "policy.yaml").write_text(text)
    return place


@pytest.fixture
def unused(made: Path, tmp_path: Path) -> Path:
    """A policy with its data in a folder of its own, and no ledger yet."""
    place = tmp_path / "demo"
    shutil.copytree(made, place)
    return place / "policy.yaml"


@pytest.fixture
def policy(unused: Path, run: Run) -> Path:
    """A policy with its data in a folder of its own, and a ledger on which nothing is spent."""
    assert run("ledger", "create", unused).exit_code == 0
    return unused
