"""Charts of answers: points with error bars for groups, curves with bands for numbers and dates."""

from collections.abc import Sequence
from dataclasses import dataclass
from sys import float_info
from typing import TYPE_CHECKING, Any, Final

from confide.errors import ParameterError
from confide.privacy.amount import show
from confide.release.answer.digits import NO_INFORMATION, with_interval
from confide.release.answer.picture import ABOVE, COLOURS, GREY, finished
from confide.release.answer.rendering import HOLDS, drawable

if TYPE_CHECKING:
    from confide.release.answer.answer import Answer, KeyColumn, ValueColumn

_WIDTH: Final = 560
_PANEL: Final = 260
_HEIGHT: Final = 280
_STEP: Final = 24
_MOST: Final = 60
"""Groups that one panel shows."""
_MOST_POINTS: Final = 45
"""Of a curve with more points the line says enough."""
_MOST_PANELS: Final = 12
_MOST_CURVES: Final = 3
"""Bands of more curves than these lie over each other: they get panels."""
_MOST_LABELS: Final = 20
_SAMPLED: Final = "random sample"
_FARTHEST: Final = float_info.max


@dataclass(frozen=True, slots=True)
class ChartKeys:
    """Which key lies along the axis, which are told apart by colour, and which have a panel each."""

    axis: "KeyColumn | None"
    colour: "KeyColumn | None"
    panels: tuple["KeyColumn", ...]

    @property
    def curve(self) -> bool:
        return self.axis is not None and self.axis.type in ("integer", "number", "date") and _steps(self.axis) > 2

    @property
    def scale(self) -> str:
        if not self.curve or self.axis is None:
            return "nominal"
        return "temporal" if self.axis.type == "date" else "quantitative"


def error_bars(answer: "Answer", path: object = None) -> Any:
    """One panel per aggregate. Dates and numbers lie on an axis of their own kind, other groups below each other; a
    second key is a colour, or else panels.
    """
    import altair as alt  # noqa: PLC0415  heavy, and loaded when used

    keys = arranged(answer.keys)
    shown = [column for column in answer.values if column.type in ("integer", "number") and not column.places]
    if not shown:
        raise ParameterError("there is no number to draw: the columns of this answer are keys, texts, dates or truths")
    drawn = [_panel(answer, column, keys) for column in shown]
    several = len(drawn) > 1
    by = _listed([key.name for key in answer.keys])
    title = _listed([column.name for column in shown]) + (f" by {by}" if by else "")
    chart = alt.vconcat(*drawn, spacing=36).resolve_scale(color="shared") if several else drawn[0]
    return finished(chart, title, _said(answer, keys), path)


def arranged(keys: "Sequence[KeyColumn]") -> ChartKeys:
    """A date lies along the axis, or else a number, or else the key with the most values; then comes the colour."""
    left = list(keys)
    if not left:
        return ChartKeys(None, None, ())
    order = {"date": 0, "number": 1, "integer": 1}
    axis = min(left, key=lambda key: (order.get(key.type, 2) if _steps(key) > 2 else 2, -_distinct(key)))
    left = [key for key in left if key is not axis]
    most = _MOST_CURVES if ChartKeys(axis, None, ()).curve else len(COLOURS)
    colour = next((key for key in left if _distinct(key) <= most), None)
    return ChartKeys(axis, colour, tuple(key for key in left if key is not colour))


def _panel(answer: "Answer", column: "ValueColumn", keys: ChartKeys) -> Any:
    import altair as alt  # noqa: PLC0415  heavy, and loaded when used

    rows = _rows(answer, column, keys)
    base = alt.Chart(alt.InlineData(values=rows))
    value: Any = alt.Scale(zero=column.type == "integer", nice=True)
    name = drawable(column.name)
    drawn = _curve(base, keys, name, value) if keys.curve else _groups(base, keys, name, value, len(rows))
    if not keys.panels:
        return drawn
    titles = list(dict.fromkeys(row["panel"] for row in rows))
    columns = 2 if len(titles) in (2, 4) else 3
    facet = alt.Facet("panel:N", sort=titles, header=alt.Header(title=None))
    return drawn.facet(facet=facet, columns=columns, spacing=28).resolve_axis(x="independent")


