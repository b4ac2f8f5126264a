"""What the command `summary` does."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from confide.cli.console import say, show, show_json, waiting
from confide.cli.options import read_share, read_whole
from confide.cli.output import once_paid
from confide.cli.sql import budget_facts, chart_place, draw, opened
from confide.errors import ParameterError
from confide.release import BudgetState

if TYPE_CHECKING:
    from confide.release.summary.summary import TableSummary


@dataclass(frozen=True, slots=True)
class SummaryCommand:
    """A request for a summary, as it was typed."""

    policy: str
    table: str | None
    epsilon: str | None
    confidence: str
    rows: str | None
    account: str
    analyst: str
    ledger: str | None

    @property
    def cost(self) -> str:
        if self.epsilon is None:
            raise ParameterError("give --epsilon, what the whole summary may cost; --plan shows for free what it gives")
        return self.epsilon


def plan(options: SummaryCommand, as_json: bool) -> None:
    """The forecast alone: free."""
    from confide.release.summary.rendering import plan_lines, plan_table  # noqa: PLC0415  loaded when printed

    level, rows = read_share(options.confidence, "--confidence"), read_whole(options.rows, "--rows")
    with opened(options.policy, options.ledger, options.analyst) as session, waiting("planning"):
        made = session.plan_summary(options.cost, options.table, level, rows=rows, account=options.account)
    if as_json:
        show_json({**made.to_dict(), "budget": budget_facts(made.budget)})
        return
    show(plan_table(made))
    say(*plan_lines(made), style="dim")


def summary(options: SummaryCommand, out: str | None, as_json: bool) -> None:
    level, place = read_share(options.confidence, "--confidence"), None if out is None else chart_place(out, "--out")
    with opened(options.policy, options.ledger, options.analyst) as session:
        with waiting("looking"):
            made = session.summary(options.cost, options.table, level, account=options.account)
        with once_paid():
            _give(made, session.budget, place, as_json)


def _give(made: "TableSummary", after: BudgetState, place: Path | None, as_json: bool) -> None:
    """The summary, written and shown."""
    from confide.release.summary.rendering import summary_lines, summary_table  # noqa: PLC0415  loaded when printed

    if place is not None:
        if place.suffix.lower() == ".html":
            try:
                made.to_html(place)
            except OSError as error:
                say(f"the page could not be written to {place}: {error.strerror}; the summary is below", errors=True)
        else:
            with waiting("drawing"):
                draw(made.plot(), place)
    if as_json:
        show_json({**made.to_dict(), "stored": made.stored, "budget": budget_facts(after)})
        return
    show(summary_table(made))
    say(*summary_lines(made), style="dim")
    say(
        "asked before: this is the stored summary, and it cost nothing" if made.stored else f"budget: {after}",
        style="dim",
    )
    if place is not None:
        say(f"written to {place}", style="dim")
