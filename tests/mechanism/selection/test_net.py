"""The net of small tables: its exact loss over all tables and all neighbours, beside controls that lose more."""

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from math import comb

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.mechanism import TestRandomness
from confide.mechanism.selection.exponential import Exponential
from confide.mechanism.selection.net import MOST_CELLS, MOST_ROWS, Net, net, tables_of_rows


def queries(cells: int) -> np.ndarray:
    """All stretches."""
    return np.array([[int(a <= c < b) for c in range(cells)] for a in range(cells) for b in range(a + 1, cells + 1)])


def law(own: Net, counts: np.ndarray) -> np.ndarray:
    """The logarithms of the exact chances of all tables."""
    weights = -float(own.mechanism.rate) * own.errors(counts)
    return weights - np.logaddexp.reduce(weights)


def worst_loss(own: Net, cells: int, rows: int) -> float:
    """The largest log-ratio of chances, over every outcome and all pairs of neighbours of at most so many rows."""
    worst = 0.0
    for counts in tables_of_rows(cells, rows):
        base = law(own, counts)
        for cell in range(cells):
            more = counts.copy()
            more[cell] += 1
            worst = max(worst, float(np.abs(law(own, more) - base).max()))
            for other in range(cells):
                if counts[other]:
                    replaced = more.copy()
                    replaced[other] -= 1
                    worst = max(worst, float(np.abs(law(own, replaced) - base).max()))
    return worst


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_the_exact_loss_is_at_most_epsilon(epsilon: Fraction) -> None:
    """Every outcome, on every pair of tables of up to four rows over three cells: added, removed and replaced rows."""
    own = net(epsilon, 1, queries(3), 3)
    assert 0.5 * epsilon < worst_loss(own, 3, 4) <= float(epsilon) * (1 + 1e-9)
    wrong = Net(own.queries, own.tables, Exponential(epsilon, 1))
    assert worst_loss(wrong, 3, 4) > epsilon


def test_units_of_several_rows_have_flatter_chances() -> None:
    assert net(Fraction(1), 5, queries(3), 2).mechanism.rate == Fraction(1, 10)


@pytest.mark.parametrize(("cells", "rows"), [(1, 0), (1, 6), (3, 2), (4, 6), (16, 3)])
def test_the_net_holds_every_table_once(cells: int, rows: int) -> None:
    found = tables_of_rows(cells, rows)
    assert len(found) == comb(cells + rows, rows) == len({tuple(own) for own in found.tolist()})
    assert found.min() >= 0
    assert found.sum(axis=1).max() == rows


def test_scores_are_the_largest_errors() -> None:
    own = net(Fraction(1), 1, queries(3), 2)
    counts = np.array([2, 0, 5])
    for table, error in zip(own.tables, own.errors(counts), strict=True):
        prefixes = np.concatenate([[0], np.cumsum(table - counts)])
        assert error == max(abs(a - b) for a in prefixes for b in prefixes)


def test_tables_are_chosen_with_their_chances() -> None:
    """20,000 draws of six tables, each within 5σ: wrong by chance once in 10⁵."""
    own = net(Fraction(2), 1, queries(2), 2)
    counts = np.array([1, 1])
    source = TestRandomness(6)
    seen = Counter(tuple(own.choose(counts, source).tolist()) for _ in range(20_000))
    for table, chance in zip(own.tables.tolist(), np.exp(law(own, counts)).tolist(), strict=True):
        assert abs(seen[tuple(table)] / 20_000 - chance) < 5 * math.sqrt(chance * (1 - chance) / 20_000)


def test_at_a_high_epsilon_it_is_the_data() -> None:
    own = net(Fraction(200), 1, queries(4), 6)
    for counts in ([0, 0, 0, 0], [3, 0, 2, 1]):
        assert own.choose(np.array(counts), TestRandomness(1)).tolist() == counts


def test_every_error_is_bounded_by_the_size_of_the_net() -> None:
    """Where the data are in the net: P(error >= t) <= |net|·exp(−εt/2), from the exact chances; and it falls."""
    own = net(Fraction(3), 1, queries(4), 3)
    counts = np.array([1, 0, 2, 0])
    errors, chances = own.errors(counts), np.exp(law(own, counts))
    tails = [float(chances[errors >= t].sum()) for t in range(1, 4)]
    assert all(tail <= len(own.tables) * math.exp(-1.5 * t) for t, tail in enumerate(tails, 1))
    assert all(later < earlier for earlier, later in pairwise(tails))


def test_what_is_refused() -> None:
    with pytest.raises(ParameterError, match="at most 16 cells and 6 rows, not 17 and 6"):
        net(Fraction(1), 1, np.eye(MOST_CELLS + 1, dtype=np.int64), MOST_ROWS)
    with pytest.raises(ParameterError, match="take wider bins"):
        net(Fraction(1), 1, np.eye(2, dtype=np.int64), MOST_ROWS + 1)
    with pytest.raises(ValueError, match="zeros and ones"):
        net(Fraction(1), 1, 2 * np.eye(2, dtype=np.int64), 2)
