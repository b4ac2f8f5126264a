"""What a summary costs is what its parts cost; what one unit changes is what is paid for."""

from fractions import Fraction

import pytest

from confide.privacy.loss import ZCDP, PureDP
from confide.release.summary.request import summary_request
from tests.release.summary.test_summary import DELTA, opened


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "3"])
def test_the_parts_of_a_pure_summary_add_up_to_no_more_than_epsilon(epsilon: str) -> None:
    with opened({"epsilon": 9}) as session:
        request = summary_request(session._holdings, None, epsilon)
        priced = request.price(session.policy.budget)
    parts = [own.loss for own in (*priced.known, *priced.tables.values())]
    assert all(isinstance(part, PureDP) for part in parts)
    spent = sum((part.epsilon for part in parts if isinstance(part, PureDP)), Fraction(0))
    assert isinstance(priced.loss, PureDP)
    assert spent <= priced.loss.epsilon <= Fraction(epsilon)
    assert spent > priced.loss.epsilon * Fraction(99, 100)


def test_the_parts_of_a_concentrated_summary_add_up_to_no_more_than_rho_and_delta() -> None:
    with opened(DELTA) as session:
        priced = summary_request(session._holdings, None, 1).price(session.policy.budget)
    assert isinstance(priced.loss, ZCDP)
    rho = delta = Fraction(0)
    for part in (*priced.known, *priced.tables.values()):
        rho += part.loss.rho if isinstance(part.loss, ZCDP) else part.loss.epsilon**2 / 2  # type: ignore[union-attr]
    for keys in priced.keys.values():
        assert isinstance(keys.loss, ZCDP)
        rho, delta = rho + keys.loss.rho, delta + keys.loss.delta
    assert rho <= priced.loss.rho * (1 + Fraction(1, 10**9))
    assert delta <= priced.loss.delta
    assert len(priced.keys) == 2
    assert priced.loss.delta <= session.policy.budget.explicit_delta(ZCDP(priced.loss.rho))


def test_every_row_is_in_one_cell_of_every_column() -> None:
    """Without noise the counts of a column and what is missing add up to the rows: one row changes one cell."""
    with opened({"epsilon": 10**6}) as session:
        measured = session.summary(10**6).measured
    for column in measured.columns:
        if column.missing is not None:
            assert sum(column.counts) + column.missing == pytest.approx(measured.rows.value, abs=3)
