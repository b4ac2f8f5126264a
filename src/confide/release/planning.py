"""The plan of a question, of whatever kind; without an ε, also what other ε would give."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import floor, log10
from typing import Final

from confide.errors import ConfideError
from confide.query import Question
from confide.query.conjunction import Conjunction
from confide.query.derivation.derivation import Derivation
from confide.release.answer.plan import Alternative, Plan, Within
from confide.release.arguments import Mechanism, confidence_level
from confide.release.holdings import Holdings
from confide.release.join.plan import plan_join
from confide.release.questions import Limits
from confide.release.sql.derived_request import plan_derivation, require_no_options
from confide.release.sql.request import plan_question

_SHARES: Final = (Fraction(1, 100), Fraction(1, 30), Fraction(1, 10), Fraction(1, 3))
"""Of the whole budget: for which of them a plan without an ε is told."""


def planned(
    holdings: Holdings,
    question: Question | Conjunction | Derivation,
    epsilon: object,
    within: Within | None,
    confidence: float,
    options: Mechanism,
    shares: Mapping[str, Fraction],
    limits: Limits,
    rows: int | None,
    account: str,
    population: bool = False,
) -> Plan:
    """Cost and expected widths at ε, or at the least ε that gives a width; without both a choice of several."""

    def at(asked: object) -> Plan:
        if isinstance(question, Derivation):
            require_no_options(shares, options)
            return plan_derivation(holdings, question, asked, within, confidence_level(confidence), rows, account)
        if isinstance(question, Conjunction):
            return plan_join(holdings, question, asked, within, confidence, options, shares, limits, account)
        level = confidence_level(confidence)
        return plan_question(holdings, question, asked, within, level, shares, rows, account, population)

    plan = at(epsilon)
    if epsilon is not None or within is not None:
        return plan
    offers = []
    for share in _SHARES:
        asked = _short(holdings.policy.budget.epsilon * share)
        try:
            other = at(asked)
        except ConfideError:  # too small for exact arithmetic, or for any interval
            continue
        offers.append(Alternative(float(asked), other.half_width, other.fitting))
    return replace(plan, alternatives=tuple(offers))


def _short(amount: Fraction) -> Fraction:
    """Rounded to one digit."""
    unit = Fraction(10) ** floor(log10(amount))
    return round(amount / unit) * unit
