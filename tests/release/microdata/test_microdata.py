"""The whole path of microdata: marginals measured against one charge, fitted for free."""

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import confide
from confide.errors import BudgetError, ParameterError
from confide.fit import METHODS
from confide.mechanism import DiscreteGaussian, DiscreteLaplace, NoNoise
from confide.release.session import Session
from tests.release.samples import APPROXIMATE, frames, policy, row_policy, rows_frame

MARGINALS = [(), "region", "sex", ("region", "sex")]


@pytest.fixture
def people() -> Iterator[Session]:
    with confide.testing.open(policy(), frames(), seed=1) as session:
        yield session


def test_both_products_are_held(people: Session) -> None:
    made = people.microdata(MARGINALS, epsilon=2)
    assert made.marginals == ((), ("region",), ("sex",), ("region", "sex"))
    assert people.budget.spent == 2
    truth = frames()["person"].group_by("region", "sex").len()
    noisy = made.noisy(("sex", "region")).to_polars()
    joined = noisy.join(truth, on=["region", "sex"])
    assert joined.height == 8
    assert (joined["count"] - joined["len"]).abs().max() < 40
    assert (
        joined.select(((pl.col("count_low") <= pl.col("len")) & (pl.col("len") <= pl.col("count_high"))).mean()).item()
        > 0.5
    )
    fitted = made.to_polars()
    assert fitted["weight"].min() > 0
    assert fitted["weight"].sum() == pytest.approx(made.error({}).value, abs=1)
    assert made.method == "adaptive"
    assert "TEST NOISE" in str(made)
    assert "<table>" in made._repr_html_()


def test_noisy_counts_are_unbiased_whole_numbers_that_may_be_negative() -> None:
    data = rows_frame(400)
    totals, negative = [], False
    with confide.testing.open(row_policy(), data, seed=4) as session:
        for number in range(60):
            made = session.microdata(["g"], epsilon=Fraction(1, 10) + Fraction(number, 10**6))
            counts = made.measured.find("g").counts
            assert counts.dtype == np.int64
            negative |= bool((counts < 0).any())
            totals.append(int(counts.sum()))
    # Three noises of scale 10: the mean of 60 sums is within 5 deviations but once in two million.
    assert abs(np.mean(totals) - 400) < 5 * math.sqrt(3 * 200 / 60)
    assert negative


def test_one_charge_and_the_same_request_again_is_free_however_it_is_written(people: Session) -> None:
    first = people.microdata(MARGINALS, epsilon=1)
    again = people.microdata([("SEX", "region"), "Sex", "region", ()], epsilon="1", fit="nnls", confidence=0.9)
    assert people.budget.spent == 1
    assert again.measured.to_bytes() == first.measured.to_bytes()
    assert again.method == "nnls"
    people.microdata(MARGINALS, epsilon=1, zeros=[{"region": "W", "sex": "M"}], totals={(): 2_000})
    assert people.budget.spent == 1
    people.microdata(MARGINALS[1:], epsilon=1)
    assert people.budget.spent == 2


def test_stored_measurements_outlive_the_process(tmp_path: Path) -> None:
    with confide.open(policy(), frames(), tmp_path / "l", analyst="ana", create=True) as session:
        first = session.microdata(["sex"], epsilon=1)
    with confide.open(policy(), frames(), tmp_path / "l", analyst="ana", create=True) as session:
        again = session.microdata(["sex"], epsilon=1)
        assert session.budget.spent == 1
    assert again.measured.to_bytes() == first.measured.to_bytes()
    assert not again.measured.test_noise


