"""Another method is one module and one line: everything else of a session takes it as it takes the first."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import confide
from confide.errors import ParameterError
from confide.release import Session
from confide.synthesis.method import METHODS
from tests.release.samples import frames, policy
from tests.synthesis.independent import METHOD, IndependentTable

WANTED = confide.marginals(2, ["sex", "region"])


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.setitem(METHODS, "independent", METHOD)  # type: ignore[misc]
    with confide.testing.open(policy(), frames(), seed=1) as opened:
        yield opened


def test_it_is_planned_run_kept_asked_and_drawn_from(session: Session, tmp_path: Path) -> None:
    plan = session.plan_synthesize(WANTED, 5, table="person", method="independent")
    assert dict(plan.settings) == {"floor": 0}
    assert [step.what for step in plan.steps] == ["measure every count of single columns"]
    assert "independent: single columns" in str(plan)
    twin = session.synthesize(WANTED, 5, table="person", method="independent")
    assert isinstance(twin.model, IndependentTable)
    assert session.budget.spent == 5
    again = session.synthesize(WANTED, 5, table="person", method="independent")
    assert (twin.stored, again.stored) == (False, True)
    assert session.budget.spent == 5
    loaded = confide.load_synthetic(twin.save(tmp_path / "twin"))
    for one in (twin, again, loaded):
        counts = one.answer(WANTED)[0]  # type: ignore[index]
        assert np.sum(counts) == pytest.approx(one.total, rel=1e-5)
        assert one.sample(100).num_rows == 100
        assert one.to_bytes() == twin.to_bytes()
        assert "2 laws" in str(one)
    assert session.trust("SELECT COUNT(*) FROM person WHERE sex = 'F'", twin, within=200, epsilon=1).trusted


def test_it_is_another_request(session: Session) -> None:
    session.synthesize(WANTED, 5, table="person", method="independent")
    twin = session.synthesize(WANTED, 5, table="person", rows=5)
    assert not twin.stored
    assert session.budget.spent == 10


def test_what_it_does_not_take_it_refuses(session: Session) -> None:
    with pytest.raises(ParameterError, match="independent has no rounds"):
        session.plan_synthesize(WANTED, 1, table="person", method="independent", rounds=3)
    with pytest.raises(ParameterError, match=r"is not known; write auto, rap, mst.*independent"):
        session.plan_synthesize(WANTED, 1, table="person", method="dependent")
    assert session.budget.spent == 0
