"""Strategies against dense linear algebra on small columns: norms, estimates and the noise of every stretch."""

from fractions import Fraction

import numpy as np
import pytest

from confide.workload.strategy.block import ProductBlock, UnitChange
from confide.workload.strategy.centred import centred_optimum
from confide.workload.strategy.dense import DenseLine
from confide.workload.strategy.each_cell import IdentityLine
from confide.workload.strategy.helmert import HelmertLine
from confide.workload.strategy.hierarchy import TreeLine
from confide.workload.strategy.line import AskedLine, LineStrategy, NoiseKind, stretches, unit_error
from confide.workload.strategy.optimum import gaussian_optimum
from confide.workload.strategy.registry import LINES, direct_line
from confide.workload.strategy.stored import read_line, spelled_line
from confide.workload.strategy.toeplitz import ToeplitzLine, exact_convolution

SIZES = (1, 2, 3, 5, 8, 13)


def lines(size: int) -> list[LineStrategy]:
    found: list[LineStrategy] = []
    for kinds in (("range",), ("prefix",), ("each", "prefix")):
        asked = AskedLine(size, kinds)  # type: ignore[arg-type]
        for noise in ("gaussian", "laplace"):
            found += [maker.make(asked, noise) for maker in LINES.values()]  # type: ignore[arg-type]
        found.append(direct_line(asked, "gaussian"))
    found.append(TreeLine(size, 2, (*[0] * (size - 1).bit_length(), 1)))
    found.append(TreeLine(size, 3, (3, 0, 2, 1)))
    if size > 1:
        found += [HelmertLine(size), centred_optimum(AskedLine(size, ("range",)))]
    return found


def matrix(line: LineStrategy) -> np.ndarray:
    return line.measure(np.eye(line.size, dtype=np.int64)).astype(float)


def factors(line: LineStrategy) -> np.ndarray:
    return np.ones(line.rows) if line.factors is None else line.factors.astype(float)


@pytest.mark.parametrize("size", SIZES)
def test_what_a_strategy_says_is_what_its_integers_say(size: int) -> None:
    for line in lines(size):
        own, scale = matrix(line), np.sqrt(factors(line))
        weighted = own / scale[:, None]
        norms = line.norms
        assert line.rows == len(own)
        assert norms.l1 == np.abs(own).sum(axis=0).max()
        assert float(norms.l2_squared) == pytest.approx((weighted**2).sum(axis=0).max(), rel=1e-12)
        assert float(norms.least_inner) <= (weighted.T @ weighted).min() + 1e-9
        assert norms.largest >= np.abs(own).max()


@pytest.mark.parametrize("size", SIZES)
def test_estimates_and_their_noise_are_those_of_least_squares(size: int) -> None:
    random = np.random.default_rng(1)
    for line in lines(size):
        scale = np.sqrt(factors(line))
        inverse = np.linalg.pinv(matrix(line) / scale[:, None]) / scale
        if line.name == "wavelet":  # cells beyond the last are estimated too, so it is an inverse and not the least
            inverse = line.estimate(np.eye(line.rows))
            assert inverse @ matrix(line) == pytest.approx(np.eye(size), abs=1e-9)
        measured, query = random.normal(size=(line.rows, 2)), random.normal(size=(size, 3))
        assert line.estimate(measured) == pytest.approx(inverse @ measured, abs=1e-8)
        assert line.coefficients(query) == pytest.approx(inverse.T @ query, abs=1e-8)
        starts, stops = stretches("range", size)
        places = np.arange(size)
        coefficients = ((places >= starts[:, None]) & (places < stops[:, None])) @ inverse
        second, fourth = line.spread(starts, stops, fourth=True)
        assert second == pytest.approx((coefficients**2 * factors(line)).sum(axis=1), rel=1e-7, abs=1e-10)
        if line.factors is None:
            assert fourth == pytest.approx((coefficients**4).sum(axis=1), rel=1e-6, abs=1e-10)
            assert (fourth >= (coefficients**4).sum(axis=1) * (1 - 1e-9) - 1e-18).all()


