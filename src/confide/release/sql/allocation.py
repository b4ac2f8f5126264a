"""How the cost of a call is split over what it measures, and with which noise. Public facts only.

Every column of the answer gets a share, and its measures share that. By default shares make the forecast errors of the
columns even, relative to the largest value the same rows could give: such an error is (a constant) / ε, or / √ρ, so a
share of ε is in proportion to the constant, a share of ρ to its square.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, inf
from typing import assert_never

from confide.errors import ParameterError, QueryError
from confide.mechanism import Additive, exact, laplace
from confide.mechanism.noise.additive import narrower
from confide.mechanism.noise.law import LARGEST_USED, Confidence, NoNoise
from confide.mechanism.selection.threshold import KeyThreshold, gaussian_key_threshold, key_threshold
from confide.mechanism.statistic import StatisticPlan
from confide.privacy.amount import from_quanta, root
from confide.privacy.budget import Budget, Currency
from confide.privacy.loss import ZCDP, PureDP
from confide.query.question import (
    Arithmetic,
    Association,
    Between,
    Commonest,
    Dated,
    Estimated,
    FixedNumber,
    Magnitude,
    Mean,
    Measured,
    Occurs,
    Question,
    Rounded,
    ShownValue,
    Spread,
    Value,
    all_values,
    association_places,
    measures_of,
)
from confide.query.tree import Cell
from confide.release.answer.chosen import expected_level, least_level
from confide.release.answer.evaluation import linear_terms
from confide.release.answer.miss_rate import needed_confidences
from confide.release.expected import group_count
from confide.release.sql.statistics import plan_statistic, plan_within
from confide.release.sql.together import Together, together

# Weights beside a count's 1, found by balancing forecast widths on uniform data: a mean is moved mostly by its total, a
# spread mostly by its squares.
_MEAN = (Fraction(1), Fraction(1, 2))
_SPREAD = (Fraction(3, 2), Fraction(3, 4), Fraction(3, 4))
_PRODUCTS, _SQUARES, _MIDDLE = Fraction(3, 2), Fraction(1), Fraction(3, 4)  # of an association
_ROWS = Cell("rows")
_STEPS = 1_000  # of the weights of what is added up


@dataclass(frozen=True, slots=True)
class Allocation:
    """One mechanism per measure, one plan per statistic, one for undeclared keys, and what all of it costs."""

    mechanisms: tuple[Additive, ...]
    plans: tuple[StatisticPlan, ...]
    keys: KeyThreshold | None
    loss: PureDP | ZCDP
    counted: int | None = None
    """The measure that is the noised number which keys are shown by: it is not measured again, nor paid for."""
    together: tuple[Together, ...] = ()
    """Of some counts or sums, what is measured in their place; their own mechanisms only name that."""


def allocate(
    question: Question,
    budget: Budget,
    epsilon: Fraction,
    confidence: Confidence,
    split: Mapping[str, Fraction] | None = None,
    rows: int | None = None,
    portion: Fraction = Fraction(1),
    overlapping: bool = False,
) -> Allocation:
    """Split ε over what is measured: Laplace under a pure budget, else the narrower of Laplace and Gaussian.

    `rows` is what is publicly expected of a group; mechanisms of statistics may be chosen by it. `portion` is what
    the question has of the whole call, where several questions share it: of ε, or of ρ. With `overlapping` counts may
    be measured together.
    """
    cost = portion_of(budget.cost(epsilon), portion)
    if question.threshold is not None and isinstance(cost, PureDP):
        raise QueryError(
            "some keys of this question are not public, and a pure call has no δ to release them with; ask it with "
            "account='concentrated', or declare their `values` in the policy"
        )
    groups = group_count(question)
    expected = expected_level(question, confidence, groups)
    weights = _weights(question, split or {}, budget.pure)
    key_weight = Fraction(1) if question.threshold is not None else Fraction(0)
    counted = None if question.threshold is None else _counted(question)
    if counted is not None:
        key_weight, weights[counted] = max(key_weight, weights[counted]), Fraction(0)
    whole = sum(weights, key_weight)
    if whole == 0:
        return Allocation(tuple(exact() for _ in question.measures), (), None, _least(budget))
    pure = isinstance(cost, PureDP)
    shares = [(cost.epsilon if isinstance(cost, PureDP) else cost.rho) * weight / whole for weight in weights]
    mechanisms = tuple(
        exact() if not share else laplace(m.l1, share) if pure else narrower(m.l1, m.l2_squared, share, expected)
        for m, share in zip(question.measures, shares, strict=False)
    )
    joint: tuple[Together, ...] = ()
    if overlapping and not split and question.possible != ():
        joint = together(question, mechanisms, shares, pure, expected)
    for vector in joint:
        named = Additive(vector.name, NoNoise(), PureDP(Fraction(0)))
        mechanisms = tuple(named if place in vector.places else own for place, own in enumerate(mechanisms))
    levels = needed_confidences(all_values(question), least_level(question, confidence, groups))
    statistics = [
        (statistic, shares[len(question.measures) + place], levels[place])
        for place, statistic in enumerate(question.statistics)
    ]
    nothing = question.possible == ()  # no group can have rows, so nothing is measured
    if isinstance(cost, PureDP):
        pure_plans = tuple(plan_statistic(statistic, share, level, rows) for statistic, share, level in statistics)
        return Allocation(mechanisms, pure_plans, None, _least(budget) if nothing else cost, together=joint)
    delta = budget.explicit_delta(cost)
    part = delta / (len(statistics) + (question.threshold is not None) or 1)
    plans = tuple(plan_within(statistic, share, part, level, rows) for statistic, share, level in statistics)
    used = sum((plan.zcdp.delta for plan in plans), Fraction(0))
    if nothing:
        cost, used = ZCDP(from_quanta(1)), Fraction(0)
        delta = budget.explicit_delta(cost)
    if question.threshold is None:
        return Allocation(mechanisms, plans, None, ZCDP(cost.rho, used), together=joint)
    keys = _key_threshold(question, cost.rho * key_weight / whole, delta - used)
    if counted is not None:
        own = Additive(keys.name, keys.law, keys.loss)
        mechanisms = (*mechanisms[:counted], own, *mechanisms[counted + 1 :])
    return Allocation(mechanisms, plans, keys, ZCDP(cost.rho, delta), counted)


def portion_of(cost: Currency, portion: Fraction) -> Currency:
    """Of what a call costs a portion; those that add up to one cost the whole."""
    if portion == 1:
        return cost
    return PureDP(cost.epsilon * portion) if isinstance(cost, PureDP) else ZCDP(cost.rho * portion)


def widths_of(allocation: Allocation, confidence: float) -> tuple[float, ...]:
    """How wide each number that is measured would be."""
    told = {place: width for own in allocation.together for place, width in own.half_widths(confidence).items()}
    noise = [
        told[place] if place in told else float(mechanism.law.half_width(confidence))
        for place, mechanism in enumerate(allocation.mechanisms)
    ]
    return (*noise, *[plan.forecast.half_width for plan in allocation.plans])


def _counted(question: Question) -> int | None:
    """The measure that is the number of units of each key, if nothing else is made of it: given that a key is shown its
    noise has another law, which only the interval of the number itself knows.
    """
    assert question.threshold is not None
    summary = question.summary
    alone = summary.bound is None or summary.bound.rows == 1  # one row for each unit, so that rows are units
    for place, measure in enumerate(question.measures):
        rows = alone and measure.terms == ((1, measure.terms[0][1]),) and summary.cells[measure.terms[0][1]] == _ROWS
        if rows or measure.terms == question.threshold.terms:
            using = [value for value in all_values(question) if place in measures_of(value)]
            return place if all(isinstance(value, Measured) for value in using) else None
    return None


def _key_threshold(question: Question, rho: Fraction, delta: Fraction) -> KeyThreshold:
    """The lower of both laws' at the same ρ and δ: at ε = √(2ρ) Laplace is (ε²/2)-zCDP."""
    assert question.threshold is not None
    units = 1 if question.neighbours == "add-remove" else 2
    # `l1` counts the keys of both units, the one that goes and the one that comes.
    normal = gaussian_key_threshold(question.threshold.l1 // units, rho, delta, units)
    double = _laplace_threshold(question, root(2 * rho), delta)
    return double if double.threshold < normal.threshold else normal


def _laplace_threshold(question: Question, epsilon: Fraction, delta: Fraction) -> KeyThreshold:
    """Under replace-one two steps of add-remove, each at (ε/2, δ′): together (ε, (1 + e^(ε/2)) δ′)."""
    assert question.threshold is not None
    if question.neighbours == "add-remove":
        return key_threshold(question.threshold.l1, epsilon, delta)
    epsilon = min(epsilon, 2 * Fraction(LARGEST_USED))
    growth = Fraction(exp(float(epsilon / 2)) * (1 + 1e-12))
    return key_threshold(question.threshold.l1 // 2, epsilon / 2, delta / (1 + growth))


def _weights(question: Question, split: Mapping[str, Fraction], pure: bool) -> list[Fraction]:
    """A weight for every measure, then for every statistic; what two columns use is measured once, at the larger."""
    columns = [column for column in question.columns if isinstance(column, ShownValue)]
    names = [column.name for column in columns]
    unknown = sorted(set(split) - set(names))
    if unknown:
        raise ParameterError(f"split names {', '.join(unknown)}, but the answer's columns are {', '.join(names)}")
    measures = len(question.measures)
    weights = [Fraction(0)] * (measures + len(question.statistics))
    for column in columns:
        added = _added(column.value, question, pure) or _parts(column.value, measures)
        parts = {place: weight if pure else weight**2 for place, weight in added.items()}
        scale = split.get(column.name, Fraction(1)) / sum(parts.values()) if split and parts else Fraction(1)
        for place, weight in parts.items():
            weights[place] = max(weights[place], weight * scale)
    # What only HAVING or ORDER BY need is measured too; what no unit can change costs nothing.
    free = [measure.l1 == 0 for measure in question.measures] + [False] * len(question.statistics)
    return [Fraction(0) if costless else weight or Fraction(1) for weight, costless in zip(weights, free, strict=True)]


def _added(value: Value, question: Question, pure: bool) -> dict[int, Fraction] | None:
    """The weights of what is added up, for the least variance of the sum; None for what is no sum of several measures.

    What noise of measure m adds to the variance is (c_m/w_m)² under ε and c_m²/w_m under ρ, with c_m what one unit
    changes of its term; so weights w_m go with c_m^⅔, or with c_m. Those of ρ are squared later.
    """
    terms = linear_terms(value, question.measures) or {}
    changed = {place: float(abs(factor) * question.measures[place].l1) for place, factor in terms.items() if factor}
    largest = max(changed.values(), default=0.0)
    if len(changed) < 2 or not 0 < largest < inf:
        return None
    power = 2 / 3 if pure else 1 / 2
    return {
        place: Fraction(max(1, ceil(_STEPS * (change / largest) ** power)), _STEPS) for place, change in changed.items()
    }


def _parts(value: Value, measures: int) -> dict[int, Fraction]:
    """Places of measures, or of statistics behind them, with their weights."""
    match value:
        case Measured(measure) | Occurs(measure):
            return {measure: Fraction(1)}
        case Estimated(statistic) | Dated(Estimated(statistic)) | Commonest(statistic):
            return {measures + statistic: Fraction(1)}
        case Mean(total, count):
            return dict(zip((total, count), _MEAN, strict=True))
        case Spread(squares, total, count):
            return dict(zip((squares, total, count), _SPREAD, strict=True))
        case Association(products=products, x=x, y=y):
            weights = {x.squares: _SQUARES, y.squares: _SQUARES, products: _PRODUCTS}
            return {place: weights.get(place, _MIDDLE) for place in association_places(value)}
        case Arithmetic(_, left, right):
            parts = _parts(left, measures)
            for place, weight in _parts(right, measures).items():
                parts[place] = max(parts.get(place, Fraction(0)), weight)
            return parts
        case Between(inner) | Magnitude(inner) | Rounded(inner):
            return _parts(inner, measures)
        case FixedNumber():
            return {}
    assert_never(value)


def _least(budget: Budget) -> PureDP | ZCDP:
    """The least a ledger can write, some 10⁻⁴⁶: it refuses charges of nothing, so that none is made by mistake."""
    return PureDP(from_quanta(1)) if budget.pure else ZCDP(from_quanta(1))
