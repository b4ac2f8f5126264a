"""Charts with error bars."""

from sys import float_info
from typing import TYPE_CHECKING, Any, Final

from confide.release.answer.rendering import drawable

if TYPE_CHECKING:
    from confide.release.answer.answer import Answer

_HEIGHT = 240
_WIDTH = 480
_FARTHEST: Final = float_info.max


def error_bars(answer: "Answer") -> Any:
    """One panel per aggregate: points for estimates, bars for intervals, groups along the x axis."""
    import altair as alt  # noqa: PLC0415  heavy, and loaded when used

    panels = []
    for column in answer.values:
        if column.type in ("text", "boolean"):
            continue
        rows = [
            {
                "group": _label(answer, row),
                "order": row,
                "estimate": _placed(value, None),
                # An end at infinity has no place on an axis: the bar stops at the estimate.
                "low": _placed(low, _placed(value, None)),
                "high": _placed(high, _placed(value, None)),
            }
            for row, (value, low, high) in enumerate(zip(column.values, column.low, column.high, strict=True))
            if value is not None
        ]
        base = alt.Chart(alt.InlineData(values=rows)).encode(
            x=alt.X(
                "group:N",
                sort=alt.EncodingSortField("order"),
                title=drawable(", ".join(key.name for key in answer.keys)) or None,
            )
        )
        tooltip = [
            alt.Tooltip(f"{field}:{kind}")
            for field, kind in (("group", "N"), ("estimate", "Q"), ("low", "Q"), ("high", "Q"))
        ]
        scale = alt.Scale(zero=False)
        bars = base.mark_errorbar(ticks=alt.MarkConfig(size=12)).encode(
            y=alt.Y("low:Q", title=drawable(column.name), scale=scale), y2=alt.Y2("high:Q"), tooltip=tooltip
        )
        points = base.mark_point(filled=True, size=50).encode(y=alt.Y("estimate:Q", scale=scale), tooltip=tooltip)
        title = f"{drawable(column.name)}, {answer.confidence:.4g} intervals ({column.assumes})"
        if answer.test_noise:
            title += " - TEST NOISE"
        panels.append(alt.layer(bars, points).properties(title=title, height=_HEIGHT, width=_WIDTH))
    return panels[0] if len(panels) == 1 else alt.vconcat(*panels)


def _placed(value: float, otherwise: float | None) -> float | None:
    """Where a number stands on an axis."""
    return value if -_FARTHEST <= value <= _FARTHEST else otherwise


def _label(answer: "Answer", row: int) -> str:
    names = ["NULL" if key.values[row] is None else drawable(str(key.values[row])) for key in answer.keys]
    return ", ".join(names) or "all"