@pytest.mark.parametrize("size", [3, 8])
def test_a_strategy_is_kept_to_the_last_integer(size: int) -> None:
    for line in lines(size):
        arrays: list[bytes] = []
        again = read_line(spelled_line(line, arrays), memoryview(b"".join(arrays)))
        assert type(again) is type(line)
        assert (matrix(again) == matrix(line)).all()


@pytest.mark.parametrize("replaced", [False, True])
def test_no_unit_moves_a_product_further_than_its_norms(replaced: bool) -> None:
    """All pairs of cells of a small product: one row that comes, goes, or is replaced."""
    some: list[LineStrategy] = [*lines(3), IdentityLine(2), HelmertLine(4)]
    for first in some:
        for second in (IdentityLine(2), HelmertLine(3), TreeLine(3, 2, (2, 1, 3))):
            block = ProductBlock((0, 1), (first, second))
            scale = factors(first)[:, None] * factors(second)
            columns = np.kron(matrix(first), matrix(second)).T
            change = UnitChange(1, replaced)
            moves = [a - b for a in columns for b in columns] + list(columns) if replaced else list(columns)
            l1 = max(float(np.abs(move).sum()) for move in moves)
            squared = max(float((move**2 / scale.reshape(-1)).sum()) for move in moves)
            assert l1 <= change.l1(block.norms)
            assert squared <= float(change.l2_squared(block.norms)) * (1 + 1e-12)


def test_several_rows_of_a_unit_move_no_further_than_their_number_times_one() -> None:
    tree = TreeLine(5, 2, (2, 1, 0, 3))
    own, norms = matrix(tree), tree.norms
    change = UnitChange(3, replaced=False)
    best = max(((own[:, [a, b, c]].sum(axis=1)) ** 2).sum() for a in range(5) for b in range(5) for c in range(5))
    assert best == change.l2_squared(norms)  # reached where all three fall into one cell


def test_a_block_is_exact_where_doubles_and_64_bits_are_not() -> None:
    wide = DenseLine("optimised", np.full((2, 2), 2**18, dtype=np.int32) - np.array([[0, 1], [1, 0]], dtype=np.int32))
    block = ProductBlock((0, 1), (wide, wide))
    counts = np.array([[2**42 + 1, 3], [5, 2**42 + 7]])
    own = [[int(value) for value in row] for row in wide.matrix]
    exact = [
        sum(own[a][i] * own[b][j] * int(counts[i, j]) for i in range(2) for j in range(2)) * block.fineness
        for a in range(2)
        for b in range(2)
    ]
    assert block.measure(counts).tolist() == exact


def test_every_product_of_two_strategies_is_measured_exactly() -> None:
    """Differences of one column are negative, and go on into the strategy of the next."""
    random = np.random.default_rng(4)
    counts = random.integers(0, 2**30, (5, 3))
    for one in lines(5):
        for other in lines(3):
            block = ProductBlock((0, 1), (one, other))
            first, second = (matrix(line).astype(np.int64).astype(object) for line in (one, other))
            exact = (first @ counts.astype(object) @ second.T).reshape(-1) * block.fineness
            assert [int(own) for own in block.measure(counts)] == exact.tolist(), (one, other)


def test_products_of_three_strategies_are_measured_and_estimated_along_their_own_axes() -> None:
    """Also where columns have as many cells as each other, so that a wrong axis would fit."""
    counts = np.random.default_rng(5).integers(0, 2**20, (4, 4, 4))
    query = np.random.default_rng(6).normal(size=(4, 4, 4))
    for line in lines(4):
        block = ProductBlock((0, 1, 2), (line, line, line))
        if not block.fits:
            continue  # such a product is never measured
        own = matrix(line).astype(np.int64)
        exact = np.einsum("ai,bj,ck,ijk->abc", own, own, own, counts).reshape(-1) * block.fineness
        assert block.measure(counts).tolist() == exact.tolist(), line
        inverse = np.linalg.pinv(own.astype(np.float64))
        cells = np.einsum("ia,jb,kc,abc->ijk", inverse, inverse, inverse, exact.reshape([len(own)] * 3))
        assert block.estimate(exact.astype(np.float64)) == pytest.approx(cells / block.fineness, rel=1e-6, abs=1e-3), (
            line
        )
        handed = np.einsum("ia,jb,kc,ijk->abc", inverse, inverse, inverse, query).reshape(-1) / block.fineness
        assert block.coefficients(query) == pytest.approx(handed, rel=1e-6, abs=1e-9), line


