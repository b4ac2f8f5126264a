"""The command `shell`: a prompt at a terminal, a script elsewhere, and Ctrl-C at any moment."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from confide.cli.completion import Completion
from confide.policy import Policy
from confide.release.guard import GOES_ON
from tests.cli.conftest import Process, Run, clean_environment

COUNT = "SELECT region, COUNT(*) AS n FROM person GROUP BY region"


_PLAIN = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x07")


class Terminal:
    """A command at a terminal of its own: what is typed, and what is read until some words are there."""

    def __init__(self, script: str, *arguments: object, **environment: str) -> None:
        self._mine, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, *map(str, arguments)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            env={**clean_environment(), "TERM": "xterm", "COLUMNS": "120", "NO_COLOR": "1", **environment},
        )
        os.close(theirs)
        self.seen = ""

    def until(self, words: str, seconds: float = 60) -> str:
        """What came since the last time, up to these words."""
        deadline = time.monotonic() + seconds
        while words not in self.seen:
            assert time.monotonic() < deadline, f"{words!r} is missing in {self.seen!r}"
            if select.select([self._mine], [], [], 0.2)[0]:
                try:
                    self.seen = _PLAIN.sub("", self.seen + os.read(self._mine, 65536).decode(errors="replace"))
                except OSError:
                    break
        before, _, self.seen = self.seen.partition(words)
        return before

    def type(self, text: str) -> None:
        os.write(self._mine, text.encode())

    def close(self) -> int:
        try:
            return self.process.wait(timeout=30)
        finally:
            self.end()

    def end(self) -> None:
        """Whatever happened, nothing is left running."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self._mine >= 0:
            os.close(self._mine)
            self._mine = -1


MAIN = "import sys; sys.argv[0] = 'confide'; from confide.cli import main; main()"


@pytest.fixture
def terminal(policy: Path, tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(MAIN, "shell", policy, XDG_STATE_HOME=str(tmp_path / "state"))
    yield opened
    opened.end()


def test_a_conversation(terminal: Terminal, policy: Path, tmp_path: Path, run: Run) -> None:
    terminal.until("confide> ")
    terminal.type("SELECT region, COUNT(*) AS n -- one; line\r")
    terminal.until("...> ")
    terminal.type("FROM per\t")
    terminal.until("person")
    terminal.type(" GROUP BY region;\r")
    terminal.until("wrong usage: say first what a question may cost")
    terminal.until("confide> ")
    terminal.type("\\cost 0.5\r")
    terminal.until("ε = 0.5")
    terminal.until("confide> ")
    terminal.type(f"{COUNT};\r")
    terminal.until("cost ε = 0.5")
    terminal.until("confide> ")
    terminal.type("SELECT * FROM person;\r")
    refused = terminal.until("confide> ")
    assert refused.count("refused: ") == 1
    terminal.type("\\budget\r")
    terminal.until("0.5 spent of 3")
    terminal.type("\\quit\r")
    assert terminal.close() == 0
    assert COUNT in (tmp_path / "state" / "confide" / "history").read_text()
    assert json.loads(run("budget", policy, "--json").stdout)["spent"] == 0.5


def test_ctrl_c_gives_up_the_line_and_ctrl_d_leaves(terminal: Terminal) -> None:
    terminal.until("confide> ")
    terminal.type("SELECT COUNT(*)\r")
    terminal.until("...> ")
    terminal.type("FROM")
    time.sleep(1)  # an interrupt between two keys is heard with the next one
    terminal.process.send_signal(signal.SIGINT)
    terminal.until("confide> ")
    terminal.type("\\help\r")
    terminal.until("\\describe")
    terminal.until("confide> ")
    terminal.type("\x04")
    assert terminal.close() == 0


SLOW = """
import sys, time
import confide.release.holdings as holdings
from confide.cli import main
real, times = holdings.guarded, []
def slow(release, read):
    def late():
        if not times:
            times.append(1)
            sys.stderr.write('reading\\n'); sys.stderr.flush()
            time.sleep(600)
        return release()
    return real(late, read)
holdings.guarded = slow
sys.argv[0] = 'confide'
main()
"""


def test_ctrl_c_stops_the_question_and_says_what_was_charged(policy: Path, tmp_path: Path, run: Run) -> None:
    terminal = Terminal(SLOW, "shell", policy, "-e", "0.5", XDG_STATE_HOME=str(tmp_path / "state"))
    try:
        _stopped_and_asked_again(terminal)
    finally:
        terminal.end()
    assert json.loads(run("budget", policy, "--json").stdout)["spent"] == 0.5


def _stopped_and_asked_again(terminal: Terminal) -> None:
    terminal.until("confide> ")
    terminal.type(f"{COUNT};\r")
    terminal.until("reading")
    time.sleep(0.3)
    terminal.process.send_signal(signal.SIGINT)
    terminal.until("stopped: ")
    assert GOES_ON.split(",")[0] in terminal.until("confide> ")
    terminal.type(f"{COUNT};\r")
    terminal.until("cost ε = 0.5")
    terminal.until("confide> ")
    terminal.type("\\q\r")
    assert terminal.close() == 0


def test_a_script_on_standard_input(process: Process, policy: Path) -> None:
    script = f"\\cost 0.25\n{COUNT};\n\\plan SELECT AVG(age) AS a\nFROM person;\nSELECT COUNT(*) AS people FROM person"
    done = process("shell", policy, text=script)
    assert (done.returncode, done.stderr) == (0, "")
    assert "confide>" not in done.stdout
    assert "expected ±" in done.stdout
    assert "people" in done.stdout
    assert done.stdout.count("budget: ε ") == 2


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        ("SELECT * FROM person; \\quit", 1, "refused: "),
        ("\\cost abc\n", 2, "wrong usage: epsilon = 'abc'"),
        ("\\within -3\n", 2, "wrong usage: within='-3'"),
        ("\\nothing\n", 2, "there is no command \\nothing"),
        ("\\describe nowhere\n", 2, "there are person, visit"),
        ("\\plan\n", 2, "there is no question yet"),
    ],
)
def test_the_first_refusal_ends_a_script(run: Run, policy: Path, script: str, code: int, words: str) -> None:
    result = run("shell", policy, "-e", "1", text=f"{script}\nSELECT COUNT(*) AS n FROM person;\n")
    assert result.exit_code == code
    assert words in result.stderr.replace("\n", " ")
    assert json.loads(run("budget", policy, "--json").stdout)["spent"] == 0


def test_what_is_public_is_described(run: Run, policy: Path) -> None:
    whole = run("shell", policy, text="\\describe\n").stdout
    assert "Table person" in whole
    assert "Table visit" in whole
    assert "Table person" not in run("shell", policy, text="\\describe visit\n").stdout


def test_completions(policy: Path) -> None:
    words = Completion(Policy.load(policy)).words
    assert words("sel") == ["select"]
    assert words("SEL") == ["SELECT"]
    assert words("reg") == ["region_name", "region"]
    assert words("person.in") == ["person.income"]
    assert words("'deg") == ["'degree'"]
    assert words("\\b") == ["\\budget"]
    assert words("vi", "\\describe vi") == ["visit"]
    assert words("person.person.x") == []
    assert "person" in words("")


@pytest.mark.parametrize("word", ["help", "HELP;", "?"])
def test_words_that_are_typed_everywhere_are_commands(run: Run, policy: Path, word: str) -> None:
    result = run("shell", policy, text=f"{word}\nexit\nSELECT nothing;\n")
    assert result.exit_code == 0, result.output
    assert "\\budget" in result.stdout
