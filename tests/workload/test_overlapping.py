"""Strategies for counts that overlap: exact, and with a sensitivity that no row passes."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from confide.workload.overlapping import Overlap, overlaps

PREFIXES = tuple(tuple(int(j <= i) for j in range(7)) for i in range(7))
TOTALS = ((1, 1, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1))
BITS = tuple(zip(*(row for row in product((0, 1), repeat=3) if any(row)), strict=True))
SIGNED = ((3, 1, 0, -1), (0, 2, -5, 1), (1, 1, 1, 1))
CROSSED = (
    *(row + (0,) * 7 for row in PREFIXES),
    *((0,) * 7 + row for row in PREFIXES),
    *(row + row for row in PREFIXES),
)
ASKED = {"prefixes": PREFIXES, "totals": TOTALS, "bits": BITS, "signed": SIGNED, "crossed": CROSSED}


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", ASKED)
def test_every_count_follows_exactly(name: str, kind: Any) -> None:
    weights = ASKED[name]
    found = overlaps(weights, kind)
    names = {own.name for own in found}
    assert "atoms" in names
    assert "optimised" in names or kind == "laplace"
    for own in found:
        for wanted, terms in zip(weights, own.told, strict=True):
            made = [sum(c * own.rows[k][atom] for k, c in terms) for atom in range(len(wanted))]
            assert made == list(wanted)


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", ASKED)
def test_no_row_moves_more_than_the_norm(name: str, kind: Any, replaced: bool) -> None:
    """Brute force: every atom that a row can leave, and every atom and group it can come to."""
    for own in overlaps(ASKED[name], kind):
        norm, most = own.norm(kind, replaced), Fraction(0)
        columns = [tuple(row[atom] for row in own.rows) for atom in range(len(own.rows[0]))]
        none = (0,) * len(own.rows)
        moves = [(one, none) for one in columns]
        if replaced:
            moves += [(one, two) for one in columns for two in columns]
            moves += [(tuple(a - b for a, b in zip(one, two, strict=True)), none) for one in columns for two in columns]
        for one, two in moves:  # in two groups, or in one
            entries = [
                (abs(entry), scale) for own_ in (one, two) for entry, scale in zip(own_, own.scales, strict=True)
            ]
            parts = [entry / scale for entry, scale in entries if entry]
            most = max(most, sum((part if kind == "laplace" else part**2 for part in parts), Fraction(0)))
        assert most <= norm
        assert float(norm) <= float(most) * (1 + 1e-6) or (replaced and kind == "laplace")


def test_the_best_is_far_better_than_one_by_one() -> None:
    """Closed forms: 21 counts of prefixes by sex, in the variance of one count at the whole cost."""
    best = {kind: _best(CROSSED, kind) for kind in ("laplace", "gaussian")}
    assert best["laplace"] < 0.03 * 21**2
    assert best["gaussian"] < 0.15 * 21


def _best(weights: Any, kind: Any) -> float:
    return min(float(own.variances(kind, replaced=False).mean()) for own in overlaps(weights, kind))


def test_disjoint_counts_are_measured_as_they_are() -> None:
    weights = ((1, 0), (0, 1))
    first = overlaps(weights, "laplace")[0]
    assert first == Overlap("together", weights, (Fraction(1),) * 2, (((0, Fraction(1)),), ((1, Fraction(1)),)), False)
    assert first.norm("laplace", replaced=False) == 1
    assert np.all(first.variances("laplace", replaced=False) == 1)


@pytest.mark.parametrize("ends", [(0, 5), (2, 5), (-3, 0), (-2, 7), (-4, 4)])
@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", ["prefixes", "totals", "signed"])
def test_no_row_of_a_sum_moves_more_than_the_norm(name: str, kind: Any, replaced: bool, ends: tuple[int, int]) -> None:
    """Brute force: every atom and every value in the range, or no atom; left, come to, in one group and in two."""
    for own in overlaps(ASKED[name], kind):
        scales = np.array([float(scale) for scale in own.scales])
        columns = np.array(own.rows, dtype=np.float64).T / scales
        values = [*range(ends[0], ends[1] + 1)]
        moves = [value * column for column in columns for value in values] + [np.zeros(len(scales))]
        changes = list(moves)
        if replaced:
            changes += [one - two for one in moves for two in moves]
            changes += [np.concatenate([one, two]) for one in moves for two in moves]
        each = [float(np.abs(own_).sum() if kind == "laplace" else (own_**2).sum()) for own_ in changes]
        norm = float(own.norm(kind, replaced, *ends))
        assert max(each) <= norm * (1 + 1e-9)
        assert replaced or norm <= max(each) * (1 + 1e-9)
