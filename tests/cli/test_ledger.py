"""The commands `budget` and `ledger`."""

import hashlib
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import Run

COUNT = "SELECT COUNT(*) AS n FROM person"


@pytest.fixture
def spent(run: Run, policy: Path) -> Path:
    """A policy under which three questions were asked."""
    for analyst, epsilon in (("ann", "0.5"), ("bob", "0.25"), ("", "0.25")):
        assert run("sql", policy, COUNT, "-e", epsilon, "-a", analyst).exit_code == 0
    return policy


def test_a_budget_before_a_ledger_was_made(run: Run, unused: Path) -> None:
    result = run("budget", unused)
    assert result.exit_code == 1
    assert f"confide ledger create {unused}" in " ".join(result.stderr.split())
    assert not unused.with_suffix(".ledger").exists()


def test_a_ledger_is_made_once(run: Run, unused: Path) -> None:
    made = run("ledger", "create", unused)
    assert made.exit_code == 0
    assert "a budget of ε = 3, δ = 1e-09, and nothing spent" in " ".join(made.stdout.split())
    assert run("sql", unused, COUNT, "-e", "0.5").exit_code == 0
    again = run("ledger", "create", unused)
    assert again.exit_code == 1
    assert "there is already something at" in again.stderr
    assert json.loads(run("budget", unused, "--json").stdout)["spent"] == 0.5
    unused.with_suffix(".ledger").unlink()
    lost = run("ledger", "create", unused)
    assert lost.exit_code == 1
    assert "shows that it existed" in " ".join(lost.stderr.split())


def test_a_budget_says_what_is_spent_and_what_fits(run: Run, spent: Path) -> None:
    result = run("budget", spent, "--epsilon", "0.1")
    for words in ("% spent", "ε = 3 at δ = 1e-09", "one call", "up to ε", "calls at ε = 0.1"):
        assert words in result.stdout
    facts = json.loads(run("budget", spent, "--epsilon", "0.5", "--json").stdout)
    assert 0.5 < facts["spent"] < 1
    assert facts["answers_left"] > 5


def test_a_budget_with_two_accounts_shows_what_each_leaves(run: Run, unused: Path) -> None:
    unused.write_text(unused.read_text().replace("delta: 1e-9", "delta: 1e-9, accounting: either"))
    assert "in either account" in run("ledger", "create", unused).stdout
    planned = " ".join(run("plan", unused, COUNT, "-e", "0.5").stdout.split())
    assert "room for 6 more like this in the pure account, or 30 in the concentrated account" in planned
    assert json.loads(run("sql", unused, COUNT, "-e", "0.1", "--account", "concentrated", "--json").stdout)["cost"][
        "rho"
    ]
    facts = json.loads(run("budget", unused, "-e", "0.5", "--json").stdout)
    assert facts["answers_by_account"] == {"pure": 0, "concentrated": 30}
    result = " ".join(run("budget", unused, "-e", "0.5").stdout.split())
    assert "one call up to ε 0.4" in result
    assert "in the pure account, or ε 2." in result
    assert "about 30 calls at ε = 0.5" in result
    assert "either account may hold the next call" in result
    assert run("sql", unused, COUNT, "-e", "1", "--account", "gold").exit_code != 0
    assert run("ledger", "verify", unused).exit_code == 0
    assert "held in either of two accounts" in " ".join(run("check", unused).stdout.split())


def test_a_budget_of_an_analyst_with_a_cap(run: Run, policy: Path) -> None:
    policy.write_text(policy.read_text().replace("unit:", 'analysts: {ann: 0.5, "*": 2.5}\nunit:'))
    assert run("ledger", "amend", policy).exit_code == 0
    run("sql", policy, COUNT, "-e", "0.5", "-a", "ann")
    result = run("budget", policy, "-a", "ann")
    assert "100% spent" in result.stdout
    assert "analyst 'ann' may spend ε = 0.5" in result.stdout
    facts = json.loads(run("budget", policy, "-a", "ann", "--json").stdout)
    assert (facts["cap"], facts["left"]) == (0.5, 0.0)
    assert json.loads(run("budget", policy, "-a", "bob", "--json").stdout)["left"] > 2


@pytest.mark.parametrize("epsilon", ["abc", "0", "-1", "nan", "inf"])
def test_a_budget_refuses_a_wrong_epsilon(run: Run, policy: Path, epsilon: str) -> None:
    assert run("budget", policy, f"--epsilon={epsilon}").exit_code == 2


def test_show_lists_who_asked_what_for_how_much(run: Run, spent: Path) -> None:
    result = run("ledger", "show", spent)
    assert result.exit_code == 0
    assert "(opened)" in result.stdout
    for analyst, epsilon in (("ann", "0.5"), ("bob", "0.25")):
        assert any(analyst in line and epsilon in line and COUNT in line for line in result.stdout.splitlines())
    assert "7 entries" in result.stdout


def test_show_takes_the_newest(run: Run, spent: Path) -> None:
    facts = json.loads(run("ledger", "show", spent, "--last", "2", "--json").stdout)
    assert facts["entries"] == 7
    assert [entry["analyst"] for entry in facts["newest"]] == ["bob", ""]
    assert all(entry["answered"] and entry["what"] == f"sql: {COUNT}" for entry in facts["newest"])
    for wrong in ("0", "-1", "abc"):
        assert run("ledger", "show", spent, f"--last={wrong}").exit_code == 2


