"""What a question over a join would cost, and how wide its intervals would be for what one unit might change."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from confide.errors import ParameterError
from confide.query.conjunction import BY_ROW, Conjunction
from confide.query.parse import DIALECT
from confide.query.question import Estimated, ShownValue
from confide.release.account import AUTO
from confide.release.answer.notes import key_notes
from confide.release.answer.plan import Plan, PlannedColumn
from confide.release.cost import Cost, budget_state, rooms
from confide.release.holdings import Holdings
from confide.release.join.request import Bounds, join_request

TYPICAL: Final = 100


def plan_join(
    holdings: Holdings,
    question: Conjunction,
    epsilon: object,
    within: object,
    confidence: object,
    mechanism: object,
    split: Mapping[str, Fraction],
    bounds: Bounds,
    account: object = AUTO,
) -> Plan:
    """Cost and mechanism; the width is that for a unit that changes 100 joined rows, and in proportion for others."""
    if within is not None:
        raise ParameterError(
            "how wide the interval of a join is depends on how many joined rows one unit changes, which is private; "
            "give epsilon instead of within"
        )
    standing, notes = holdings.standing(), []
    if epsilon is None:
        epsilon = standing.budget.epsilon / 10
        notes.append("no epsilon was given: a tenth of the whole budget is shown")
    request = join_request(holdings.policy, question, "", DIALECT, epsilon, confidence, mechanism, split, bounds)
    accounts = holdings.accounts(account)
    chosen = accounts[0] if len(accounts) == 1 else holdings.preferred(standing, request.price, accounts)
    priced = request.price(standing.budget.under(chosen))
    columns = []
    for place, weight in enumerate(question.weights):
        changed = TYPICAL * max(1, weight.span.largest)
        if request.mechanism in BY_ROW:
            half, assumes = priced.smooth(place).expected_half_width(changed, priced.misses[place]), "always"
        else:
            cut = priced.cut(place)
            half, assumes = cut.expected_half_width(changed), "density" if cut.condition else "at_most"
        columns.append(
            PlannedColumn(weight.name, half * float(weight.grain), 0.0, request.mechanism, assumes, ("changes",))
        )
    if any(isinstance(column, ShownValue) and not isinstance(column.value, Estimated) for column in question.columns):
        notes.append("shown are the sums that are measured; what is computed from them follows from their intervals")
    notes.append(
        f"the width is in proportion to how many joined rows one unit changes, which is private: shown for {TYPICAL}"
    )
    notes += key_notes(question, question)
    return Plan(
        columns=tuple(columns),
        epsilon=float(request.epsilon),
        cost=Cost.of(request.epsilon, priced.loss),
        confidence=request.confidence,
        groups=priced.groups,
        unit=question.unit,
        neighbours=question.neighbours,
        affordable=standing.holds(priced.loss),
        fitting=standing.room(priced.loss),
        budget=budget_state(standing),
        notes=tuple(notes),
        account=chosen,
        rooms=rooms(standing, request.epsilon),
    )
