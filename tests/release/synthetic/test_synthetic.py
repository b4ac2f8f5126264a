"""Synthetic data: near the data, kept, drawn, asked, and taken for a frame."""

import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import confide
import confide.testing
from confide.errors import ParameterError, QueryError, SourceError
from confide.policy import Policy
from confide.release.cost import Cost
from confide.release.synthetic.synthetic import Answers, Synthetic
from confide.synthesis import projection
from confide.synthesis.relaxed import RelaxedTable
from tests.release.samples import APPROXIMATE, PURE, frames, row_policy, rows_frame
from tests.release.synthetic.test_request import opened, synthesized


@pytest.fixture(autouse=True)
def _short_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "MOST_STEPS", 150)
    monkeypatch.setattr(projection, "MOST_SPLITS", 1)


@pytest.fixture(scope="module")
def twin() -> Iterator[Synthetic]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(projection, "MOST_SPLITS", 1)
        with opened(PURE) as session:
            yield synthesized(session, 50, columns=["region", "sex", "age", "born"], bins={"age": 20, "born": 5_000},
                              workload=confide.marginals(2))  # fmt: skip


@pytest.mark.parametrize("budget", [PURE, APPROXIMATE], ids=["pure", "approximate"])
def test_counts_are_near_the_data(budget: dict[str, Any]) -> None:
    with opened(budget) as session:
        twin = synthesized(session, 50)
        person = frames()["person"]
        for row in twin.answer("SELECT region, sex, COUNT(*) AS n FROM person GROUP BY region, sex").to_pylist():
            exact = len(person.filter((pl.col("region") == row["region"]) & (pl.col("sex") == row["sex"])))
            assert abs(row["n"] - exact) < 40
        assert abs(len(twin) - 2_000) < 30
        assert twin.test_noise
        assert "TEST NOISE" in str(twin)


def test_counts_in_sql_are_a_workload() -> None:
    texts = [
        "SELECT COUNT(*) FROM person WHERE region = 'N' AND age >= 60",
        "SELECT sex, COUNT(*) AS n FROM person WHERE region IN ('N', 'S') GROUP BY sex",
        "SELECT COUNT(*) FROM person WHERE sex = 'F' OR region = 'W'",
    ]
    with opened(PURE) as session:
        twin = synthesized(session, 50, workload=confide.workload.from_sql(texts))
        assert twin.domain.names == ("region", "sex", "age")
        answers = twin.answer(confide.workload.from_sql([texts[0], texts[2]]))
        person = frames()["person"]
        exact = [
            len(person.filter((pl.col("region") == "N") & (pl.col("age") >= 60))),
            len(person.filter((pl.col("sex") == "F") | (pl.col("region") == "W"))),
        ]
        np.testing.assert_allclose(answers.counts(), exact, atol=60)


# --- records ----------------------------------------------------------------------------------------------------------


def test_records_have_the_policys_schema_and_values(twin: Synthetic) -> None:
    drawn = twin.sample(500)
    assert drawn.num_rows == 500
    assert drawn.schema.names == ["person_id", "region", "sex", "age", "born"]
    assert drawn.schema.types == [pa.int64(), pa.string(), pa.string(), pa.int64(), pa.date32()]
    assert set(drawn["region"].to_pylist()) <= {"N", "E", "S", "W"}
    assert all(0 <= age <= 115 for age in drawn["age"].to_pylist())
    assert all(date(1900, 1, 1) <= born <= date(2024, 12, 31) for born in drawn["born"].to_pylist())
    assert drawn["person_id"].to_pylist() == list(range(1, 501))


def test_records_are_as_many_as_the_data_if_not_said(twin: Synthetic) -> None:
    assert twin.sample().num_rows == len(twin)
    assert len(twin.to_polars()) == len(twin)
    assert twin.to_arrow().equals(twin.to_arrow())
    assert pa.table(twin).num_rows == len(twin)


def test_more_records_than_can_be_listed_are_refused_and_fewer_drawn(twin: Synthetic) -> None:
    """Noise may make a table of a few rows look like any number of them."""
    large = replace(twin, total=2e12)
    for listed in (large.sample, large.to_arrow):
        with pytest.raises(ParameterError, match=r"2,000,000,000,000 records, .* sample\(n\)"):
            listed()
    assert large.sample(5).num_rows == 5