def _curve(base: Any, keys: ChartKeys, name: str, value: Any) -> Any:
    """A line through the estimates, and a band between the ends."""
    import altair as alt  # noqa: PLC0415  heavy, and loaded when used

    assert keys.axis is not None
    scale = alt.Scale(type="utc") if keys.scale == "temporal" else alt.Scale(zero=False, nice=False, padding=8)
    axis = alt.X(
        f"axis:{'T' if keys.scale == 'temporal' else 'Q'}",
        scale=scale,
        title=None if keys.panels else drawable(keys.axis.name),
        axis=alt.Axis(grid=False, tickCount=4 if keys.panels else 7, labelOverlap=True),
    )
    shared = base.encode(x=axis, **_colours(keys))
    band = shared.mark_area(opacity=0.22, line=False).encode(
        y=alt.Y("low:Q", scale=value, title=None if keys.panels else name, axis=alt.Axis(tickCount=6, **ABOVE)),
        y2="high:Q",
    )
    points = len(set(keys.axis.values)) <= _MOST_POINTS
    mark = alt.OverlayMarkDef(filled=True, size=26) if points else False
    line = shared.mark_line(strokeWidth=2, point=mark).encode(
        y=alt.Y("estimate:Q", scale=value), tooltip=_tooltip(keys, name)
    )
    return alt.layer(band, line).properties(
        width=_PANEL if keys.panels else _WIDTH, height=_PANEL if keys.panels else _HEIGHT
    )


def _groups(base: Any, keys: ChartKeys, name: str, value: Any, count: int) -> Any:
    """Points with error bars, the names of groups beside them."""
    import altair as alt  # noqa: PLC0415  heavy, and loaded when used

    axis = alt.Y(
        "axis:N",
        sort=alt.EncodingSortField("order", op="min"),
        title=None if keys.axis is None else drawable(keys.axis.name),
        axis=alt.Axis(
            ticks=False, domain=False, labelPadding=8, titleAngle=0, titleAlign="right", titleAnchor="start",
            titleY=-8, titleX=-8, labels=keys.axis is not None,
        ),
    )  # fmt: skip
    offset: dict[str, Any] = (
        {} if keys.colour is None else {"yOffset": alt.YOffset("colour:N", sort=alt.EncodingSortField("order"))}
    )
    shared = base.encode(y=axis, **offset, **_colours(keys), tooltip=_tooltip(keys, name))
    title = None if keys.panels else name
    bars = shared.mark_rule(strokeWidth=5, opacity=0.35).encode(
        x=alt.X("low:Q", scale=value, title=title, axis=alt.Axis(tickCount=6, domain=False, ticks=False)), x2="high:Q"
    )
    points = shared.mark_point(filled=True, size=38, opacity=1).encode(x=alt.X("estimate:Q", scale=value))
    layers = [bars, points]
    if keys.colour is None and not keys.panels and count <= _MOST_LABELS:
        label = shared.mark_text(align="left", dx=9, fontSize=11).encode(text="words:N", color=alt.value(GREY))
        layers.append(label.encode(x=alt.X("high:Q", scale=value)))
    colours = 1 if keys.colour is None else _distinct(keys.colour)
    step = alt.Step(max(_STEP, 13 * colours), **{"for": "position"}) if colours > 1 else alt.Step(_STEP)
    return alt.layer(*layers).properties(
        width=_PANEL if keys.panels else _WIDTH, height=step if keys.axis is not None else 2 * _STEP
    )


def _colours(keys: ChartKeys) -> dict[str, Any]:
    import altair as alt  # noqa: PLC0415  heavy, and loaded when used

    if keys.colour is None:
        return {"color": alt.value(COLOURS[0])}
    values = [_text(value) for value in dict.fromkeys(keys.colour.values)]
    legend = alt.Legend(title=drawable(keys.colour.name), symbolOpacity=1, symbolStrokeWidth=0, symbolType="circle")
    return {"color": alt.Color("colour:N", sort=values, legend=legend)}


