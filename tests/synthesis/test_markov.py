"""Markov tables against their whole joint law."""

from itertools import combinations, permutations

import numpy as np
import pytest

from confide.synthesis.junction import Node
from confide.synthesis.markov import MarkovTable
from tests.synthesis.whole import joint_of, marginal_of, random_table

SIZES = (2, 3, 4, 2, 3)
SHAPES = {
    "chain": [(0, 1), (1, 2), (2, 3), (3, 4)],
    "star": [(0, 2), (1, 2), (2, 3), (2, 4)],
    "triples": [(0, 1, 2), (1, 2, 3), (2, 3, 4)],
    "apart": [(0, 1), (2, 3)],
    "alone": [],
    "whole": [(0, 1, 2, 3, 4)],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_marginal_is_that_of_the_joint_law(shape: str) -> None:
    table = random_table(SIZES, SHAPES[shape])
    joint = joint_of(table)
    for width in (1, 2, 3, 5):
        for columns in combinations(range(5), width):
            found = table.marginal(columns, 0, SIZES[columns[0]])
            np.testing.assert_allclose(found, marginal_of(joint, columns), atol=1e-6)


def test_the_order_of_columns_is_the_order_of_axes_and_parts_are_parts() -> None:
    table = random_table(SIZES, SHAPES["chain"])
    joint = joint_of(table)
    for columns in permutations((0, 2, 4)):
        np.testing.assert_allclose(
            table.marginal(columns, 0, SIZES[columns[0]]), marginal_of(joint, columns), atol=1e-6
        )
    for columns in [(2, 0, 4), (2, 1), (2,), (4, 0)]:
        whole = table.marginal(columns, 0, SIZES[columns[0]])
        np.testing.assert_allclose(table.marginal(columns, 1, 2), whole[1:2], rtol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_records_have_the_law_of_the_table(shape: str) -> None:
    table = random_table(SIZES, SHAPES[shape], seed=3)
    count = 200_000
    places = table.draw(count, np.random.default_rng(1))
    assert places.shape == (count, 5)
    cells = np.bincount(np.ravel_multi_index(places.T, SIZES), minlength=int(np.prod(SIZES))) / count
    expected = joint_of(table).reshape(-1)
    # Spread as evenly as can be, records are at least as near as independent ones: five deviations.
    assert (np.abs(cells - expected) <= 5 * np.sqrt(expected / count) + 1e-5).all()


def test_a_clique_of_its_own_is_drawn_to_within_a_record() -> None:
    table = random_table((5,), [])
    drawn = np.bincount(table.draw(1_000, np.random.default_rng(2))[:, 0], minlength=5)
    assert (np.abs(drawn - 1_000 * table.shares[0]) <= 2).all()


def test_places_that_never_occur_are_not_drawn_and_what_has_no_law_is_even() -> None:
    tree = (Node((), (0,), -1), Node((0,), (1,), 0))
    shares = (np.array([1, 0], np.float32), np.array([[0, 1, 0], [0, 0, 0]], np.float32))
    places = MarkovTable((2, 3), tree, shares).draw(100, np.random.default_rng(1))
    assert (places == [0, 1]).all()


def test_it_is_kept_as_it_is_and_the_same_table_has_the_same_bytes() -> None:
    table = random_table(SIZES, SHAPES["triples"])
    again = MarkovTable.from_bytes(table.to_bytes(), SIZES)
    assert again.to_bytes() == table.to_bytes()
    np.testing.assert_array_equal(again.marginal((0, 4), 0, 2), table.marginal((0, 4), 0, 2))
    assert table.words == "3 cliques of 72 cells"


def test_what_is_not_a_table_is_refused() -> None:
    table = random_table(SIZES, SHAPES["chain"])
    for stored in (table.to_bytes()[:-4], table.to_bytes()[:-4] + np.float32(np.nan).tobytes()):
        with pytest.raises(ValueError, match="not those of the cliques"):
            MarkovTable.from_bytes(stored, SIZES)
    for tree, words in (
        ((Node((), (0, 1), -1), Node((), (1,), 0)), "every column once"),
        ((Node((), (0,), -1), Node((), (1,), 1)), "the one above"),
        ((Node((1,), (0,), -1), Node((), (1,), 0)), "the one above"),
    ):
        with pytest.raises(ValueError, match=words):
            MarkovTable((2, 2), tree, ())
    with pytest.raises(ValueError, match="has the shape"):
        MarkovTable((2,), (Node((), (0,), -1),), (np.ones(3, np.float32),))
