"""Charts of microdata: noisy beside fitted counts, and the price of having no negative ones."""

from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from confide.fit import Price
from confide.release.microdata_design import show_marginal

if TYPE_CHECKING:
    from confide.release.microdata import Microdata

_WIDTH, _HEIGHT = 520, 260
_MOST = 200


def noisy_and_fitted(made: "Microdata", marginal: object) -> Any:
    """Bars for the fitted counts; points and whiskers for the noisy ones and their intervals."""
    found = made.measured.find(marginal)
    fitted = made.fitted.answer(made.measured.group(found.marginal))
    half = found.law.half_width(made.confidence)
    keys = made.measured.keys(found.marginal)
    rows = [
        {
            "group": ", ".join("NULL" if key.values[row] is None else str(key.values[row]) for key in keys) or "total",
            "order": row,
            "noisy": int(count),
            "low": int(count) - half,
            "high": int(count) + half,
            "fitted": float(fitted[row]),
        }
        for row, count in enumerate(found.counts[:_MOST])
    ]
    title = (
        f"{show_marginal(found.marginal)}: fitted by {made.method} (bars), noisy with {made.confidence:.4g} intervals"
    )
    if made.measured.test_noise:
        title += " - TEST NOISE"
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("group:N", sort=alt.EncodingSortField("order"), title=", ".join(found.marginal) or None)
    )
    tooltip = [
        alt.Tooltip(f"{field}:{kind}")
        for field, kind in (("group", "N"), ("noisy", "Q"), ("low", "Q"), ("high", "Q"), ("fitted", "Q"))
    ]
    bars = base.mark_bar(color="#a9c6e8").encode(y=alt.Y("fitted:Q", title="count"), tooltip=tooltip)
    whiskers = base.mark_rule(color="#1c2330").encode(y="low:Q", y2="high:Q", tooltip=tooltip)
    points = base.mark_point(filled=True, size=40, color="#1c2330").encode(y="noisy:Q", tooltip=tooltip)
    return alt.layer(bars, whiskers, points).properties(title=title, width=_WIDTH, height=_HEIGHT)


def price_curve(price: Price) -> Any:
    """What no method can do better than, Theorem 3 as stated, and what methods guarantee; both axes logarithmic."""
    curves = []
    for label, values in (("no method is below", price.least), ("Theorem 3 as stated", price.stated)):
        good = np.asarray(values) > 0
        curves += [
            {"C": float(point), "D": float(total), "what": label}
            for point, total in zip(price.points[good], np.asarray(values)[good], strict=True)
        ]
    marks = [
        {"C": each.point, "D": each.total, "method": each.method}
        for each in price.guarantees
        if each.point is not None and each.total is not None
    ]
    low = min(mark["D"] for mark in marks) / 10  # type: ignore[operator,type-var]
    curves = [row for row in curves if row["D"] >= low]  # type: ignore[operator]
    x = alt.X("C:Q", scale=alt.Scale(type="log"), title="error of each part (C)")
    y = alt.Y("D:Q", scale=alt.Scale(type="log"), title="error of the sum (D)")
    lines = (
        alt.Chart(alt.InlineData(values=curves))
        .mark_line()
        .encode(x=x, y=y, color=alt.Color("what:N", title=None, legend=alt.Legend(orient="bottom")))
    )
    base = alt.Chart(alt.InlineData(values=marks)).encode(x=x, y=y)
    points = base.mark_point(filled=True, size=70, color="#1c2330")
    labels = base.mark_text(align="left", dx=8, dy=-6).encode(text="method:N")
    title = f"One sum of {price.d:,} parts without negative counts"
    return alt.layer(lines, points, labels).properties(title=title, width=_WIDTH, height=_HEIGHT + 60)
