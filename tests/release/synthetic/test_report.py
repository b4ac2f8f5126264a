"""The report on synthetic data: what was measured, how well it is kept, what may be trusted; page, picture and card."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import confide
from confide.errors import ParameterError
from confide.release.synthetic.kept import NOTHING_KEPT, KeptMeasurements
from confide.release.synthetic.report import SyntheticReport
from confide.release.synthetic.synthetic import Synthetic
from confide.synthesis import projection
from tests.release.samples import APPROXIMATE, frames
from tests.release.synthetic.test_request import opened, synthesized


@pytest.fixture(scope="module")
def twin() -> Iterator[Synthetic]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(projection, "MOST_SPLITS", 1)
        with opened(APPROXIMATE) as session:
            yield synthesized(session, 50, columns=["region", "sex", "age"], bins={"age": 20},
                              workload=confide.marginals(2))  # fmt: skip


@pytest.fixture(scope="module")
def report(twin: Synthetic) -> SyntheticReport:
    return twin.report()


def test_every_measured_marginal_is_judged(twin: Synthetic, report: SyntheticReport) -> None:
    assert len(report.marginals) == len(twin.measured.of_bins(3)) == 6
    assert {own.columns for own in report.marginals} >= {("region",), ("region", "sex")}
    assert all(own.half_width > 0 and own.counts > 1 for own in report.marginals)
    assert set(report.pairs.values()) == {"together"}
    assert sorted(map(len, report.trusted)) == [2, 2, 2]


def test_a_table_that_forgot_what_was_measured_is_found_out(twin: Synthetic) -> None:
    """Shares that say the contrary of what was measured are many deviations off."""

    class Turned:
        sizes = twin.model.sizes
        words = "turned"

        def marginal(self, columns: tuple[int, ...], start: int, stop: int) -> Any:
            return np.flip(twin.model.marginal(columns, 0, self.sizes[columns[0]]))[start:stop]

        def draw(self, count: int, generator: np.random.Generator) -> Any:
            return twin.model.draw(count, generator)

        def to_bytes(self) -> bytes:
            return b""

    made = replace(twin, model=Turned())
    found = made.report()
    assert not all(own.kept for own in found.marginals)
    assert any("deviations of the noise in the mean" in line for line in found.lines())
    assert any(own.kept for own in twin.report().marginals)


def test_pairs_that_nothing_backs_are_named(twin: Synthetic) -> None:
    known = twin.measured.marginals
    alone = replace(
        twin, measured=KeptMeasurements(tuple(own for own in known if len(own.columns) == 1 or 0 in own.columns))
    )
    pairs = alone.report().pairs
    assert pairs["sex", "age"] == "apart"
    assert pairs["region", "sex"] == "together"
    nothing = replace(twin, measured=NOTHING_KEPT)
    assert set(nothing.report().pairs.values()) == {"not measured"}
    assert "nothing of it has an interval" in str(nothing.report())


def test_a_learner_finds_what_the_records_hold(twin: Synthetic, report: SyntheticReport) -> None:
    assert {own.column for own in report.predictions} == {"region", "sex", "age"}
    assert all(0 <= own.commonest <= own.right + 0.1 <= 1.1 for own in report.predictions)
    assert twin.report().predictions == report.predictions


def test_it_is_printed_shown_and_kept(report: SyntheticReport, tmp_path: Path) -> None:
    text = str(report)
    assert "region × sex" in text
    assert "TEST NOISE" in text
    assert "<table" in report._repr_html_()
    page = report.to_html(tmp_path / "report.html", {"name": "A <first> try", "curator": "An office"}).read_text(
        "utf-8"
    )
    assert "A &lt;first&gt; try" in page
    assert "An office" in page
    assert "<svg" in page
    assert not re.search(r"<script|https?://(?!www\.w3\.org)", page)
    card = yaml.safe_load(report.to_yaml(tmp_path / "card.yaml").read_text("utf-8"))
    assert card["deployment"]["product"]["data_product_type"] == "Synthetic data"
    assert card["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] == 50
    assert set(report.to_dict()) >= {"marginals", "pairs", "predictions", "lines"}
    with pytest.raises(ParameterError, match="about has colour"):
        report.card({"colour": "red"})


def test_pictures(report: SyntheticReport, tmp_path: Path) -> None:
    report.plot(tmp_path / "pairs.png")
    report.plot_marginal("sex", "region", path=tmp_path / "marginal.svg")
    assert (tmp_path / "pairs.png").stat().st_size > 5_000
    assert "region × sex" in (tmp_path / "marginal.svg").read_text("utf-8")
    with pytest.raises(ParameterError, match="sex × region × age was not measured as a marginal; these were: "):
        report.plot_marginal("sex", "region", "age")


def test_what_was_measured_is_kept_with_it(twin: Synthetic, report: SyntheticReport) -> None:
    again = Synthetic.from_bytes(twin.to_bytes())
    assert again.to_bytes() == twin.to_bytes()
    assert str(again.report()) == str(report)
    rows = again.answer("SELECT region, COUNT(*) AS n FROM person GROUP BY region").to_pylist()
    people = frames()["person"].group_by("region").len()
    exact = dict(people.iter_rows())
    assert all(row["n_low"] < row["n_high"] for row in rows)
    assert sum(row["n_low"] <= exact.get(row["region"], 0) <= row["n_high"] for row in rows) >= len(rows) - 1


def test_parts_of_marginals_are_told_as_marginals(tmp_path: Path) -> None:
    with opened(APPROXIMATE) as session:
        made = session.synthesize(confide.marginals(2, ["region", "sex"]), 50, table="person", method="planned")
    report = made.report()
    assert [own.columns for own in report.marginals] == [("region", "sex")]
    assert report.marginals[0].kept
    assert report.pairs["region", "sex"] == "together"
    report.plot_marginal("region", "sex", path=tmp_path / "marginal.svg")
    again = Synthetic.from_bytes(made.to_bytes())
    rows = again.answer("SELECT region, COUNT(*) AS n FROM person GROUP BY region").to_pylist()
    assert all(row["n_low"] < row["n_high"] for row in rows)
