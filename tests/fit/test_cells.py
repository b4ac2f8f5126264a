"""Domains: what is refused, and with what advice."""

import pytest

from confide.errors import ParameterError
from confide.fit import CellDomain


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
