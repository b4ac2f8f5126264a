"""A release as a folder, its data card, and loading it back."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
import yaml

import confide
from confide.errors import ParameterError, SourceError
from confide.release.microdata.microdata import Microdata
from confide.release.session import Session
from tests.release.samples import APPROXIMATE, frames, policy, row_policy, rows_frame

MARGINALS = ["region", ("region", "sex", "BIN(born, 10000)")]


@pytest.fixture(scope="module")
def people() -> Iterator[Session]:
    with confide.testing.open(policy(), frames(), seed=1) as session:
        yield session


def test_a_folder_holds_both_products_and_a_card(people: Session, tmp_path: Path) -> None:
    made = people.microdata(MARGINALS, epsilon=1)
    folder = made.to_parquet(tmp_path / "out", about={"curator": "An office <b>", "region": "Nowhere"})
    assert sorted(path.name for path in folder.iterdir()) == [
        "card.html",
        "card.yaml",
        "noisy",
        "records.parquet",
        "release.json",
        "table.parquet",
    ]
    noisy = pl.read_parquet(folder / "noisy" / "001.parquet")
    assert noisy.columns == ["region", "sex", "born", "count", "count_low", "count_high"]
    assert noisy.schema["born"] == pl.Date
    assert noisy.height == 4 * 2 * 6
    assert (noisy["count"] - noisy["count_low"]).unique().to_list() == [made.measured.marginals[1].law.half_width(0.95)]
    assert pl.read_parquet(folder / "table.parquet")["weight"].sum() == pytest.approx(made.fitted.cells.sum())
    assert pl.read_parquet(folder / "records.parquet").height == len(made.records())


@pytest.mark.parametrize("arguments", [{}, {"zeros": [{"region": "W"}], "totals": {(): 2_000}}, {"fit": "ols"}])
def test_what_was_written_is_loaded_as_it_was(people: Session, tmp_path: Path, arguments: dict[str, object]) -> None:
    made = people.microdata(MARGINALS, epsilon=1, priority=None, **arguments)  # type: ignore[arg-type]
    loaded = Microdata.load(made.to_parquet(tmp_path / "out"))
    assert loaded.measured.to_bytes() == made.measured.to_bytes()
    assert loaded.fitted.cells == pytest.approx(made.fitted.cells, abs=1e-12)
    assert loaded.fitted.certificate == made.fitted.certificate
    assert loaded.error({"region": "N"}) == made.error({"region": "N"})
    assert loaded.refit("nnls").fitted.cells.shape == made.fitted.cells.shape
    assert str(loaded) == str(made)
    assert (tmp_path / "out" / "records.parquet").exists() == (made.method != "ols")


def test_exact_totals_and_priorities_are_loaded_too(tmp_path: Path) -> None:
    rules = row_policy(rows="public")
    rules["tables"]["t"]["columns"]["g"]["nulls"] = True
    with confide.testing.open(rules, rows_frame(), seed=3) as session:
        made = session.microdata([(), "g"], epsilon=1, priority=[[()], ["g"]])
        loaded = Microdata.load(made.to_parquet(tmp_path / "out"))
    assert loaded.priority == (((),), (("g",),))
    assert loaded.error({}).half_width == 0
    assert len(loaded.problem.public.totals) == 1
    assert loaded.measured.attribute("g").values[-1] is None
    assert loaded.fitted.cells == pytest.approx(made.fitted.cells)
    assert "which the policy makes public" in (tmp_path / "out" / "card.yaml").read_text()


def test_nothing_is_overwritten_and_nothing_is_left_half_written(
    people: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = people.microdata(MARGINALS, epsilon=1)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(ParameterError, match="is there already and is not overwritten"):
        made.to_parquet(tmp_path / "full")
    with pytest.raises(ParameterError, match="make it first"):
        made.to_parquet(tmp_path / "no" / "such")
    (tmp_path / "empty").mkdir()
    assert made.to_parquet(tmp_path / "empty").is_dir()
    monkeypatch.setattr("yaml.safe_dump", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        made.to_parquet(tmp_path / "half")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "full"]


def test_what_is_no_release_is_refused(people: Session, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="does not hold microdata"):
        Microdata.load(tmp_path)
    folder = people.microdata(MARGINALS, epsilon=1).to_parquet(tmp_path / "out")
    text = (folder / "release.json").read_text()
    (folder / "release.json").write_text(text.replace('"format": 1', '"format": 2'))
    with pytest.raises(ParameterError, match="format 1 is read"):
        Microdata.load(folder)
    (folder / "release.json").write_text(text.replace("discrete laplace", "laplace"))
    with pytest.raises(ParameterError, match="no law of noise"):
        Microdata.load(folder)
    for told in ("[" * 100_000, "[]", re.sub(r'"cost": \{[^}]*\}', '"cost": {"epsilon": "1/0"}', text)):
        (folder / "release.json").write_text(told)
        with pytest.raises(SourceError, match="does not hold microdata"):
            Microdata.load(folder)
    (folder / "release.json").write_text(text)
    (folder / "table.parquet").write_bytes(b"PAR1")
    with pytest.raises(SourceError, match="does not hold microdata"):
        Microdata.load(folder)


SECTIONS = {
    "product": {
        "name",
        "data_curators",
        "intended_use",
        "data_product_type",
        "data_product_region",
        "data_product_sector",
        "description",
        "publication_date",
    },
    "dp_flavor": {
        "name",
        "input_metric",
        "bound_on_input_distance",
        "output_measure",
        "bound_on_output_distance",
        "data_domain",
        "unprotected_quantities",
    },
    "privacy_loss": {
        "privacy_unit",
        "privacy_unit_description",
        "privacy_parameters",
        "privacy_parameters_description",
    },
    "model": {"model_name", "release_type", "data_source_type", "access_type"},
    "accounting": {"post_processing", "composition"},
    "implementation": {"pre_processing_eda_hyperparameter_tuning", "mechanisms", "justification"},
    "resources": {"sources", "registry_authors"},
}
"""The sections and names of an entry in OpenDP's Deployments Registry."""


