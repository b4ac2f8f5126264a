"""Designs of whole workloads: what they cost every record, and the exact forecast of their error."""

from itertools import combinations
from math import prod

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.workload.asked import AskedTable
from confide.workload.strategy.dense import DenseLine
from confide.workload.strategy.design import Design, designs, residual_line
from confide.workload.strategy.helmert import HelmertLine
from confide.workload.strategy.line import AskedLine, Kind, NoiseKind, stretches, unit_error

ADULT = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)


def every(columns: int, orders: range) -> tuple[AskedTable, ...]:
    return tuple(
        AskedTable(chosen, ("each",) * order) for order in orders for chosen in combinations(range(columns), order)
    )


def error(sizes: tuple[int, ...], tables: tuple[AskedTable, ...], strategy: str) -> float:
    (design,) = designs(sizes, tables, strategy, "gaussian")
    return float((design.error() / len(tables)) ** 0.5)


def test_the_optimal_plan_for_marginals_of_adult() -> None:
    """RMSE at ρ = ½, every marginal counted the same: direct 21.66, residual 15.68."""
    assert error(ADULT, every(14, range(1, 4)), "direct") == pytest.approx(21.656, abs=1e-3)
    assert error(ADULT, every(14, range(1, 4)), "residual") <= 15.7
    assert error(ADULT, every(14, range(1, 3)), "residual") == pytest.approx(8.275, abs=1e-3)


def test_the_optimal_plan_for_marginals_of_nltcs() -> None:
    assert error((2,) * 16, every(16, range(3, 4)), "residual") <= 6.33
    assert error((2,) * 16, every(16, range(3, 4)), "direct") == pytest.approx(23.664, abs=1e-3)


