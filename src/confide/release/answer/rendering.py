"""How answers and plans look in print and in a notebook. Words and numbers only; nothing is computed here."""

import re
from collections.abc import Sequence
from html import escape
from io import StringIO
from math import isinf
from typing import TYPE_CHECKING, Any

from confide.release.cost import rooms_text

if TYPE_CHECKING:
    from confide.release.answer.answer import Answer
    from confide.release.answer.plan import Plan

_MOST_ROWS = 60
_WORDS = frozenset({"marginal", "noise", "sum", "over", "fit", "in words", "step", "column", "kind"})
"""Columns of words; all others are numbers, and stand to the right."""

Rows = Sequence[tuple[str, ...]]
_HOLDS = {
    "density": "where the data are dense enough (density)",
    "at_most": "where no unit has more rows than count (at_most)",
}
"""Where intervals hold, by what they assume."""
_WATERMARK = "TEST NOISE: this answer protects nobody"


def number(value: float) -> str:
    """Enough digits to be exact for integers, and six significant ones otherwise."""
    if isinstance(value, int):
        return f"{value:,}"
    if isinf(value):
        return "∞" if value > 0 else "-∞"
    if abs(value) >= 1e15:
        return f"{value:.6g}"
    if abs(value) >= 1000:
        return f"{value:,.1f}"
    return f"{value:.6g}"


def printable(text: str) -> str:
    """A key may come from the data, a name from whoever asks: whatever would steer a terminal is spelled out."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def drawable(text: str) -> str:
    """Charts stand in the script of a page, as they are: whatever would end that script, or begin another, is spelled
    out as well. A group may be called <18.
    """
    return re.sub(r"<(?=[/!?a-zA-Z])", r"\\x3c", printable(text))


def answer_table(answer: "Answer") -> Any:
    """A rich table: each aggregate as estimate and interval."""
    from rich.table import Table  # noqa: PLC0415  loaded when printed

    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for column in answer.columns:
        if column in answer.keys:
            table.add_column(printable(column.name), justify="left")
        else:
            table.add_column(printable(column.name), justify="right")
            table.add_column(f"{answer.confidence:.4g} interval", justify="right", style="cyan")
    for row in range(min(len(answer), _MOST_ROWS)):
        cells: list[str] = []
        for column in answer.columns:
            if column in answer.keys:
                value = column.values[row]
                cells.append("NULL" if value is None else printable(str(value)))
            else:
                low, high = column.low[row], column.high[row]  # type: ignore[union-attr]
                cells += [number(column.values[row]), f"{number(low)} … {number(high)}"]
        table.add_row(*cells)
    return table


def answer_lines(answer: "Answer") -> list[str]:
    """What stands below the table."""
    lines = []
    if len(answer) > _MOST_ROWS:
        lines.append(f"... {len(answer) - _MOST_ROWS:,} more rows; to_polars(), or --json, has all")
    mechanisms = ", ".join(f"{name}: {mechanism}" for name, mechanism in answer.mechanism.items())
    lines.append(f"cost {answer.cost} · {mechanisms}")
    assumed = {column.assumes for column in answer.values}
    holds = " and ".join(words for kind, words in _HOLDS.items() if kind in assumed) or "whatever the data are"
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
    return (
        f"rows are chosen by value, {shown:,} of {groups:,}: of the intervals shown in a column at least "
        f"{answer.confidence:.4g} hold on average (each misses at most {1 - answer.each_confidence:.3g} of the time)"
    )


def _unit(unit: str) -> str:
    return unit if unit == "row" else f"{unit}"


def answer_text(answer: "Answer") -> str:
    return print_table(answer_table(answer)) + "\n".join(answer_lines(answer))


def answer_html(answer: "Answer") -> str:
    """A plain HTML table; every text is escaped."""
    heads = "".join(
        f"<th>{escape(column.name)}</th>"
        + ("" if column in answer.keys else f"<th>{answer.confidence:.4g} interval</th>")
        for column in answer.columns
    )
    body = []
    for row in range(min(len(answer), _MOST_ROWS)):
        cells = []
        for column in answer.columns:
            if column in answer.keys:
                value = column.values[row]
                cells.append(f"<td style='text-align:left'>{'NULL' if value is None else escape(str(value))}</td>")
            else:
                low, high = column.low[row], column.high[row]  # type: ignore[union-attr]
                cells.append(f"<td>{number(column.values[row])}</td><td>{number(low)} … {number(high)}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    notes = "<br>".join(escape(line) for line in answer_lines(answer))
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(body)}</tbody></table><small>{notes}</small>"


def plan_table(plan: "Plan") -> Any:
    from rich.table import Table  # noqa: PLC0415  loaded when printed

    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    head, rows = _plan_rows(plan)
    for name in head:
        table.add_column(name, justify="right" if "±" in name or "%" in name else "left")
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
            number(column.half_width),
            *([number(half) for half in column.fewer] or [""] * len(fewer)),
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
    return print_table(plan_table(plan)) + "\n".join(plan_lines(plan))


def plan_html(plan: "Plan") -> str:
    names, cells = _plan_rows(plan)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in cells)
    notes = "<br>".join(escape(line) for line in plan_lines(plan))
    head = f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in names)}</tr>"
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table><small>{notes}</small>"


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
    for row in rows[:_MOST_ROWS]:
        table.add_row(*(printable(cell) for cell in row))
    return table


def html_of(head: Sequence[str], rows: Rows) -> str:
    kinds = ["" if name in _WORDS else " class='number'" for name in head]
    heads = "".join(f"<th{kind}>{escape(name)}</th>" for name, kind in zip(head, kinds, strict=True))
    body = "".join(
        f"<tr>{''.join(f'<td{kind}>{escape(cell)}</td>' for cell, kind in zip(row, kinds, strict=True))}</tr>"
        for row in rows[:_MOST_ROWS]
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def small_lines(lines: Sequence[str]) -> str:
    return f"<small>{'<br>'.join(escape(line) for line in lines)}</small>"
