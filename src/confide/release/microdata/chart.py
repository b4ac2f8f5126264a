"""Charts of microdata: noisy beside fitted counts."""

from typing import TYPE_CHECKING, Any, Final

import altair as alt

from confide.privacy.amount import show
from confide.release.answer.digits import number, with_interval
from confide.release.answer.picture import COLOURS, INK, finished
from confide.release.answer.rendering import drawable
from confide.release.microdata.marginals import show_marginal

if TYPE_CHECKING:
    from confide.release.microdata.microdata import Microdata

_WIDTH: Final = 560
_STEP: Final = 22
_MOST: Final = 200


def noisy_and_fitted(made: "Microdata", marginal: object, path: object = None) -> Any:
    """Bars for the fitted counts; points and whiskers for the noisy ones and their intervals."""
    found = made.measured.find(marginal)
    fitted = made.fitted.answer(made.measured.group(found.marginal))
    half = found.law.half_width(made.confidence)
    keys = made.measured.keys(found.marginal)
    rows = []
    for row, count in enumerate(found.counts[:_MOST]):
        low, high = int(count) - half, int(count) + half
        names = ("NULL" if key.values[row] is None else str(key.values[row]) for key in keys)
        said, between = with_interval(int(count), low, high)
        rows.append(
            {
                "group": drawable(", ".join(names) or "total"),
                "order": row,
                "noisy": int(count),
                "low": low,
                "high": high,
                "fitted": float(fitted[row]),
                "said": said,
                "between": between,
                "fit": number(round(float(fitted[row]), 1)),
            }
        )
    subtitle = [
        f"bars: fitted by {made.method} · points: noisy counts with the {made.confidence:.4g} interval for the exact "
        f"count on these rows · ε = {show(made.cost.epsilon)}"
    ]
    if len(found.counts) > len(rows):
        subtitle.append(f"{len(found.counts) - len(rows):,} of {len(found.counts):,} counts are not drawn")
    if made.measured.test_noise:
        subtitle.append("TEST NOISE: protects nobody")
    title = (
        f"{made.measured.table}: counts by {show_marginal(found.marginal)}" if keys else f"{made.measured.table}: total"
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
    bars = base.mark_bar(color=COLOURS[5], opacity=0.55, height=alt.RelativeBandSize(0.7)).encode(
        x=alt.X("fitted:Q", title="count", axis=axis)
    )
    whiskers = base.mark_rule(color=INK, strokeWidth=1.5).encode(x=alt.X("low:Q"), x2="high:Q")
    points = base.mark_point(filled=True, size=30, color=INK, opacity=1).encode(x="noisy:Q")
    chart = alt.layer(bars, whiskers, points).properties(width=_WIDTH, height=alt.Step(_STEP))
    return finished(chart, drawable(title), [drawable(line) for line in subtitle], path)