def measured(design: Design, sizes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """All that a design measures, as rows over all cells, and the variance of each at a cost of ρ = ½."""
    cells = np.eye(prod(sizes), dtype=np.int64).reshape(-1, *sizes)
    rows, variances = [], []
    for block, share in zip(design.blocks, design.shares, strict=True):
        gone = tuple(axis for axis in range(len(sizes)) if axis not in block.columns)
        own = np.array([block.measure(cell.sum(axis=gone)) / block.fineness for cell in cells], dtype=float).T
        factors = np.ones(block.rows) if block.factors is None else block.factors
        rows.append(own)
        variances.append(factors * float(block.norms.l2_squared) / float(share))
    return np.concatenate(rows), np.concatenate(variances)


SCHEMAS: list[tuple[tuple[int, ...], tuple[AskedTable, ...]]] = [
    ((3, 4, 2), every(3, range(1, 3))),
    ((2, 2, 2, 3), every(4, range(3, 4))),
    ((5, 1, 3), every(3, range(2, 3))),
]


@pytest.mark.parametrize(("sizes", "tables"), SCHEMAS)
def test_every_record_costs_the_same_and_no_more_than_all(
    sizes: tuple[int, ...], tables: tuple[AskedTable, ...]
) -> None:
    (design,) = designs(sizes, tables, "residual", "gaussian")
    rows, variances = measured(design, sizes)
    losses = (rows**2 / variances[:, None]).sum(axis=0)
    assert losses == pytest.approx(losses[0])
    assert losses[0] <= 1 + 1e-9
    assert losses[0] == pytest.approx(1, abs=1e-6)


MIXED: list[tuple[tuple[int, ...], tuple[AskedTable, ...]]] = [
    *SCHEMAS,
    ((6, 3), (AskedTable((0,), ("range",)), AskedTable((0, 1), ("each", "each")))),
    ((5, 4), (AskedTable((0, 1), ("range", "prefix")),)),
]


@pytest.mark.parametrize("strategy", ["direct", "identity", "hierarchy", "wavelet", "prefix", "optimised", "residual"])
@pytest.mark.parametrize(("sizes", "tables"), MIXED)
def test_the_forecast_is_the_error_and_no_record_costs_more(
    sizes: tuple[int, ...], tables: tuple[AskedTable, ...], strategy: str
) -> None:
    (design,) = designs(sizes, tables, strategy, "gaussian")
    rows, variances = measured(design, sizes)
    assert (rows**2 / variances[:, None]).sum(axis=0).max() <= 1 + 1e-9
    if strategy in ("wavelet", "direct") or (len(design.blocks) > 1 and strategy != "residual"):
        return  # blocks are not combined there, nor cells beyond the last; the error of one block is tested by lines
    weights = 1 / np.sqrt(variances)
    inverse = np.linalg.pinv(rows * weights[:, None]) * weights
    total = 0.0
    for table in tables:
        asked = [_rows(kind, sizes[column]) for column, kind in zip(table.columns, table.kinds, strict=True)]
        query = np.ones((1, 1))
        for column, size in enumerate(sizes):
            own = asked[table.columns.index(column)] if column in table.columns else np.ones((1, size))
            query = np.kron(query, own)
        total += ((query @ inverse) ** 2 * variances).sum() / len(query)
    assert design.error() == pytest.approx(total, rel=1e-6)


def _rows(kind: Kind, size: int) -> np.ndarray:
    starts, stops = stretches(kind, size)
    places = np.arange(size)
    return ((places >= starts[:, None]) & (places < stops[:, None])).astype(float)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_shares_never_add_up_to_more_than_the_cost(noise: NoiseKind) -> None:
    for design in designs(ADULT[:6], every(6, range(1, 4)), "auto", noise):
        assert sum(design.shares) <= 1
        assert min(design.shares) > 0


def test_of_itself_nothing_long_is_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column of more than 1,024 cells would take a quarter of a minute; by name it is found."""
    monkeypatch.setattr("confide.workload.strategy.optimum.gaussian_optimum", None)
    monkeypatch.setattr("confide.workload.strategy.centred.gaussian_optimum", None)
    found = designs((1_025, 2), (AskedTable((0,), ("prefix",)), AskedTable((1,), ("each",))), "auto", "gaussian")
    assert "residual" not in [design.strategy for design in found]


def test_what_does_not_suit_is_refused_with_what_does() -> None:
    with pytest.raises(ParameterError, match="there is no strategy 'best'; there are auto, exact, direct"):
        designs((4,), (AskedTable((0,), ("range",)),), "best", "gaussian")
    with pytest.raises(ParameterError, match="at most 4,096 cells"):
        designs((5_000,), (AskedTable((0,), ("prefix",)),), "optimised", "gaussian")
    with pytest.raises(ParameterError, match="at most 256 cells under a budget without a δ"):
        designs((257,), (AskedTable((0,), ("each",)),), "residual", "laplace")


@pytest.mark.parametrize("size", [2, 3, 4, 5, 7, 10])
def test_what_is_measured_of_a_column_for_laplace_noise_is_the_least_of_what_is_known(size: int) -> None:
    """Rows add up to zero, cells follow from them but for their mean, and norms are those of the integers."""
    line = residual_line(AskedLine(size, ("each",)), "laplace")
    assert isinstance(line, DenseLine)
    matrix = line.matrix.astype(np.int64)
    assert not matrix.sum(axis=1).any()
    assert np.linalg.matrix_rank(matrix) == size - 1
    assert line.norms.l1 == max(int(np.abs(matrix[:, cell]).sum()) for cell in range(size))
    helmert = HelmertLine(size).measure(np.eye(size, dtype=np.int64))
    plain = (np.linalg.pinv(helmert) ** 2).sum() * int(np.abs(helmert).sum(axis=0).max()) ** 2
    assert unit_error(line, AskedLine(size, ("each",)), "laplace") <= plain * (1 + 1e-9)


@pytest.mark.parametrize(("sizes", "tables"), [*SCHEMAS, ((4, 3), (AskedTable((0, 1), ("range", "each")),))])
def test_laplace_residuals_forecast_their_error_and_no_record_costs_more(
    sizes: tuple[int, ...], tables: tuple[AskedTable, ...]
) -> None:
    """Scales in units of 1/ε: every record moves all numbers together by no more than 1 in units of their scales."""
    (design,) = designs(sizes, tables, "residual", "laplace")
    cells = np.eye(prod(sizes), dtype=np.int64).reshape(-1, *sizes)
    rows, scales = [], []
    for block, share in zip(design.blocks, design.shares, strict=True):
        gone = tuple(axis for axis in range(len(sizes)) if axis not in block.columns)
        rows.append(np.array([block.measure(cell.sum(axis=gone)) / block.fineness for cell in cells], dtype=float).T)
        scales.append(np.full(block.rows, block.norms.l1 / float(share)))
    whole, scale = np.concatenate(rows), np.concatenate(scales)
    losses = (np.abs(whole) / scale[:, None]).sum(axis=0)
    assert losses.max() <= 1 + 1e-9
    assert losses.max() == pytest.approx(1, abs=1e-6)
    # The least-squares estimate of every table, block by block, has the variance that is forecast (of scale², not 2·).
    inverse = np.linalg.pinv(whole / scale[:, None]) / scale
    total = 0.0
    for table in tables:
        query = np.ones((1, 1))
        for column, size in enumerate(sizes):
            inside = column in table.columns
            own = _rows(table.kinds[table.columns.index(column)], size) if inside else np.ones((1, size))
            query = np.kron(query, own)
        total += ((query @ inverse) ** 2 * scale**2).sum() / len(query)
    assert design.error() == pytest.approx(total, rel=1e-6)


def test_laplace_residuals_of_nltcs() -> None:
    """At ε = 1, in units of a scale: 560 tables directly, 150.5 by residuals, which `auto` looks at too."""
    tables = every(16, range(3, 4))
    found = {design.strategy: design for design in designs((2,) * 16, tables, "auto", "laplace")}
    assert (found["direct"].error() / 560) ** 0.5 == pytest.approx(560)
    assert (found["residual"].error() / 560) ** 0.5 == pytest.approx(150.52, abs=0.01)


def test_of_very_many_marginals_only_the_best_is_made() -> None:
    sizes, tables = (2,) * 16, every(16, range(4, 5))
    assert [design.strategy for design in designs(sizes, tables, "auto", "gaussian")] == ["residual"]
