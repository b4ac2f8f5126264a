"""Two accounts for one (ε, δ) budget, against everybody who could ask: exact, on small trees of adaptive questions.

One bit is private. A question is randomized response about it, some with a small chance to tell the bit outright. An
asker may choose each question by all answers so far, and stop when they like. How far their transcripts can tell the
two bits apart, sup over S of P(S) − e^E · Q(S), follows from the end of the tree to its root, in exact fractions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import pytest

from confide.errors import ParameterError
from confide.ledger.record.terms import Quanta, Terms, holds, plus
from confide.privacy.amount import QUANTA
from confide.privacy.budget import (
    Budget,
    Currency,
    add,
    fits,
    in_currency,
    of_quanta,
    quanta_of,
    remaining,
)
from confide.privacy.loss import ZCDP, ApproxDP, PrivacyLoss, PureDP

BUDGET = Budget(Fraction(1), Fraction(1, 10), "either")
TERMS = Terms.of(BUDGET)
GROWTH = Fraction(2718, 1000)  # at most e^1, so that what is found is at least what is there
MOST = 7

Rule = Callable[[Quanta, Quanta], Quanta | None]
"""What is spent after a question is let through, None if it is refused."""


@dataclass(frozen=True)
class Question:
    """Randomized response whose odds are at most e^ε; with probability `leak` the bit itself."""

    loss: PrivacyLoss
    odds: Fraction
    leak: Fraction = Fraction(0)

    @property
    def amount(self) -> Quanta:
        return quanta_of(in_currency(self.loss, of_quanta(TERMS.cap)))

    @property
    def right(self) -> Fraction:
        return (1 - self.leak) * self.odds / (1 + self.odds)


HALF, QUARTER = Fraction(1648, 1000), Fraction(1284, 1000)  # at most e^(1/2) and e^(1/4)
LEAK = Fraction(1, 40)
QUESTIONS = (
    Question(PureDP(Fraction(1, 2)), HALF),
    Question(PureDP(Fraction(1, 4)), QUARTER),
    Question(ApproxDP(Fraction(1, 4), LEAK), QUARTER, LEAK),
)


def either(total: Quanta, amount: Quanta) -> Quanta | None:
    after = plus(total, amount)
    return after if holds(TERMS.cap, after) else None


def worst(rule: Rule) -> Fraction:
    """The most that any adaptive asker can make of P(S) − e^E · Q(S), in at most `MOST` questions."""

    @cache
    def value(ratio: Fraction, total: Quanta, left: int) -> Fraction:
        best = max(Fraction(0), ratio - GROWTH)
        for question in QUESTIONS if left else ():
            after = rule(total, question.amount)
            if after is None:
                continue
            right, wrong = question.right, 1 - question.leak - question.right
            up, down = value(ratio * right / wrong, after, left - 1), value(ratio * wrong / right, after, left - 1)
            # The bit told outright has no chance under Q, and all of it counts.
            best = max(best, question.leak * ratio + wrong * up + right * down)
        return best

    return value(Fraction(1), TERMS.nothing, MOST)


def test_no_asker_tells_more_than_the_budget_says() -> None:
    found = worst(either)
    assert found <= BUDGET.delta
    assert found > BUDGET.delta / 4, "the askers of this test are too weak to find a fault"


def test_each_account_by_itself_is_let_through() -> None:
    """Two pure halves fill ε and are beyond ρ; six quarters fit ρ and are beyond ε; a leak ends the pure account."""
    half, quarter, leak = (question.amount for question in QUESTIONS)
    twice = plus(half, half)
    assert holds(TERMS.cap, twice)
    assert twice[0] > TERMS.cap[0]
    assert either(twice, (1, 0, 1)) is None
    many = TERMS.nothing
    for _ in range(6):
        many = plus(many, quarter)
    assert holds(TERMS.cap, many)
    assert many[2] > TERMS.cap[2]
    assert len(plus(quarter, leak)) == 2
    assert either(plus(plus(quarter, leak), quarter), half) is None
    assert either(half, leak) is not None


def going_on(total: Quanta, amount: Quanta) -> Quanta | None:
    """Goes on when neither account holds, as long as one part of each does."""
    after = plus(total, amount)
    return after if after[1] <= TERMS.cap[1] or after[-1] <= TERMS.cap[-1] else None


def forgetful(total: Quanta, amount: Quanta) -> Quanta | None:
    """The pure account does not mind a call that is not pure."""
    after = plus(total, (*amount[:2], amount[2] if len(amount) == 3 else 0))
    return after if holds(TERMS.cap, after) else None


def unweighed(total: Quanta, amount: Quanta) -> Quanta | None:
    """A pure call counts nothing in ρ while the pure account holds."""
    after = plus(total, amount)
    if len(after) == 3 and after[2] <= TERMS.cap[2]:
        return (total[0], total[1], after[2])
    return after if holds(TERMS.cap, after) else None


@pytest.mark.parametrize("rule", [going_on, forgetful, unweighed])
def test_a_wrong_rule_is_found_out(rule: Rule) -> None:
    assert worst(rule) > BUDGET.delta


def test_a_pure_call_counts_its_square_rounded_against_us() -> None:
    cap = BUDGET.cap
    assert isinstance(cap, ZCDP)
    assert cap.pure == 1
    odd = in_currency(PureDP(Fraction(1, 41)), cap)
    assert isinstance(odd, ZCDP)
    assert odd.pure is not None
    assert Fraction(1, 41) < odd.pure < Fraction(1, 41) + Fraction(1, QUANTA)
    assert odd.pure**2 / 2 <= odd.rho < odd.pure**2 / 2 + Fraction(1, QUANTA)
    assert in_currency(ZCDP(Fraction(1, 10), pure=Fraction(1, 10)), cap) == ZCDP(Fraction(1, 10))
    assert in_currency(PureDP(Fraction(1, 10)), Budget.of(1, "0.1").cap) == ZCDP(Fraction(1, 200))


def test_sums_and_what_is_left() -> None:
    pure = in_currency(PureDP(Fraction(1, 2)), BUDGET.cap)
    total: Currency = add(pure, pure)
    assert fits(pure, pure, BUDGET.cap)
    assert not fits(total, pure, BUDGET.cap)
    left = remaining(total, BUDGET.cap)
    assert left == ZCDP(Fraction(0), BUDGET.delta / 2, Fraction(0))
    assert {BUDGET.largest_under(account, left) for account in BUDGET.accounts} == {None}
    once = remaining(pure, BUDGET.cap)
    assert BUDGET.largest_under("pure", once) == Fraction(1, 2)
    concentrated = BUDGET.largest_under("concentrated", once)
    assert concentrated is not None
    assert concentrated < Fraction(1, 2)
    ended = remaining(add(pure, ZCDP(Fraction(1, 100))), BUDGET.cap)
    assert ended.pure is None  # type: ignore[union-attr]
    assert BUDGET.largest_under("pure", ended) == Fraction("0.3251")
    assert BUDGET.as_epsilon(total) == 1


@pytest.mark.parametrize(
    ("epsilon", "delta", "accounting", "word"),
    [
        (1, "1e-6", "pure", "no delta"),
        (1, 0, "either", "needs a delta"),
        (1, 0, "concentrated", "needs"),
        (1, 0, "x", "un"),
    ],
)
def test_an_accounting_that_does_not_fit_its_budget(epsilon: int, delta: object, accounting: str, word: str) -> None:
    with pytest.raises(ParameterError, match=word):
        Budget.of(epsilon, delta, accounting)


def test_what_is_added_up_where_nothing_is_written() -> None:
    assert (Budget.of(1).rule, Budget.of(1, "1e-6").rule) == ("pure", "concentrated")
    assert Budget.of(1).accounts == ("pure",)
    assert BUDGET.accounts == ("pure", "concentrated")
    assert [BUDGET.under(account) for account in BUDGET.accounts] == [Budget.of(1), Budget.of(1, "0.1")]
    assert str(BUDGET) == "ε = 1, δ = 0.1, in either account"
