"""What papers print that is not so, computed. The pages under docs/errata say what each is about."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

# --- Confidence intervals for private query processing ----------------------------------------------------------------


@pytest.mark.parametrize("gamma", [4, 5, 8])
def test_the_length_of_the_smooth_interval_grows_as_its_proof_says(gamma: int) -> None:
    """Theorem 5.4 prints the exponent (3γ − 1)/(γ² − 1) of 1/β; its proof and the interval have 2γ/(γ² − 1)."""
    proven = Fraction(1, gamma + 1) + Fraction(1, gamma - 1)
    assert proven == Fraction(2 * gamma, gamma**2 - 1) != Fraction(3 * gamma - 1, gamma**2 - 1)
    mass = 2 * quad(lambda z: 1 / (1 + z**gamma), 0, np.inf)[0]

    def length(beta: float) -> float:
        """(2/β)^(1/(γ+1)) times the quantile of the generalised Cauchy law at 1 − β/4, without their constant."""

        def beyond(end: float) -> float:  # ∫ from end on, as 1/z: no infinite range
            return quad(lambda t: t ** (gamma - 2) / (1 + t**gamma), 0, 1 / end)[0] / mass - beta / 4

        return (2 / beta) ** (1 / (gamma + 1)) * brentq(beyond, 1.0, 1e9)

    slope = math.log(length(1e-12) / length(1e-9)) / math.log(1e3)
    assert slope == pytest.approx(float(proven), abs=1e-3)


# --- DP-PQD -----------------------------------------------------------------------------------------------------------


def _published_peak(values: list[int], low: int, high: int) -> set[int]:
    scores = {end: -abs(sum(value < end for value in values) - Fraction(len(values), 2)) for end in range(low, high)}
    return {end for end, score in scores.items() if score == max(scores.values())}


def test_with_ties_the_published_score_can_peak_above_the_median() -> None:
    """Section 6.1: u(e) = −|#{x < e} − n/2|. Above it, below it and at it, and at it alone, all three occur."""
    assert _published_peak([1] * 6 + [2] * 4, 0, 4) == {2}  # the median is 1
    assert _published_peak([1] * 3 + [5] * 4 + [9] * 3, 0, 12) == {2, 3, 4, 5, 6, 7, 8, 9}  # 5
    assert _published_peak([1, 1, 2, 2, 3], 0, 5) == {2}  # 2


# --- The survey chapter -----------------------------------------------------------------------------------------------

