"""Errors, exit codes, Ctrl-C and closed pipes, mostly as a user meets them: in a process of its own."""

import errno
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NoReturn

import pytest

from confide import errors
from confide.cli import INTERRUPTED, check
from confide.cli.boundary import report
from confide.release.guard import GOES_ON, NOT_CHARGED
from confide.release.sql import request as asking
from tests.cli.conftest import Process, Run, clean_environment, command_path

COUNT = "SELECT COUNT(*) AS n FROM person"
WIDE = "SELECT region, COUNT(*) AS people, AVG(age) AS age, AVG(income) AS income FROM person GROUP BY region"
JOIN = "SELECT p.region, COUNT(*) AS visits FROM visit v JOIN person p ON v.person_id = p.person_id GROUP BY p.region"


# --- exit codes -------------------------------------------------------------------------------------------------------


def test_exit_codes_and_streams(process: Process, policy: Path) -> None:
    done = process("sql", policy, "-", "-e", "0.5", text=COUNT)
    assert (done.returncode, done.stderr) == (0, "")
    assert "cost ε = 0.5" in done.stdout
    refused = process("sql", policy, "SELECT * FROM person", "-e", "0.5")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("refused: ")
    assert refused.stderr.count("\n") == 1
    wrong = process("sql", policy, COUNT, "-e", "abc")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("wrong usage: ")
    assert not any("Traceback" in text for text in (done.stderr, refused.stderr, wrong.stderr))


@pytest.mark.parametrize(
    "arguments", [["bogus"], ["sql"], ["sql", "a"], ["check", "a", "b"], ["budget", "a", "--bogus"], ["ledger", "burn"]]
)
def test_unknown_commands_and_options_are_wrong_usage(run: Run, arguments: list[str]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: confide" in result.stderr


def test_a_wrong_command_is_told_without_a_traceback(process: Process) -> None:
    done = process("bogus")
    assert (done.returncode, done.stdout) == (2, "")
    assert "No such command 'bogus'" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_command_help_is_shown(run: Run) -> None:
    result = run()
    assert result.exit_code == 2
    assert "demo" in result.output


# --- errors as data ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "kind", "code"),
    [
        (["sql", "POLICY", "SELECT * FROM person", "-e", "1"], "query", 1),
        (["sql", "POLICY", COUNT, "-e", "9"], "budget", 1),
        (["sql", "POLICY", COUNT, "-e", "0"], "usage", 2),
        (["sql", "POLICY", COUNT, "--bogus"], "usage", 2),
        (["sql", "POLICY"], "usage", 2),
        (["bogus"], "usage", 2),
        (["check", "nothing.yaml"], "policy", 1),
        (["sql", "POLICY", COUNT, "-e", "1", "--ledger", "mistyped.ledger"], "ledger missing", 1),
        (["init", "nothing.csv"], "source", 1),
    ],
)
def test_errors_are_data_with_json(run: Run, policy: Path, arguments: list[str], kind: str, code: int) -> None:
    result = run(*[policy if argument == "POLICY" else argument for argument in arguments], "--json")
    assert result.exit_code == code
    assert result.stderr == ""
    error = json.loads(result.stdout)["error"]
    assert error["kind"] == kind
    assert error["message"]


def test_every_error_of_confide_has_a_kind() -> None:
    def leaves(kind: type[errors.ConfideError]) -> list[type[errors.ConfideError]]:
        return [kind, *(leaf for child in kind.__subclasses__() for leaf in leaves(child))]

    for kind in leaves(errors.ConfideError)[1:]:
        made = kind(()) if kind is errors.PolicyError else kind() if kind is errors.EngineError else kind("words")
        assert report(made)["kind"] != "error", kind


def raising(error: BaseException) -> NoReturn:
    raise error


