"""A table without negative counts, fitted to what was measured for a workload: other numbers from the same noise."""

from typing import TYPE_CHECKING, Final, cast

import numpy as np
from scipy import sparse

from confide.errors import ParameterError
from confide.fit import METHODS, CellDomain, FitProblem, MeasuredGroup, Method, SparseGroup, fit
from confide.mechanism import DiscreteGaussian, DiscreteLaplace
from confide.privacy.amount import shown_value
from confide.query.key_value import spelled
from confide.release.whole_table import key_of
from confide.release.workload.chosen_table import ChosenTable
from confide.release.workload.compact_design import CompactDesign
from confide.release.workload.partitioned import PartitionedDesign
from confide.workload.strategy.block import ProductBlock
from confide.workload.strategy.line import Floats

if TYPE_CHECKING:
    import pyarrow

    from confide.release.workload.answers import WorkloadAnswers

MOST_CELLS: Final = 4_096
"""Of all columns together: a fit looks at every cell with every measured number."""
LEAST_WEIGHT: Final = 1e-9


def fitted_cells(answers: "WorkloadAnswers", method: str) -> "pyarrow.Table":
    if method not in METHODS:
        raise ParameterError(f"there is no fit {shown_value(method)}; there are {', '.join(METHODS)}")
    measured, domain = answers.measured, answers.linear.domain
    if isinstance(measured, PartitionedDesign):
        raise ParameterError(
            f"a table is not fitted to parts of a column, which {measured.name} found; answer with strategy='exact'"
        )
    if isinstance(measured, ChosenTable):
        return _listed(answers, np.array(measured.counts, dtype=np.float64).reshape(domain.sizes))
    cells = CellDomain(domain.names, domain.sizes)
    if cells.cells > MOST_CELLS:
        raise ParameterError(
            f"the columns have {cells.cells:,} cells together, a table of at most {MOST_CELLS:,} is fitted; use "
            "people.microdata(...) for marginals, or synthesize"
        )
    assert not isinstance(measured, CompactDesign)  # of more cells than are fitted
    groups = []
    for block, noise, values in zip(measured.blocks, measured.noises, measured.values, strict=True):
        factors = np.ones(block.rows) if block.factors is None else np.sqrt(block.factors.astype(np.float64))
        scale = block.fineness * factors
        rows = sparse.csr_array(_matrix(block, domain.sizes) / factors[:, None])
        law = noise.law
        own = (
            DiscreteGaussian(law.variance / block.fineness**2)
            if isinstance(law, DiscreteGaussian)
            else DiscreteLaplace(law.scale / block.fineness)
        )
        groups.append(MeasuredGroup(SparseGroup(rows), values.astype(np.float64) / scale, own))
    found = fit(FitProblem(cells, tuple(groups)), cast(Method, method))
    return _listed(answers, found.cells.reshape(domain.sizes))


def _listed(answers: "WorkloadAnswers", weights: Floats) -> "pyarrow.Table":
    """The cells that hold anything, by their values."""
    import pyarrow as pa  # noqa: PLC0415  heavy, and loaded when used

    domain = answers.linear.domain
    kept = np.nonzero(weights > LEAST_WEIGHT)
    arrays = {}
    for attribute, places in zip(domain.attributes, kept, strict=True):
        key = key_of(attribute, "")
        arrays[attribute.name] = pa.array([spelled(key, place) for place in range(attribute.size)]).take(
            pa.array(places)
        )
    arrays["weight"] = pa.array(weights[kept])
    return pa.table(arrays)


def _matrix(block: ProductBlock, sizes: tuple[int, ...]) -> Floats:
    """K on the cells of all columns."""
    found: Floats = np.ones((1, 1))
    lines = dict(zip(block.columns, block.lines, strict=True))
    for column, size in enumerate(sizes):
        own = (
            lines[column].measure(np.eye(size, dtype=np.int64)).astype(np.float64)
            if column in lines
            else np.ones((1, size))
        )
        found = np.kron(found, own).astype(np.float64)
    return found
