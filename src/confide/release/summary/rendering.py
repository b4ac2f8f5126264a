"""How a summary looks in print, in a notebook and as a page of its own: words, numbers and bars."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from confide.host import notebook
from confide.release.answer.digits import half_width, number, with_interval
from confide.release.answer.rendering import print_table, printable

if TYPE_CHECKING:
    from confide.release.summary.plan import SummaryPlan
    from confide.release.summary.summary import ColumnSummary, Figure, TableSummary

_BARS: Final = "▁▂▃▄▅▆▇█"
_WATERMARK: Final = "TEST NOISE: this summary protects nobody"
_WIDTH, _HEIGHT = 420, 90


def summary_text(summary: "TableSummary") -> str:
    return print_table(summary_table(summary)) + "\n".join(summary_lines(summary))


def summary_table(summary: "TableSummary") -> Any:
    """A rich table: a line for each column."""
    from rich.table import Table  # noqa: PLC0415  loaded when printed

    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    table.add_column("column")
    table.add_column("missing", justify="right")
    table.add_column("shape")
    table.add_column("values, each with its interval", overflow="fold")
    rows = figure_text(summary.rows)
    table.add_row("(rows)", "", "", rows)
    for column in summary.columns:
        table.add_row(
            printable(column.name), figure_text(column.missing), sparkline(column), printable("; ".join(said(column)))
        )
    return table


def said(column: "ColumnSummary") -> list[str]:
    """Quantiles, or the commonest values."""
    texts = [f"{share} {figure_text(own)}" for share, own in column.quantiles.items()]
    texts += [f"{value} {figure_text(own)}" for value, own in column.commonest]
    more = (column.listed or 0) - len(column.commonest)
    return texts + ([f"{more:,} more values"] if more > 0 else []) + ([column.note] if column.note else [])


def figure_text(figure: "Figure") -> str:
    """An estimate and its interval."""
    if isinstance(figure.value, int | float):
        value, ends = with_interval(figure.value, figure.low, figure.high)
    else:
        value, ends = str(figure.value), f"{figure.low} … {figure.high}"
    return f"{value} ({ends})"


def sparkline(column: "ColumnSummary") -> str:
    """A histogram in one line."""
    counts = [bar.rows.value for bar in column.histogram]
    most = max(counts, default=0)
    if most <= 0:
        return ""
    return "".join(_BARS[min(len(_BARS) - 1, count * len(_BARS) // (most + 1))] for count in counts)


def summary_lines(summary: "TableSummary") -> list[str]:
    """What stands below the table."""
    measured = summary.measured
    lines = [
        f"cost {summary.cost} · each interval holds with confidence {summary.confidence:.4g} whatever the data are · "
        f"protects one {measured.unit}",
        *measured.notes,
    ]
    if any((column.listed or 0) > len(column.commonest) for column in summary.columns):
        lines.append("commonest values are chosen by their counts: of the intervals shown that share holds on average")
    if measured.test_noise:
        lines.append(_WATERMARK)
    return [printable(line) for line in lines]


def summary_html(summary: "TableSummary") -> str:
    """For a notebook: one frame, with a small picture of each shape."""
    parts = [notebook.title(f"{summary.table}: {figure_text(summary.rows)} rows")]
    for column in summary.columns:
        parts.append(notebook.title(f"{column.name}: missing {figure_text(column.missing)}"))
        parts.append(_picture(column))
        parts.append(_tables(column))
        if column.note:
            parts.append(notebook.lines([column.note]))
    parts.append(notebook.lines(summary_lines(summary)))
    return notebook.framed(*parts)


def summary_page(summary: "TableSummary") -> str:
    """A page that holds all it needs: no script, and nothing is fetched."""
    title = notebook.shown(f"Summary of {summary.table}")
    return (
        f"<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'><title>{title}</title>"
        "<style>body{font-family:system-ui,sans-serif;margin:2em auto;max-width:60em;padding:0 1em}"
        "@media (prefers-color-scheme: dark){body{background:#1b1b1b;color:#e6e6e6}}</style></head>"
        f"<body><h1>{title}</h1>{summary_html(summary)}</body></html>\n"
    )


def _tables(column: "ColumnSummary") -> str:
    if column.quantiles:
        rows = [(share, *_cells(own)) for share, own in column.quantiles.items()]
        return notebook.grid(("rows below", "value", "interval"), rows, words=(0,))
    if column.commonest:
        rows = [(str(value), *_cells(own)) for value, own in column.commonest]
        return notebook.grid(("value", "rows", "interval"), rows, words=(0,))
    return ""


def _cells(figure: "Figure") -> tuple[str, str]:
    if isinstance(figure.value, int | float):
        return with_interval(figure.value, figure.low, figure.high)
    return str(figure.value), f"{figure.low} … {figure.high}"


def _picture(column: "ColumnSummary") -> str:
    """Bars with whiskers, drawn in the colour of the page."""
    bars = column.histogram
    most = max((bar.rows.high for bar in bars), default=0)
    if most <= 0:
        return ""
    step = _WIDTH / len(bars)
    shapes = []
    for place, bar in enumerate(bars):
        left, heights = place * step, [_HEIGHT * end / most for end in (bar.rows.value, bar.rows.low, bar.rows.high)]
        said = notebook.shown(f"{bar.first} to {bar.last}: {figure_text(bar.rows)}")
        middle = left + step / 2
        shapes.append(
            f"<g><title>{said}</title><rect x='{left + 1:.1f}' y='{_HEIGHT - heights[0]:.1f}' width='{step - 2:.1f}' "
            f"height='{heights[0]:.1f}' fill='currentColor' opacity='.45'/>"
            f"<line x1='{middle:.1f}' x2='{middle:.1f}' y1='{_HEIGHT - heights[1]:.1f}' "
            f"y2='{_HEIGHT - heights[2]:.1f}' stroke='currentColor'/></g>"
        )
    ends = notebook.lines([f"from {bars[0].first} to {bars[-1].last}; whiskers are intervals"])
    label = notebook.shown(f"histogram of {column.name}")
    return (
        f"<svg width='{_WIDTH}' height='{_HEIGHT}' viewBox='0 0 {_WIDTH} {_HEIGHT}' role='img' "
        f"aria-label='{label}'>{''.join(shapes)}</svg>{ends}"
    )


# --- plans ------------------------------------------------------------------------------------------------------------


def plan_head() -> tuple[str, ...]:
    return ("column", "counted by", "± of a count", "± of a median, in rows", "what will be readable")


def plan_cells(plan: "SummaryPlan") -> Sequence[tuple[str, ...]]:
    return [
        (
            own.name,
            own.cells,
            half_width(own.half_width),
            "" if own.ranks is None else number(round(own.ranks)),
            own.said,
        )
        for own in plan.columns
    ]


def plan_table(plan: "SummaryPlan") -> Any:
    from rich.table import Table  # noqa: PLC0415  loaded when printed

    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for place, name in enumerate(plan_head()):
        table.add_column(name, justify="right" if place in (2, 3) else "left")
    for row in plan_cells(plan):
        table.add_row(*map(printable, row))
    return table


def plan_lines(plan: "SummaryPlan") -> list[str]:
    lines = [
        f"cost {plan.cost} · confidence {plan.confidence:.4g} · protects one {plan.unit} · "
        f"{'affordable' if plan.affordable else 'not affordable'}: {plan.budget}",
        *plan.notes,
    ]
    return [printable(line) for line in lines]


def plan_text(plan: "SummaryPlan") -> str:
    return print_table(plan_table(plan)) + "\n".join(plan_lines(plan))


def plan_html(plan: "SummaryPlan") -> str:
    return notebook.framed(
        notebook.grid(plan_head(), plan_cells(plan), words=(0, 1, 4)), notebook.lines(plan_lines(plan))
    )
