"""How microdata, their plans and their reports look in print and in a notebook. Nothing is computed here."""

from typing import TYPE_CHECKING

from confide.host.notebook import framed, lines, title
from confide.release.answer.digits import half_width, number
from confide.release.answer.rendering import Rows, html_of, print_table, table_of
from confide.release.microdata.marginals import show_marginal

if TYPE_CHECKING:
    from confide.release.microdata.microdata import Microdata
    from confide.release.microdata.plan import MicrodataPlan
    from confide.release.microdata.report import MicrodataReport

MOST_ROWS = 20
WATERMARK = "TEST NOISE: these microdata protect nobody"


def marginal_rows(made: "Microdata") -> tuple[tuple[str, ...], Rows]:
    """One row for each measured marginal."""
    head = ("marginal", "counts", f"± at {made.confidence:.4g}", "noise", "noisy sum", "fitted sum", "moved at most")
    rows = []
    for each in made.measured.marginals:
        fitted = made.fitted.answer(made.measured.group(each.marginal))
        rows.append(
            (
                show_marginal(each.marginal),
                f"{len(each.counts):,}",
                half_width(each.law.half_width(made.confidence)),
                each.mechanism.removeprefix("discrete "),
                number(int(each.counts.sum())),
                f"{float(fitted.sum()):,.1f}",
                f"{float(abs(fitted - each.counts).max()):,.1f}",
            )
        )
    return head, rows


def microdata_lines(made: "Microdata") -> list[str]:
    fitted, domain = made.fitted, made.measured.domain
    shape = " × ".join(f"{name} ({size})" for name, size in zip(domain.attributes, domain.sizes, strict=True))
    filled = int((fitted.cells > 0).sum())
    lines = [
        f"cost {made.cost} for all of it · protects one {made.measured.unit}",
        f"table {made.measured.table}: {shape} = {domain.cells:,} cells, {filled:,} of them filled by {made.method} "
        f"(within {fitted.certificate.distance:.1g} deviations of the best fit)",
        "noisy(marginal) has the noisy counts with intervals, to_polars() the fitted table, records() whole records, "
        "error(query) intervals of sums, report() what was given up",
        *made.notes,
    ]
    if made.measured.test_noise:
        lines.append(WATERMARK)
    return lines


def plan_rows(plan: "MicrodataPlan") -> tuple[tuple[str, ...], Rows]:
    head = ("marginal", "counts", "noisy ±", "from all ±", "mean count", "noise")
    rows = [
        (
            show_marginal(each.marginal),
            f"{each.cells:,}",
            half_width(each.half_width),
            half_width(each.combined),
            "?" if each.mean is None else f"{each.mean:,.1f}",
            each.mechanism.removeprefix("discrete "),
        )
        for each in plan.marginals
    ]
    return head, rows


def plan_lines(plan: "MicrodataPlan") -> list[str]:
    lines = [
        f"cost {plan.cost} for all marginals together · {plan.cells:,} cells to fit · confidence "
        f"{plan.confidence:.4g} · protects one {plan.unit}",
        *plan.notes,
    ]
    if not plan.affordable:
        lines.append(f"the budget does not hold this: {plan.budget}")
    return lines


def risk_rows(report: "MicrodataReport") -> tuple[tuple[str, ...], Rows]:
    head = ("sum", "over", "noisy", "parts", "could be noise", "cut at zero adds", "noise of the sum")
    rows = [
        (
            risk.name,
            show_marginal(risk.over),
            number(int(risk.noisy)),
            f"{risk.parts:,}",
            f"{risk.low:,}",
            f"{risk.excess:,.1f}",
            f"{risk.deviation:,.1f}",
        )
        for risk in report.risks[:MOST_ROWS]
    ]
    return head, rows


def moved_rows(report: "MicrodataReport") -> tuple[tuple[str, ...], Rows]:
    head = ("fit", "total moved", "sums moved", "parts moved", "in words")
    rows = [
        (
            f"{each.method} (chosen)" if each.method == report.method else each.method,
            f"{round(each.total, 2) + 0.0:+.2f}",  # no minus zero
            f"{each.sums:.2f}",
            f"{each.parts:.2f}",
            report.words(each.method),
        )
        for each in report.sacrifices
    ]
    return head, rows


MOVED = "moved: how far from the unbiased estimate, the worst of those that noise alone does not explain, in deviations"


def microdata_text(made: "Microdata") -> str:
    return print_table(table_of(*marginal_rows(made))) + "\n".join(microdata_lines(made))


def microdata_html(made: "Microdata") -> str:
    return framed(html_of(*marginal_rows(made)), lines(microdata_lines(made)))


def plan_text(plan: "MicrodataPlan") -> str:
    return print_table(table_of(*plan_rows(plan))) + "\n".join(plan_lines(plan))


def plan_html(plan: "MicrodataPlan") -> str:
    return framed(html_of(*plan_rows(plan)), lines(plan_lines(plan)))


def report_text(report: "MicrodataReport") -> str:
    parts = ["\n".join(report.lines())]
    if report.risks:
        parts.append(print_table(table_of(*risk_rows(report))).rstrip("\n"))
    parts.append(print_table(table_of(*moved_rows(report))) + MOVED)
    return "\n\n".join(parts)


def report_html(report: "MicrodataReport") -> str:
    risks = html_of(*risk_rows(report)) if report.risks else ""
    return framed(*map(title, report.lines()), risks, html_of(*moved_rows(report)), lines([MOVED]))
