"""What a budget buys: how many counts, means and medians of a width fit it, with a δ and without.

Told by the code that plans and charges answers, from the policy alone; nothing is read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from confide.errors import ConfideError
from confide.ledger import MemoryLedger
from confide.policy import Column, Identifier, KeyUnit, Number, Policy, Table
from confide.policy.column import show
from confide.privacy.budget import Budget
from confide.query.bind import bind
from confide.release.sql.forecast import forecast
from confide.release.sql.grids import gridded

COUNT_WIDTHS: Final = (10, 20, 50, 100)
USUAL_DELTA: Final = Fraction(1, 10**9)
GROUP_ROWS: Final = 1_000
"""Means and medians are told for a group of so many rows."""
_SHARE: Final = Fraction(1, 100)
_CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Purchase:
    """One kind of answer: what it asks, how wide it is to be, and how many of it a whole budget holds."""

    what: str
    within: str
    with_delta: int | None
    """Calls in the budget with a δ; None where no ε gives the width."""
    without_delta: int | None


@dataclass(frozen=True, slots=True)
class Purchases:
    """All that was tried, for one budget of ε, with this δ and without any; nothing of it spent."""

    epsilon: Fraction
    delta: Fraction
    offered: tuple[Purchase, ...]


def purchases(policy: Policy) -> Purchases:
    """What the whole budget of a policy buys in the table of its unit; under a δ of 1e-9, if it has none."""
    delta = policy.budget.delta or USUAL_DELTA
    budgets = (Budget(policy.budget.epsilon, delta), Budget(policy.budget.epsilon))
    offered = []
    for what, sql, within in _wanted(_own_table(policy)):
        calls = [_calls(policy, sql, within, budget) for budget in budgets]
        offered.append(Purchase(what, show(within), *calls))
    return Purchases(policy.budget.epsilon, delta, tuple(offered))


def _wanted(table: Table) -> Iterator[tuple[str, str, Fraction]]:
    """What is asked for, how, and how wide it may be: of numbers one in a hundred of their range, of a small group."""
    name = _quoted(table.name)
    # How many rows there are may be public; how many of them have a value is not.
    told = next((own.name for own in table.columns.values() if not isinstance(own, Identifier)), None)
    some = f" WHERE {_quoted(told)} IS NOT NULL" if table.rows == "public" and told is not None else ""
    for width in COUNT_WIDTHS:
        yield f"a count in {table.name}", f"SELECT COUNT(*) AS n FROM {name}{some}", Fraction(width)
    column = next((own for own in table.columns.values() if isinstance(own, Number)), None)
    if column is not None:
        share = (column.high - column.low) * _SHARE
        for word, function in (("mean", "AVG"), ("median", "MEDIAN")):
            sql = f"SELECT {function}({_quoted(column.name)}) AS x FROM {name}"
            yield f"the {word} of {column.name} in {GROUP_ROWS:,} rows", sql, share


def _calls(policy: Policy, sql: str, within: Fraction, budget: Budget) -> int | None:
    question = gridded(bind(sql, policy, _NothingPublic(policy)), policy)
    planned = forecast(question, policy, _CONFIDENCE, {}, GROUP_ROWS, budget)
    try:
        loss = planned.at(planned.smallest_epsilon(float(within)))[1].loss
    except ConfideError:
        return None
    return MemoryLedger(budget).standing().room(loss)


def _own_table(policy: Policy) -> Table:
    """The table with one row for each unit, or the first private one."""
    return policy.tables[policy.unit.table] if isinstance(policy.unit, KeyUnit) else policy.private_tables[0]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class _NothingPublic:
    """A catalogue for questions that name no public table."""

    policy: Policy

    def columns(self, table: str) -> Mapping[str, Column]:
        return self.policy.tables[table].columns

    def multiplicity(self, table: str, columns: tuple[str, ...]) -> int:
        raise AssertionError(f"{table} is not asked about")

    def distinct(self, table: str, columns: tuple[str, ...], most: int) -> Any:
        raise AssertionError(f"{table} is not asked about")
