"""What the commands `plan` and `sql` do."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from confide.cli.boundary import exit_code, tell_refusal
from confide.cli.console import say, show, show_json, waiting
from confide.cli.ledger import differing, no_ledger
from confide.cli.options import read_bounds, read_mechanism, read_share, read_split, read_sql, read_whole, read_within
from confide.cli.output import new_bytes, once_paid, require_free
from confide.errors import ConfideError, LedgerError, LedgerMissing, ParameterError
from confide.policy import Policy
from confide.query.statement_text import statements_of
from confide.release import Answer, BudgetState, Plan, Session, open_session
from confide.release.answer.answer_file import file_place, write
from confide.release.answer.picture import converts, place_for, save
from confide.release.answer.rendering import (
    alternative_rows,
    answer_lines,
    answer_table,
    plan_lines,
    plan_table,
    table_of,
)
from confide.release.custody import books


@dataclass(frozen=True, slots=True)
class SqlCommand:
    """A question and its options, as they were typed."""

    policy: str
    sql: str
    epsilon: str | None
    within: str | None
    confidence: str
    rows: str | None
    split: str | None
    bounds: str | None
    mechanism: str
    account: str
    dialect: str
    analyst: str
    ledger: str | None
    population: bool = False

    def arguments(self) -> dict[str, Any]:
        """The arguments that a plan and an answer share."""
        return {
            "sql": read_sql(self.sql),
            "confidence": read_share(self.confidence, "--confidence"),
            "split": read_split(self.split),
            "bounds": read_bounds(self.bounds),
            "mechanism": read_mechanism(self.mechanism),
            "account": self.account,
            "dialect": self.dialect,
            "population": self.population,
        }

    def planned(self, session: Session, arguments: dict[str, Any]) -> Plan:
        rows, within = read_whole(self.rows, "--rows"), read_within(self.within)
        return session.plan(epsilon=self.epsilon, within=within, rows=rows, **arguments)


def plan(request: SqlCommand, as_json: bool) -> None:
    arguments = request.arguments()
    with opened(request.policy, request.ledger, request.analyst) as session, waiting("planning"):
        made = request.planned(session, arguments)
    if as_json:
        show_json({**made.to_dict(), "budget": budget_facts(made.budget)})
        return
    show(plan_table(made))
    say(*plan_lines(made), style="dim")
    if made.alternatives:
        say("")
        show(table_of(*alternative_rows(made)))


def sql(request: SqlCommand, plot: str | None, out: str | None, keep_going: bool, as_json: bool) -> None:
    if (request.epsilon is None) == (request.within is None):
        raise ParameterError(
            "give --epsilon, what each question may cost, or --within, the width to reach, and not both; "
            "confide plan shows what either gives, for free"
        )
    arguments = request.arguments()
    texts = _questions(request.sql, arguments.pop("sql"), request.dialect)
    arguments |= {
        "epsilon": request.epsilon,
        "within": read_within(request.within),
        "rows": read_whole(request.rows, "--rows"),
    }
    chart = None if plot is None else chart_place(plot)
    places = _places(out, len(texts))
    if chart is not None and len(texts) > 1:
        raise ParameterError(f"--plot draws one answer, and there are {len(texts)} questions; ask them one by one")
    refused: ConfideError | None = None
    with opened(request.policy, request.ledger, request.analyst) as session:
        for number, (text, place) in enumerate(zip(texts, places, strict=True), 1):
            if len(texts) > 1 and not as_json:
                say(f"question {number} of {len(texts)}: {' '.join(text.split())}", style="bold")
            try:
                _answer(session, {"sql": text, **arguments}, place, chart, as_json, asked=len(texts) > 1)
            except ConfideError as error:
                if not keep_going and number < len(texts):
                    say(f"questions {number + 1} to {len(texts)} were not asked: --keep-going asks them", errors=True)
                if not keep_going or number == len(texts):
                    raise
                refused = error
                tell_refusal(error, as_json)
    if refused is not None:
        raise typer.Exit(exit_code(refused))


def _answer(
    session: Session, arguments: dict[str, Any], place: Path | None, chart: Path | None, as_json: bool, asked: bool
) -> None:
    """One question: asked, written, drawn and shown, with what it cost."""
    with waiting("asking") as progress:
        answer = session.sql(progress=progress, **arguments)
    with once_paid():
        after = session.budget
        if place is not None:
            with new_bytes(place, "choose another --out") as stream:
                write(answer, stream, place.suffix)
        if chart is not None:
            with waiting("drawing"):
                draw(answer.plot(), chart)
        if as_json:
            facts = {**json.loads(answer.to_json()), "stored": answer.stored, "budget": budget_facts(after)}
            show_json({"sql": arguments["sql"], **facts} if asked else facts)
            return
        tell(answer, after)
        if place is not None:
            say(f"written to {place}", style="dim")
        if chart is not None:
            say_where(chart)
        if asked:
            say("")


def tell(answer: Answer, after: BudgetState) -> None:
    """An answer as people read it: its table, what it means, what it cost and what is left."""
    show(answer_table(answer))
    say(*answer_lines(answer), style="dim")
    free = "asked before: this is the stored answer, and it cost nothing"
    say(free if answer.stored else f"budget: {after}", style="dim")


def _questions(given: str, text: str, dialect: str) -> tuple[str, ...]:
    """The questions of a command: those in a file, ended by semicolons; what is typed, or piped, is one."""
    return (statements_of(text, dialect) or (text,)) if given.startswith("@") else (text,)


def _places(out: str | None, count: int) -> list[Path | None]:
    """Where answers go, refused before anything is spent: out.csv, or out-1.csv, out-2.csv and so on."""
    if out is None:
        return [None] * count
    place = file_place(out, "--out")
    several = [place.with_stem(f"{place.stem}-{number}") for number in range(1, count + 1)]
    places = several if count > 1 else [place]
    for one in places:
        require_free(one, "--out")
    return [*places]


@contextmanager
def opened(policy: str, ledger: str | None, analyst: str) -> Iterator[Session]:
    rules = Policy.load(policy)
    with waiting("opening the data"):
        try:
            session = open_session(rules, ledger=ledger, analyst=analyst)
        except LedgerError:
            found = books.look(rules, ledger)
            if not found.exists:
                raise LedgerMissing(no_ledger(found, policy, ledger)) from None
            # A ledger with other terms than the policy's is no wrong usage of this command.
            if found.differs:
                raise differing(found.differs, policy) from None
            raise
    with session:
        yield session


def budget_facts(state: BudgetState) -> dict[str, Any]:
    numbers = {"total": state.total, "spent": state.spent, "left": state.left, "delta": state.delta, "cap": state.cap}
    return numbers | ({"accounts": dict(state.accounts)} if state.accounts else {})


def chart_place(plot: str, option: str = "--plot") -> Path:
    """Where to draw, refused before anything is spent."""
    place = place_for(plot, option)
    require_free(place, option)
    return place


def draw(chart: Any, path: Path) -> None:
    try:
        save(chart, path)
    except OSError as error:
        say(f"the chart could not be written to {path}: {error.strerror}; the answer is below", errors=True)


def say_where(chart: Path) -> None:
    fetched = chart.suffix.lower() == ".html" and not converts()
    more = "; it fetches its drawing library when it is opened, and pip install 'confide[plot]' makes pages that do not"
    say(f"drawn in {chart}{more * fetched}", style="dim")
