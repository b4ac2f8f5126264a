"""What the command `demo` does: a country is made up, asked about, and the answers are held against the truth."""

import tempfile
from dataclasses import dataclass
from math import floor, log10
from pathlib import Path
from shlex import quote
from typing import Any

from rich.padding import Padding
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from confide.cli.census import Census, make_census
from confide.cli.console import Screen, printable, say, show, show_json, waiting
from confide.cli.demo_questions import QUESTIONS, REFUSED, DemoQuestion, Truth
from confide.cli.ledger import spent_bar
from confide.cli.options import read_whole
from confide.cli.output import new_file, occupied
from confide.errors import ParameterError, QueryError
from confide.release import Answer, BudgetState, Session, open_session

FEWEST, MOST = 100, 5_000_000
_TABLES = ("person", "visit", "region_name")
_SHOWN_ROWS = 8
_STRIP = 23
_MARGIN = 3
_WIDE = 100

POLICY = """\
confide: 1
source: {person: person.parquet, visit: visit.parquet, region_name: region_name.parquet}
ledger: policy.ledger
version: made up, PEOPLE people
budget: {epsilon: 3, delta: 1e-9}
unit: person.person_id
tables:
  person:
    size: PEOPLE
    columns:
      person_id: {type: id}
      region: {values: [N, E, S, W, C]}
      sex: {values: [F, M]}
      age: {range: [0, 105], bins: 10}
      education: {values: [none, school, degree]}
      income: {range: [0, 150000], grain: 10}
      job: {type: text}
  visit:
    references: {person_id: person.person_id}
    at_most: {rows: 12, groups: 4}
    size: VISITS
    columns:
      day: {range: [2024-01-01, 2024-12-31], bins: 7}
      reason: {values: [check-up, illness, injury, chronic]}
      cost: {range: [0, 2000], grain: 0.01}
  region_name: {public: true}
"""


@dataclass(frozen=True, slots=True)
class DemoCell:
    """One number of an answer beside its truth."""

    keys: tuple[str, ...]
    column: str
    estimate: float
    low: float
    high: float
    truth: float

    @property
    def holds(self) -> bool:
        return self.low <= self.truth <= self.high

    def spelled(self) -> tuple[str, str, str]:
        """Answer, interval and truth, with as many decimals as the interval is worth."""
        whole = isinstance(self.estimate, int)
        decimals = 0 if whole else max(0, min(6, 2 - floor(log10(max(self.high - self.low, 1e-6)))))
        estimate, low, high, truth = (f"{v:,.{decimals}f}" for v in (self.estimate, self.low, self.high, self.truth))
        return estimate, f"{low} … {high}", truth


@dataclass(frozen=True, slots=True)
class DemoStep:
    """One question of the demo with its answer, compared cell by cell."""

    question: DemoQuestion
    answer: Answer
    cells: tuple[DemoCell, ...]
    remark: str
    budget: BudgetState


def run(folder: str | None, people: str, as_json: bool) -> None:
    count = read_whole(people, "--people")
    if count is None or not FEWEST <= count <= MOST:
        raise ParameterError(f"--people {people}: a country has {FEWEST:,} to {MOST:,} people here")
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="confide-demo-") as place:
            _run(Path(place), count, as_json, kept=False)
    else:
        _run(Path(folder), count, as_json, kept=True)


def _run(place: Path, people: int, as_json: bool, kept: bool) -> None:
    with waiting("making up a country"):
        census = make_census(people)
        policy = _prepare(place, census)
    with waiting("opening the data"):
        session = open_session(policy, create=True)
    with session:
        if as_json:
            show_json(_as_data(policy, [_ask(session, census, question) for question in QUESTIONS], session))
            return
        _introduce(policy, census)
        _plan(session)
        steps = []
        for place_in_line, question in enumerate(QUESTIONS, start=1):
            with waiting("asking"):
                steps.append(_ask(session, census, question))
            _show_step(place_in_line, steps[-1])
        _refuse(session)
        _again(session)
        _close(policy, steps, session.budget, kept)


