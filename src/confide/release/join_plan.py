"""What a question over a join would cost, and how wide its intervals would be for what one unit might change."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from confide.errors import ParameterError
from confide.query.conjunction import Conjunction
from confide.query.question import Estimated, ValueColumn
from confide.release.cost import Cost, budget_state
from confide.release.holdings import Holdings
from confide.release.join_request import BY_ROW, Bounds, request_join
from confide.release.plan import Plan, PlannedColumn

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
) -> Plan:
    """Cost and mechanism; the width is that for a unit that changes 100 joined rows, and in proportion for others."""
    if within is not None:
        raise ParameterError(
            "how wide the interval of a join is depends on how many joined rows one unit changes, which is private; "
            "give epsilon instead of within"
        )
    notes = []
    if epsilon is None:
        epsilon = holdings.ledger.budget.epsilon / 10
        notes.append("no epsilon was given: a tenth of the whole budget is shown")
    request = request_join(holdings, question, epsilon, confidence, mechanism, split, bounds)
    columns = []
    for place, weight in enumerate(question.weights):
        changed = TYPICAL * max(1, weight.span.largest)
        if request.mechanism in BY_ROW:
            half, assumes = request.smooth(place).expected_half_width(changed, request.misses[place]), "always"
        else:
            cut = request.cut(place)
            half, assumes = cut.expected_half_width(changed), "density" if cut.condition else "always"
        columns.append(PlannedColumn(weight.name, half * float(weight.grain), 0.0, request.mechanism, assumes))
    if any(isinstance(column, ValueColumn) and not isinstance(column.value, Estimated) for column in question.columns):
        notes.append("shown are the sums that are measured; what is computed from them follows from their intervals")
    notes.append(
        f"the width is in proportion to how many joined rows one unit changes, which is private: shown for {TYPICAL}"
    )
    return Plan(
        columns=tuple(columns),
        epsilon=float(request.epsilon),
        cost=Cost.of(request.epsilon, request.loss),
        confidence=request.confidence,
        groups=request.groups,
        unit=question.unit,
        neighbours=question.neighbours,
        affordable=holdings.affordable(request.loss),
        budget=budget_state(holdings.ledger, holdings.analyst),
        notes=tuple(notes),
    )
