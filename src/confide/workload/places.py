"""Public rows as places: what experiments on public or generated data compare with."""

from typing import Any

import numpy as np

from confide.errors import ParameterError
from confide.policy import Date
from confide.policy.column import EPOCH
from confide.workload.domain import Attribute, Binned, Domain
from confide.workload.tables import Integers


def places_of(frame: Any, domain: Domain) -> Integers:
    """The place of each row of a public frame in each column of a domain, as the policy reads it.

    Numbers and days are clamped to their range; rows that hold no declared value in some column are left out.
    """
    import pyarrow as pa  # noqa: PLC0415  heavy, and loaded when used

    table = frame if isinstance(frame, pa.Table) else pa.table(frame)
    missing = [name for name in domain.names if name not in table.column_names]
    if missing:
        raise ParameterError(f"the frame has no column {missing[0]}; it has {', '.join(table.column_names[:12])}")
    places = known_places(table, domain)
    kept: Integers = places[(places >= 0).all(axis=1)]
    return kept


def known_places(table: Any, domain: Domain) -> Integers:
    """The place of each row of a public Arrow table in each column of a domain, −1 where it is not known."""
    return np.stack(
        [
            _column(table[attribute.name].to_pylist(), attribute)
            if attribute.name in table.column_names
            else np.full(table.num_rows, -1, dtype=np.int64)
            for attribute in domain.attributes
        ],
        axis=1,
    )


def _column(values: list[Any], attribute: Attribute) -> Integers:
    """Places, −1 for what has none."""
    if not isinstance(attribute, Binned):
        known = {value: place for place, value in enumerate(attribute.values)}
        return np.array([known.get(value, -1) for value in values], dtype=np.int64)
    column = attribute.column
    absent = [value is None or value != value for value in values]  # noqa: PLR0124  a NaN is not itself
    if isinstance(column, Date):
        indices = [0 if gone else (value - EPOCH).days for value, gone in zip(values, absent, strict=True)]
    else:
        grain = float(column.grain)
        ends = float(column.low), float(column.high)
        clamped = (
            0.0 if gone else min(max(float(v), ends[0]), ends[1]) for v, gone in zip(values, absent, strict=True)
        )
        indices = [int(np.floor(value / grain + 0.5)) for value in clamped]
    inside = np.clip(np.array(indices, dtype=np.int64), column.low_index, column.high_index)
    return np.where(absent, -1, (inside - attribute.first) // attribute.width)
