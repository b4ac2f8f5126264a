"""What a release says about itself: its plan beforehand, its report afterwards, and charts."""

from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest

import confide
from confide.errors import ParameterError
from confide.release.session import Session
from tests.release.samples import APPROXIMATE, frames, policy, row_policy, rows_frame

COLUMNS = {"g": {"values": [f"v{place:02}" for place in range(60)]}, "h": {"values": ["a", "b", "c"]}}


@pytest.fixture(scope="module")
def people() -> Iterator[Session]:
    with confide.testing.open(policy(), frames(), seed=1) as session:
        yield session


def _hard(filled: int) -> Session:
    """Two thousand rows in one of sixty values, and some more in others."""
    table = {"columns": COLUMNS, "size": 2_000}
    rules = {"confide": 1, "budget": {"epsilon": 10}, "unit": "row", "tables": {"t": table}}
    values = ["v00"] * 2_000 + [f"v{place:02}" for place in range(1, 60)] * filled
    return confide.testing.open(rules, {"t": pl.DataFrame({"g": values, "h": ["a"] * len(values)})}, seed=5)


def test_the_difficult_case_is_seen_in_noisy_numbers() -> None:
    with _hard(0) as session:
        found = session.microdata([(), ("g", "h")], epsilon=0.5, fit="nnls").report()
    worst = found.risks[0]
    assert (worst.name, worst.parts, worst.over) == ("total", 180, ("g", "h"))
    assert worst.low > 150
    assert worst.excess > worst.deviation
    assert found.at_risk == found.judged == 1
    assert found.hidden is not None
    assert found.hidden < 3
    moved = {each.method: each for each in found.sacrifices}
    assert moved["nnls"].total > 2 > abs(moved["pinned"].total)
    assert found.chosen.method == "nnls"
    assert found.least is not None
    assert "Theorem 3" in str(found)
    assert "<table>" in found._repr_html_()
    assert found.to_dict()["at_risk"] == 1


def test_hidden_people_are_told() -> None:
    with _hard(12) as session:
        found = session.microdata([(), ("g", "h")], epsilon=0.2).report()
    assert found.hidden is not None
    assert found.hidden > 3
    assert "small counts are real" in "\n".join(found.lines())


def test_without_sums_of_parts_nothing_is_at_risk(people: Session) -> None:
    found = people.microdata(["sex", "region"], epsilon=1).report(compare=["nnls"])
    assert found.judged == 0
    assert {each.method for each in found.sacrifices} == {"adaptive", "nnls"}
    assert "no sum is at risk" in str(found)
    with pytest.raises(ParameterError, match="there is no fit best to compare with"):
        people.microdata(["sex", "region"], epsilon=1).report(compare=["best"])


def test_a_plan_is_free_and_is_what_happens(people: Session) -> None:
    spent = people.budget.spent
    plan = people.plan_microdata([(), "sex", ("sex", "region")], epsilon=2, confidence=0.9)
    assert people.budget.spent == spent
    made = people.microdata([(), "sex", ("sex", "region")], epsilon=2, confidence=0.9)
    for each, noisy in zip(plan.marginals, made.measured.marginals, strict=True):
        assert each.half_width == noisy.law.half_width(0.9)
        assert each.mechanism == noisy.mechanism
        assert each.cells == len(noisy.counts)
        assert each.combined <= each.half_width
    assert plan.cost == made.cost
    exact = made.error({"sex": "F", "region": "N"}).half_width
    assert plan.marginals[2].combined == pytest.approx(min(exact, plan.marginals[2].half_width), abs=0.02)
    assert plan.notes == ()
    assert "for all marginals together" in str(plan)
    assert "<table>" in plan._repr_html_()


def test_too_small_an_epsilon_is_warned_of_with_the_forecast_before_the_charge(people: Session) -> None:
    spent = people.budget.spent
    plan = people.plan_microdata(["sex", ("sex", "region")], epsilon="0.001")
    (note,) = plan.notes
    assert "ε is too small for any of the marginals" in note
    assert "needs about ε" in note
    assert [each.useful for each in plan.marginals] == [False, False]
    with pytest.warns(UserWarning, match="a count of region × sex is 250.0 on average and its interval ±"):
        people.microdata(["sex", ("sex", "region")], epsilon="0.001")
    assert people.budget.spent == pytest.approx(spent + 0.001)
    people.microdata(["sex", ("sex", "region")], epsilon="0.001")  # stored: nothing to warn of any more
    with pytest.raises(UserWarning, match="too small"):  # warnings are errors here: nothing is charged
        people.microdata(["sex"], epsilon="0.0001")
    assert people.budget.spent == pytest.approx(spent + 0.001)


def test_a_marginal_that_is_too_fine_is_noted_and_not_warned_of(people: Session) -> None:
    plan = people.plan_microdata(["sex", ("sex", "region", "age")], epsilon="0.1")
    assert [each.useful for each in plan.marginals] == [True, False]
    assert plan.notes[0].startswith("counts of region × sex × age are mostly noise one by one, and useful in sums")
    people.microdata(["sex", ("sex", "region", "age")], epsilon="0.1")


def test_a_plan_without_a_known_size_says_so_and_takes_one() -> None:
    rules = row_policy()
    del rules["tables"]["t"]["size"]
    with confide.testing.open(rules, rows_frame(20), seed=1) as session:
        assert "whether ε is enough is not judged" in session.plan_microdata(["g"], epsilon=1).notes[0]
        assert session.plan_microdata(["g"], epsilon=1, rows=3_000).marginals[0].mean == 1_000
        assert session.plan_microdata(["g"], epsilon=1, rows=3).marginals[0].useful is False
        for rows in (0, True, 2.5):
            with pytest.raises(ParameterError, match="is not a number of rows"):
                session.plan_microdata(["g"], epsilon=1, rows=rows)  # type: ignore[arg-type]


def test_what_the_budget_does_not_hold_is_said() -> None:
    with confide.testing.open(policy({"epsilon": 1}), frames(100), seed=1) as session:
        plan = session.plan_microdata(["sex"], epsilon=2)
        assert not plan.affordable
        assert "the budget does not hold this" in str(plan)
        assert plan.to_dict()["affordable"] is False


def test_charts(people: Session) -> None:
    made = people.microdata([(), "region", ("region", "sex")], epsilon=1)
    for marginal in ((), "region", ("region", "sex")):
        chart = made.plot(marginal).to_dict()
        (rows,) = chart["datasets"].values() if "datasets" in chart else (chart["layer"][0]["data"]["values"],)
        assert len(rows) == len(made.measured.find(marginal).counts)
    assert any("TEST NOISE" in line for line in chart["title"]["subtitle"])


def test_no_value_leaves_the_script_of_a_chart() -> None:
    values = ["</script><script>alert(1)", "<18"]
    rules = {"budget": {"epsilon": 9}, "unit": "row", "tables": {"t": {"columns": {"g": {"values": values}}}}}
    with confide.testing.open(rules, {"t": {"g": values}}, seed=1) as session:
        page = session.microdata(["g"], epsilon=1).plot("g").to_html()
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert "<18" in page


def test_an_approximate_budget_is_reported_in_rho() -> None:
    with confide.testing.open(policy(APPROXIMATE), frames(300), seed=2) as session:
        made = session.microdata([(), ("region", "sex", "BIN(age, 5)")], epsilon=1)
        found = made.report()
    assert found.price is not None
    assert found.price.budget.rho == pytest.approx(float(made.cost.rho or 0))
    assert np.isfinite(found.chosen.total)
