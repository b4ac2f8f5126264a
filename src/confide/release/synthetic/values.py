"""The values inside of bins: which columns have theirs measured, what that pays, and what is made of the counts.

A column in bins that has few enough values is counted value by value as well, by itself and before all else; the model
knows its bins. Which columns these are follows from the policy and the bins of the call.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import ParameterError
from confide.privacy.amount import shown_value
from confide.privacy.budget import Currency
from confide.release.synthetic.steps import share_of
from confide.synthesis.curator import MeasuredMarginal, Model
from confide.synthesis.inside import ValueShares, value_shares
from confide.workload import Binned, Domain
from confide.workload.domain import MOST_PLACES

MEASURED: Final = "measured"
EVEN: Final = "even"
SHARE: Final = Fraction(1, 10)
"""Of a call's cost, for the values of all such columns together."""


@dataclass(frozen=True, slots=True)
class ValuesStep:
    """The columns of the workload whose values are measured, and the share of the call's cost that this pays."""

    columns: tuple[int, ...]
    attributes: tuple[Binned, ...]
    """The same columns, value by value."""
    share: Fraction = SHARE

    def identity(self) -> tuple[object, ...]:
        return ("values", *(own.name for own in self.attributes), self.share)


def values_step(domain: Domain, inside: object) -> ValuesStep | None:
    """None where no column has values inside of bins, or they are to be drawn evenly."""
    if inside not in (MEASURED, EVEN):
        raise ParameterError(
            f"inside = {shown_value(inside)} is not known; write {MEASURED}, or {EVEN} for bins whose values are all "
            "as likely"
        )
    columns = tuple(place for place, own in enumerate(domain.attributes) if _divided(own))
    if inside == EVEN or not columns:
        return None
    return ValuesStep(columns, tuple(one_by_one(domain.attributes[place]) for place in columns))


def _divided(attribute: object) -> bool:
    return isinstance(attribute, Binned) and attribute.width > 1 and 1 < attribute.column.steps <= MOST_PLACES


def one_by_one(attribute: object) -> Binned:
    """A column in bins, value by value."""
    assert isinstance(attribute, Binned)
    return Binned(attribute.column, attribute.column.low_index, 1)


def bins_of(attribute: Binned) -> NDArray[np.int64]:
    """The bin of each value of a column."""
    values = np.arange(attribute.column.low_index, attribute.column.high_index + 1)
    return (values - attribute.first) // attribute.width


def with_values(domain: Domain, step: ValuesStep | None) -> Domain:
    """What is tabulated: the columns of a workload, then columns of values."""
    return domain if step is None else Domain(domain.table, (*domain.attributes, *step.attributes))


def value_sets(domain: Domain, step: ValuesStep | None) -> tuple[tuple[int, ...], ...]:
    """Each column of values by itself."""
    return () if step is None else tuple((len(domain) + place,) for place in range(len(step.columns)))


def left_for_the_model(cost: Currency, step: ValuesStep | None) -> Currency:
    return cost if step is None else share_of(cost, 1 - step.share)


def shares_of_values(
    step: ValuesStep, noisy: Sequence[MeasuredMarginal], domain: Domain, model: Model
) -> dict[int, ValueShares]:
    """What noisy counts of values say beside a model of the bins: the shares by the place of the column."""
    found = {}
    for column, counted in zip(step.columns, noisy, strict=True):
        rows = model.table.marginal((column,), 0, domain.sizes[column]).astype(np.float64) * model.total
        binned = domain.attributes[column]
        assert isinstance(binned, Binned)
        found[column] = value_shares(counted.counts, counted.variance, bins_of(binned), np.nan_to_num(rows))
    return found