def _tooltip(keys: ChartKeys, name: str) -> list[Any]:
    import altair as alt  # noqa: PLC0415  heavy, and loaded when used

    shown = [("label", "group")] if keys.axis is not None else []
    return [alt.Tooltip(f"{field}:N", title=said) for field, said in (*shown, ("said", name), ("between", "interval"))]


def _rows(answer: "Answer", column: "ValueColumn", keys: ChartKeys) -> list[dict[str, Any]]:
    rows = []
    unknown = frozenset(column.unknown)
    for row in _drawn(answer, keys):
        value, low, high = column.values[row], column.low[row], column.high[row]
        if value is None or low is None or high is None:
            continue  # NULL has no place on an axis
        said, between = with_interval(value, low, high)
        middle = None if row in unknown else _placed(value, None)
        rows.append(
            {
                "axis": _place(keys, row),
                "colour": "" if keys.colour is None else _text(keys.colour.values[row]),
                "panel": ", ".join(f"{drawable(key.name)}: {_text(key.values[row])}" for key in keys.panels),
                "label": ", ".join(_text(key.values[row]) for key in answer.keys),
                "order": row,
                "estimate": middle,
                # An end at infinity has no place on an axis: the bar stops at the estimate.
                "low": _placed(low, middle),
                "high": _placed(high, middle),
                "said": NO_INFORMATION if row in unknown else said,
                "between": between,
                "words": NO_INFORMATION if row in unknown else f"{said}   ({between})",
            }
        )
    return rows


def _drawn(answer: "Answer", keys: ChartKeys) -> list[int]:
    """The rows that are drawn: groups that fit, and on an axis of numbers or dates all but NULL."""
    if keys.axis is None:
        return list(range(len(answer)))
    panels = list(dict.fromkeys(_panel_of(keys, row) for row in range(len(answer))))[:_MOST_PANELS]
    shown = [row for row in range(len(answer)) if _panel_of(keys, row) in panels]
    if keys.curve:
        return [row for row in shown if keys.axis.values[row] is not None]
    first = set(list(dict.fromkeys(keys.axis.values))[:_MOST])
    return [row for row in shown if keys.axis.values[row] in first]


def _panel_of(keys: ChartKeys, row: int) -> tuple[Any, ...]:
    return tuple(key.values[row] for key in keys.panels)


def _said(answer: "Answer", keys: ChartKeys) -> list[str]:
    """What the picture shows, and on what it depends."""
    shown = f"{answer.confidence:.4g} interval for the exact answer on these rows"
    if answer.chosen is not None:
        shown = f"intervals for the exact answers on these rows, of which {answer.confidence:.4g} hold on average"
    assumed = {column.assumes for column in answer.values}
    if _SAMPLED in assumed:
        shown = f"{answer.confidence:.4g} interval for the population of which these rows are a random sample"
    lines = [f"{shown} · ε = {show(answer.cost.epsilon)}"]
    lines += [f"holds {words}" for kind, words in HOLDS.items() if kind in assumed - {_SAMPLED}]
    left = len(answer) - len(_drawn(answer, keys))
    if left:
        lines.append(f"{left:,} of {len(answer):,} groups are not drawn")
    if any(column.unknown for column in answer.values):
        lines.append("where there is no point there is no information: the interval is the whole range")
    if answer.test_noise:
        lines.append("TEST NOISE: protects nobody")
    return [drawable(line) for line in lines]


def _place(keys: ChartKeys, row: int) -> Any:
    value: Any = "" if keys.axis is None else keys.axis.values[row]
    if keys.scale == "quantitative":
        return _placed(value, None)
    return value.isoformat() if keys.scale == "temporal" else _text(value)


def _listed(names: Sequence[str]) -> str:
    *first, last = [drawable(name) for name in names] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def _text(value: Any) -> str:
    return "NULL" if value is None else drawable(str(value))


def _distinct(key: "KeyColumn") -> int:
    return len(set(key.values))


def _steps(key: "KeyColumn") -> int:
    """How many places of an axis it would have: two of them are groups and no curve, and NULL has none."""
    return len({value for value in key.values if value is not None})


def _placed(value: float, otherwise: float | None) -> float | None:
    """Where a number stands on an axis."""
    return value if -_FARTHEST <= value <= _FARTHEST else otherwise
