"""How answers and plans look in print and in a notebook. Words and numbers only; nothing is computed here."""

import re
from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any

from confide.host import notebook
from confide.release.answer.digits import NO_INFORMATION, half_width, possible_values, with_interval
from confide.release.cost import rooms_text

if TYPE_CHECKING:
    from confide.release.answer.answer import Answer
    from confide.release.answer.plan import Plan

_WORDS = frozenset({"marginal", "noise", "sum", "over", "fit", "in words", "step", "column", "kind"})
"""Columns of words; all others are numbers, and stand to the right."""

Rows = Sequence[tuple[str, ...]]
HOLDS = {
    "density": "where the data are dense enough (density)",
    "at_most": "where no unit has more rows than count (at_most)",
    "random sample": "for the population of which the rows are a random sample (random sample)",
}
"""Where intervals hold, by what they assume."""
_WATERMARK = "TEST NOISE: this answer protects nobody"


def printable(text: str) -> str:
    """A key may come from the data, a name from whoever asks: whatever would steer a terminal is spelled out."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def drawable(text: str) -> str:
    """Charts stand in the script of a page, as they are: whatever would end that script, or begin another, is spelled
    out as well. A group may be called <18.
    """
    return re.sub(r"<(?=[/!?a-zA-Z])", r"\\x3c", printable(text))


def _heads(answer: "Answer") -> list[tuple[str, bool]]:
    """The names of columns as they are shown, and whether they are of numbers."""
    heads = []
    for column in answer.columns:
        if column in answer.keys:
            heads.append((column.name, False))
        else:
            heads += [(column.name, True), (f"{answer.confidence:.4g} interval", True)]
    return heads


def cells(answer: "Answer", row: int) -> list[str]:
    """The texts of one row: keys, and each aggregate as estimate and interval."""
    texts: list[str] = []
    for column in answer.columns:
        if column in answer.keys:
            value = column.values[row]
            texts.append("NULL" if value is None else str(value))
        else:
            low, high = column.low[row], column.high[row]  # type: ignore[union-attr]
            if column.places:  # type: ignore[union-attr]
                found = column.possible_in(row)  # type: ignore[union-attr]
                estimate, interval = possible_values([column.values[row]]), possible_values(found)
            else:
                estimate, interval = with_interval(column.values[row], low, high)
            known = row not in column.unknown  # type: ignore[union-attr]
            texts += [estimate if known else NO_INFORMATION, interval]
    return texts


def answer_table(answer: "Answer") -> Any:
    """A rich table: each aggregate as estimate and interval."""
    from rich.table import Table  # noqa: PLC0415  loaded when printed

    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    interval = ""
    for name, number in _heads(answer):
        table.add_column(printable(name), justify="right" if number else "left", style=interval)
        interval = "cyan" if number and not interval else ""
    for row in range(min(len(answer), notebook.MOST_ROWS)):
        table.add_row(*map(printable, cells(answer, row)))
    return table


def answer_lines(answer: "Answer") -> list[str]:
    """What stands below the table."""
    lines = []
    if len(answer) > notebook.MOST_ROWS:
        lines.append(f"... {len(answer) - notebook.MOST_ROWS:,} more rows; to_polars(), or --json, has all")
    mechanisms = ", ".join(f"{name}: {mechanism}" for name, mechanism in answer.mechanism.items())
    lines.append(f"cost {answer.cost} · {mechanisms}")
    assumed = {column.assumes for column in answer.values}
    holds = " and ".join(words for kind, words in HOLDS.items() if kind in assumed) or "whatever the data are"
    lines.append(f"{_held(answer)} {holds} · protects one {_unit(answer.unit)}")
    lines += answer.notes
    lines += [f"{column.name}: {column.note}" for column in answer.values if column.note]
    lines += answer.wider
    if answer.test_noise:
        lines.append(_WATERMARK)
    return [printable(line) for line in lines]


def _held(answer: "Answer") -> str:
    if answer.chosen is None:
        return f"each interval holds with confidence {answer.confidence:.4g}"
    shown, groups = answer.chosen
    if answer.jointly:
        return (
            f"rows are chosen by value, {shown:,} of {groups:,}: all intervals of a column hold together with "
            f"confidence {answer.confidence:.4g} (each misses at most {1 - answer.each_confidence:.3g} of the time)"
        )
    return (
        f"rows are chosen by value, {shown:,} of {groups:,}: of the intervals shown in a column at least "
        f"{answer.confidence:.4g} hold on average (each misses at most {1 - answer.each_confidence:.3g} of the time)"
    )


def _unit(unit: str) -> str:
    return unit if unit == "row" else f"{unit}"


def answer_text(answer: "Answer") -> str:
    return print_table(answer_table(answer)) + "\n".join(answer_lines(answer))


def answer_html(answer: "Answer") -> str:
    words = [place for place, (_, number) in enumerate(_heads(answer)) if not number]
    rows = [cells(answer, row) for row in range(min(len(answer), notebook.MOST_ROWS))]
    return notebook.framed(
        notebook.grid([name for name, _ in _heads(answer)], rows, words), notebook.lines(answer_lines(answer))
    )


def plan_table(plan: "Plan") -> Any:
    from rich.table import Table  # noqa: PLC0415  loaded when printed

    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    head, rows = _plan_rows(plan)
    for name in head:
        table.add_column(name, justify="right" if _of_numbers(name) else "left")
    for row in rows:
        table.add_row(*(printable(cell) for cell in row))
    return table


def _plan_rows(plan: "Plan") -> tuple[tuple[str, ...], Rows]:
    """Heads and cells; where a width depends on how many rows count, also those for fewer."""
    shown = any(column.fewer for column in plan.columns)
    fewer = ("at 10 % of the rows", "at 1 %") if shown else ()
    rows = [
        (
            column.name,
            half_width(column.half_width),
            *([half_width(half) for half in column.fewer] or [""] * len(fewer)),
            column.mechanism,
            column.assumes,
        )
        for column in plan.columns
    ]
    return ("column", "expected ±", *fewer, "mechanism", "interval assumes"), rows


def plan_lines(plan: "Plan") -> list[str]:
    shape = (
        f"{plan.groups:,} group{'s' * (plan.groups != 1)}"
        if plan.groups is not None
        else "as many groups as a private threshold releases"
    )
    lines = [f"cost {plan.cost} · {shape} · confidence {plan.confidence:.4g} · protects one {_unit(plan.unit)}"]
    lines += plan.notes
    if plan.rooms:
        lines.append(f"made in the {plan.account} account; {rooms_text(plan.rooms)}")
    if not plan.affordable:
        lines.append(f"the budget does not hold this: {plan.budget}")
    return [printable(line) for line in lines]


def plan_text(plan: "Plan") -> str:
    more = f"\n\n{print_table(table_of(*alternative_rows(plan)))}".rstrip("\n") if plan.alternatives else ""
    return print_table(plan_table(plan)) + "\n".join(plan_lines(plan)) + more


def alternative_rows(plan: "Plan") -> tuple[tuple[str, ...], Rows]:
    """What several ε would give."""
    names = [column.name for column in plan.columns]
    head = ("at ε", *(f"{printable(name)} ±" for name in names), "calls that fit")
    rows = [
        (f"{own.epsilon:g}", *(half_width(own.half_width[name]) for name in names), f"{own.fitting:,}")
        for own in plan.alternatives
    ]
    return head, rows


def plan_html(plan: "Plan") -> str:
    head, rows = _plan_rows(plan)
    words = [place for place, name in enumerate(head) if not _of_numbers(name)]
    parts = [notebook.grid(head, rows, words), notebook.lines(plan_lines(plan))]
    if plan.alternatives:
        parts.append(notebook.grid(*alternative_rows(plan), []))
    return notebook.framed(*parts)


def _of_numbers(name: str) -> bool:
    return "±" in name or "%" in name


def print_table(table: Any) -> str:
    from rich.console import Console  # noqa: PLC0415  loaded when printed

    stream = StringIO()
    width = max(80, 20 * len(table.columns))
    Console(file=stream, width=width, highlight=False, markup=False, emoji=False).print(table)
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    return "\n".join(lines) + "\n"


# --- rows of texts, for other products ---


def table_of(head: Sequence[str], rows: Rows) -> Any:
    from rich.table import Table  # noqa: PLC0415  loaded when printed

    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for name in head:
        table.add_column(name, justify="left" if name in _WORDS else "right")
    for row in rows[: notebook.MOST_ROWS]:
        table.add_row(*(printable(cell) for cell in row))
    return table


def html_of(head: Sequence[str], rows: Rows) -> str:
    return notebook.grid(head, rows, [place for place, name in enumerate(head) if name in _WORDS])