@pytest.mark.parametrize("budget", [{"epsilon": 100}, APPROXIMATE])
def test_the_card_has_the_shape_of_a_registry_entry(budget: dict[str, object], tmp_path: Path) -> None:
    with confide.testing.open(policy(budget), frames(200), seed=1) as session:
        made = session.microdata(["region", "sex"], epsilon=1)
        folder = made.to_parquet(tmp_path / "out", about={"name": "People, 2024!"})
    card = yaml.safe_load((folder / "card.yaml").read_text())
    assert set(card) == {"url_slug", "status", "tier", "deployment"}
    assert card["url_slug"] == "people-2024"
    assert {name: set(section) for name, section in card["deployment"].items()} == SECTIONS
    pure = "delta" not in budget
    assert card["deployment"]["dp_flavor"]["name"] == ("Pure DP" if pure else "Zero-concentrated DP")
    assert set(card["deployment"]["privacy_loss"]["privacy_parameters"]) == (
        {"epsilon"} if pure else {"epsilon", "delta", "rho"}
    )
    assert "TEST NOISE" in card["deployment"]["product"]["description"]
    assert card["deployment"]["product"]["data_curators"] == ["to be said by the publisher"]


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


def test_the_page_is_whole_escaped_and_fetches_nothing(people: Session, tmp_path: Path) -> None:
    made = people.microdata(MARGINALS, epsilon=1)
    folder = made.to_parquet(tmp_path / "out", about={"curator": "<script>x</script>", "name": "A & B"})
    page = (folder / "card.html").read_text()
    tags = _Tags()
    tags.feed(page)
    assert not tags.open
    assert not tags.seen & {"script", "img", "link", "iframe"}
    assert "http" not in page
    assert "&lt;script&gt;" in page
    assert "<td class='number'>" in page  # numbers stand to the right, words to the left
    assert "<td>laplace</td>" in page
    assert "break-inside: avoid" in page  # no row of a table is torn apart in print
    assert tags.headings == [
        "Unit and privacy loss",
        "Algorithms",
        "Bias and accuracy",
        "Side channels",
        "Data collection",
        "Files",
    ]
    assert "TEST NOISE" in page
    with pytest.raises(ParameterError, match="about has weather; a card has name, curator"):
        made.to_parquet(tmp_path / "other", about={"weather": "fine"})
    with pytest.raises(ParameterError, match="must be a text"):
        made.to_parquet(tmp_path / "other", about={"name": 3})  # type: ignore[dict-item]
