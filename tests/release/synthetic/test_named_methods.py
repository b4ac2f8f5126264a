"""Every method by its name, in a session: what it costs, what a stopped call goes on with, what it keeps."""

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import confide
import confide.testing
from confide.errors import ParameterError
from confide.privacy.budget import Currency
from confide.privacy.loss import ZCDP
from confide.release import Session
from confide.release.synthetic.synthetic import Synthetic
from confide.synthesis.method import METHODS
from tests.release.samples import APPROXIMATE, PURE, frames, policy, row_policy, rows_frame

WORKLOAD = confide.marginals(2, ["region", "sex", "age"])
BINS = {"age": 40}
NAMED = tuple(name for name in METHODS if name not in ("rap", "net"))
BUDGETS = {"pure": PURE, "approximate": APPROXIMATE}


def opened(budget: dict[str, Any], seed: int = 1) -> Session:
    return confide.testing.open(policy(budget), frames(300), seed=seed)


def needed(method: str) -> dict[str, Any]:
    """What a method cannot do without."""
    return {"start": frames(100, 8)["person"]} if method == "reweight" else {}


def made(session: Session, method: str, epsilon: object = "5", **more: Any) -> Synthetic:
    arguments = {**needed(method), **more}
    return session.synthesize(WORKLOAD, epsilon, table="person", bins=BINS, method=method, **arguments)


def spent(session: Session) -> Currency:
    return session._holdings.ledger.spent()


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("method", NAMED)
def test_a_call_costs_what_was_asked_and_is_kept_asked_and_drawn_from(method: str, budget: str, tmp_path: Path) -> None:
    with opened(BUDGETS[budget]) as session:
        plan = session.plan_synthesize(WORKLOAD, "5", table="person", bins=BINS, method=method, **needed(method))
        assert plan.method.startswith(f"{method}:")
        twin = made(session, method)
        assert spent(session) == session._holdings.standing().budget.cost(Fraction(5))
        assert made(session, method).stored
        assert spent(session) == session._holdings.standing().budget.cost(Fraction(5))
        loaded = confide.load_synthetic(twin.save(tmp_path / "twin"))
        assert loaded.to_bytes() == twin.to_bytes()
        for one in (twin, loaded):
            counts = one.answer(confide.marginals(2, ["region", "sex"]))[0]  # type: ignore[index]
            assert np.sum(counts) == pytest.approx(one.total, rel=1e-4)
            assert (counts > -1e-6).all()
            assert one.sample(50).num_rows == 50
        assert str(twin).splitlines()[1].endswith(plan.method)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("method", NAMED)
def test_no_plan_is_for_less_or_more_than_the_call(method: str, budget: str) -> None:
    with opened(BUDGETS[budget]) as session:
        plan = session.plan_synthesize(WORKLOAD, "5", table="person", bins=BINS, method=method, **needed(method))
        whole = session._holdings.standing().budget.cost(Fraction(5))
        amount = whole.rho if isinstance(whole, ZCDP) else whole.epsilon
        assert sum(step.cost * step.times for step in plan.steps) == pytest.approx(float(amount), rel=1e-6)
        assert session.budget.spent == 0
        assert str(plan)


class _Stop(BaseException):
    """What Ctrl-C does, at a moment of our choice."""


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("method", NAMED)
def test_a_call_that_was_stopped_goes_on_there_and_pays_the_rest(method: str, budget: str) -> None:
    with opened(BUDGETS[budget]) as other:
        whole = made(other, method).to_bytes()
        charges = len(_charges(other))
    for told in (2, 4, 7):
        seen: list[str] = []

        def stop(what: str, *_: object, told: int = told, seen: list[str] = seen) -> None:
            seen.append(what)
            if len(seen) == told:
                raise _Stop

        with opened(BUDGETS[budget]) as session:
            try:
                made(session, method, progress=stop)
            except _Stop:
                assert 0 <= len(_charges(session)) < charges
            else:
                assert len(seen) < told
            assert made(session, method).to_bytes() == whole
            assert len(_charges(session)) == charges
            assert spent(session) == session._holdings.standing().budget.cost(Fraction(5))


def _charges(session: Session) -> list[Any]:
    return [entry for entry in session._holdings.ledger.entries() if entry.kind == "charge"]


@pytest.mark.parametrize("method", NAMED)
def test_an_interruption_says_what_was_spent(method: str) -> None:
    def stop(what: str, done: float, *_: object) -> None:
        if done >= 1:
            raise KeyboardInterrupt

    with opened(APPROXIMATE) as session:
        with pytest.raises(KeyboardInterrupt) as stopped:
            made(session, method, progress=stop)
        assert re.match(r"ε = [\d.]+ of ε = 5 was spent; the same call goes on", stopped.value.__notes__[0])


@pytest.mark.parametrize("rows", ["private", "public"])
@pytest.mark.parametrize("method", NAMED)
def test_rows_may_be_the_units_and_their_number_public(method: str, rows: str) -> None:
    with confide.testing.open(row_policy(APPROXIMATE, rows), rows_frame(), seed=1) as session:
        workload = confide.marginals(2, ["g", "x"])
        start = {"start": rows_frame(200, 9)["t"]} if needed(method) else {}
        twin = session.synthesize(workload, 10, bins={"x": 10}, method=method, **start)
        assert twin.total == pytest.approx(1_000, rel=0.5)


@pytest.mark.parametrize("method", NAMED)
def test_what_a_method_does_not_take_is_refused_in_words(method: str) -> None:
    with opened(PURE) as session:
        with pytest.raises(ParameterError, match=re.escape(f"method = '{method}' has no picks")):
            made(session, method, picks=3)
        if "select" not in METHODS[method].takes:
            with pytest.raises(ParameterError, match=re.escape(f"method = '{method}' has no select")):
                made(session, method, select="closure")
        assert session.budget.spent == 0


def test_a_plan_says_how_far_a_choice_falls_short_where_it_is_in_rows() -> None:
    with opened(APPROXIMATE) as session:
        by_rows, by_information = (
            session.plan_synthesize(WORKLOAD, "5", table="person", bins=BINS, method=method)
            for method in ("mst", "privbayes")
        )
    rows, information = (next(step for step in own.steps if step.kind == "choose") for own in (by_rows, by_information))
    assert rows.largest is not None
    assert rows.largest > 0
    assert information.largest is None
    assert "below the largest one" in str(by_rows)
    assert "below the largest one" not in str(by_information)
