"""What the command `shell` does: questions one after the other, each with its cost, on one opened session.

At a terminal lines are edited, completed and remembered; elsewhere a script is read, and the first refusal ends it. A
question is ended by a semicolon, and may have many lines. Ctrl-C gives up the line, or stops the question that runs.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from confide.cli import heard, stop_line, stopping
from confide.cli.boundary import tell_refusal
from confide.cli.completion import COMMANDS, Completion
from confide.cli.console import say, show, waiting
from confide.cli.options import read_share, read_within
from confide.cli.sql import opened, tell
from confide.errors import ConfideError, ParameterError
from confide.policy.describe import describe
from confide.query.typed_lines import parted, says_something
from confide.release import Session
from confide.release.answer.rendering import plan_lines, plan_table
from confide.release.answer.wanted import plain_within
from confide.release.arguments import exact_epsilon

_PROMPT: Final = "confide> "
_MORE: Final = "    ...> "
_SPOKEN: Final = {"help": "\\help\n", "?": "\\help\n", "quit": "\\quit\n", "exit": "\\quit\n"}
_MOST_HISTORY: Final = 2_000
_NO_COST: Final = "say first what a question may cost: \\cost 0.1, or how wide its answer may be: \\within 20"


@dataclass(frozen=True, slots=True)
class ShellOptions:
    """The command, as it was typed."""

    policy: str
    epsilon: str | None
    within: str | None
    confidence: str
    analyst: str
    ledger: str | None


@dataclass(slots=True)
class Shell:
    """One conversation: the session, what the next questions may cost, and the last of them."""

    session: Session
    arguments: dict[str, Any]
    last: str = ""
    begun: str = ""
    """Lines of a statement that is not ended yet."""
    done: bool = False

    def do(self, line: str) -> None:
        """A command, or a statement."""
        if not line.startswith("\\"):
            self._ask(line)
            return
        name, _, given = line.partition(" ")
        given = given.strip().removesuffix(";").strip()
        match name:
            case "\\plan" | "\\p":
                self._plan(given)
            case "\\budget" | "\\b":
                say(str(self.session.budget))
            case "\\cost" | "\\c":
                self._set("epsilon", given)
            case "\\within" | "\\w":
                self._set("within", given)
            case "\\describe" | "\\d":
                self._describe(given)
            case "\\help" | "\\h" | "\\?":
                say("a question is ended by ; and may have many lines", *COMMANDS.values())
            case "\\quit" | "\\q":
                self.done = True
            case _:
                raise ParameterError(f"there is no command {name[:40]}; \\help shows those that there are")

    def _ask(self, text: str) -> None:
        self.last = text
        if not self._limits():
            raise ParameterError(_NO_COST)
        with waiting("asking") as progress:
            answer = self.session.sql(text, progress=progress, **self.arguments)
        tell(answer, self.session.budget)

    def _plan(self, text: str) -> None:
        self.last = text or self.last
        if not self.last:
            raise ParameterError("there is no question yet; write \\plan SELECT COUNT(*) FROM a_table;")
        with waiting("planning"):
            plan = self.session.plan(self.last, **self.arguments)
        show(plan_table(plan))
        say(*plan_lines(plan), style="dim")

    def _set(self, name: str, given: str) -> None:
        """What the next questions may cost, or how wide they may be: one of the two. Said alone it shows both."""
        if not given:
            found = self._limits()
            say(", ".join(f"{which} = {value}" for which, value in found.items()) or _NO_COST)
            return
        value: Any = given
        if name == "within":
            value = plain_within(read_within(given))
        else:
            exact_epsilon(given)
        others = {key: kept for key, kept in self.arguments.items() if key not in ("epsilon", "within")}
        self.arguments = {**others, name: value}
        say(f"the next questions: {'ε' if name == 'epsilon' else 'within'} = {given}", style="dim")

    def _limits(self) -> dict[str, Any]:
        return {name: self.arguments[name] for name in ("epsilon", "within") if name in self.arguments}

    def _describe(self, table: str) -> None:
        found = describe(self.session.policy)
        if table:
            kept = tuple(one for one in found.tables if one.name == table)
            if not kept:
                names = ", ".join(one.name for one in found.tables)
                raise ParameterError(f"there is no table {table[:60]}; there are {names}")
            found = replace(found, tables=kept)
            say(*_from_tables(str(found)))
            return
        say(*str(found).splitlines())


def run(options: ShellOptions) -> None:
    arguments: dict[str, Any] = {"confidence": read_share(options.confidence, "--confidence")}
    if options.epsilon is not None and options.within is not None:
        raise ParameterError("give --epsilon or --within, not both")
    if options.epsilon is not None:
        arguments["epsilon"] = options.epsilon
    if options.within is not None:
        arguments["within"] = read_within(options.within)
    with opened(options.policy, options.ledger, options.analyst) as session:
        shell = Shell(session, arguments)
        if not sys.stdin.isatty():
            _script(shell)
            return
        say("questions end with ;   \\help shows the commands, \\quit leaves", style="dim")
        with _editing(Completion(session.policy)):
            while not shell.done:
                _turn(shell)


def _turn(shell: Shell) -> None:
    """One line or statement at a terminal; whatever comes of it, the next can be asked."""
    try:
        for line in _read(shell):
            shell.do(line)
            if shell.done:
                return
    except EOFError:
        say("")
        shell.done = True
    except ConfideError as error:
        tell_refusal(error, as_json=False)
    except KeyboardInterrupt as stop:
        shell.begun = ""
        # A line that is given up has nothing to say; a question that was stopped says what was charged.
        if getattr(stop, "__notes__", ()):
            stopping(stop)
            say(stop_line(), errors=True)
        else:
            say("", errors=True)
        heard()


def _read(shell: Shell) -> list[str]:
    """What is to be done: a command, or the statements that a semicolon ended. Lines are added until there is one.

    A command between the lines of a statement is done, and the statement goes on.
    """
    while True:
        line = input(_MORE if shell.begun else _PROMPT) + "\n"
        line = line if shell.begun else _meant(line)
        if _is_command(line) and not parted(shell.begun).inside:
            return [line.strip()]
        shell.begun += line
        found = parted(shell.begun)
        if _is_command(shell.begun) or (found.ended and not says_something(found.rest)):
            done, shell.begun = shell.begun, ""
            return [done.strip()] if _is_command(done) else list(found.ended)
        if not says_something(shell.begun) and not found.inside:
            shell.begun = ""


def _meant(line: str) -> str:
    """A first line, or the command that a word alone on it stands for: no question begins so."""
    return _SPOKEN.get(line.strip().rstrip(";").strip().lower(), line)


def _is_command(text: str) -> bool:
    """A command is one line, but for a question that is planned: that one ends as every question does."""
    first = text.lstrip()
    if not first.startswith("\\"):
        return False
    planned = first.partition(" ")[2].strip() if first.startswith(("\\plan ", "\\p ")) else ""
    return not planned or bool(parted(planned).ended)


def _script(shell: Shell) -> None:
    """Lines of a script, from a pipe or a file: the first refusal ends it."""
    text = ""
    for line in sys.stdin:
        text += line if text.strip() else _meant(line)
        if _is_command(text):
            lines, text = [text.strip()], ""
        else:
            found = parted(text)
            lines, text = list(found.ended), found.rest
        for one in lines:
            shell.do(one)
            if shell.done:
                return
    for one in parted(text).all:
        shell.do(one)


def _from_tables(text: str) -> list[str]:
    return text[text.index("\nTable ") + 1 :].splitlines()


# --- editing ----------------------------------------------------------------------------------------------------------


@contextmanager
def _editing(completion: Completion) -> Iterator[None]:
    """Inside, lines are edited, completed by the tabulator, and remembered for the next time."""
    try:
        import readline  # noqa: PLC0415  not in every Python; without it lines are read as they are
    except ImportError:
        yield
        return

    def complete(begun: str, place: int) -> str | None:
        words = completion.words(begun, readline.get_line_buffer())
        words = [f"{words[0]} "] if len(words) == 1 else words  # what is found is done with
        return words[place] if place < len(words) else None

    history = _history()
    with suppress(OSError):
        readline.read_history_file(history)
    readline.set_history_length(_MOST_HISTORY)
    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n,()=<>;+*/")
    readline.parse_and_bind("tab: complete")
    try:
        yield
    finally:
        readline.set_completer(None)
        with suppress(OSError):
            history.parent.mkdir(parents=True, exist_ok=True)
            history.touch(mode=0o600)
            readline.write_history_file(history)


def _history() -> Path:
    """Where questions are remembered: what was asked, and nothing of the answers."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "confide" / "history"
