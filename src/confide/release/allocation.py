"""How the cost of a call is split over what it measures, and with which noise. Public facts only.

Every column of the answer gets a share, and its measures share that. By default shares make the forecast errors of the
columns even, relative to the largest value the same rows could give: such an error is (a constant) / ε, or / √ρ, so a
share of ε is in proportion to the constant, a share of ρ to its square.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import exp, isqrt

from confide.errors import ParameterError
from confide.mechanism import Additive, exact, gaussian, laplace
from confide.mechanism.threshold import KeyThreshold, key_threshold
from confide.privacy.budget import Budget
from confide.privacy.loss import ZCDP, PureDP
from confide.query.question import (
    Arithmetic,
    Magnitude,
    Mean,
    Measure,
    Measured,
    Question,
    Rounded,
    Spread,
    Value,
    ValueColumn,
)

# Weights beside a count's 1, found by balancing forecast widths on uniform data: a mean is moved mostly by its total, a
# spread mostly by its squares.
_MEAN = (Fraction(1), Fraction(1, 2))
_SPREAD = (Fraction(3, 2), Fraction(3, 4), Fraction(3, 4))
_ROOT_SCALE = 10**24


@dataclass(frozen=True, slots=True)
class Allocation:
    """One mechanism per measure, one for the keys of undeclared domain, and what all of it costs."""

    mechanisms: tuple[Additive, ...]
    keys: KeyThreshold | None
    loss: PureDP | ZCDP


def allocate(
    question: Question,
    budget: Budget,
    epsilon: Fraction,
    confidence: float,
    split: Mapping[str, Fraction] | None = None,
) -> Allocation:
    """Split ε over the measures: Laplace under a pure budget, else the narrower of Laplace and Gaussian."""
    cost = budget.cost(epsilon)
    weights = _weights(question, split or {}, budget.pure)
    key_weight = Fraction(1) if question.threshold is not None else Fraction(0)
    whole = sum(weights, key_weight)
    if whole == 0:
        return Allocation(tuple(exact() for _ in question.measures), None, _nothing(budget))
    if isinstance(cost, PureDP):
        shares = [cost.epsilon * weight / whole for weight in weights]
        mechanisms = (laplace(m.l1, share) if m.l1 else exact() for m, share in _each(question, shares))
        return Allocation(tuple(mechanisms), None, cost)
    shares = [cost.rho * weight / whole for weight in weights]
    chosen = tuple(_narrower(m, share, confidence) if m.l1 else exact() for m, share in _each(question, shares))
    if question.threshold is None:
        return Allocation(chosen, None, cost)
    # Of the half of δ that pays for keys, as large a part as the call takes of ρ: both last equally long.
    delta = budget.delta / 2 * cost.rho / _rho(budget)
    keys = _key_threshold(question, _root(2 * cost.rho * key_weight / whole), delta)
    return Allocation(chosen, keys, ZCDP(cost.rho, delta))


def _key_threshold(question: Question, epsilon: Fraction, delta: Fraction) -> KeyThreshold:
    """Under replace-one two steps of add-remove, each at (ε/2, δ′): together (ε, (1 + e^(ε/2)) δ′)."""
    assert question.threshold is not None
    if question.neighbours == "add-remove":
        return key_threshold(question.threshold.l1, epsilon, delta)
    growth = Fraction(exp(float(epsilon / 2)) * (1 + 1e-12))
    # `l1` counts the keys of both units, the one that goes and the one that comes.
    return key_threshold(question.threshold.l1 // 2, epsilon / 2, delta / (1 + growth))


def _each(question: Question, shares: list[Fraction]) -> list[tuple[Measure, Fraction]]:
    return list(zip(question.measures, shares, strict=True))


def _narrower(measure: Measure, rho: Fraction, confidence: float) -> Additive:
    """Both cost ρ at most: Laplace at ε = √(2ρ) is (ε²/2)-zCDP."""
    normal = gaussian(measure.l2_squared, rho)
    double = laplace(measure.l1, _root(2 * rho))
    return double if double.law.half_width(confidence) < normal.law.half_width(confidence) else normal


def _weights(question: Question, split: Mapping[str, Fraction], pure: bool) -> list[Fraction]:
    """A weight for every measure; a measure that two columns use is measured once, with the larger of its weights."""
    columns = [column for column in question.columns if isinstance(column, ValueColumn)]
    names = [column.name for column in columns]
    unknown = sorted(set(split) - set(names))
    if unknown:
        raise ParameterError(f"split names {', '.join(unknown)}, but the answer's columns are {', '.join(names)}")
    weights = [Fraction(0)] * len(question.measures)
    for column in columns:
        parts = {measure: weight if pure else weight**2 for measure, weight in _parts(column.value).items()}
        scale = split.get(column.name, Fraction(1)) / sum(parts.values()) if split and parts else Fraction(1)
        for measure, weight in parts.items():
            weights[measure] = max(weights[measure], weight * scale)
    # What only HAVING or ORDER BY need is measured too; what no unit can change costs nothing.
    pairs = zip(weights, question.measures, strict=True)
    return [(weight or Fraction(1)) if measure.l1 else Fraction(0) for weight, measure in pairs]


def _parts(value: Value) -> dict[int, Fraction]:
    match value:
        case Measured(measure):
            return {measure: Fraction(1)}
        case Mean(total, count):
            return dict(zip((total, count), _MEAN, strict=True))
        case Spread(squares, total, count):
            return dict(zip((squares, total, count), _SPREAD, strict=True))
        case Arithmetic(_, left, right):
            parts = _parts(left)
            for measure, weight in _parts(right).items():
                parts[measure] = max(parts.get(measure, Fraction(0)), weight)
            return parts
        case Magnitude(inner) | Rounded(inner):
            return _parts(inner)
    return {}


def _root(value: Fraction) -> Fraction:
    """√value, rounded down."""
    return Fraction(isqrt(value.numerator * _ROOT_SCALE**2 // value.denominator), _ROOT_SCALE)


def _rho(budget: Budget) -> Fraction:
    cap = budget.cap
    assert isinstance(cap, ZCDP)
    return cap.rho


def _nothing(budget: Budget) -> PureDP | ZCDP:
    return PureDP(Fraction(0)) if budget.pure else ZCDP(Fraction(0))
