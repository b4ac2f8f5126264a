"""Which statistics are read on a public grid, so that no summary grows beyond its cap. Public facts only."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from confide.engine.protocol import Window
from confide.engine.read.multipass import most_numbers
from confide.errors import QueryError
from confide.mechanism.statistic import StatisticPlan
from confide.policy import Policy
from confide.query.grid import EvenGrid, Grid, even_grid, floating_grid
from confide.query.question import Question, ShownValue, Statistic, statistics_of
from confide.query.tree import Tallied
from confide.release.expected import few_rows, group_count

ASSUMED_KEYS: Final = 1_000
"""Of keys that nobody declared: how many a grid leaves room for."""


def gridded(question: Question, policy: Policy) -> Question:
    """The question with a grid for each statistic that could have more distinct values than a summary may have rows."""
    if not question.statistics or few_rows(question, policy):
        return question
    groups = group_count(question) or ASSUMED_KEYS
    room = max(1, policy.summary_rows // groups)
    tallies: dict[Tallied, int] = {}
    statistics = []
    for statistic in question.statistics:
        tally = question.summary.tallies[statistic.tally]
        grid = _grid(statistic, tally, room, groups)
        if grid is not None:
            tally = replace(tally, grid=grid, sums=statistic.kind != "quantile")
        statistics.append(replace(statistic, tally=tallies.setdefault(tally, len(tallies)), grid=grid))
    return replace(question, statistics=tuple(statistics), summary=replace(question.summary, tallies=tuple(tallies)))


def settled(question: Question, plans: Sequence[StatisticPlan], policy: Policy, steady: bool) -> Question:
    """The question as it is read: without a grid for what a mechanism sees through a window of ranks.

    In passes over rows that are steady, no more values leave than a window has ranks and its ends have cells; how many
    that is at most follows from the text, the policy and the price. Where it is more than the room of a summary, or
    where keys are not known, the grid stays.
    """
    groups = group_count(question)
    if not steady or groups is None or all(statistic.grid is None for statistic in question.statistics):
        return question
    bare = [replace(question.summary.tallies[s.tally], grid=None, sums=False) for s in question.statistics]
    windows: dict[Tallied, list[Window]] = {}
    for statistic, plan, tally in zip(question.statistics, plans, bare, strict=True):
        window = plan.window()
        if statistic.grid is not None and window is not None:
            windows.setdefault(tally, []).append(window)
    tallies: dict[Tallied, int] = {}
    statistics = []
    for statistic, plan, tally in zip(question.statistics, plans, bare, strict=True):
        grid, own = statistic.grid, question.summary.tallies[statistic.tally]
        fine = tally in windows and plan.window() is not None
        if fine and most_numbers(tally, groups, windows[tally]) <= policy.summary_rows:
            grid, own = None, tally
        statistics.append(replace(statistic, tally=tallies.setdefault(own, len(tallies)), grid=grid))
    return replace(question, statistics=tuple(statistics), summary=replace(question.summary, tallies=tuple(tallies)))


def grid_notes(question: Question, policy: Policy) -> tuple[str, ...]:
    """What a grid does to each column that is read on one."""
    notes = []
    for column in question.columns:
        if isinstance(column, ShownValue):
            for place in sorted(statistics_of(column.value)):
                statistic = question.statistics[place]
                if statistic.grid is not None and statistic.kind == "quantile":
                    notes.append(
                        f"{column.name} is read {_described(statistic.grid, statistic.grain)}: its possible values "
                        f"are more than the {policy.summary_rows:,} rows that a summary may have; the interval covers "
                        "that. Where a table has few rows, say so with `size` in the policy"
                    )
    return tuple(dict.fromkeys(notes))


def _described(grid: Grid, grain: Fraction) -> str:
    if isinstance(grid, EvenGrid):
        return f"in steps of {float(grid.step * grain):,g}"
    return f"to {100 / 2**grid.digits:.2g} % of its distance from {float(grid.centre * grain):,g}"


def _grid(statistic: Statistic, tally: Tallied, room: int, groups: int) -> Grid | None:
    span = tally.subject.span
    if statistic.kind == "mode":
        if len(statistic.places) > room:
            raise QueryError(
                f"MODE of {len(statistic.places):,} values in {groups:,} groups is more than a summary has room for; "
                "use fewer groups, or MODE(BIN(x, width))"
            )
        return None
    if span.high - span.low + 1 <= room:
        return None
    if statistic.kind == "quantile" and statistic.low is not None:
        return even_grid(span.low, span.high, room)
    grid = floating_grid(span.low, span.high, _centre(statistic, span.low, span.high), room)
    if grid is None:
        raise QueryError(
            f"{groups:,} groups, each with sums by powers of two, are more than a summary has room for; use fewer "
            "groups, or give the column a range in the policy"
        )
    return grid


def _centre(statistic: Statistic, low: int, high: int) -> int:
    """What the mechanisms sum about: the value nearest to zero where the number of rows is known or measured."""
    centred = statistic.kind == "mean" or statistic.neighbours == "replace-one"
    return min(max(0, low), high) if centred else 0
