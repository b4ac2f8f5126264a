"""Records of drawn places: values of the policy's own kinds."""

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.policy import Date, Identifier, Table
from confide.synthesis.inside import ValueShares
from confide.workload import Binned, Domain, Listed

if TYPE_CHECKING:
    import pyarrow

RARELY: Final = 20
"""Dates are in an order if at most one in so many pairs is not."""


def records(
    table: Table,
    domain: Domain,
    places: NDArray[np.int64],
    generator: np.random.Generator,
    values: Mapping[int, ValueShares] | None = None,
) -> "pyarrow.Table":
    """Records in the policy's schema. Ids are numbers from 1; columns without declared values are left out.

    A value inside of a bin is drawn by the shares of the bin's values where they were measured, else all are as likely.
    """
    import pyarrow as pa  # noqa: PLC0415  heavy, and loaded when used

    indices = {
        place: _drawn(own, places[:, place], generator, (values or {}).get(place))
        for place, own in enumerate(domain.attributes)
        if isinstance(own, Binned)
    }
    put_in_order(domain, places, indices)
    columns: dict[str, Any] = {}
    for name, column in table.columns.items():
        if isinstance(column, Identifier):
            columns[name] = pa.array(np.arange(1, len(places) + 1), pa.int64())
        elif name in domain.names:
            place = domain.place_of(name)
            own = domain.attributes[place]
            columns[name] = _numbers(own, indices[place]) if isinstance(own, Binned) else _listed(own, places[:, place])
    return pa.table(columns)


def _drawn(
    attribute: Binned, places: NDArray[np.int64], generator: np.random.Generator, shares: ValueShares | None
) -> NDArray[np.int64]:
    """The index of a value in each bin that was drawn."""
    chances = generator.random(len(places))
    if shares is not None:
        return attribute.column.low_index + shares.draw(places, chances)
    ends = np.array([attribute.ends(place) for place in range(attribute.size)])
    low, high = ends[places, 0], ends[places, 1]
    index: NDArray[np.int64] = np.minimum(low + np.floor(chances * (high - low + 1)).astype(np.int64), high)
    return index


def put_in_order(domain: Domain, places: NDArray[np.int64], indices: dict[int, NDArray[np.int64]]) -> None:
    """Two dates that are in the same bin of the same days come in the order in which they are nearly always found where
    their bins differ: what begins does not end before.
    """
    dates = [place for place, own in enumerate(domain.attributes) if isinstance(own, Binned) and _is_date(own)]
    for one, other in combinations(dates, 2):
        first, second = domain.attributes[one], domain.attributes[other]
        assert isinstance(first, Binned)
        assert isinstance(second, Binned)
        if first.width != second.width or (first.first - second.first) % first.width:
            continue
        away = (first.first + places[:, one] * first.width) - (second.first + places[:, other] * second.width)
        before, after = int(np.sum(away < 0)), int(np.sum(away > 0))
        if min(before, after) * RARELY > max(before, after) or before == after:
            continue
        low, high = (one, other) if before > after else (other, one)
        same = away == 0
        least = np.minimum(indices[one][same], indices[other][same])
        most = np.maximum(indices[one][same], indices[other][same])
        indices[low][same], indices[high][same] = least, most
        for place in (one, other):  # days that one column has and the other has not
            column = domain.attributes[place].column
            assert isinstance(column, Date)
            np.clip(indices[place], column.low_index, column.high_index, out=indices[place])


def _is_date(attribute: Binned) -> bool:
    return isinstance(attribute.column, Date)


def _listed(attribute: Listed, places: NDArray[np.int64]) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    kinds: dict[type, Any] = {str: pa.string(), int: pa.int64(), bool: pa.bool_()}
    return pa.array(attribute.values, kinds[attribute.column.kind]).take(pa.array(places))


def _numbers(attribute: Binned, index: NDArray[np.int64]) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    column = attribute.column
    if isinstance(column, Date):
        return pa.array(index.astype(np.int32), pa.int32()).cast(pa.date32())
    if column.integer:
        return pa.array(index * int(column.grain), pa.int64())
    numerator, denominator = column.grain.numerator, column.grain.denominator
    return pa.array(index * numerator / denominator, pa.float64())
