"""Noisy counts with their intervals beside what was fitted to them: bars, and points with whiskers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import altair as alt

from confide.release.answer.digits import number, with_interval
from confide.release.answer.picture import COLOURS, INK, finished
from confide.release.answer.rendering import drawable

MOST_BARS: Final = 200
_WIDTH: Final = 560
_STEP: Final = 22


@dataclass(frozen=True, slots=True)
class NoisyBar:
    """One count: what it counts, what was measured, within how much of it the truth is, and what was fitted."""

    group: str
    noisy: int
    half: int
    fitted: float


def noisy_bars(bars: Sequence[NoisyBar], title: str, subtitle: Sequence[str], path: object = None) -> Any:
    """Bars for the fitted counts; points and whiskers for the noisy ones and their intervals."""
    rows = []
    for place, bar in enumerate(bars[:MOST_BARS]):
        low, high = bar.noisy - bar.half, bar.noisy + bar.half
        said, between = with_interval(bar.noisy, low, high)
        rows.append(
            {
                "group": drawable(bar.group),
                "order": place,
                "noisy": bar.noisy,
                "low": low,
                "high": high,
                "fitted": bar.fitted,
                "said": said,
                "between": between,
                "fit": number(round(bar.fitted, 1)),
            }
        )
    tooltip = [
        alt.Tooltip(f"{field}:N", title=words)
        for field, words in (("group", "group"), ("said", "noisy"), ("between", "interval"), ("fit", "fitted"))
    ]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y(
            "group:N",
            sort=alt.EncodingSortField("order"),
            title=None,
            axis=alt.Axis(ticks=False, domain=False, labelPadding=8),
        ),
        tooltip=tooltip,
    )
    axis = alt.Axis(tickCount=6, domain=False, ticks=False)
    boxes = base.mark_bar(color=COLOURS[5], opacity=0.55, height=alt.RelativeBandSize(0.7)).encode(
        x=alt.X("fitted:Q", title="count", axis=axis)
    )
    whiskers = base.mark_rule(color=INK, strokeWidth=1.5).encode(x=alt.X("low:Q"), x2="high:Q")
    points = base.mark_point(filled=True, size=30, color=INK, opacity=1).encode(x="noisy:Q")
    chart = alt.layer(boxes, whiskers, points).properties(width=_WIDTH, height=alt.Step(_STEP))
    return finished(chart, drawable(title), [drawable(line) for line in subtitle], path)
