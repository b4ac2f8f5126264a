"""Controlled rounding: whole counts, totals kept, nothing moved by one or more."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from confide.errors import ParameterError
from confide.fit import (
    TOTAL,
    CellDomain,
    Fit,
    FitProblem,
    Marginal,
    MeasuredGroup,
    SparseGroup,
    adaptive,
    nnls,
    ols,
    round_controlled,
)
from confide.fit import rounding as records_module
from confide.fit.group import Floats
from confide.fit.program import Certificate
from confide.mechanism.noise.law import DiscreteLaplace

NONE = np.zeros(0)


def fitted(domain: CellDomain, cells: Floats) -> Fit:
    return Fit("nnls", domain, cells, Certificate(0.0, 0.0, 0), NONE)


@st.composite
def tables(draw: st.DrawFn) -> Fit:
    sizes = draw(st.lists(st.integers(1, 5), min_size=3, max_size=3))
    domain = CellDomain(("a", "b", "c"), tuple(sizes))
    value = st.one_of(st.just(0.0), st.integers(0, 50).map(float), st.floats(0, 40))
    return fitted(domain, np.array(draw(st.lists(value, min_size=domain.cells, max_size=domain.cells))))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(tables())
def test_a_hierarchy_is_kept_exactly(fit: Fit) -> None:
    keep = [Marginal(("a",)), TOTAL, Marginal(("b", "a"))]
    rounded = round_controlled(fit, keep)
    assert rounded.kept == (True, True, True)
    assert (rounded.counts >= 0).all()
    assert np.abs(rounded.counts - fit.cells).max() < 1 + 1e-5
    assert rounded.counts.sum() == round(fit.cells.sum()) or abs(fit.cells.sum() % 1 - 0.5) < 1e-5
    for group in keep:
        off = np.abs(group.answer(fit.domain, rounded.counts.astype(float)) - fit.answer(group))
        assert off.max() < 1 + 1e-5


@settings(max_examples=60, deadline=None, derandomize=True)
@given(tables())
def test_two_crossing_partitions_are_kept_exactly(fit: Fit) -> None:
    rounded = round_controlled(fit, [TOTAL, Marginal(("a",)), Marginal(("c",))])
    assert rounded.kept == (True, True, True)
    assert np.abs(rounded.counts - fit.cells).max() < 1 + 1e-5
    assert abs(rounded.counts.sum() - fit.cells.sum()) <= 0.5 + 1e-5


@settings(max_examples=60, deadline=None, derandomize=True)
@given(tables())
def test_three_crossing_partitions_say_what_was_kept(fit: Fit) -> None:
    keep = [Marginal(("a", "b")), Marginal(("b", "c")), Marginal(("a", "c"))]
    rounded = round_controlled(fit, keep)
    assert rounded.misses[0] < 1 + 1e-5
    for group, kept, miss in zip(keep, rounded.kept, rounded.misses, strict=True):
        off = float(np.abs(group.answer(fit.domain, rounded.counts.astype(float)) - fit.answer(group)).max())
        assert miss == pytest.approx(off, abs=1e-4)
        assert kept == (miss < 1 - 5e-7)
    assert np.abs(rounded.counts - fit.cells).max() < 1 + 1e-5


def test_whole_tables_stay_as_they_are() -> None:
    domain = CellDomain(("a", "b"), (2, 3))
    cells = np.array([0.0, 3.0, 1.0, 0.0, 9.0, 4.0])
    rounded = round_controlled(fitted(domain, cells + 1e-9), [Marginal(("a",)), Marginal(("b",))])
    assert rounded.counts.tolist() == cells.tolist()
    assert rounded.misses == pytest.approx((0.0, 0.0), abs=1e-6)


def test_the_largest_remainders_are_rounded_up() -> None:
    domain = CellDomain(("a",), (4,))
    assert round_controlled(fitted(domain, np.array([0.6, 0.3, 0.9, 0.2]))).counts.tolist() == [1, 0, 1, 0]


def test_a_search_by_prices_keeps_what_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many cells for a linear program: the first group exactly, the crossing one nearly."""
    monkeypatch.setattr(records_module, "MOST_PROGRAMMED", 10)
    generator = np.random.default_rng(3)
    domain = CellDomain(("a", "b", "c"), (12, 12, 12))
    fit = fitted(domain, generator.exponential(0.4, domain.cells))
    searched = round_controlled(fit, [Marginal(("a",)), Marginal(("b",))])
    assert searched.kept[0]
    assert searched.misses[1] <= 2
    plain = round_controlled(fit, [Marginal(("a",))]).counts.astype(float)
    off = np.abs(Marginal(("b",)).answer(domain, plain) - fit.answer(Marginal(("b",)))).max()
    assert searched.misses[1] < off


def test_records_are_the_counts(table_problem: FitProblem) -> None:
    rounded = round_controlled(adaptive(table_problem), [TOTAL, Marginal(("race",))])
    listed = rounded.records()
    assert listed.shape == (rounded.counts.sum(), 2)
    again = np.zeros((9, 24), dtype=int)
    np.add.at(again, (listed[:, 0], listed[:, 1]), 1)
    assert (again.ravel() == rounded.counts).all()
    assert SparseGroup(sparse.csr_array(np.eye(2))).count(CellDomain(("a",), (2,))) == 2


def test_parts_of_the_table_can_be_kept() -> None:
    """A group that counts some cells only: the rest is one more part."""
    domain = CellDomain(("a",), (5,))
    some = SparseGroup(sparse.csr_array(np.array([[1.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0]])))
    rounded = round_controlled(fitted(domain, np.array([0.5, 0.5, 1.2, 0.4, 0.4])), [some])
    assert rounded.counts[:2].sum() == 1
    assert rounded.counts[2] in (1, 2)
    assert rounded.kept == (True,)


def test_negative_tables_overlapping_totals_and_too_many_records_are_refused(table_problem: FitProblem) -> None:
    with pytest.raises(ParameterError, match="fitted by ols may have negative counts"):
        round_controlled(ols(table_problem))
    overlapping = SparseGroup(sparse.csr_array(np.ones((2, 216))))
    with pytest.raises(ParameterError, match="disjoint"):
        round_controlled(nnls(table_problem), [overlapping])
    domain = CellDomain(("a",), (1,))
    law = DiscreteLaplace(Fraction(1))
    many = nnls(FitProblem(domain, (MeasuredGroup(TOTAL, np.array([1e9]), law),)))
    with pytest.raises(ParameterError, match="1,000,000,000 records"):
        round_controlled(many).records()
