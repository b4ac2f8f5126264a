"""The first look at a table: one charge, every number with an interval that holds, as print, page and picture."""

import json
import re
from datetime import date, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import confide
from confide.errors import ParameterError
from confide.release.summary.noised_counts import NoisedSummary

ROWS = 3_000
DELTA = {"epsilon": 100, "delta": 1e-6}


def frame(rows: int = ROWS) -> pl.DataFrame:
    generator = np.random.default_rng(1)
    income = np.minimum(generator.exponential(20_000, rows), 200_000).astype(int).tolist()
    return pl.DataFrame(
        {
            "id": range(rows),
            "age": generator.integers(18, 90, rows),
            "income": [None if place % 10 == 0 else income[place] for place in range(rows)],
            "height": np.round(generator.normal(1.7, 0.1, rows), 2),
            "sex": generator.choice(["F", "M", "unknown"], rows, p=[0.5, 0.4, 0.1]),
            "kids": generator.integers(0, 4, rows),
            "job": [["nurse", "cook", "<b>clerk</b>", None][place] for place in generator.choice(4, rows)],
            "town": ["Bern"] * rows,
            "wealth": generator.normal(0, 1e6, rows),
            "born": [date(1990, 1, 1) + timedelta(days=int(days)) for days in generator.integers(0, 9_000, rows)],
        }
    )


def policy(budget: dict[str, float], **more: Any) -> dict[str, Any]:
    columns = {
        "id": {"type": "id"},
        "age": {"range": [0, 115]},
        "income": {"range": [0, 200_000]},
        "height": {"range": [0, 2.5], "grain": 0.01},
        "sex": {"values": ["F", "M"]},
        "kids": {"values": [0, 1, 2, 3]},
        "job": {"type": "text"},
        "town": {"type": "text"},
        "wealth": {"range": "unbounded", "grain": 1},
        "born": {"range": ["1990-01-01", "2019-12-31"]},
    }
    return {"confide": 1, "budget": budget, "unit": "row", "tables": {"t": {"size": ROWS, "columns": columns, **more}}}


def opened(budget: dict[str, float] = DELTA, seed: int = 1, **more: Any) -> confide.Session:
    return confide.testing.open(policy(budget, **more), {"t": frame()}, seed=seed)


def exact_figures(summary: Any, data: pl.DataFrame) -> list[tuple[str, Any, Any]]:
    """For each number of a summary: what it is, the number, and the exact one."""
    found: list[tuple[str, Any, Any]] = [("rows", summary.rows, len(data))]
    for column in summary.columns:
        values = data[column.name]
        if column.name == "sex":
            values = values.replace("unknown", None)
        found.append((f"{column.name} missing", column.missing, values.null_count()))
        ordered = sorted(values.drop_nulls())
        for share, own in column.quantiles.items():
            place = max(0, int(np.ceil(float(share.rstrip("%")) / 100 * len(ordered))) - 1)
            found.append((f"{column.name} {share}", own, ordered[place]))
        for bar in column.histogram:
            inside = sum(bar.first <= value <= bar.last for value in ordered)
            found.append((f"{column.name} from {bar.first}", bar.rows, inside))
        for value, own in column.commonest:
            found.append((f"{column.name} = {value}", own, ordered.count(value)))
    return found


@pytest.mark.parametrize("budget", [{"epsilon": 100}, DELTA], ids=["pure", "concentrated"])
def test_intervals_hold_and_are_narrow(budget: dict[str, float]) -> None:
    """Of about 120 numbers at confidence 0.95, in 8 summaries: fewer than 90 in 100 hold once in a million times."""
    held = []
    for seed in range(8):
        with opened(budget, seed) as session:
            summary = session.summary(2)
        figures = exact_figures(summary, frame())
        held += [own.low <= true <= own.high for _, own, true in figures]
    assert len(held) > 700
    assert np.mean(held) >= 0.9
    assert summary.rows.high - summary.rows.low < 100
    low, high = summary["age"].quantiles["50%"].low, summary["age"].quantiles["50%"].high
    assert high - low <= 14


