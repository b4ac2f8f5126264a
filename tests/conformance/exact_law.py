"""Probabilities of the noise laws in 60-digit arithmetic, from their definitions: the yardstick for all else."""

from decimal import Decimal, getcontext, localcontext
from functools import lru_cache

from confide.mechanism import DiscreteGaussian, DiscreteLaplace

DIGITS = 60


def weight(law: DiscreteLaplace | DiscreteGaussian, value: int) -> Decimal:
    """The weight of one value; the weight of 0 is 1."""
    with localcontext(prec=DIGITS):
        if isinstance(law, DiscreteLaplace):
            return (-Decimal(abs(value) * law.scale.denominator) / law.scale.numerator).exp()
        return (-Decimal(value * value * law.variance.denominator) / (2 * law.variance.numerator)).exp()


@lru_cache(maxsize=64)
def tails(law: DiscreteLaplace | DiscreteGaussian, limit: Decimal = Decimal("1e-55")) -> tuple[Decimal, ...]:
    """P(X > k) for k = 0, 1, ... until the weights fall below the limit. Only for laws that are not wide."""
    with localcontext(prec=DIGITS):
        weights = [Decimal(1)]
        while weights[-1] > limit:
            weights.append(weight(law, len(weights)))
        beyond = [Decimal(0)]
        for entry in reversed(weights[1:]):
            beyond.append(beyond[-1] + entry)
        beyond.reverse()
        total = 1 + 2 * beyond[0]
        return tuple(entry / total for entry in beyond)


def probability(law: DiscreteLaplace | DiscreteGaussian, value: int) -> Decimal:
    """P(X = value)."""
    beyond = tails(law)
    with localcontext(prec=DIGITS):
        if value == 0:
            return 1 - 2 * beyond[0]
        place = abs(value)
        return beyond[place - 1] - beyond[place] if place < len(beyond) else Decimal(0)


assert getcontext().prec < DIGITS  # the contexts above are local
