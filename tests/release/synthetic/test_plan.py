"""`Session.plan_synthesize`: what it forecasts is what a call does and pays, and it is free."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import confide
import confide.testing
from confide.errors import ParameterError
from confide.ledger.record.terms import read_quanta
from confide.privacy.budget import Currency, of_quanta
from confide.privacy.loss import ZCDP, PureDP
from confide.release import Session
from confide.release.synthetic.curator import LedgerCurator
from confide.release.synthetic.plan import SynthesisPlan
from tests.release.samples import APPROXIMATE, PURE, frames, policy
from tests.synthesis.fitting import pretend_to_fit

WORKLOAD = confide.marginals(2, ["region", "sex", "age"])
CHOICES: tuple[dict[str, Any], ...] = (
    {"select": "closure"},
    {"select": "marginals", "rounds": 2},
    {"select": "queries", "rounds": 2, "picks": 3},
    {"select": "all"},
)


def opened(budget: dict[str, Any]) -> Session:
    return confide.testing.open(policy(budget), frames(), seed=1)


def arguments(**more: Any) -> dict[str, Any]:
    return {"workload": WORKLOAD, "epsilon": "0.7", "table": "person", "bins": {"age": 20}, "rows": 20} | more


def planned(session: Session, **more: Any) -> SynthesisPlan:
    return session.plan_synthesize(**arguments(**more))


def spent(session: Session) -> Currency:
    return session._holdings.ledger.spent()


@pytest.mark.parametrize("budget", [PURE, APPROXIMATE], ids=["pure", "approximate"])
@pytest.mark.parametrize("options", CHOICES, ids=lambda options: options["select"])
def test_a_plan_foresees_the_charges_and_the_noise(
    budget: dict[str, Any], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The charges of a call, in order, are those of the plan; noise is what the curator says that it added."""
    pretend_to_fit(monkeypatch)
    variances: list[float] = []

    def noted(name: str) -> None:
        real = getattr(LedgerCurator, name)

        def step(self: Any, *given: Any) -> Any:
            found = real(self, *given)
            variances.append((found[0] if isinstance(found, tuple) else found).variance)
            return found

        monkeypatch.setattr(LedgerCurator, name, step)

    noted("measure_values")
    noted("measure")
    noted("ask")
    with opened(budget) as session:
        plan = planned(session, **options)
        assert spent(session) in (PureDP(Fraction(0)), ZCDP(Fraction(0)))
        session.synthesize(**arguments(**options))
        entries = [entry for entry in session._holdings.ledger.entries() if entry.kind == "charge"][:-1]
    losses = [of_quanta(read_quanta(entry.body["amount"])) for entry in entries]
    amounts = [float(loss.epsilon if isinstance(loss, PureDP) else loss.rho) for loss in losses]
    values, first, *later = plan.steps
    rounds = later[0].times if later else 0
    foreseen = [values, first, *(step for _ in range(rounds) for step in later)]
    assert amounts == [step.cost for step in foreseen]
    measured = [step.deviation for step in foreseen if step.deviation is not None]
    assert measured == pytest.approx([math.sqrt(variance) for variance in variances])
    assert plan.settings["rounds"] == options.get("rounds", 1)
    assert plan.settings["picks"] == options.get("picks", 1)
    assert plan.cost.epsilon == Fraction("0.7")


def test_widths_are_those_of_the_noise() -> None:
    """One half-width holds for one count; the wider one for all counts of a step, by the union bound."""
    with opened(APPROXIMATE) as session:
        plan = planned(session)
    for step in plan.steps:
        assert step.deviation is not None
        assert step.half_width is not None
        assert step.half_width == pytest.approx(1.96 * step.deviation, rel=0.05, abs=1)
        assert step.largest > step.half_width
        noise = np.abs(np.random.default_rng(1).normal(0, step.deviation, (4_000, step.answers))).max(axis=1)
        assert (noise <= step.largest + 1).mean() >= 0.94
    assert [step.answers for step in plan.steps] == [116, 4 + 2 + 6, 8 + 24 + 12]
    assert plan.deviation == plan.steps[-1].deviation


def test_a_plan_reads_well_and_travels() -> None:
    with opened({"epsilon": 0.5}) as session:
        plan = planned(session, select="queries", rounds=2, picks=3, table="person")
        assert not plan.affordable
        text = str(plan)
    for words in ("2 × choose 3 counts", "noise σ", "cost ε = 0.7", "the budget does not hold this", "session.trust"):
        assert words in text
    assert "<table>" in plan._repr_html_()
    facts = plan.to_dict()
    assert (facts["rounds"], facts["picks"], facts["select"]) == (2, 3, "queries")
    assert [step["kind"] for step in facts["steps"]] == ["measure", "measure", "choose", "measure"]
    assert facts["drawn"]["age"] == "bins of 20, by the model; the values inside by their own noisy counts"
    assert facts["left_out"]["income"] == "500,001 values; give bins"
    assert "left out: income (500,001 values; give bins), town (texts)" in text


@pytest.mark.parametrize(
    ("more", "words"),
    [({"epsilon": 0}, "above 0"), ({"epsilon": "1e-9"}, "buys no round"), ({"confidence": 2}, "confidence"),
     ({"select": "best"}, "write auto"), ({"workload": "all"}, "marginals")],
)  # fmt: skip
def test_bad_input_is_refused_as_by_the_call(more: dict[str, Any], words: str) -> None:
    with opened(APPROXIMATE) as session, pytest.raises(ParameterError, match=words):
        planned(session, **more)


def test_a_choice_falls_short_as_rarely_as_the_plan_says() -> None:
    """The exponential mechanism on the worst scores: all others just below what the plan allows."""
    from confide.mechanism import TestRandomness  # noqa: PLC0415
    from confide.synthesis.selection import LargestError  # noqa: PLC0415

    with opened(PURE) as session:
        plan = planned(session, select="marginals", rounds=1)
    choice = next(step for step in plan.steps if step.kind == "choose")
    mechanism = LargestError(Fraction(choice.cost), 1)
    scores = np.array([10_000] + [10_000 - int(choice.largest)] * 2)
    source = TestRandomness(3)
    short = sum(mechanism.choose(scores, source) != 0 for _ in range(4_000))
    assert short <= 4_000 * 0.05 + 4.5 * math.sqrt(4_000 * 0.05 * 0.95)