def test_what_is_said_of_each_kind_of_column() -> None:
    with opened() as session:
        summary = session.summary(10)
    assert [column.name for column in summary.columns] == [
        "age", "income", "height", "sex", "kids", "job", "town", "wealth", "born",
    ]  # fmt: skip
    assert summary["income"].missing.value == pytest.approx(300, abs=30)
    assert summary["sex"].missing.value == pytest.approx(frame()["sex"].to_list().count("unknown"), abs=40)
    assert [value for value, _ in summary["sex"].commonest] == ["F", "M"]
    assert {value for value, _ in summary["job"].commonest} == {"nurse", "cook", "<b>clerk</b>"}
    assert summary["job"].missing.value == pytest.approx(frame()["job"].null_count(), abs=60)
    assert summary["wealth"].histogram == ()
    assert "no range" in summary["wealth"].note
    assert isinstance(summary["born"].quantiles["25%"].value, date)
    assert isinstance(summary["height"].quantiles["50%"].value, float)
    assert any("id is an id" in note for note in summary.notes)
    with pytest.raises(KeyError, match="there is no column x"):
        summary["x"]


def test_one_charge_and_the_same_again_is_free_at_any_confidence() -> None:
    with opened() as session:
        first = session.summary(1)
        spent = session.budget.spent
        again = session.summary(1, confidence=0.5)
        assert session.budget.spent == spent
        assert (first.stored, again.stored) == (False, True)
        assert again.measured == first.measured
        assert again.rows.high - again.rows.low < first.rows.high - first.rows.low
        assert len([entry for entry in session._holdings.ledger.entries() if entry.kind == "charge"]) == 1
    assert NoisedSummary.from_bytes(first.measured.to_bytes()) == first.measured


def test_a_pure_budget_finds_no_texts_and_says_so() -> None:
    with opened({"epsilon": 9}) as session:
        summary = session.summary(1)
    assert summary["job"].commonest == ()
    assert "no δ" in summary["job"].note
    assert summary["job"].missing.value >= 0


def test_public_rows_are_exact() -> None:
    with opened({"epsilon": 9}, rows="public") as session:
        summary = session.summary(1)
    assert (summary.rows.low, summary.rows.value, summary.rows.high) == (ROWS, ROWS, ROWS)


def test_a_unit_of_several_rows() -> None:
    rules = {
        "confide": 1,
        "budget": {"epsilon": 9},
        "unit": "person.id",
        "tables": {
            "person": {"columns": {"id": {"type": "id"}}},
            "visit": {
                "references": {"id": "person.id"},
                "at_most": {"rows": 3},
                "columns": {"cost": {"range": [0, 9]}, "kind": {"values": ["a", "b"]}},
            },
        },
    }
    ids = [place // 4 for place in range(400)]
    data = {
        "person": pl.DataFrame({"id": sorted(set(ids))}),
        "visit": pl.DataFrame({"id": ids, "cost": [place % 10 for place in range(400)], "kind": ["a"] * 400}),
    }
    with confide.testing.open(rules, data, seed=1) as session:
        with pytest.raises(ParameterError, match="one table"):
            session.summary(1)
        summary = session.summary(3, "visit")
    law = summary.measured.columns[0].law
    assert law.scale >= 3 / 3  # type: ignore[union-attr]  # three rows of a unit, at most the whole of ε
    assert summary.rows.low <= 300 <= summary.rows.high  # 100 units with 3 rows that count
    assert any("at most 3 rows" in note for note in summary.notes)


def test_print_page_and_picture(tmp_path: Path) -> None:
    with opened() as session:
        summary = session.summary(10)
    text = str(summary)
    assert "income" in text
    assert "▁" in text
    assert "TEST NOISE" in text
    page = summary.to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    HTMLParser().feed(page)
    assert "<b>clerk" not in page
    assert "&lt;b&gt;clerk" in page
    assert not re.search(r"<script|https?://|src=|@import", page)
    assert "<svg" in page
    assert "income" in summary._repr_html_()
    assert json.loads(summary.to_json())["rows"]["value"] == summary.rows.value
    drawn = json.dumps(summary.plot().to_dict())
    assert "income" in drawn
    assert "TEST NOISE" in drawn


@pytest.mark.parametrize("table", ["nobody", 3, "T2"])
def test_a_table_that_is_none(table: Any) -> None:
    with opened() as session, pytest.raises(ParameterError, match="not a private table"):
        session.summary(1, table)


def test_an_epsilon_that_is_none() -> None:
    with opened() as session:
        with pytest.raises(ParameterError):
            session.summary(0)
        assert session.budget.spent == 0
