"""What is shown, and what cannot be."""

import json
import time
from io import StringIO

import pytest
from rich.console import Console
from rich.table import Table

from confide.cli import console
from confide.cli.console import facts, printable, say, show, show_json, waiting


def test_what_does_not_print_is_spelled_out() -> None:
    assert printable("ε ± 1\n\tü") == "ε ± 1\n\tü"
    assert printable("\x1b[31mred\x07\r\x00\u202e") == "\\x1b[31mred\\x07\\x0d\\x00\\x202e"


def test_text_is_not_markup(capsys: pytest.CaptureFixture[str]) -> None:
    say("[bold]x[/bold] :smile: [/]", label="refused", errors=True)
    captured = capsys.readouterr()
    assert captured.err == "refused: [bold]x[/bold] :smile: [/]\n"
    assert captured.out == ""


def test_a_table_is_as_wide_as_it_needs_to_be_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table()
    for number in range(12):
        table.add_column(f"column {number}")
    table.add_row(*["a long value that stays whole"] * 12)
    show(table)
    assert capsys.readouterr().out.count("a long value that stays whole") == 12


def test_json_is_one_line_and_strict(capsys: pytest.CaptureFixture[str]) -> None:
    show_json({"ε": "δ", "none": None})
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1
    assert json.loads(printed) == {"ε": "δ", "none": None}
    with pytest.raises(ValueError, match="not JSON compliant"):
        show_json({"x": float("nan")})


def test_facts_are_two_columns(capsys: pytest.CaptureFixture[str]) -> None:
    show(facts([("a", "one"), ("longer", "two")]))
    assert capsys.readouterr().out.splitlines() == ["a       one", "longer  two"]


def test_waiting_is_silent_without_a_terminal_and_lets_errors_through(capsys: pytest.CaptureFixture[str]) -> None:
    with waiting("nothing") as progress:
        assert progress is None
    with pytest.raises(ZeroDivisionError), waiting("dividing"):
        raise ZeroDivisionError
    assert capsys.readouterr() == ("", "")


class _Terminal(console.Screen):
    """A console that takes a text for a terminal."""

    shown = StringIO()

    def __init__(self, *, errors: bool = False) -> None:
        assert errors  # what people wait for is no part of what is piped on
        Console.__init__(self, file=self.shown, force_terminal=True, width=160, legacy_windows=False, _environ={})


def _waited(monkeypatch: pytest.MonkeyPatch, patience: float) -> str:
    monkeypatch.setattr(_Terminal, "shown", StringIO())
    monkeypatch.setattr(console, "Screen", _Terminal)
    monkeypatch.setattr(console, "_PATIENCE", patience)
    with waiting("asking") as progress:
        assert progress is not None
        for done in range(4):
            progress(f"level {done} [bold]x[/bold]\x1b[31m", done, 4)
            time.sleep(0.15)
    return _Terminal.shown.getvalue()


def test_waiting_shows_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = _waited(monkeypatch, 0.01)
    assert "level 2 [bold]x[/bold]\\x1b[31m" in shown
    assert "s left" in shown
    assert shown.endswith("\x1b[2K")  # nothing is left of it


def test_what_is_there_in_a_moment_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "level" not in _waited(monkeypatch, 60)
