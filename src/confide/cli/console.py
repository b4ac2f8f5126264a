"""What the terminal shows: tables and lines for people, JSON for scripts, and a sign of life while they wait.

Colours and line breaks are for a terminal; what is piped is plain, and its lines are as long as they are. Nothing that
is shown can steer the terminal: whatever does not print is spelled out.
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Timer
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleRenderable
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from confide.host.progress import Tell

_PATIENCE = 0.5
_WIDEST = 2_000


class Screen(Console):
    """A console that shows texts as they are, and tells when nobody reads on."""

    def __init__(self, *, errors: bool = False) -> None:
        super().__init__(stderr=errors, markup=False, emoji=False, highlight=False)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def printable(text: str) -> str:
    """The text with every character that does not print, but line breaks and tabs, spelled out."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)


def say(*lines: str, style: str = "", label: str = "", errors: bool = False) -> None:
    """Lines of text, broken between words on a terminal only; the first one after a coloured label."""
    console = Screen(errors=errors)
    for line in lines:
        text = Text.assemble((f"{label}: " if label else "", "bold red"), (printable(line), style))
        console.print(text, soft_wrap=not console.is_terminal)
        label = ""


def show(renderable: ConsoleRenderable) -> None:
    """A table, a panel or the like; as wide as it needs to be where there is no terminal to fit into."""
    console = Screen()
    if isinstance(renderable, Table) and renderable.box is not None:
        renderable.box, renderable.collapse_padding = SIMPLE_HEAD, True
    if console.is_terminal:
        console.print(renderable)
        return
    needed = Measurement.get(console, console.options.update(width=_WIDEST), renderable).maximum
    console.width = max(console.width, needed)
    with console.capture() as captured:
        console.print(renderable)
    sys.stdout.write("\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n")


def show_json(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """One JSON document on one line."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n")


def facts(rows: Sequence[tuple[str, str]]) -> Table:
    """Names and what is said of each, in two columns."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, value in rows:
        table.add_row(Text(name), Text(printable(value)))
    return table


@contextmanager
def waiting(what: str) -> Iterator[Tell | None]:
    """A spinner on a terminal, if what is inside takes longer than a moment; a bar once the function that it gives is
    told how far it is. Without a terminal nothing is shown, and there is no function.
    """
    console = Screen(errors=True)
    if not console.is_terminal:
        yield None
        return
    # Heavy, and for people who wait.
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", style="dim", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", style="dim", markup=False),
    )
    progress, start = Progress(*columns, console=console, transient=True), time.monotonic()
    task = progress.add_task(what, total=None, left="")

    def tell(now: str, done: float, steps: int) -> None:
        passed = time.monotonic() - start
        left = f"about {passed * (steps / done - 1):.0f} s left" if 0 < done < steps and passed > _PATIENCE else ""
        progress.update(task, description=printable(now), completed=done, total=steps, left=left)

    timer = Timer(_PATIENCE, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield tell
    finally:
        try:
            timer.cancel()
            timer.join()
        finally:
            progress.stop()  # whatever happens, the cursor comes back
