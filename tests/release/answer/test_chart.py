"""What a chart shows: which key lies where, what is drawn of a number, and what is said below its title."""

from datetime import date
from fractions import Fraction
from typing import Any

import pytest

from confide.release.answer.answer import Answer, KeyColumn, ValueColumn
from confide.release.answer.chart import arranged
from confide.release.cost import Cost

REGION = KeyColumn("region", "text", ("N", "N", "S", "S"))
SEX = KeyColumn("sex", "text", ("F", "M", "F", "M"))
AGE = KeyColumn("age", "integer", (0, 10, 20, None))
DAY = KeyColumn("day", "date", (date(2024, 1, 1), date(2024, 1, 8), date(2024, 1, 15), date(2024, 1, 22)))
COUNTS = ValueColumn("n", "integer", (4, 5, 6, 7), (1, 2, 3, 4), (9, 9, 9, 9), "x", "always")


def answer(*columns: KeyColumn | ValueColumn, **facts: Any) -> Answer:
    return Answer(columns, 0.95, Cost(Fraction(1, 10)), "row", "add-remove", "q", **facts)


def drawn(*columns: KeyColumn | ValueColumn, **facts: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The chart, and the rows of its data."""
    chart = answer(*columns, **facts).plot().to_dict()
    (rows,) = chart["datasets"].values()
    return chart, rows


def encodings(chart: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for layer in chart.get("spec", chart)["layer"]:
        found |= layer["encoding"]
    return found


@pytest.mark.parametrize(
    ("keys", "axis", "colour", "panels"),
    [
        ((), None, None, ()),
        ((REGION,), REGION, None, ()),
        ((REGION, SEX), REGION, SEX, ()),
        ((REGION, AGE), AGE, REGION, ()),
        ((AGE, DAY, SEX), DAY, SEX, (AGE,)),
        ((REGION, SEX, AGE), AGE, REGION, (SEX,)),
    ],
)
def test_keys_have_their_places(
    keys: tuple[KeyColumn, ...], axis: KeyColumn | None, colour: KeyColumn | None, panels: tuple[KeyColumn, ...]
) -> None:
    found = arranged(keys)
    assert (found.axis, found.colour, found.panels) == (axis, colour, panels)


def test_bands_of_many_curves_do_not_lie_over_each_other() -> None:
    many = KeyColumn("k", "text", tuple("abcd"))
    assert arranged((DAY, many)).panels == (many,)
    assert arranged((REGION, many)).colour is REGION


def test_groups_stand_below_each_other_and_counts_begin_at_zero() -> None:
    chart, rows = drawn(REGION, SEX, COUNTS)
    found = encodings(chart)
    assert found["y"]["type"] == found["color"]["type"] == "nominal"
    assert found["x"]["scale"]["zero"] is True
    assert [row["axis"] for row in rows] == ["N", "N", "S", "S"]
    assert chart["title"]["text"] == "n by region and sex"
    assert chart["title"]["subtitle"] == ["0.95 interval for the exact answer on these rows · ε = 0.1"]


def test_dates_lie_on_an_axis_of_time_that_no_zone_shifts() -> None:
    chart, rows = drawn(DAY, COUNTS)
    assert encodings(chart)["x"]["type"] == "temporal"
    assert encodings(chart)["x"]["scale"] == {"type": "utc"}
    assert rows[0]["axis"] == "2024-01-01"
    assert [layer["mark"]["type"] for layer in chart["layer"]] == ["area", "line"]


def test_numbers_lie_on_an_axis_of_numbers_without_null() -> None:
    chart, rows = drawn(AGE, COUNTS)
    assert encodings(chart)["x"]["type"] == "quantitative"
    assert [row["axis"] for row in rows] == [0, 10, 20]
    assert "1 of 4 groups are not drawn" in chart["title"]["subtitle"]


def test_what_is_unknown_has_no_point() -> None:
    values = ValueColumn(
        "m", "number", (4.0, 5.0, 6.0, 7.0), (0.0, 0.0, 0.0, 0.0), (9.0,) * 4, "x", "density", "", (1,)
    )
    chart, rows = drawn(REGION, SEX, values)
    assert [row["estimate"] for row in rows] == [4.0, None, 6.0, 7.0]
    assert (rows[1]["low"], rows[1]["high"], rows[1]["said"]) == (0.0, 9.0, "no information")
    assert any("no information" in line for line in chart["title"]["subtitle"])
    assert any("density" in line for line in chart["title"]["subtitle"])


def test_very_many_groups_are_cut_and_said_to_be() -> None:
    keys = KeyColumn("k", "text", tuple(map(str, range(500))))
    counts = ValueColumn("n", "integer", (1,) * 500, (0,) * 500, (2,) * 500, "x", "always")
    chart, rows = drawn(keys, counts)
    assert len(rows) == 60
    assert "440 of 500 groups are not drawn" in chart["title"]["subtitle"]