def test_show_cannot_be_made_to_steer_the_terminal(run: Run, policy: Path) -> None:
    assert run("sql", policy, f"{COUNT} -- [bold]\x1b[2J\x07", "-e", "0.1").exit_code == 0
    shown = run("ledger", "show", policy).stdout
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "[bold]\\x1b[2J\\x07" in shown


def test_a_ledger_that_was_never_made_is_refused(run: Run, unused: Path) -> None:
    for command in ("show", "verify", "export", "amend", "restore-anchor"):
        result = run("ledger", command, unused)
        assert result.exit_code == 1, command
        assert "there is no ledger" in result.stderr
        assert "confide ledger create" in " ".join(result.stderr.split())


def test_verify_walks_the_chain(run: Run, spent: Path) -> None:
    result = run("ledger", "verify", spent)
    assert result.exit_code == 0
    assert "the ledger is whole" in result.stdout
    facts = json.loads(run("ledger", "verify", spent, "--json").stdout)
    assert facts["entries"] == 7
    assert facts["head"] in result.stdout


def test_verify_refuses_a_ledger_that_was_tampered_with(run: Run, spent: Path) -> None:
    path = spent.with_suffix(".ledger")
    with sqlite3.connect(path) as connection:
        (body,) = connection.execute("SELECT body FROM entry WHERE sequence = 2").fetchone()
        assert b'"analyst":"ann"' in body
        connection.execute("UPDATE entry SET body = ? WHERE sequence = 2", (body.replace(b"ann", b"eve"),))
    connection.close()
    result = run("ledger", "verify", spent)
    assert result.exit_code == 1
    assert "altered" in result.stderr
    assert json.loads(run("ledger", "verify", spent, "--json").stdout)["error"]["kind"] == "ledger damaged"


def test_a_ledger_that_was_set_back_is_refused(run: Run, spent: Path) -> None:
    path, old = spent.with_suffix(".ledger"), spent.with_suffix(".old")
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    shutil.copy(path, old)
    run("sql", spent, "SELECT COUNT(*) AS m FROM visit", "-e", "0.5")
    for name in ("-wal", "-shm"):
        Path(f"{path}{name}").unlink(missing_ok=True)
    shutil.copy(old, path)
    result = run("sql", spent, "SELECT COUNT(*) AS m FROM visit", "-e", "0.5")
    assert result.exit_code == 1
    assert json.loads(run("budget", spent, "--json").stdout)["error"]["kind"] == "ledger rolled back"


@pytest.mark.parametrize("content", [b"", b"not a ledger", bytes(8192)])
def test_what_is_not_a_ledger_is_refused(run: Run, spent: Path, content: bytes) -> None:
    path = spent.with_suffix(".ledger")
    for name in ("-wal", "-shm"):
        Path(f"{path}{name}").unlink(missing_ok=True)
    path.write_bytes(content)
    result = run("budget", spent)
    assert result.exit_code == 1
    assert result.stderr.startswith("refused: ")


def test_an_export_can_be_added_up_by_anybody(run: Run, spent: Path, tmp_path: Path) -> None:
    result = run("ledger", "export", spent)
    assert result.exit_code == 0
    before = bytes(32)
    for line in result.stdout.splitlines():
        record = json.loads(line)
        body = json.dumps(record["entry"], sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
        before = hashlib.sha256(before + body).digest()
        assert before.hex() == record["hash"]
    assert before.hex() in result.stderr
    file = tmp_path / "ledger.jsonl"
    written = json.loads(run("ledger", "export", spent, "-o", file, "--json").stdout)
    assert written == {"file": str(file), "entries": 7, "head": before.hex()}
    assert file.read_text() == result.stdout
    again = run("ledger", "export", spent, "-o", file)
    assert again.exit_code == 1
    assert "not overwritten" in again.stderr


def test_an_export_that_fails_leaves_no_half(run: Run, unused: Path, tmp_path: Path) -> None:
    file = tmp_path / "ledger.jsonl"
    assert run("ledger", "export", unused, "-o", file).exit_code == 1
    assert not file.exists()


def test_amend_puts_a_changed_policy_on_the_record(run: Run, spent: Path) -> None:
    assert "nothing to change" in run("ledger", "amend", spent).stdout
    text = spent.read_text().replace("epsilon: 3", "epsilon: 4").replace("unit:", 'analysts: {ann: 1, "*": 2}\nunit:')
    spent.write_text(text)
    warned = run("budget", spent)
    assert warned.exit_code == 0
    assert "confide ledger amend" in warned.stdout
    assert run("check", spent).exit_code == 1
    amended = run("ledger", "amend", spent, "--json")
    assert [part["term"] for part in json.loads(amended.stdout)["changed"]] == ["budget", "caps"]
    assert run("check", spent).exit_code == 0
    assert "(amendment)" in run("ledger", "show", spent).stdout
    assert json.loads(run("budget", spent, "--json").stdout)["total"] == 4


def test_an_anchor_is_restored_only_if_it_is_lost(run: Run, spent: Path) -> None:
    refused = run("ledger", "restore-anchor", spent)
    assert refused.exit_code == 1
    assert "nothing to restore" in refused.stderr
    Path(f"{spent.with_suffix('.ledger')}.anchor").unlink()
    assert run("sql", spent, COUNT, "-e", "0.5").exit_code == 1
    assert run("ledger", "restore-anchor", spent).exit_code == 0
    assert run("ledger", "verify", spent).exit_code == 0
