"""Records of drawn places: values of the policy's own kinds."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from confide.policy import Date, Identifier, Table
from confide.workload import Binned, Domain
from confide.workload.domain import Attribute

if TYPE_CHECKING:
    import pyarrow


def records(table: Table, domain: Domain, places: NDArray[np.int64], generator: np.random.Generator) -> "pyarrow.Table":
    """Records in the policy's schema. Ids are numbers from 1; columns without declared values are left out."""
    import pyarrow as pa  # noqa: PLC0415  heavy, and loaded when used

    columns: dict[str, Any] = {}
    for name, column in table.columns.items():
        if isinstance(column, Identifier):
            columns[name] = pa.array(np.arange(1, len(places) + 1), pa.int64())
        elif name in domain.names:
            place = domain.place_of(name)
            columns[name] = _values(domain.attributes[place], places[:, place], generator)
    return pa.table(columns)


def _values(attribute: Attribute, places: NDArray[np.int64], generator: np.random.Generator) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    if not isinstance(attribute, Binned):
        kinds: dict[type, Any] = {str: pa.string(), int: pa.int64(), bool: pa.bool_()}
        return pa.array(attribute.values, kinds[attribute.column.kind]).take(pa.array(places))
    ends = np.array([attribute.ends(place) for place in range(attribute.size)])
    low, high = ends[places, 0], ends[places, 1]
    index = low + np.floor(generator.random(len(places)) * (high - low + 1)).astype(np.int64)
    index = np.minimum(index, high)
    column = attribute.column
    if isinstance(column, Date):
        return pa.array(index.astype(np.int32), pa.int32()).cast(pa.date32())
    if column.integer:
        return pa.array(index * int(column.grain), pa.int64())
    numerator, denominator = column.grain.numerator, column.grain.denominator
    return pa.array(index * numerator / denominator, pa.float64())
