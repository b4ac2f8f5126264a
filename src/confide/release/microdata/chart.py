"""Charts of microdata: noisy beside fitted counts."""

from typing import TYPE_CHECKING, Any

import altair as alt

from confide.release.answer.rendering import drawable
from confide.release.microdata.marginals import show_marginal

if TYPE_CHECKING:
    from confide.release.microdata.microdata import Microdata

_NARROWEST, _HEIGHT = 320, 260
_STEP = 22
_MOST = 200


def noisy_and_fitted(made: "Microdata", marginal: object) -> Any:
    """Bars for the fitted counts; points and whiskers for the noisy ones and their intervals."""
    found = made.measured.find(marginal)
    fitted = made.fitted.answer(made.measured.group(found.marginal))
    half = found.law.half_width(made.confidence)
    keys = made.measured.keys(found.marginal)
    rows = [
        {
            "group": drawable(
                ", ".join("NULL" if key.values[row] is None else str(key.values[row]) for key in keys) or "total"
            ),
            "order": row,
            "noisy": int(count),
            "low": int(count) - half,
            "high": int(count) + half,
            "fitted": float(fitted[row]),
        }
        for row, count in enumerate(found.counts[:_MOST])
    ]
    shown = drawable(show_marginal(found.marginal))
    title = f"{shown}: fitted by {made.method} (bars), noisy with {made.confidence:.4g} intervals"
    if made.measured.test_noise:
        title += " - TEST NOISE"
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("group:N", sort=alt.EncodingSortField("order"), title=drawable(", ".join(found.marginal)) or None)
    )
    tooltip = [
        alt.Tooltip(f"{field}:{kind}")
        for field, kind in (("group", "N"), ("noisy", "Q"), ("low", "Q"), ("high", "Q"), ("fitted", "Q"))
    ]
    bars = base.mark_bar(color="#a9c6e8").encode(y=alt.Y("fitted:Q", title="count"), tooltip=tooltip)
    whiskers = base.mark_rule(color="#1c2330").encode(y="low:Q", y2="high:Q", tooltip=tooltip)
    points = base.mark_point(filled=True, size=40, color="#1c2330").encode(y="noisy:Q", tooltip=tooltip)
    return alt.layer(bars, whiskers, points).properties(
        title=title, width=max(_NARROWEST, _STEP * len(rows)), height=_HEIGHT
    )
