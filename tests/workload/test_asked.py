"""Ranges and prefixes as parts of a workload: what they stand for, and how they are told apart."""

import pytest

from confide.errors import ParameterError
from confide.privacy.identity import digest_of, written
from confide.workload import AskedTable, bound_linear, marginals, prefixes, ranges
from confide.workload.asked import MOST_CELLS
from confide.workload.identity import WORKLOAD_SPELLING
from confide.workload.strategy.block import MOST_ROWS_BITS
from tests.workload.samples import table

TABLE = table()


def test_parts_are_added() -> None:
    workload = ranges("age", bins=10) + prefixes("age", by=["sex"]) + marginals(2, ["sex", "ward"])
    bound = bound_linear(workload, TABLE)
    assert bound.domain.names == ("sex", "ward", "age")
    assert bound.tables == (
        AskedTable((2,), ("range",)),
        AskedTable((0, 2), ("each", "prefix")),
        AskedTable((0, 1), ("each", "each")),
    )
    assert bound.title(bound.tables[1]) == "sex × prefixes of age"


def test_the_same_table_is_asked_for_once() -> None:
    bound = bound_linear(ranges("age", bins=10) + ranges("age"), TABLE)
    assert len(bound.tables) == 1


def test_a_workload_is_told_by_what_it_asks() -> None:
    def key(workload: object) -> str:
        return digest_of(written("answer", bound_linear(workload, TABLE), spelling=WORKLOAD_SPELLING))

    asked = [
        ranges("age", bins=10),
        ranges("age", bins=20),
        prefixes("age", bins=10),
        ranges("age", bins=10, by="sex"),
        ranges("age", bins=10) + marginals(1, ["sex"]),
    ]
    assert len({key(workload) for workload in asked}) == len(asked)
    assert key(asked[0]) == key(ranges("age", bins=10) + ranges("age"))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (ranges, "at least one column"),
        (lambda: ranges("age", "age"), "named twice"),
        (lambda: ranges("age", by=["age"]), "named twice"),
        (lambda: ranges("age", "income", bins=5), "one width for 2 columns"),
        (lambda: ranges(3), "not the name of a column"),  # type: ignore[arg-type]
        (lambda: ranges("age", by=3), "not a column or a list"),
    ],
)
def test_what_cannot_be_asked(make: object, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        make()  # type: ignore[operator]


def test_ranges_are_no_part_of_a_synthesis() -> None:
    from confide.workload import domain_of  # noqa: PLC0415

    with pytest.raises(ParameterError, match=r"answered by session\.answer"):
        ranges("age").bound(domain_of(TABLE))


def test_the_bound_of_rows_is_that_of_mechanisms() -> None:
    from confide.mechanism.noise.law import MOST_ROWS  # noqa: PLC0415

    assert 2**MOST_ROWS_BITS == MOST_ROWS
    assert MOST_CELLS == 1_000_000


def test_null_has_no_place_in_an_order() -> None:
    with pytest.raises(ParameterError, match="ward has NULL among its values"):
        bound_linear(ranges("ward"), TABLE)
    assert bound_linear(ranges("sex", by="ward"), TABLE).size == 3 * 4


def test_the_key_of_a_workload_never_changes() -> None:
    """What was paid for stays found under its key: a change of this digest is a change of every such key."""
    bound = bound_linear(ranges("age", bins=10, by="sex") + prefixes("age") + marginals(2, ["sex", "ward"]), TABLE)
    assert (
        digest_of(written("answer", "t", bound, "auto", spelling=WORKLOAD_SPELLING))
        == "5ce1c2f9f13f3709c137c0b1e31c358b237be085a291762db64628687d78c57e"
    )
