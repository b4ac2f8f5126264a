"""Domains: what is refused, and with what advice.

Groups: implicit answers and their transposes agree with the matrices.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from confide.errors import ParameterError
from confide.fit import TOTAL, CellDomain, Group, Marginal, SparseGroup, Subtotal
from confide.fit.rows import Rows
from tests.fit.strategies import domains, groups


def test_cells_and_marginal_sizes() -> None:
    domain = CellDomain(("age", "sex", "region"), (100, 2, 16))
    assert domain.cells == 3200
    assert domain.size(("region", "sex")) == 32
    assert domain.size(()) == 1
    assert domain.axes(("region", "age")) == (2, 0)


def test_a_domain_of_a_million_million_cells_is_refused_with_what_to_drop() -> None:
    with pytest.raises(ParameterError) as refused:
        CellDomain(("zip", "age", "job"), (100_000, 100, 100_000))
    assert "1,000,000,000,000 cells" in str(refused.value)
    assert "without zip (100,000) it has 10,000,000" in str(refused.value)


def test_one_attribute_that_is_too_large_is_told_to_be_classed() -> None:
    with pytest.raises(ParameterError, match="fewer, wider classes"):
        CellDomain(("income",), (10**9,))


@pytest.mark.parametrize(
    ("attributes", "sizes", "words"),
    [
        ((), (), "a size for each attribute"),
        (("a", "b"), (2,), "2 attributes, 1 sizes"),
        (("a", "a"), (2, 2), "named twice"),
        (("a",), (0,), "at least 1"),
        (("a",), (True,), "at least 1"),
        (("a",), (2.5,), "at least 1"),
    ],
)
def test_what_is_no_domain_is_refused(attributes: tuple[str, ...], sizes: tuple[int, ...], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        CellDomain(attributes, sizes)


def test_an_undeclared_attribute_is_refused_with_those_there_are() -> None:
    domain = CellDomain(("age", "sex"), (100, 2))
    with pytest.raises(
        ParameterError, match=r"'income' is not an attribute of this table, which has age \(100\), sex \(2\)"
    ):
        domain.axes(("age", "income"))
    with pytest.raises(ParameterError, match="named twice in a marginal"):
        domain.axes(("age", "age"))


@st.composite
def groups_over(draw: st.DrawFn) -> tuple[CellDomain, Group]:
    domain = draw(domains())
    group = draw(groups(domain))
    if draw(st.booleans()):
        members = draw(st.lists(st.booleans(), min_size=group.count(domain), max_size=group.count(domain)))
        group = Subtotal(group, np.array(members))
    return domain, group


@settings(max_examples=100, deadline=None, derandomize=True)
@given(groups_over(), st.integers(0, 2**32 - 1))
def test_a_group_is_its_matrix(pair: tuple[CellDomain, Group], seed: int) -> None:
    domain, group = pair
    generator = np.random.default_rng(seed)
    matrix = group.matrix(domain).toarray()
    cells, values = generator.normal(size=domain.cells), generator.normal(size=group.count(domain))
    assert matrix.shape == (group.count(domain), domain.cells)
    assert group.answer(domain, cells) == pytest.approx(matrix @ cells)
    assert group.spread(domain, values) == pytest.approx(matrix.T @ values)
    assert group.squares(domain, cells) == pytest.approx((matrix**2) @ cells)
    once = bool(((matrix == 0) | (matrix == 1)).all() and (matrix.sum(axis=0) <= 1).all())
    assert group.disjoint(domain) <= once  # a group never claims to be disjoint if it is not
    assert group.complete(domain) <= (once and bool((matrix.sum(axis=0) == 1).all()))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_stacked_rows_are_the_same_dense_and_implicit(data: st.DataObject) -> None:
    domain = data.draw(domains())
    stack = Rows(domain, tuple(data.draw(groups(domain)) for _ in range(data.draw(st.integers(1, 3)))))
    implicit = Rows(domain, stack.groups)
    implicit.__dict__["dense"] = None
    cells, values = np.arange(1.0, domain.cells + 1), np.arange(1.0, stack.count + 1)
    assert stack.dense is not None
    assert implicit.answer(cells) == pytest.approx(stack.answer(cells))
    assert implicit.spread(values) == pytest.approx(stack.spread(values))
    assert implicit.squares(cells) == pytest.approx(stack.squares(cells))
    some = np.flatnonzero(cells % 2)
    gathered = implicit.columns(some)
    plain = all(isinstance(getattr(group, "group", group), Marginal) for group in stack.groups)
    assert (gathered is not None) == plain
    assert gathered is None or (gathered.toarray() == stack.dense[:, some]).all()


def test_columns_of_marginals_and_their_subtotals_are_gathered() -> None:
    domain = CellDomain(("age", "sex", "region"), (3, 2, 4))
    part = Subtotal(Marginal(("region", "age")), np.arange(12) % 3 == 0)
    stack = Rows(domain, (Marginal(("region", "sex")), part, TOTAL))
    some = np.array([0, 3, 7, 23])
    gathered = stack.columns(some)
    assert gathered is not None
    assert stack.dense is not None
    assert (gathered.toarray() == stack.dense[:, some]).all()


def test_a_marginal_answers_in_the_order_of_its_attributes() -> None:
    domain = CellDomain(("age", "sex", "region"), (3, 2, 4))
    cells = np.arange(24.0)
    table = cells.reshape(3, 2, 4)
    assert Marginal(("region", "age")).answer(domain, cells) == pytest.approx(table.sum(axis=1).T.ravel())
    assert TOTAL.answer(domain, cells) == pytest.approx([276.0])


def test_what_does_not_fit_is_refused() -> None:
    domain = CellDomain(("age", "sex"), (4, 2))
    with pytest.raises(ParameterError, match="8 cells"):
        SparseGroup(sparse.csr_array(np.ones((1, 9)))).count(domain)
    with pytest.raises(ParameterError, match="3 members do not fit 2"):
        Subtotal(Marginal(("sex",)), np.ones(3, dtype=bool)).count(domain)
    with pytest.raises(ParameterError, match="tuple of attributes"):
        Marginal("age")  # type: ignore[arg-type]