def _prepare(place: Path, census: Census) -> Path:
    """Data and policy in their folder. What is there from an earlier run is used again, and nothing is overwritten."""
    policy = place / "policy.yaml"
    text = POLICY.replace("PEOPLE", str(len(census.person["age"]))).replace("VISITS", str(len(census.visit["cost"])))
    if place.exists() and not place.is_dir():
        raise ParameterError(f"--dir {place}: this is a file; name a folder, which is made if it is not there")
    place.mkdir(parents=True, exist_ok=True)
    files = [place / f"{table}.parquet" for table in _TABLES]
    if policy.exists() and policy.read_text() == text and all(file.exists() for file in files):
        return policy
    taken = [file.name for file in (policy, *files) if file.exists()]
    if taken:
        raise occupied(place, f"it holds another {', '.join(taken)}", "choose another --dir")
    census.write(place)
    with new_file(policy, "choose another --dir") as stream:
        stream.write(text)
    return policy


def _ask(session: Session, census: Census, question: DemoQuestion) -> DemoStep:
    answer = session.sql(question.sql, epsilon=question.epsilon, bounds=question.bounds)
    cells = tuple(_cells(answer, question.truth(census)))
    return DemoStep(question, answer, cells, question.remark(census), session.budget)


def _cells(answer: Answer, truth: Truth) -> list[DemoCell]:
    cells = []
    for row in range(len(answer)):
        keys = tuple(key.values[row] for key in answer.keys)
        for column in answer.values:
            true = truth[keys][column.name]
            ends = column.low[row], column.high[row]
            cells.append(DemoCell(tuple(map(str, keys)), column.name, column.values[row], *ends, true))
    return cells


# --- on the screen ----------------------------------------------------------------------------------------------------


def _heading(text: str) -> None:
    say("")
    show(Rule(Text(text, style="bold"), align="left", style="blue"))


def _introduce(policy: Path, census: Census) -> None:
    people, visits = len(census.person["age"]), len(census.visit["cost"])
    _heading("A made-up country")
    say(f"{people:,} people and {visits:,} visits to a doctor, none of them real, so that the truth may be shown here.")
    say("The custodian writes a policy: what is public, who is protected, and how much may be spent in all.")
    _code(policy.read_text(), "yaml")
    say("A person is protected with all their visits: all answers together tell no more of anybody than ε = 3 allows.")


def _plan(session: Session) -> None:
    _heading("Before asking: what would it cost?")
    question = QUESTIONS[0].sql
    _code(question, "sql")
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for heading in ("to be within", "costs ε", "calls in the budget", "noise"):
        table.add_column(heading, justify="right")
    for width in (200, 50, 10):
        plan = session.plan(question, within=width)
        fitting = f"{plan.budget.answers_left(plan.epsilon, session.policy.budget):,}"
        table.add_row(f"± {width}", f"{plan.epsilon:.3g}", fitting, plan.mechanism["people"])
    show(table)
    say("", "A plan is free: it follows from the question and the policy, and reads nothing private.")


def _show_step(place: int, step: DemoStep) -> None:
    question = step.question
    _heading(f"{place} of {len(QUESTIONS)} · {question.title}")
    say(question.lesson)
    _code(question.sql, "sql")
    shown = step.cells[: _SHOWN_ROWS * len(step.answer.values)]
    show(_compared(step.answer, shown))
    say("")
    if len(shown) < len(step.cells):
        say(f"… and {len(step.answer) - _SHOWN_ROWS} more rows like these", style="dim")
    if step.remark:
        say(step.remark)
    bounds = "".join(f", bounds {name} = {low:,} to {high:,}" for name, (low, high) in (question.bounds or {}).items())
    cost = "answered in an earlier run, so free now" if step.answer.stored else f"cost ε = {question.epsilon}{bounds}"
    say(f"{cost} · ε = {step.budget.spent:.3g} spent of {step.budget.total:g}", style="dim")
    show(spent_bar(step.budget.spent, step.budget.total))


def _compared(answer: Answer, cells: tuple[DemoCell, ...]) -> Table:
    """Each number with its interval and the truth; on a wide screen also as a picture."""
    several, wide = len(answer.values) > 1, Screen().width >= _WIDE
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for key in answer.keys:
        table.add_column(key.name)
    if several:
        table.add_column("")
    table.add_column("answer", justify="right")
    table.add_column(f"{answer.confidence:.0%} interval", justify="right", style="cyan")
    table.add_column("truth", justify="right", style="magenta")
    table.add_column("")
    if wide:
        table.add_column(Text.assemble(("├─answer─┤", "cyan"), " ", ("◆ truth", "magenta")))
    before: tuple[str, ...] | None = None
    for cell in cells:
        row = ["" if cell.keys == before else printable(key) for key in cell.keys]
        row += [cell.column] if several else []
        row += cell.spelled()
        mark = Text("✓", style="green") if cell.holds else Text("✗ missed", style="bold red")
        table.add_row(*row, mark, *([_strip(cell)] if wide else []))
        before = cell.keys
    return table


