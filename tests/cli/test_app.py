"""The commands and their help."""

import re

import pytest

import confide
from tests.cli.conftest import Run

COMMANDS = ("demo", "init", "check", "plan", "sql", "budget", "ledger")


def test_version(run: Run) -> None:
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"confide {confide.__version__}\n")


def test_help_names_every_command_and_the_exit_codes(run: Run) -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert [name for name in COMMANDS if not re.search(rf"│ {name} ", result.stdout)] == []
    assert "0 done, 1 refused, 2 wrong usage" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    "command",
    [*COMMANDS[:-1], *(f"ledger {name}" for name in ("show", "verify", "export", "amend", "restore-anchor"))],
)
def test_every_command_has_help_and_json(run: Run, command: str) -> None:
    result = run(*command.split(), "--help")
    assert result.exit_code == 0
    assert "--json" in result.stdout


def test_the_options_of_a_question(run: Run) -> None:
    shown = run("sql", "--help").stdout
    for option in ("epsilon", "within", "confidence", "split", "bounds", "rows", "analyst", "ledger", "plot"):
        assert f"--{option}" in shown
