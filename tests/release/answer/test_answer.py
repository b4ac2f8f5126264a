"""Answers can be kept, shown and taken elsewhere without change."""

import json
from datetime import date
from fractions import Fraction
from math import inf

import pyarrow as pa
import pytest

from confide.release.answer.answer import Answer, KeyColumn, ValueColumn
from confide.release.cost import Cost


def sample(**more: object) -> Answer:
    columns = (
        KeyColumn("region", "text", ("N", None, "O'Hara <b>")),
        KeyColumn("day", "date", (date(2024, 1, 1), date(2024, 1, 2), None)),
        ValueColumn(
            "n", "integer", (5, -3, 2**70), (0, -9, 2**70 - 5), (9, 2, 2**70 + 5), "discrete laplace", "always"
        ),
        ValueColumn(
            "m", "number", (0.1, 2.5, 0.0), (-inf, 1.0, 0.0), (inf, 3.0, 0.0), "discrete gaussian", "density", "a note"
        ),
    )
    facts: dict[str, object] = {
        "columns": columns,
        "confidence": 0.95,
        "cost": Cost(Fraction(1, 3), Fraction(1, 7), Fraction(1, 10**9)),
        "unit": "row",
        "neighbours": "add-remove",
        "question": "f00",
        "notes": ("one",),
    }
    return Answer(**(facts | more))  # type: ignore[arg-type]


def test_bytes_bring_back_the_same_answer() -> None:
    answer = sample()
    again = Answer.from_bytes(answer.to_bytes())
    assert again == answer
    assert again.to_bytes() == answer.to_bytes()


def test_json_is_strict_and_says_what_intervals_assume() -> None:
    facts = json.loads(sample().to_json(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert facts["rows"][0] == {
        "region": "N", "day": "2024-01-01", "n": 5, "n_low": 0, "n_high": 9, "m": 0.1, "m_low": None, "m_high": None,
    }  # fmt: skip
    assert facts["assumes"] == {"n": "always", "m": "density"}
    assert facts["cost"] == {"epsilon": "1/3", "rho": "1/7", "delta": "1/1000000000"}
    assert facts["notes"] == ["one", "m: a note"]
    assert "test_noise" not in facts


def test_frames_have_fitting_types() -> None:
    table = sample().to_arrow()
    assert table.schema.field("day").type == pa.date32()
    assert table.column("region").to_pylist() == ["N", None, "O'Hara <b>"]
    assert table.schema.field("n").type == pa.float64(), "past 64 bits a double is the best there is"
    small = sample(columns=(ValueColumn("n", "integer", (5,), (0,), (9,), "x", "always"),))
    assert small.to_arrow().schema.field("n_low").type == pa.int64()
    assert small.to_polars()["n"].to_list() == [5]


def test_print_and_html_hold_everything_once() -> None:
    text, html = str(sample()), sample()._repr_html_()
    for word in (
        "region",
        "NULL",
        "O'Hara",
        "2024-01-02",
        "-9 … 2",
        "-∞ … ∞",
        "discrete laplace",
        "density",
        "one",
        "a note",
    ):
        assert word in text, word
    assert "<b>" not in html
    assert "O&#x27;Hara &lt;b&gt;" in html
    long = sample(columns=(ValueColumn("n", "integer", tuple(range(100)), (0,) * 100, (200,) * 100, "x", "always"),))
    assert "40 more rows" in str(long)


def test_charts_have_a_bar_per_row_and_stay_finite() -> None:
    chart = sample().plot().to_dict()
    rows = chart["datasets"][chart["vconcat"][1]["data"]["name"]]
    assert len(rows) == 3
    assert rows[0]["low"] == rows[0]["high"] == 0.1
    json.dumps(chart, allow_nan=False)
    assert any("density" in line for line in chart["title"]["subtitle"])
    assert any("TEST NOISE" in line for line in sample(test_noise=True).plot().to_dict()["title"]["subtitle"])


def test_no_name_or_key_leaves_the_script_of_a_chart() -> None:
    """A notebook shows a chart as a page whose script holds it as it is; keys may come from the data."""
    name = "</script><script>alert(1)</script><!--"
    key = KeyColumn(name, "text", (name, "<18", "a < b"))
    counts = ValueColumn(name, "integer", (1, 2, 3), (0, 0, 0), (9, 9, 9), "x", "always")
    page = sample(columns=(key, counts)).plot().to_html()
    assert "alert(1)" in page
    inside = page.split("alert(1)", 1)[1].rsplit("alert(1)", 1)[0]
    assert not any(mark in inside for mark in ("<script", "</script", "<!--"))
    assert "<18" in page
    assert "a < b" in page
