"""What the command `trust` does."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confide.cli.console import say, show, show_json, waiting
from confide.cli.options import read_share, read_sql
from confide.cli.output import once_paid
from confide.cli.sql import budget_facts, chart_place, draw, opened, say_where
from confide.errors import ParameterError
from confide.policy import Policy
from confide.release import BudgetState
from confide.release.frame_check import read_file

if TYPE_CHECKING:
    from confide.release.verdict.verdict import Verdict, Verdicts


@dataclass(frozen=True, slots=True)
class TrustOptions:
    """A request for verdicts, as it was typed."""

    policy: str
    sql: list[str]
    synthetic: list[str]
    within: str
    epsilon: str | None
    mechanism: str
    prefer: str
    gap: str | None
    error: str
    analyst: str
    ledger: str | None

    def arguments(self) -> dict[str, Any]:
        """What a plan and a verdict share."""
        texts = [read_sql(text) for text in self.sql]
        return {
            "sql": texts[0] if len(texts) == 1 else texts,
            "synthetic": _synthetic(self.synthetic, Policy.load(self.policy)),
            "within": self.within,
            "mechanism": self.mechanism,
            "prefer": self.prefer,
        }


def plan(options: TrustOptions, plot: str | None, as_json: bool) -> None:
    """The forecast alone: free."""
    arguments = options.arguments()
    chart = None if plot is None else chart_place(plot)
    error = read_share(options.error, "--error")
    with opened(options.policy, options.ledger, options.analyst) as session, waiting("planning"):
        made = session.plan_trust(**arguments, epsilon=options.epsilon, gap=options.gap, error=error)
        budget = session.budget
    plans = made if isinstance(made, tuple) else (made,)
    if chart is not None:
        if len(plans) != 1:
            raise ParameterError("--plot draws one plan; ask about one query without GROUP BY")
        with waiting("drawing"):
            draw(plans[0].plot(*(name for name in plans[0].names if name != "exponential-naive")), chart)
    if as_json:
        show_json({"plans": [one.to_dict() for one in plans], "budget": budget_facts(budget)})
        return
    for one in plans:
        say(*str(one).splitlines(), "")
    if chart is not None:
        say_where(chart)


def trust(options: TrustOptions, as_json: bool) -> None:
    if options.epsilon is None:
        raise ParameterError("give --epsilon, what the whole call may cost; --plan shows what it gives, for free")
    if options.gap is not None:
        raise ParameterError("--gap is for a forecast: write --plan too, or leave it out")
    arguments = options.arguments()
    with opened(options.policy, options.ledger, options.analyst) as session:
        with waiting("deciding") as progress:
            found = session.trust(**arguments, epsilon=options.epsilon, progress=progress)
        with once_paid():
            _give(found, session.budget, as_json)


def _give(found: "Verdict | Verdicts", after: BudgetState, as_json: bool) -> None:
    """What was decided, shown."""
    from confide.release.verdict.verdict import Verdict  # noqa: PLC0415  loaded when used

    verdicts = [found] if isinstance(found, Verdict) else list(found)
    if as_json:
        notes = [] if isinstance(found, Verdict) else list(found.notes)
        facts = {"verdicts": [one.to_dict() for one in verdicts], "notes": notes}
        show_json({**_plain(facts), "stored": found.stored, "budget": budget_facts(after)})
        return
    if isinstance(found, Verdict):
        say(found.lines[0], style="bold")
        say(*found.lines[1:], style="dim")
    else:
        show(found.table())
        say(*found.lines, style="dim")
    say(
        "asked before: this is the stored verdict, and it cost nothing" if found.stored else f"budget: {after}",
        style="dim",
    )


def _synthetic(given: list[str], rules: Policy) -> Any:
    """A file, or files by table: person=twin.parquet. Who types is the custodian, and the files are theirs."""
    if not given:
        raise ParameterError("give the synthetic data: --synthetic twin.parquet, or --synthetic person=twin.parquet")
    parts = [text.partition("=") for text in given if not Path(text).exists() and "=" in text]
    named = [(name, file) for name, _, file in parts]
    if not named and len(given) == 1:
        return read_file(Path(given[0]), "the synthetic data")
    if len(named) != len(given) or len({name for name, _ in named}) < len(named):
        raise ParameterError("of several synthetic files each names its table: --synthetic person=twin.parquet")
    strange = [name for name, _ in named if name not in rules.tables]
    if strange:
        raise ParameterError(
            f"--synthetic {strange[0]}=...: the policy has no such table; it has {', '.join(rules.tables)}"
        )
    return {name: read_file(Path(file), f"the synthetic {name}") for name, file in named}


def _plain(facts: dict[str, Any]) -> dict[str, Any]:
    """Keys of groups may be dates."""
    plain: dict[str, Any] = json.loads(json.dumps(facts, default=str))
    return plain
