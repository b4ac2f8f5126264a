"""Commands write over nothing, links that lead nowhere too; where they cannot, what was paid for is said to be kept."""

import json
import subprocess
from pathlib import Path

import pytest

from confide.cli.output import KEPT
from tests.cli.conftest import Run, clean_environment, command_path

WRITING = [
    (("sql", "SELECT COUNT(*) AS n FROM person", "--out"), "a.csv"),
    (("sql", "SELECT COUNT(*) AS n FROM person", "--plot"), "a.html"),
    (("summary", "person", "--out"), "a.html"),
    (("answer", "--table", "person", "--marginals", "1", "--columns", "sex", "--out"), "a.csv"),
    (("answer", "--table", "person", "--marginals", "1", "--columns", "sex", "--out"), "a.parquet"),
    (("synthesize", "--table", "person", "--columns", "sex,region", "--marginals", "1", "--out"), "a.parquet"),
    (("synthesize", "--table", "person", "--columns", "sex,region", "--marginals", "1", "--save"), "a.ledger"),
]


@pytest.mark.parametrize(("command", "name"), WRITING)
@pytest.mark.parametrize("link", [False, True])
def test_what_is_there_is_never_written_over(
    run: Run, policy: Path, tmp_path: Path, command: tuple[str, ...], name: str, link: bool
) -> None:
    place, other = tmp_path / name, tmp_path / "elsewhere"
    if link:
        place.symlink_to(other)
    else:
        place.write_text("mine")
    first, *more = command
    result = run(first, policy, "--epsilon", "0.5", *more, place)
    assert result.exit_code == 1, result.output
    assert "not overwritten" in result.output.replace("\n", " ")
    assert json.loads(run("budget", policy, "--json").stdout)["spent"] == 0
    assert not other.exists()
    assert link or place.read_text() == "mine"


@pytest.mark.parametrize("more", [(), ("--json",)])
@pytest.mark.parametrize(
    "command",
    [
        ("sql", "SELECT COUNT(*) AS n FROM person"),
        ("summary", "person"),
        ("answer", "--table", "person", "--marginals", "1", "--columns", "sex"),
        ("synthesize", "--table", "person", "--columns", "sex,region", "--marginals", "1"),
        ("microdata", "--table", "person", "--marginal", "sex"),
    ],
)
def test_what_was_paid_for_and_cannot_be_shown_is_said_to_be_kept(
    run: Run, policy: Path, command: tuple[str, ...], more: tuple[str, ...]
) -> None:
    first, *rest = command
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [command_path(), first, str(policy), "--epsilon", "0.5", *rest, *more],
            check=False, stdout=full, stderr=subprocess.PIPE, text=True, env=clean_environment(), timeout=120,
        )  # fmt: skip
    assert result.returncode == 1
    assert KEPT in result.stderr
    assert json.loads(run("budget", policy, "--json").stdout)["spent"] > 0