RANGES = np.array([[float(low <= cell < high) for cell in range(4)] for low in range(4) for high in range(low + 1, 5)])
TREE = np.array(
    [[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=np.float64
)


def _error(strategy: np.ndarray) -> float:
    """The chapter's formula at ε = 1: 2 ‖A‖₁² ‖W A⁺‖²."""
    return float(2 * np.abs(strategy).sum(axis=0).max() ** 2 * np.square(RANGES @ np.linalg.pinv(strategy)).sum())


def test_the_example_of_the_matrix_mechanism() -> None:
    """4.4.4: 288 for the ranges themselves is right; the tree of Figure 4.3 has 125.1, not 201, and the identity 40."""
    assert RANGES.shape == (10, 4)  # queries × cells, where the chapter says cells × queries
    assert _error(RANGES) == pytest.approx(288)
    assert _error(TREE) == pytest.approx(125.14, abs=0.01)
    assert _error(np.eye(4)) == pytest.approx(40)


def test_the_last_line_of_figure_42_answers_another_question() -> None:
    """It adds noise to a = Ax once more; answers of the workload are W x̃, x̃ = A⁺y."""
    table = np.array([3.0, 1.0, 4.0, 1.0])
    noisy = TREE @ table + np.random.default_rng(1).laplace(0, 3, 7)
    assert (RANGES @ (np.linalg.pinv(TREE) @ noisy)).shape == (RANGES @ table).shape == (10,)
    assert noisy.shape == (7,)  # what the figure calls the answers
    assert RANGES @ np.linalg.pinv(TREE) @ (TREE @ table) == pytest.approx(RANGES @ table)  # unbiased


def test_all_ranges_by_a_hierarchy_have_an_error_of_k_squared_log_cubed() -> None:
    """4.4.3 prints k² log² k after log³ k for one range: k² of these are k² log³ k."""

    def error(size: int) -> float:
        """Expected squared error of all ranges, each the sum of the fewest nodes of a binary tree, noise of variance
        2 (levels)² on each.
        """
        levels = size.bit_length()
        total = sum(_nodes(low, high) for low in range(size) for high in range(low + 1, size + 1))
        return total * 2.0 * levels**2

    ratios = [error(2**power) / (4**power * power**3) for power in (4, 6, 8)]
    printed = [error(2**power) / (4**power * power**2) for power in (4, 6, 8)]
    assert max(ratios) < 1.6 * min(ratios)
    assert printed[0] < printed[1] < printed[2]
    assert printed[2] > 1.4 * printed[0]


def _nodes(low: int, high: int) -> int:
    """How many nodes of a binary tree a range is made of."""
    count = 0
    while low < high:
        count += (low & 1) + (high & 1)
        low, high = (low + 1) >> 1, high >> 1
    return count


def _local(values: tuple[int, ...], top: int) -> int:
    """The furthest that the median moves if one value is replaced by another in 0..top."""
    median = sorted(values)[len(values) // 2]
    moved = 0
    for place, value in itertools.product(range(len(values)), range(top + 1)):
        other = sorted((*values[:place], value, *values[place + 1 :]))
        moved = max(moved, abs(other[len(values) // 2] - median))
    return moved


def _at_distance(values: tuple[int, ...], distance: int, top: int) -> int:
    found = 0
    for other in itertools.product(range(top + 1), repeat=len(values)):
        if sum(a != b for a, b in zip(values, other, strict=True)) <= distance:
            found = max(found, _local(other, top))
    return found


def test_local_sensitivity_at_a_distance_of_the_median() -> None:
    """4.8.1 prints max over 0 <= t <= k+1 of x_{m+t} − x_{m+t+k−1}; the second index is m + t − k − 1."""
    top, values = 4, (0, 1, 4)

    def padded(index: int) -> int:  # counted from 1, with the ends of the domain beyond
        return 0 if index < 1 else top if index > len(values) else sorted(values)[index - 1]

    for distance in (0, 1, 2):
        assert _at_distance(values, distance, top) == _largest(values, distance, top)
    assert _at_distance(values, 2, top) == 4
    assert max(padded(2 + t) - padded(2 + t + 2 - 1) for t in range(2 + 2)) == 0  # as printed: never above zero


def test_smooth_sensitivity_is_smooth_by_a_factor_and_not_by_a_difference() -> None:
    """4.8.1 prints |SS(D) − SS(D′)| <= e^β d(D, D′). On neighbours SS(D) <= e^β SS(D′) holds, and the difference does
    not: it scales with the values, and e^β does not.
    """
    top, beta = 6, 0.5
    smooth = {
        values: max(math.exp(-beta * k) * _largest(values, k, top) for k in range(4))
        for values in itertools.product(range(top + 1), repeat=3)
    }
    furthest = 0.0
    for values, bound in smooth.items():
        for place, value in itertools.product(range(3), range(top + 1)):
            other = smooth[*values[:place], value, *values[place + 1 :]]
            assert bound <= math.exp(beta) * other * (1 + 1e-12)
            furthest = max(furthest, bound - other)
    assert furthest > math.exp(beta)


def _largest(values: tuple[int, ...], distance: int, top: int) -> int:
    """By the formula, as the test above holds it."""
    middle = (len(values) + 1) // 2
    ends = sorted(values)

    def padded(index: int) -> int:
        return 0 if index < 1 else top if index > len(values) else ends[index - 1]

    return max(padded(middle + t) - padded(middle + t - distance - 1) for t in range(distance + 2))


def test_where_points_are_dense_the_relative_error_is_low() -> None:
    """4.5.2 prints that it "is not low" where counts are sufficiently higher than the noise of the regions."""
    regions, scale = 64, 4.0
    relative = [math.sqrt(2 * regions) * scale / count for count in (10**3, 10**5, 10**7)]
    assert relative == pytest.approx([0.045, 0.00045, 0.0000045], rel=0.01)


def test_a_tree_whose_counts_have_no_floor_loses_more_with_every_level() -> None:
    """4.5.2 lowers a count by its depth and adds noise. PrivTree also cuts it at θ − δ from below; without that, a
    record in a deep path is told by each of its levels.
    """
    epsilon, fanout, threshold = 1.0, 4, 0.0
    scale = (2 * fanout - 1) / ((fanout - 1) * epsilon)
    step = scale * math.log(fanout)

    def loss(levels: int, floor: bool) -> float:
        """The log-ratio of splitting all nodes of a path, for 1 record in it and none."""

        def chance(count: float) -> float:  # of Lap(scale) above what is missing
            apart = threshold - count
            return 0.5 * math.exp(-apart / scale) if apart >= 0 else 1 - 0.5 * math.exp(apart / scale)

        def lowered(count: int, depth: int) -> float:
            biased = count - depth * step
            return max(biased, threshold - step) if floor else biased

        return sum(math.log(chance(lowered(1, depth)) / chance(lowered(0, depth))) for depth in range(levels))

    assert [loss(levels, True) <= epsilon for levels in (1, 10, 100)] == [True] * 3
    assert loss(100, False) == pytest.approx(100 / scale, rel=0.02)
    assert loss(100, False) > 40 * epsilon
