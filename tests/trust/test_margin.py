"""Margins by brute force: they tell inside from outside, and one row moves them by at most one step."""

from fractions import Fraction

import pytest

from confide.trust.margin import margin_of
from confide.trust.target import Facts, Steps, whole_steps
from tests.mechanism.small_data import data_sets, neighbours
from tests.trust.small_questions import FACTS, VALUES, chooser, inside, read

TAUS = (Fraction(1, 3), Fraction(1), Fraction(7, 4), Fraction(3))
MOST_ROWS = 6


@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize("name", FACTS)
def test_a_margin_is_positive_exactly_inside(name: str, tau: Fraction) -> None:
    question = chooser(name, tau)
    margin = margin_of(question.facts, question.target, Fraction(1))
    seen_sides = set()
    for rows in range(MOST_ROWS):
        for data in data_sets(VALUES, rows):
            truth = inside(question.facts, question.target, data)
            assert (margin.of(read(question.facts.kind, margin.reading, data)) >= 1) == truth
            seen_sides.add(truth)
    assert len(seen_sides) == 2


@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize("name", FACTS)
def test_one_row_moves_a_margin_by_at_most_one_step_and_sometimes_by_one(name: str, tau: Fraction) -> None:
    question = chooser(name, tau)
    margin = margin_of(question.facts, question.target, Fraction(1))
    moves = {
        abs(
            margin.of(read(question.facts.kind, margin.reading, one))
            - margin.of(read(question.facts.kind, margin.reading, two))
        )
        for one, two in neighbours(VALUES, MOST_ROWS, "add-remove")
    }
    assert max(moves) == 1


@pytest.mark.parametrize("name", ["mean", "median", "upper quarter"])
def test_replaced_rows_of_a_public_number_move_it_by_one_step_too(name: str) -> None:
    known = FACTS[name]
    facts = Facts(known.kind, None, 2, True, True, known.low, known.high, known.q)
    question = chooser(name, Fraction(3, 4), facts=facts)
    margin = margin_of(facts, question.target, Fraction(1))
    moves = {
        abs(margin.of(read(facts.kind, margin.reading, one)) - margin.of(read(facts.kind, margin.reading, two)))
        for one, two in neighbours(VALUES, 4, "replace-one")
    }
    assert max(moves) == 1


@pytest.mark.parametrize("name", ["mean", "median", "upper quarter"])
def test_units_with_rows_in_several_groups_pay_row_by_row(name: str) -> None:
    """Where a unit may be in several groups, a step is one row, and costs ε divided by the rows of the unit."""
    known = FACTS[name]
    facts = Facts(known.kind, None, 3, False, False, known.low, known.high, known.q)
    margin = margin_of(facts, chooser(name, facts=facts).target, Fraction(6, 5))
    assert margin.epsilon == Fraction(2, 5)
    moves = {
        abs(margin.of(read(facts.kind, margin.reading, one)) - margin.of(read(facts.kind, margin.reading, two)))
        for one, two in neighbours(VALUES, 5, "add-remove")
    }
    assert max(moves) == 1


def test_a_count_over_several_groups_pays_for_each_of_its_rows() -> None:
    assert whole_steps(Facts("count", 3, 3, single=False), Fraction(1)) == Steps(1, Fraction(1, 3))
    assert whole_steps(Facts("count", 3, 3), Fraction(1)) == Steps(3, Fraction(1))
