"""Microdata as Arrow tables: noisy marginals, the fitted table, and records. The columns keep the types of the keys."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confide.fit import Fit, RoundedFit
from confide.release.answer.frames import as_pandas, as_polars
from confide.release.microdata.marginals import Attribute, Marginal, show_marginal
from confide.release.microdata.store import Measurements, NoisyMarginal

if TYPE_CHECKING:
    import pandas
    import polars

_TYPES = {
    "text": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
}


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Whole records, one row for each. `kept` says of each marginal whether all its counts are the fitted ones,
    rounded up or down, and `misses` how far the worst of them is from its fitted count.
    """

    measured: Measurements
    rounded: RoundedFit
    marginals: tuple[Marginal, ...]

    @property
    def kept(self) -> dict[Marginal, bool]:
        return dict(zip(self.marginals, self.rounded.kept, strict=True))

    @property
    def misses(self) -> dict[Marginal, float]:
        return dict(zip(self.marginals, self.rounded.misses, strict=True))

    def __len__(self) -> int:
        return int(self.rounded.counts.sum())

    def to_arrow(self) -> pa.Table:
        places = self.rounded.records().T
        return pa.table(_columns(self.measured.attributes, places))

    def to_polars(self) -> "polars.DataFrame":
        return as_polars(self.to_arrow())

    def to_pandas(self) -> "pandas.DataFrame":
        return as_pandas(self.to_arrow())

    def __str__(self) -> str:
        kept = [show_marginal(name) for name, whole in self.kept.items() if whole]
        lines = [f"{len(self):,} records; rounded so that {', '.join(kept) or 'none of the totals'} are kept"]
        lines += [
            f"{show_marginal(name)}: off by {self.misses[name]:.2f} at most"
            for name, whole in self.kept.items()
            if not whole
        ]
        return "\n".join(lines)


def noisy_table(measured: Measurements, noisy: NoisyMarginal, confidence: float) -> pa.Table:
    """One marginal: its values, the noisy counts, and the ends of their intervals."""
    own = [measured.attribute(name) for name in noisy.marginal]
    half, name = noisy.law.half_width(confidence), measured.count_name
    return pa.table(
        {
            **_columns(own, measured.places(noisy.marginal)),
            name: pa.array(noisy.counts),
            f"{name}_low": pa.array(noisy.counts - half),
            f"{name}_high": pa.array(noisy.counts + half),
        }
    )


def fitted_table(measured: Measurements, fit: Fit) -> pa.Table:
    """The cells of a fitted table that hold something, with how much."""
    filled = np.flatnonzero(fit.cells)
    places = np.array(np.unravel_index(filled, fit.domain.sizes))
    weight = measured.free_name("weight")
    return pa.table({**_columns(measured.attributes, places), weight: pa.array(fit.cells[filled])})


def cells_of(measured: Measurements, table: pa.Table) -> NDArray[np.float64]:
    """The cells of a fitted table that was written; the inverse of `fitted_table`."""
    domain = measured.domain
    flat = np.zeros(table.num_rows, dtype=np.int64)
    for attribute in measured.attributes:
        places = {value: place for place, value in enumerate(attribute.values)}
        own = np.array([places[value] for value in table[attribute.name].to_pylist()], dtype=np.int64)
        flat = flat * len(attribute.values) + own
    cells = np.zeros(domain.cells)
    cells[flat] = table[measured.free_name("weight")].to_numpy()
    return cells


def _columns(attributes: Sequence[Attribute], places: NDArray[Any]) -> dict[str, pa.Array]:
    found = {}
    for attribute, own in zip(attributes, places, strict=True):
        values = pa.array(attribute.values, _TYPES[attribute.type])
        found[attribute.name] = values.take(pa.array(own.astype(np.int64)))
    return found