def test_what_was_not_foreseen_is_named_without_its_words(
    run: Run, policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CONFIDE_TRACEBACK", raising=False)
    monkeypatch.setattr(check, "describe", lambda rules: raising(ValueError("CANARY-4711")))
    result = run("check", policy)
    assert result.exit_code == 70
    assert "ValueError at tests.cli.test_boundary:" in result.stderr
    assert "CANARY" not in result.output
    monkeypatch.setenv("CONFIDE_TRACEBACK", "1")
    assert isinstance(run("check", policy).exception, ValueError)


@pytest.mark.parametrize("traceback", ["", "1"])
@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_after_a_charge_nothing_is_named_at_all(
    run: Run, policy: Path, monkeypatch: pytest.MonkeyPatch, traceback: str, as_json: list[str]
) -> None:
    """Which exception it was, and where, depended on numbers that were never shown. The switch changes nothing here."""
    monkeypatch.setenv("CONFIDE_TRACEBACK", traceback)
    outputs = set()
    for fault in (OverflowError("CANARY-4711"), IndexError("CANARY-4711"), errors.EngineError()):
        with monkeypatch.context() as patch:
            patch.setattr(asking, "AnswerTable", lambda *_, fault=fault: raising(fault))
            for _ in range(2):
                result = run("sql", policy, WIDE, "-e", "0.5", *as_json)
                assert result.exit_code == 1
                outputs.add((result.stdout, result.stderr))
    assert len(outputs) == 1
    assert str(errors.EngineError()) in "".join(next(iter(outputs)))
    assert "Error" not in "".join(next(iter(outputs)))


def test_errors_of_the_system_are_refusals(run: Run, policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = OSError(errno.ENOSPC, "No space left on device", "/data/x")
    monkeypatch.setattr(check, "describe", lambda rules: raising(full))
    result = run("check", policy)
    assert result.exit_code == 1
    assert result.stderr == "refused: /data/x: No space left on device\n"


def test_a_failing_engine_says_that_the_charge_stands(run: Run, policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "describe", lambda rules: raising(errors.EngineError()))
    result = run("check", policy)
    assert result.exit_code == 1
    assert result.stderr.startswith("failed: ")
    assert "its charge stands" in result.stderr


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder in which nobody can make a file")
def test_a_folder_that_takes_no_files_is_refused(run: Run, policy: Path) -> None:
    for arguments in (
        ["sql", policy, COUNT, "-e", "0.5", "--ledger", "/proc/self/a.ledger"],
        ["init", policy.parent / "person.parquet", "--output", "/proc/self/a.yaml"],
        ["demo", "--dir", "/proc/self/demo", "--people", "1000"],
    ):
        result = run(*arguments)
        assert result.exit_code == 1, result.output
        assert result.stderr.startswith("refused: ")
        assert "/proc/" in result.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_read_only_folder_is_refused(run: Run, policy: Path) -> None:
    policy.parent.chmod(0o555)
    try:
        result = run("sql", policy, COUNT, "-e", "0.5")
    finally:
        policy.parent.chmod(0o755)
    assert result.exit_code == 1
    assert "read-only" in result.stderr


# --- pipes and encodings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [["check", "POLICY"], ["ledger", "export", "POLICY"], ["check", "POLICY", "--json"]]
)
def test_a_reader_that_stops_reading_is_no_error(run: Run, policy: Path, arguments: list[str]) -> None:
    assert run("sql", policy, COUNT, "-e", "0.5").exit_code == 0
    command = [command_path(), *(str(policy) if argument == "POLICY" else argument for argument in arguments)]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment(), text=True
    )
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()
    said = child.stderr.read()
    child.stderr.close()
    assert child.wait(60) == 141
    assert said == ""


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_are_not_written_to(policy: Path, closed: str) -> None:
    """The descriptor that is free would be the next file's, and what was paid for would end as a fault."""
    question = [command_path(), "sql", str(policy), COUNT, "--epsilon", "0.1"]
    done = subprocess.run(
        ["bash", "-c", f'"$@" {closed}', "bash", *question],
        capture_output=True,
        text=True,
        env=clean_environment(),
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    again = subprocess.run(
        ["bash", "-c", '"$@" - <&-', "bash", *question[:3], *question[4:]],
        capture_output=True,
        text=True,
        env=clean_environment(),
        check=False,
    )
    assert again.returncode == 1
    assert "the query is empty" in again.stderr


@pytest.mark.parametrize("sql", [COUNT, "SELECT *"])
def test_a_full_disk_behind_the_output_is_a_refusal(policy: Path, sql: str) -> None:
    question = [command_path(), "sql", str(policy), sql, "--epsilon", "0.1", "--json"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            question, stdout=full, stderr=subprocess.PIPE, text=True, env=clean_environment(), check=False
        )
    assert done.returncode == 1
    assert done.stderr.startswith("refused: ")
    assert "Traceback" not in done.stderr


def test_a_terminal_that_cannot_show_greek_gets_words_all_the_same(process: Process, policy: Path) -> None:
    done = process("sql", policy, COUNT, "-e", "0.5", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0
    assert "cost ? = 0.5" in done.stdout


# --- on a terminal ----------------------------------------------------------------------------------------------------


def on_a_terminal(arguments: list[str], columns: int = 80, **environment: str) -> tuple[int, str]:
    """Run the command on a terminal of its own and return what appeared there."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [command_path(), *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**clean_environment(), "TERM": "xterm-256color", "COLUMNS": str(columns), **environment},
    )
    os.close(theirs)
    shown = bytearray()

    def collect() -> None:
        try:
            while part := os.read(ours, 65536):
                shown.extend(part)
        except OSError:
            pass

    reader = threading.Thread(target=collect)
    reader.start()
    code = child.wait(60)
    reader.join(60)
    os.close(ours)
    return code, shown.decode().replace("\r\n", "\n")


def widest(shown: str) -> int:
    return max(len(line) for line in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown).split("\n"))


def test_a_terminal_gets_colours_and_lines_that_fit(policy: Path) -> None:
    code, shown = on_a_terminal(["check", str(policy)])
    assert code == 0
    assert "\x1b[1m" in shown
    assert "\x1b[32m" in shown
    assert widest(shown) <= 80


def test_a_terminal_may_do_without_colours(policy: Path) -> None:
    code, shown = on_a_terminal(["sql", str(policy), WIDE, "-e", "0.5"], 100, NO_COLOR="1")
    assert code == 0
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", shown)
    assert widest(shown) <= 100


def test_what_is_piped_is_plain_and_its_lines_are_whole(policy: Path, process: Process) -> None:
    done = process("sql", policy, WIDE, "-e", "0.5")
    assert "\x1b" not in done.stdout
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("N ")]
    assert row.count("…") == 3


# --- Ctrl-C -----------------------------------------------------------------------------------------------------------

_READY = (
    "import sys; from confide.cli import main; sys.stderr.write('ready\\n'); sys.stderr.flush();"
    "sys.argv[0] = 'confide'; main()"
)


STOP_LINES = (INTERRUPTED, f"stopped: {GOES_ON}", f"stopped: {NOT_CHARGED}")


@pytest.mark.parametrize("delay", [0.02, 0.1, 0.3, 0.6, 1.0])
def test_ctrl_c_at_any_moment_loses_nothing(run: Run, policy: Path, delay: float) -> None:
    arguments = ["sql", str(policy), JOIN, "-e", "0.5"]
    child = subprocess.Popen(
        [sys.executable, "-c", _READY, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
        text=True,
    )
    assert child.stderr is not None
    assert child.stderr.readline() == "ready\n"
    time.sleep(delay)
    child.send_signal(signal.SIGINT)
    printed, said = child.communicate(timeout=60)
    if child.returncode == 0:
        assert "cost ε = 0.5" in printed  # it was done before
    else:
        assert child.returncode == 130, said
        assert said.removesuffix("\n") in STOP_LINES
    again = run(*arguments, "--json")
    assert again.exit_code == 0
    assert json.loads(again.stdout)["budget"]["spent"] == 0.5


def test_ctrl_c_that_a_library_turned_into_its_own_error_is_still_ctrl_c(policy: Path) -> None:
    """Python itself does so: what is raised while a class is being made arrives as a RuntimeError."""
    loading = (
        "import os, signal, sys; from confide.cli import main\n"
        "class Loading:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'confide.cli.app':\n"
        "            try: os.kill(os.getpid(), signal.SIGINT); signal.pause()\n"
        "            except KeyboardInterrupt as error: raise RuntimeError('in the middle of loading') from error\n"
        "sys.meta_path.insert(0, Loading()); main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", loading, "check", str(policy)],
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (130, f"{INTERRUPTED}\n")


def stopped_by_itself(code: str, policy: Path) -> tuple[int, str]:
    """A command that is sent a Ctrl-C by what it runs: its exit code, and what it said."""
    command = [sys.executable, "-c", f"import gc, os, signal, sys\nfrom confide.cli import main\n{code}main()\n"]
    done = subprocess.run(
        [*command, "check", str(policy)],
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stderr


def test_ctrl_c_where_python_raises_nothing_comes_once_more(policy: Path) -> None:
    """In a callback of the garbage collector it would be printed, and lost."""
    code = (
        "def collecting(phase, facts):\n"
        "    gc.callbacks.clear(); os.kill(os.getpid(), signal.SIGINT); sum(range(1000))\n"
        "class Loading:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'confide.cli.app': gc.callbacks.append(collecting); gc.collect(); sum(range(10**8))\n"
        "sys.meta_path.insert(0, Loading())\n"
    )
    assert stopped_by_itself(code, policy) == (130, f"{INTERRUPTED}\n")


def test_what_is_stopped_ends_without_taking_libraries_apart(policy: Path) -> None:
    """Their threads may be in the middle of something, and crash."""
    code = (
        "import atexit; atexit.register(os.abort)\n"
        "class Loading:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'confide.cli.app': os.kill(os.getpid(), signal.SIGINT); signal.pause()\n"
        "sys.meta_path.insert(0, Loading())\n"
    )
    assert stopped_by_itself(code, policy) == (130, f"{INTERRUPTED}\n")


def test_ctrl_c_ends_a_long_question_at_once(run: Run, policy: Path, tmp_path: Path) -> None:
    """A statement that would take hours is stopped in its middle; the question is then answered for the same charge."""
    script = tmp_path / "long.py"
    script.write_text(
        "import sys, confide.engine.duckdb.running as running\n"
        "from confide.cli import main\n"
        "import confide.engine.duckdb.engine as engine\n"
        "def slowly(real):\n"
        "    def slow(connection, statement, limit_seconds=None):\n"
        "        if 'GROUP BY' in statement.upper() and 'visit' in statement:\n"
        "            sys.stderr.write('reading\\n'); sys.stderr.flush()\n"
        "            statement = 'SELECT sum(a.range * b.range % 7) FROM range(1000000) a, range(1000000) b'\n"
        "        return real(connection, statement, limit_seconds)\n"
        "    return slow\n"
        "engine.run_apart, engine.run_columns = slowly(running.run_apart), slowly(running.run_columns)\n"
        "main()\n"
    )
    child = subprocess.Popen(
        [sys.executable, str(script), "sql", str(policy), JOIN, "-e", "0.5", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
        text=True,
    )
    assert child.stderr is not None
    assert child.stderr.readline() == "reading\n"
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    printed, said = child.communicate(timeout=30)
    assert child.returncode == 130
    assert said == ""
    assert json.loads(printed)["error"] == {"kind": "interrupted", "message": f"stopped: {GOES_ON}"}
    facts = json.loads(run("ledger", "show", policy, "--json").stdout)
    assert [entry["answered"] for entry in facts["newest"] if entry["kind"] == "charge"] == [False]
    again = json.loads(run("sql", policy, JOIN, "-e", "0.5", "--json").stdout)
    assert again["budget"]["spent"] == 0.5
    assert again["rows"]