def test_rounding_keeps_shares(twin: Synthetic) -> None:
    """Records spread evenly within rows: a share of 40,000 records is within 1 % of the relaxed table's."""
    drawn = pl.from_arrow(twin.sample(40_000))
    assert isinstance(drawn, pl.DataFrame)
    for place, value in enumerate(["N", "E", "S", "W"]):
        share = (drawn["region"] == value).mean()
        assert share == pytest.approx(float(twin.model.column(0)[:, place].mean()), abs=0.01)


def test_records_are_written_and_read_back(twin: Synthetic, tmp_path: Path) -> None:
    place = twin.to_parquet(tmp_path / "twin.parquet", 100)
    assert pq.read_table(place).num_rows == 100


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "many"])
def test_a_number_of_records_is_a_number(twin: Synthetic, count: Any) -> None:
    with pytest.raises(ParameterError, match="number of records"):
        twin.sample(count)


def test_records_open_as_data_under_the_same_policy() -> None:
    with confide.testing.open(row_policy(), rows_frame(), seed=1) as session:
        made = session.synthesize(confide.marginals(1), epsilon=50, rows=20)
    with confide.testing.open(row_policy(), {"t": made}, seed=1) as session:
        found = session.sql("SELECT COUNT(*) AS n FROM t", epsilon=50).to_dicts()[0]["n"]
    assert found == pytest.approx(len(made), abs=5)


# --- answers ----------------------------------------------------------------------------------------------------------


def test_a_workload_is_answered_as_it_is_looked_at(twin: Synthetic) -> None:
    answers = twin.answer(confide.thresholds(1, 2, ["region", "sex"]) + confide.marginals(1, ["age"]))
    assert isinstance(answers, Answers)
    assert len(answers) == 2
    assert answers.columns(0) == ("region", "sex")
    assert answers[0].shape == (4, 2)
    blocks = list(answers.blocks())
    np.testing.assert_allclose(np.concatenate([b for p, _, b in blocks if p == 0]), answers[0].reshape(-1), rtol=1e-4)
    regions = twin.answer("SELECT region, COUNT(*) AS n FROM person GROUP BY region").to_pylist()
    both = twin.answer("SELECT sex, COUNT(*) AS n FROM person WHERE region = 'N' GROUP BY sex").to_pylist()
    women = twin.answer("SELECT COUNT(*) AS n FROM person WHERE sex = 'F'").to_pylist()[0]["n"]
    either = regions[0]["n"] + women - both[0]["n"]
    assert answers[0][0, 0] == pytest.approx(either, rel=1e-4)


def test_keys_of_answers_are_spelled_out(twin: Synthetic) -> None:
    found = twin.answer("SELECT BIN(age, 40) AS a, COUNT(*) AS n FROM person GROUP BY a").to_pydict()
    assert found["a"] == [0, 40, 80]
    assert sum(found["n"]) == pytest.approx(twin.total, rel=1e-4)
    assert twin.answer("SELECT COUNT(*) AS n FROM person").to_pydict()["n"][0] == pytest.approx(twin.total)


