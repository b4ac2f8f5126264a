"""Arguments that many calls take."""

from fractions import Fraction

import pytest

from confide.privacy.budget import Budget
from confide.privacy.conversion import rho_of_pure
from confide.privacy.loss import ZCDP, PureDP
from confide.release.arguments import pure_share


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(7, 3)])
def test_a_pure_mechanism_costs_what_is_charged_for_it(epsilon: Fraction) -> None:
    assert pure_share(Budget.of(8), epsilon) == (PureDP(epsilon), epsilon)
    loss, share = pure_share(Budget.of(8, Fraction(1, 10**6)), epsilon)
    assert isinstance(loss, ZCDP)
    assert loss.rho * Fraction(999_999, 10**6) < rho_of_pure(share) <= loss.rho