def _strip(cell: DemoCell) -> Text:
    """The interval as a line, with the answer on it, and where the truth lies."""
    width = cell.high - cell.low or 1.0
    start, end = _MARGIN, _STRIP - 1 - _MARGIN

    def place(value: float) -> int:
        return max(0, min(_STRIP - 1, round(start + (value - cell.low) / width * (end - start))))

    marks = [" "] * start + ["├", *"─" * (end - start - 1), "┤"] + [" "] * start
    marks[place(cell.estimate)] = "●"
    text = Text("".join(marks), style="cyan")
    spot = place(cell.truth)
    return Text.assemble(text[:spot], ("◆", "magenta" if cell.holds else "bold red"), text[spot + 1 :])


def _refuse(session: Session) -> None:
    _heading("Refused")
    _code(REFUSED, "sql")
    before = session.budget.spent
    try:
        session.sql(REFUSED, epsilon="0.5")
    except QueryError as error:
        say(str(error), label="refused")
    spent = "nothing" if session.budget.spent == before else "something"
    say(f"Decided from the text and the policy alone: nothing was read, and {spent} was charged.")


def _again(session: Session) -> None:
    _heading("The same question again")
    _code(QUESTIONS[0].sql, "sql")
    again = session.sql(QUESTIONS[0].sql, epsilon=QUESTIONS[0].epsilon)
    value = again.to_dicts()[0]
    free = "free" if again.stored else "charged again"
    say(f"{value['people']:,}, the very same answer, and {free}: asking often does not wash the noise out.")


def _close(policy: Path, steps: list[DemoStep], budget: BudgetState, kept: bool) -> None:
    _heading("What happened")
    cells = [cell for step in steps for cell in step.cells]
    held = sum(cell.holds for cell in cells)
    say(
        f"{held} of {len(cells)} intervals hold the truth. At least 95% are expected to: a miss now and then is honest."
    )
    asked = sum(float(step.question.epsilon) for step in steps)
    say(
        f"Six calls, {asked:.3g} in all, count as ε = {budget.spent:.3g}: under an (ε, δ) budget small calls together"
        f" cost less than their sum. One more call may cost up to ε = {budget.left:.3g}."
    )
    show(spent_bar(budget.spent, budget.total))
    if kept:
        say("", "Now ask something yourself:")
        path = quote(str(policy))
        query = "SELECT region, AVG(age) AS age FROM person GROUP BY region"
        for line in (
            f"confide check {path}",
            f'confide plan {path} "{query}" --within 1',
            f'confide sql {path} "{query}" --epsilon 0.2',
            f"confide ledger show {path}",
        ):
            say(f"  {line}", style="bold")
    else:
        say("", "The files are gone again. To keep them and ask yourself: confide demo --dir demo")


def _code(text: str, language: str) -> None:
    code = Syntax(text.rstrip(), language, theme="ansi_dark", background_color="default", word_wrap=True)
    show(Padding(code, (1, 2)))


# --- for scripts ------------------------------------------------------------------------------------------------------


def _as_data(policy: Path, steps: list[DemoStep], session: Session) -> dict[str, Any]:
    questions = [
        {
            "title": step.question.title,
            "sql": step.question.sql,
            "epsilon": step.question.epsilon,
            "spent": step.budget.spent,
            "cells": [
                {name: getattr(cell, name) for name in (*cell.__dataclass_fields__, "holds")} for cell in step.cells
            ],
        }
        for step in steps
    ]
    try:
        session.sql(REFUSED, epsilon="0.5")
        message = None
    except QueryError as error:
        message = str(error)
    return {
        "policy": str(policy),
        "questions": questions,
        "refused": {"sql": REFUSED, "message": message},
        "budget": {"total": session.budget.total, "spent": session.budget.spent, "left": session.budget.left},
    }