def test_a_product_that_no_integers_hold_is_known_before_it_is_measured() -> None:
    wide = DenseLine("optimised", np.full((2, 2), 2**19, dtype=np.int32) - np.eye(2, dtype=np.int32))
    assert ProductBlock((0, 1), (wide, wide)).fits
    assert not ProductBlock((0, 1, 2), (wide, wide, wide)).fits


@pytest.mark.parametrize("entry", [2**20, -(2**20), 2**31 - 1, -(2**31)])
def test_entries_whose_squares_might_pass_64_bits_are_no_strategy(entry: int) -> None:
    with pytest.raises(ValueError, match="20 bits"):
        DenseLine("optimised", np.array([[1, 0], [0, entry]], dtype=np.int32))


def test_convolutions_are_exact_at_the_largest_counts() -> None:
    random = np.random.default_rng(3)
    kernel = ToeplitzLine(20_000).diagonals
    values = random.integers(0, 2**29, 20_000)
    values[17] = 2**43
    exact = [sum(int(kernel[i - j]) * int(values[j]) for j in range(i + 1)) for i in (0, 17, 500, 19_999)]
    assert exact_convolution(kernel, values)[[0, 17, 500, 19_999]].tolist() == exact


def test_the_chapters_example_corrected() -> None:
    """All ranges of 4 cells at ε = 1: 288 for every range by itself, 125.14 for a tree (not 201), 40 by cells."""
    asked = AskedLine(4, ("range",))
    expected = {288.0: direct_line(asked, "laplace"), 40.0: IdentityLine(4), 125.142857: TreeLine(4, 2, (1, 1, 1))}
    for error, line in expected.items():
        assert 2 * unit_error(line, asked, "laplace") == pytest.approx(error, rel=1e-6)


FIGURES: list[tuple[int, str, str, NoiseKind, float]] = [
    (1024, "prefix", "hierarchy", "gaussian", 3.554),
    (1024, "range", "hierarchy", "gaussian", 4.249),
    (1024, "prefix", "prefix", "gaussian", 3.111),
    (100_000, "prefix", "prefix", "gaussian", 4.57),
    (1024, "prefix", "hierarchy", "laplace", 11.0),
    (256, "prefix", "optimised", "gaussian", 2.529),
    (256, "range", "optimised", "gaussian", 2.903),
]


@pytest.mark.parametrize(("size", "kind", "name", "noise", "most"), FIGURES)
def test_closed_forms_of_the_error(size: int, kind: str, name: str, noise: NoiseKind, most: float) -> None:
    asked = AskedLine(size, (kind,))  # type: ignore[arg-type]
    line = LINES[name].make(asked, noise)
    variance = unit_error(line, asked, noise) * (2 if noise == "laplace" else 1) / asked.count
    assert variance**0.5 <= most


def test_helmert_rows_cost_every_cell_the_same() -> None:
    for size in (2, 3, 7):
        line = HelmertLine(size)
        losses = (matrix(line) ** 2 / factors(line)[:, None]).sum(axis=0)
        assert losses == pytest.approx(float(Fraction(size - 1, size)))


def test_the_optimum_is_certified() -> None:
    """No strategy has less than the bound, by duality; what is found is within 0.03 % of it."""
    for kind in ("prefix", "range"):
        found = gaussian_optimum(AskedLine(200, (kind,)))  # type: ignore[arg-type]
        assert found.bound <= found.error <= found.bound * 1.0006
        assert (found.matrix**2).sum(axis=0) == pytest.approx(1)
