"""Workloads as data: sizes without listing, and every bad input refused with what to write instead."""

import math
import time
from itertools import combinations

import pytest

from confide.errors import ParameterError
from confide.policy import Policy
from confide.workload import Domain, Threshold, Workload, domain_of, from_sql, marginals, thresholds
from tests.workload.samples import domain


def wide(columns: int, size: int) -> Domain:
    listed = {f"c{place}": {"range": [0, size - 1]} for place in range(columns)}
    policy = {"confide": 1, "budget": {"epsilon": 1}, "unit": "row", "tables": {"t": {"columns": listed}}}
    return domain_of(Policy.parse(policy).tables["t"])


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_the_size_is_the_number_of_consistent_queries(k: int) -> None:
    found = marginals(k).bound(domain())
    sizes = domain().sizes
    assert found.size == sum(math.prod(chosen) for chosen in combinations(sizes, k))
    assert len(found.thresholds) == math.comb(len(sizes), k)


def test_workloads_add_up_and_sets_named_twice_count_once() -> None:
    both = marginals(2) + Workload((Threshold(("ward", "sex"), 2), Threshold(("sex", "ward"), 1)))
    found = both.bound(domain())
    assert len(found.thresholds) == 7
    assert len(found.sets) == 6
    assert found.describe() == "1 1-of-2 threshold and 6 2-way marginals of t: 100 counts"


def test_the_closure_holds_all_smaller_sets_once() -> None:
    found = Workload((Threshold(("sex", "ward", "age"), 3),)).bound(domain())
    assert found.closure(2) == ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: thresholds(4, 3), "r = 4 of k = 3 columns cannot match; write r from 1 to 3"),
        (lambda: thresholds(0, 3), "r = 0 is not a number of matches"),
        (lambda: marginals(0), "k = 0 is not a number of columns"),
        (lambda: marginals(True), "k = True"),
        (lambda: marginals(3, ["sex", "age"]), "write k = 2"),
        (lambda: marginals(2, ["sex", "sex"]), "twice"),
        (lambda: marginals(9).bound(domain()), "write a smaller k"),
        (lambda: marginals(1, ["sexx"]).bound(domain()), "did you mean sex"),
        (lambda: Workload(()).bound(domain()), "asks for nothing"),
        (lambda: from_sql([]), "has no query"),
        (lambda: from_sql([1]), "not int"),  # type: ignore[list-item]
        (lambda: Workload((Threshold((), 1),)), "at least one column"),
        (lambda: Workload((Threshold(("sex", "sex"), 1),)), "twice"),
    ],
)
def test_bad_workloads_are_refused(make: object, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        make()  # type: ignore[operator]


def test_a_workload_of_too_many_counts_is_refused_at_once_and_says_what_to_reduce() -> None:
    start = time.perf_counter()
    with pytest.raises(ParameterError, match=r"1,\d{3},\d{3},\d{3},\d{3}.* counts.*smaller k"):
        marginals(4).bound(wide(30, 90))  # 27,405 sets of 90⁴ cells: 1.8·10¹²
    with pytest.raises(ParameterError, match="together have 10,000,000,000 cells"):
        marginals(5).bound(wide(5, 100))
    with pytest.raises(ParameterError, match="at most 100,000,000,000 are answered; take a smaller k"):
        marginals(4).bound(wide(25, 90))
    with pytest.raises(ParameterError, match="sets of columns"):
        marginals(24).bound(wide(48, 2))
    assert time.perf_counter() - start < 2
