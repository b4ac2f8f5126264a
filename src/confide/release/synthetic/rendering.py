"""How a report on synthetic data looks in print and in a notebook. Nothing is computed here."""

import math
from typing import TYPE_CHECKING, Final

from confide.host.notebook import framed, lines
from confide.release.answer.digits import half_width
from confide.release.answer.rendering import Rows, html_of, print_table, table_of

if TYPE_CHECKING:
    from confide.release.synthetic.report import SyntheticReport

WATERMARK: Final = "TEST NOISE: these records protect nobody"
MOST_ROWS: Final = 30
PREDICTED: Final = (
    "told right: of records of the twin that were held out, by a model of the others; beside it the share of the "
    "commonest value"
)


def kept_rows(report: "SyntheticReport") -> tuple[tuple[str, ...], Rows]:
    """One row for each measured marginal, those that are kept worst first."""
    head = ("marginal", "counts", "± at 0.95", "off, in σ", "at most", "kept")
    ordered = sorted(report.marginals, key=lambda own: -own.loss)
    return head, [
        (
            " × ".join(own.columns),
            f"{own.counts:,}",
            half_width(own.half_width),
            f"{math.sqrt(own.loss):.2f}",
            f"{own.worst:.1f}",
            "yes" if own.kept else "no",
        )
        for own in ordered[:MOST_ROWS]
    ]


def predicted_rows(report: "SyntheticReport") -> tuple[tuple[str, ...], Rows]:
    head = ("column", "told right", "commonest")
    return head, [(own.column, f"{own.right:.1%}", f"{own.commonest:.1%}") for own in report.predictions[:MOST_ROWS]]


def left_out(report: "SyntheticReport") -> list[str]:
    more = len(report.marginals) - MOST_ROWS
    return [f"{more:,} more marginals are kept better than these"] if more > 0 else []


def report_lines(report: "SyntheticReport") -> list[str]:
    made = report.made
    found = [f"synthetic {made.table.name}, by {made.method}, cost {made.cost}", *report.lines()]
    return [*found, WATERMARK] if made.test_noise else found


def report_text(report: "SyntheticReport") -> str:
    parts = ["\n".join(report_lines(report))]
    if report.marginals:
        parts.append(print_table(table_of(*kept_rows(report))) + "\n".join(left_out(report)))
    if report.predictions:
        parts.append(print_table(table_of(*predicted_rows(report))) + PREDICTED)
    return "\n\n".join(part.rstrip("\n") for part in parts)


def report_html(report: "SyntheticReport") -> str:
    tables = [html_of(*kept_rows(report))] if report.marginals else []
    tables += [html_of(*predicted_rows(report))] if report.predictions else []
    return framed(lines(report_lines(report)), *tables)