def test_the_budget_is_charged_before_anything_is_read_and_once(
    people: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    engine = people._holdings.engine
    whole = engine.tabulate

    def tabulate(tabulation: object, charge: object, secret: bytes) -> object:
        seen.append(people.budget.spent)
        return whole(tabulation, charge, secret)  # type: ignore[arg-type]

    monkeypatch.setattr(type(engine), "tabulate", lambda self, *arguments: tabulate(*arguments))
    people.microdata(MARGINALS, epsilon=3)
    assert seen == [3.0], "all marginals are one reading"


def test_more_than_the_budget_is_refused_and_nothing_is_charged(people: Session) -> None:
    with pytest.raises(BudgetError):
        people.microdata(["sex"], epsilon=101)
    assert people.budget.spent == 0


@pytest.mark.parametrize("method", METHODS)
def test_every_method_fits_what_was_measured(people: Session, method: str) -> None:
    made = people.microdata(MARGINALS, epsilon=1, fit=method)
    assert made.method == method
    assert method == "ols" or (made.fitted.cells >= 0).all()
    assert made.fitted.cells.sum() == pytest.approx(2_000, abs=60)


def test_a_refit_is_free_and_the_same_as_asking_again(people: Session) -> None:
    made = people.microdata(MARGINALS, epsilon=1)
    other = made.refit("nnls")
    assert other.measured is made.measured
    assert other.fitted.cells == pytest.approx(people.microdata(MARGINALS, epsilon=1, fit="nnls").fitted.cells)
    assert people.budget.spent == 1


def test_a_priority_sets_stages_shares_and_what_records_keep(people: Session) -> None:
    made = people.microdata(
        ["sex", "region", ("region", "sex")], 3, priority=[["sex"], ["region"], [("sex", "region")]]
    )
    assert made.method == "sequential"
    scales = [each.law.scale for each in made.measured.marginals if isinstance(each.law, DiscreteLaplace)]
    region, sex, both = scales
    assert region == pytest.approx(2 * sex, rel=1e-9)
    assert both == pytest.approx(4 * sex, rel=1e-9)
    assert float(1 / sex + 1 / region + 1 / both) == pytest.approx(3, rel=1e-9)
    assert made.fitted.answer(made.measured.group(("sex",))) == pytest.approx(
        made.measured.find("sex").counts.astype(float), abs=1e-3
    )
    assert list(made.records().kept) == [(), ("sex",), ("region",)]
    assert people.microdata(["sex", "region"], 1, "pinned", [["sex"], ["region"]]).method == "pinned"


def test_shares_say_how_exact_each_marginal_is(people: Session) -> None:
    made = people.microdata(["sex", "region"], epsilon=4, shares={"sex": 3})
    region, sex = (each.law for each in made.measured.marginals)
    assert isinstance(region, DiscreteLaplace)
    assert isinstance(sex, DiscreteLaplace)
    assert (sex.scale, region.scale) == (pytest.approx(1 / 3), pytest.approx(1))


def test_an_approximate_budget_takes_gaussian_noise_that_adds_up() -> None:
    with confide.testing.open(policy(APPROXIMATE), frames(), seed=2) as session:
        made = session.microdata(MARGINALS, epsilon=1)
        laws = [each.law for each in made.measured.marginals]
        assert all(isinstance(law, DiscreteGaussian) for law in laws)
        assert made.cost.rho is not None
        spent = sum(1 / (2 * law.variance) for law in laws if isinstance(law, DiscreteGaussian))
        assert float(spent) == pytest.approx(float(made.cost.rho), rel=1e-9)
        assert spent <= made.cost.rho


def test_public_rows_without_unknowns_are_counted_exactly() -> None:
    """Where nulls are a class nothing is filtered, and the number of rows is public: the total is exact and free."""
    rules = row_policy(rows="public")
    rules["tables"]["t"]["columns"]["g"]["nulls"] = True
    with confide.testing.open(rules, rows_frame(), seed=3) as session:
        made = session.microdata([(), "g"], epsilon=1)
        total, groups = made.measured.marginals
        assert isinstance(total.law, NoNoise)
        assert int(total.counts[0]) == 1_000
        assert made.measured.attribute("g").values == ("a", "b", "c", None)
        assert isinstance(groups.law, DiscreteLaplace)
        assert groups.law.scale == 2  # replacing a row changes two counts
        assert made.fitted.cells.sum() == pytest.approx(1_000, abs=1e-6)
        assert made.error({}).half_width == 0
        assert made.measured.neighbours == "replace-one"


def test_unknown_values_leave_all_marginals_or_none() -> None:
    """A row without a value of one column is in no marginal, so all are marginals of one table."""
    frame = pl.DataFrame({"g": ["a", None, "b", "?", "a"] * 100, "x": [1, 2, None, 4, 5] * 100, "y": [0.5] * 500})
    with confide.testing.open(row_policy({"epsilon": 10**6}), {"t": frame}, seed=3) as session:
        made = session.microdata([(), "g", "BIN(x, 10)", ("g", "BIN(x, 10)")], epsilon=10**5)
        assert [int(each.counts.sum()) for each in made.measured.marginals] == [200] * 4


def test_of_each_unit_the_same_rows_are_counted_in_all_marginals() -> None:
    """Limits of groups would keep other rows for other keys; then no table would have all these marginals."""
    rules = policy({"epsilon": 10**6})
    rules["tables"]["visit"]["at_most"] = {"rows": 3, "groups": 1}
    with confide.testing.open(rules, frames(), seed=3) as session:
        made = session.microdata([(), "ward", "BIN(cost, 100)", ("ward", "BIN(cost, 100)")], 10**5, table="visit")
        parts = {each.marginal: each.counts for each in made.measured.marginals}
        table = parts["ward", "cost"].reshape(3, -1)
        assert (table.sum(axis=1) == parts[("ward",)]).all()
        assert (table.sum(axis=0) == parts[("cost",)]).all()
        assert table.sum() == parts[()][0] > 2_000


def test_a_column_has_the_classes_of_the_policy(people: Session) -> None:
    made = people.microdata(["BIN(age, 40)", "BIN(born, 10000)"], epsilon=5)
    age, born = made.measured.attributes
    assert (age.values, age.width, age.type) == ((0, 40, 80), "40", "integer")
    assert born.type == "date"
    assert born.width == "10000"
    assert made.error({"age": 41}).value == made.error({"age": 40}).value
    assert made.to_polars().schema["born"] == pl.Date


def test_intervals_of_combinations_cover(people: Session) -> None:
    """Each of 80 intervals at 0.8 holds with at least that: fewer than 48 hold less than once in a hundred thousand."""
    person = frames()["person"]
    truth = person.filter((pl.col("sex") == "F") & pl.col("region").is_in(["N", "W"])).height
    difference = person.filter(pl.col("sex") == "F").height - person.filter(pl.col("sex") == "M").height
    held = 0
    for number in range(40):
        made = people.microdata(MARGINALS, Fraction(1, 2) + Fraction(number, 10**6), "ols", confidence=0.8)
        found = made.error({"sex": "F", "region": ["N", "W"]})
        held += found.low <= truth <= found.high
        apart = made.error([(1, {"sex": "F"}), (-1, {"sex": "M"})])
        held += apart.low <= difference <= apart.high
    assert held >= 48


def test_a_query_outside_the_span_is_refused_with_what_was_measured(people: Session) -> None:
    made = people.microdata(["sex", "region"], epsilon=1)
    with pytest.raises(ParameterError, match=r"do not determine this query.*measured are region, sex"):
        made.error({"sex": "F", "region": "N"})
    with pytest.raises(ParameterError, match="'X' is no value of sex, which has F, M"):
        made.error({"sex": "X"})
    with pytest.raises(ParameterError, match="age is no column of this release"):
        made.error({"age": 3})
    with pytest.raises(ParameterError, match="a query is a selection"):
        made.error("sex = 'F'")
    with pytest.raises(ParameterError, match="was not measured; what was: region, sex"):
        made.noisy(("region", "sex"))


def test_records_are_whole_and_keep_totals(people: Session) -> None:
    made = people.microdata(MARGINALS, epsilon=1)
    records = made.records()
    frame = records.to_polars()
    assert frame.columns == ["region", "sex"]
    assert len(records) == frame.height == round(float(made.fitted.cells.sum()))
    assert all(records.kept.values())
    by_region = dict(frame.group_by("region").len().iter_rows())
    for place, region in enumerate(["N", "E", "S", "W"]):
        fitted = made.fitted.answer(made.measured.group(("region",)))[place]
        assert abs(by_region[region] - fitted) < 1
    assert "records" in str(records)
    with pytest.warns(UserWarning, match="ε is too small"):
        made = people.microdata([("region", "sex")], epsilon="0.0005", fit="ols")
    with pytest.raises(ParameterError, match="may have negative counts"):
        made.records()


def test_structural_zeros_and_public_totals_hold_exactly(people: Session) -> None:
    made = people.microdata(
        MARGINALS,
        epsilon=1,
        zeros=[{"region": ["S", "W"], "sex": "M"}],
        totals={(): 2_000, "sex": {"F": 1_500, "M": 500}},
    )
    table = made.to_polars()
    assert table.filter(pl.col("region").is_in(["S", "W"]) & (pl.col("sex") == "M")).height == 0
    assert table.filter(pl.col("sex") == "F")["weight"].sum() == pytest.approx(1_500, abs=1e-4)
    assert table["weight"].sum() == pytest.approx(2_000, abs=1e-4)
    assert made.error({"sex": "F"}).half_width == 0
    assert made.error({"sex": "M"}).value == 500
    assert made.error({}).value == 2_000


def test_public_totals_answer_by_themselves_where_a_table_is_large() -> None:
    columns = {name: {"range": [0, 59]} for name in "ab"}
    rules = {"confide": 1, "budget": {"epsilon": 10}, "unit": "row", "tables": {"t": {"columns": columns}}}
    frame = pl.DataFrame({name: list(range(60)) * 5 for name in "ab"})
    with confide.testing.open(rules, {"t": frame}, seed=1) as session:
        made = session.microdata(["a", "b"], 1, "pinned", totals={"a": dict.fromkeys(range(60), 5)})
        assert made.error({"a": [3, 4]}) == made.error({"a": [4, 3]})
        assert (made.error({"a": [3, 4]}).value, made.error({"a": [3, 4]}).half_width) == (10, 0)
        assert made.error({}).value == 300
        assert made.error({"b": 3}).half_width > 0
        assert made.fitted.answer(made.measured.group(("a",))) == pytest.approx([5.0] * 60, abs=1e-2)


def test_progress_is_told(people: Session) -> None:
    seen: list[tuple[str, int, int]] = []
    people.microdata(["sex", "region"], epsilon=1, progress=lambda *step: seen.append(step))
    assert [done for _, done, _ in seen] == [0, 0, 1, 2, 3]
    assert {total for _, _, total in seen} == {3}
    assert [what for what, _, _ in seen[:2]] == ["reading", "measuring region"]