def test_filters_of_aggregates_and_sums_of_counts(twin: Synthetic) -> None:
    text = "SELECT COUNT(*) FILTER (WHERE sex = 'F') + COUNT(*) FILTER (WHERE sex = 'M') AS n FROM person"
    assert twin.answer(text).to_pydict()["n"][0] == pytest.approx(twin.total, rel=1e-4)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT AVG(age) AS a FROM person", r"COUNT\(\*\)"),
        ("SELECT BIN(born, 30) AS a, COUNT(*) AS n FROM person GROUP BY a", "wider bins"),
        ("SELECT COUNT(*) FROM people", "no table"),
        ("SELECT COUNT(*) FROM person WHERE born > DATE '1990-01-02'", "cuts through a bin"),
        ("SELECT COUNT(*) FROM person WHERE age + 1 > 20", "compares one declared column"),
    ],
)
def test_what_it_cannot_answer_is_said(twin: Synthetic, text: str, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        twin.answer(text)
    with pytest.raises(ParameterError, match="give a workload"):
        twin.answer(3)  # type: ignore[arg-type]


# --- keeping it -------------------------------------------------------------------------------------------------------


def test_it_is_kept_byte_for_byte(twin: Synthetic, tmp_path: Path) -> None:
    place = twin.save(tmp_path / "twin.synthetic")
    again = confide.load_synthetic(place)
    assert again.to_bytes() == twin.to_bytes()
    assert again.domain == twin.domain
    assert str(again) == str(twin)


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"confide synthetic 1\n", b"confide synthetic 1\nxxxx"])
def test_what_is_no_synthetic_data_is_refused(damage: bytes, tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_bytes(damage)
    with pytest.raises(SourceError):
        confide.load_synthetic(place)


@pytest.mark.parametrize(
    "told",
    [
        "null",
        "[" * 100_000,
        '{"policy": 7}',
        '"cost": null',
        '"cost": {"epsilon": "1/0"}',
        '"cost": {"epsilon": 1e999}',
    ],
)
def test_whatever_a_file_says_is_refused_in_words(told: str, twin: Synthetic) -> None:
    magic = b"confide synthetic 1\n"
    content = zlib.decompress(twin.to_bytes()[len(magic) :])
    length = int.from_bytes(content[:4], "little")
    text = content[4 : 4 + length].decode()
    if told.startswith('"cost"'):
        told = re.sub(r'"cost": \{[^}]*\}', lambda _: told, text)
        assert told != text
    written = told.encode()
    changed = len(written).to_bytes(4, "little") + written + content[4 + length :]
    with pytest.raises(SourceError, match="damaged"):
        Synthetic.from_bytes(magic + zlib.compress(changed))


def test_damaged_data_are_refused(twin: Synthetic, tmp_path: Path) -> None:
    stored = twin.to_bytes()
    for cut in (len(stored) // 2, len(stored) - 1):
        (tmp_path / "file").write_bytes(stored[:cut])
        with pytest.raises(SourceError, match="damaged"):
            confide.load_synthetic(tmp_path / "file")
    (tmp_path / "bomb").write_bytes(b"confide synthetic 1\n" + zlib.compress(b"\xff" * 10**6))
    with pytest.raises(SourceError, match="damaged"):
        confide.load_synthetic(tmp_path / "bomb")
    with pytest.raises(SourceError, match="cannot be read"):
        confide.load_synthetic(tmp_path / "nowhere")


def test_values_of_every_kind_survive() -> None:
    rules = Policy.parse(
        {
            "confide": 1,
            "budget": {"epsilon": 1},
            "unit": "row",
            "tables": {
                "t": {
                    "columns": {
                        "flag": {"values": [True, False]},
                        "code": {"values": [10, 20], "nulls": True},
                        "cost": {"range": [0, 1], "grain": 0.25},
                        "day": {"range": [date(2024, 1, 1), date(2024, 1, 3)]},
                    }
                }
            },
        }
    )
    domain = confide.workload.domain_of(rules.tables["t"])
    weights = np.concatenate([np.eye(size, dtype=np.float32)[-1] for size in domain.sizes])[None]

    table = RelaxedTable(domain.sizes, weights)
    made = Synthetic(rules.tables["t"], domain, table, 3.0, Cost(Fraction(1)), "w", "m", 1.0, "row", "add-remove")
    assert made.sample(2).to_pylist() == [{"flag": False, "code": None, "cost": 1.0, "day": date(2024, 1, 3)}] * 2
    assert Synthetic.from_bytes(made.to_bytes()).sample(1).to_pylist() == made.sample(1).to_pylist()


# --- trust ------------------------------------------------------------------------------------------------------------


def test_it_can_be_asked_whether_it_is_to_be_trusted(twin: Synthetic) -> None:
    with opened(PURE) as session:
        sql = "SELECT COUNT(*) FROM person WHERE region = 'N'"
        assert session.trust(sql, twin, within=400, epsilon=20).trusted
        shifted = replace(twin, total=3 * twin.total)
        assert not session.trust(sql, shifted, within=100, epsilon=20).trusted
