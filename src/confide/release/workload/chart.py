"""Charts of a workload's answers: cumulative curves with their bands, and bars with whiskers."""

from typing import TYPE_CHECKING, Any, Final

from confide.errors import ParameterError
from confide.release.answer.picture import ABOVE, COLOURS, finished
from confide.release.answer.rendering import drawable
from confide.release.workload.chosen_table import ChosenTable

if TYPE_CHECKING:
    from confide.release.workload.answers import WorkloadAnswers

_HEIGHT: Final = 240
_WIDTH: Final = 480
_MOST_PANELS: Final = 6
_MOST_POINTS: Final = 2_000


def workload_chart(answers: "WorkloadAnswers", path: object = None) -> Any:
    """A panel for each table of one column; kept in a file, if a path is given."""
    import altair as alt  # noqa: PLC0415  heavy, and loaded when used

    if isinstance(answers.measured, ChosenTable) and answers.measured.rows is None:
        raise ParameterError(
            "nothing bounds these counts, so there is no band to draw; look at them with tables(), or answer with "
            "strategy='exact'"
        )
    panels: list[Any] = []
    shown = []
    for place, table in enumerate(answers.linear.tables):
        if len(table.columns) != 1 or len(panels) >= _MOST_PANELS:
            continue
        shown.append(table)
        panels.append(_curve(answers, place) if table.kinds[0] in ("prefix", "range") else _bars(answers, place))
    if not panels:
        shown.append(answers.linear.tables[0])
        panels.append(_bars(answers, 0))
    names = [answers.linear.domain.names[column] for column in sorted({c for t in shown for c in t.columns})]
    said = (
        f"{answers.confidence:.4g} interval for the exact answer on these rows · ε = {float(answers.cost.epsilon):.4g}"
    )
    test = ["TEST NOISE: this answer protects nobody"] if answers.test_noise else []
    chart = panels[0] if len(panels) == 1 else alt.vconcat(*panels, spacing=32)
    return finished(chart, f"rows by {drawable(' and '.join(names))}", [said, *test], path)


def _rows(answers: "WorkloadAnswers", place: int, kind: str | None) -> tuple[str, list[dict[str, Any]]]:
    table = answers.linear.tables[place]
    own = answers.answered(place, None if kind is None else (kind,))  # type: ignore[arg-type]
    labels = [
        list(answers.labels(column, used).values())[-1]
        for column, used in zip(own.asked.columns, own.asked.kinds, strict=True)
    ]
    names = " × ".join(answers.linear.domain.names[column] for column in table.columns)
    flat = [array.reshape(-1) for array in (own.values, own.low, own.high)]
    step = max(1, flat[0].size // _MOST_POINTS)
    rows = []
    for row in range(0, flat[0].size, step):
        at, said = row, []
        for own_labels in reversed(labels):
            at, inner = divmod(at, len(own_labels))
            said.append(own_labels[inner])
        value = said[0] if len(said) == 1 and isinstance(said[0], int | float) else ", ".join(
            drawable(str(part)) for part in reversed(said)
        )  # fmt: skip
        rows.append({"at": value, "order": row, "count": flat[0][row], "low": flat[1][row], "high": flat[2][row]})
    return names, rows


def _curve(answers: "WorkloadAnswers", place: int) -> Any:
    """How many rows are up to each value: a line, with the band of its intervals."""
    import altair as alt  # noqa: PLC0415

    name, rows = _rows(answers, place, "prefix")
    axis = "Q" if isinstance(rows[0]["at"], int | float) else "O"
    at = alt.X(f"at:{axis}", title=drawable(name), sort=alt.EncodingSortField("order") if axis == "O" else None)
    base = alt.Chart(alt.InlineData(values=rows)).encode(x=at)
    tooltip = [alt.Tooltip(f"{own}:Q") for own in ("count", "low", "high")]
    axis_above = alt.Axis(**ABOVE)
    low = alt.Y("low:Q", title="rows up to here", axis=axis_above)
    band = base.mark_area(opacity=0.25, color=COLOURS[0]).encode(y=low, y2=alt.Y2("high:Q"))
    line = base.mark_line(color=COLOURS[0], strokeWidth=2).encode(y=alt.Y("count:Q"), tooltip=tooltip)
    return alt.layer(band, line).properties(height=_HEIGHT, width=_WIDTH)


def _bars(answers: "WorkloadAnswers", place: int) -> Any:
    import altair as alt  # noqa: PLC0415

    name, rows = _rows(answers, place, None)
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("at:N", title=drawable(name), sort=alt.EncodingSortField("order"))
    )
    low = alt.Y("low:Q", title="rows", axis=alt.Axis(**ABOVE))
    bars = base.mark_rule(color=COLOURS[0], opacity=0.35, strokeWidth=5).encode(y=low, y2=alt.Y2("high:Q"))
    points = base.mark_point(filled=True, size=40, color=COLOURS[0], opacity=1).encode(y=alt.Y("count:Q"))
    return alt.layer(bars, points).properties(height=_HEIGHT, width=_WIDTH)
