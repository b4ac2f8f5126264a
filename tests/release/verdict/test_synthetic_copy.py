"""Synthetic data as they come: frames and files of every kind, and everything that can be wrong with them."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import confide
from confide.errors import ParameterError, SourceError
from confide.policy import load
from confide.release.session import Session
from confide.release.verdict.synthetic_copy import open_copy, used_columns
from confide.release.verdict.verdict import Verdict
from tests.release.samples import frames, policy, row_policy, rows_frame

COUNT = "SELECT COUNT(*) FROM person WHERE region = 'N' AND age > 40"


def person(seed: int = 11) -> pl.DataFrame:
    made: pl.DataFrame = frames(seed=seed)["person"]
    return made.with_columns(income=pl.col("income").clip(0, 500_000))


@pytest.fixture(scope="module")
def session() -> Session:
    return confide.testing.open(policy(), frames(), seed=1)


def answer(session: Session, synthetic: Any, sql: str = COUNT, **options: Any) -> float:
    held = list(synthetic.values()) if isinstance(synthetic, dict) else [synthetic]
    if any(isinstance(one, str | Path) for one in held):
        table = "t" if "t" in session.policy.tables else "person"
        with session.open_copy(synthetic, table) as copy:
            return answer(session, copy, sql, **options)
    found = session.trust(sql, synthetic, **{"within": 30, "epsilon": 1, **options})
    assert isinstance(found, Verdict)
    return found.synthetic_answer


def test_frames_and_files_of_every_kind_give_one_answer(session: Session, tmp_path: Path) -> None:
    frame = person()
    expected = len(frame.filter((pl.col("region") == "N") & (pl.col("age") > 40)))
    frame.write_parquet(tmp_path / "p.parquet")
    frame.write_csv(tmp_path / "p.csv")
    frame.write_csv(tmp_path / "p.tsv", separator="\t")
    coded = frame.with_columns(region=pl.col("region").cast(pl.Categorical))
    files = [tmp_path / "p.parquet", str(tmp_path / "p.csv"), tmp_path / "p.tsv", {"person": tmp_path / "p.csv"}]
    kinds = [frame, frame.lazy(), frame.to_arrow(), frame.to_pandas(), coded, {"person": frame}, *files]
    assert {answer(session, kind) for kind in kinds} == {expected}
    columns = {name: frame[name].to_list() for name in ("region", "age")}
    assert answer(session, columns) == expected


def test_what_confide_made_is_taken_as_it_is() -> None:
    """Anything with an Arrow stream or `to_arrow` is a frame."""

    class Made:
        def to_arrow(self) -> Any:
            return pa.table(person().drop("person_id"))

    session = confide.testing.open(policy(), frames(), seed=1)
    assert answer(session, Made()) == answer(session, person())


def test_a_copy_is_opened_once_and_asked_often(session: Session) -> None:
    with session.open_copy(person(), "person") as copy:
        assert answer(session, copy) == answer(session, person())
        assert answer(session, copy, "SELECT MEDIAN(age) FROM person") > 20
        with pytest.raises(SourceError, match="no synthetic data for it; give them by table"):
            answer(session, copy, "SELECT COUNT(*) FROM visit")
    with session.open_copy(person().drop("income"), "person") as copy:
        assert answer(session, copy) > 0
        with pytest.raises(SourceError, match="has no column income, which the question reads"):
            answer(session, copy, "SELECT SUM(income) FROM person")


def test_joins_need_their_tables_and_ids(session: Session) -> None:
    sql = "SELECT COUNT(*) FROM visit JOIN person USING (person_id) WHERE sex = 'F'"
    both = {"person": person(), "visit": frames(seed=11)["visit"]}
    expected = both["visit"].join(both["person"], on="person_id").filter(pl.col("sex") == "F")
    assert answer(session, both, sql) == len(expected)
    with pytest.raises(SourceError, match="no column person_id"):
        answer(session, {**both, "person": person().drop("person_id")}, sql)
    with pytest.raises(ParameterError, match="several private tables"):
        answer(session, person(), sql)
    with pytest.raises(SourceError, match="reads the table visit"):
        answer(session, {"person": person()}, sql)


def test_public_tables_are_given_too_or_come_with_the_policy(session: Session, tmp_path: Path) -> None:
    sql = "SELECT COUNT(*) FROM person JOIN region_name USING (region) WHERE title = 'North'"
    both = {"person": person(), "region_name": frames()["region_name"]}
    assert answer(session, both, sql) == len(person().filter(pl.col("region") == "N"))
    frames()["region_name"].write_parquet(tmp_path / "names.parquet")
    for name in ("person", "visit"):
        frames()[name].write_parquet(tmp_path / f"{name}.parquet")
    rules = {**policy(), "source": {name: str(tmp_path / f"{name}.parquet") for name in ("person", "visit")}}
    rules["source"]["region_name"] = str(tmp_path / "names.parquet")
    with confide.testing.open(rules, seed=1) as opened:
        assert answer(opened, person(), sql) == len(person().filter(pl.col("region") == "N"))


def test_public_files_that_a_question_does_not_read_are_not_opened(tmp_path: Path) -> None:
    data, rules = frames(), {**policy(), "source": {name: str(tmp_path / f"{name}.csv") for name in frames()}}
    for name, frame in data.items():
        frame.write_csv(tmp_path / f"{name}.csv")
    with confide.testing.open(rules, seed=1) as opened:
        (tmp_path / "region_name.csv").write_text("region,title\nN\n")
        assert answer(opened, person()) > 0
        with pytest.raises(SourceError, match="cannot be read as CSV"):
            answer(opened, person(), "SELECT COUNT(*) FROM person JOIN region_name USING (region)")
        with pytest.raises(SourceError, match="cannot be read as CSV"):
            opened.open_copy(person(), "person")


def test_everything_that_is_wrong_is_listed_at_once(session: Session) -> None:
    wrong = person().with_columns(
        age=pl.col("age") + 50, region=pl.lit("Mars"), income=pl.lit("much"), born=pl.lit(date(1800, 1, 1))
    ).drop("sex")  # fmt: skip
    sql = "SELECT SUM(income) FROM person WHERE region = 'N' AND age > 3 AND sex = 'F' AND born > '1950-01-01'"
    with pytest.raises(SourceError) as caught:
        answer(session, wrong, sql)
    said = str(caught.value).splitlines()
    assert said[0] == "the synthetic person does not fit the policy:"
    assert len(said) == 6
    for words in ("region: 'Mars' are not among the values", "there is no column sex; it has person_id, region",
                  "values are outside [0, 115]; they go from 50 to", "income: it is stored as text, but",
                  "outside 1900-01-01 to 2024-12-31"):  # fmt: skip
        assert any(words in line for line in said), (words, said)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"age": pl.lit(True)}, "stored as bool, but the policy makes it a number"),
        ({"age": pl.lit(-1)}, "2,000 of 2,000 values are outside [0, 115]"),
        ({"age": pl.lit(float("inf"))}, "outside [0, 115]"),
        ({"region": pl.lit(5)}, "but the policy makes it a category of texts"),
        ({"region": pl.int_range(pl.len()).cast(pl.String)}, "and 1997 more are not among"),
    ],
)
def test_types_and_values_that_the_policy_rules_out(session: Session, change: dict[str, Any], words: str) -> None:
    with pytest.raises(SourceError) as caught:
        answer(session, person().with_columns(**change))
    assert words in str(caught.value)


def test_columns_that_the_question_does_not_read_may_be_as_they_are(session: Session) -> None:
    assert answer(session, person().with_columns(income=pl.lit("much")).drop("town")) > 0


def test_missing_values_are_missing(session: Session) -> None:
    gaps = person().with_columns(age=pl.when(pl.col("sex") == "F").then(None).otherwise(pl.col("age")))
    assert answer(session, gaps, "SELECT COUNT(age) FROM person") == len(person().filter(pl.col("sex") != "F"))
    as_floats = gaps.with_columns(age=pl.col("age").cast(pl.Float64).fill_null(float("nan")))
    assert answer(session, as_floats, "SELECT COUNT(age) FROM person") == len(person().filter(pl.col("sex") != "F"))
    nothing = person().with_columns(age=pl.lit(None))
    with pytest.raises(ParameterError, match="NULL"):
        answer(session, nothing, "SELECT AVG(age) FROM person")


def test_a_table_without_rows_answers_nothing(session: Session) -> None:
    with pytest.raises(SourceError, match="it has no rows"):
        answer(session, person().head(0))


@pytest.mark.parametrize("name", ["empty.csv", "broken.parquet", "folder", "odd.txt", "nowhere.csv"])
def test_files_that_cannot_be_read(session: Session, tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    if name == "folder":
        place.mkdir()
    elif name != "nowhere.csv":
        place.write_bytes(b"" if name == "empty.csv" else b"not this")
    with pytest.raises(SourceError, match="the synthetic person"):
        answer(session, place)


def test_cells_of_text_files_are_read_as_the_policy_says(session: Session, tmp_path: Path) -> None:
    place = tmp_path / "p.csv"
    place.write_text("region,age\nN,50\nE,\nN,abc\n")
    with pytest.raises(SourceError, match="age: it is stored as text, but the policy makes it a number"):
        answer(session, place)
    place.write_text("region,age\nN,50\nE,\nN,60.0\n")
    assert answer(session, place) == 2


def test_categories_of_numbers_and_truth_values(tmp_path: Path) -> None:
    rules = row_policy()
    rules["tables"]["t"]["columns"] |= {"k": {"values": [1, 2, 3]}, "b": {"values": [True, False]}}
    data = rows_frame()["t"].with_columns(k=pl.lit(2, dtype=pl.Int64), b=pl.lit(True))
    session = confide.testing.open(rules, {"t": data}, seed=1)
    place = tmp_path / "t.csv"
    data.with_columns(b=pl.lit("true")).write_csv(place)
    floats = data.to_pandas().assign(k=np.float64(2))
    for copy in (data, place, floats, pd.DataFrame(floats)):
        assert answer(session, copy, "SELECT COUNT(*) FROM t WHERE k = 2 AND b = TRUE") == len(data)
    for change in ({"k": pl.lit(7)}, {"k": pl.lit("x")}, {"b": pl.lit("maybe")}):
        with pytest.raises(SourceError, match="does not fit the policy"):
            answer(session, data.with_columns(**change), "SELECT COUNT(*) FROM t WHERE k = 2 AND b = TRUE")


def test_the_copy_has_a_version_of_its_own() -> None:
    rules = load({**policy(), "version": "one"})
    with (
        open_copy(rules, person(), "person", files=False) as one,
        open_copy(rules, person(4), "person", files=False) as two,
    ):
        assert one.version != two.version


def test_used_columns_are_those_of_the_tables(session: Session) -> None:
    question = session._reader("duckdb")("SELECT region, SUM(income) FROM person WHERE age > 3 GROUP BY region").under(
        "auto"
    )
    summary = replace(question.summary, bound=None, order_by=())
    assert used_columns(summary) == {"person": {"region", "income", "age"}}


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("kind", [str, Path, lambda path: str(path).encode()])
@pytest.mark.parametrize("name", ["twin.parquet", "nowhere.parquet", "secret.txt", "folder"])
def test_a_question_reads_no_files(session: Session, tmp_path: Path, name: str, kind: Any, named: bool) -> None:
    """The words are the same whatever is on the disk: an analyst cannot feel for files."""
    person().write_parquet(tmp_path / "twin.parquet")
    (tmp_path / "secret.txt").write_text("a canary")
    (tmp_path / "folder").mkdir()
    given = kind(tmp_path / name)
    before, texts = session.budget.spent, set()
    for call in (session.plan_trust, session.trust):
        with pytest.raises(ParameterError, match="reads no files") as caught:
            call("SELECT COUNT(*) FROM person", {"person": given} if named else given, within=5, epsilon=1)
        texts.add(str(caught.value))
    assert len(texts) == 1
    assert name not in texts.pop()
    assert session.budget.spent == before
