"""The price of microdata in print and as a chart."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from confide.fit.price import Price

_WIDTH, _HEIGHT = 520, 320
_SHOWN = 6


def price_text(price: "Price") -> str:
    """Some points of the curve, and what methods guarantee."""
    lines = [f"one sum of {price.d:,} parts, none of them negative, under {_budget(price)}", ""]
    lines.append(f"{'error of each part':>20}{'least error of the sum':>26}")
    places = np.linspace(0, len(price.points) - 1, _SHOWN).astype(int)
    lines += [f"{price.points[place]:>20,.2f}{price.least[place]:>26,.2f}" for place in places]
    lines += ["", f"{'what is guaranteed':20}{'each part':>12}{'the sum':>12}"]
    for each in price.guarantees:
        if each.point is None or each.total is None:
            lines.append(f"{each.method:20}{'nothing':>12}{'nothing':>12}  {each.why}")
        else:
            lines.append(f"{each.method:20}{each.point:>12,.1f}{each.total:>12,.1f}  {each.why}")
    return "\n".join(lines)


def price_chart(price: "Price") -> Any:
    """What no method can do better than, Theorem 3 as stated, and what methods guarantee; both axes logarithmic."""
    import altair as alt  # noqa: PLC0415  heavy, and loaded when used

    marks = [
        {"C": each.point, "D": each.total, "method": each.method}
        for each in price.guarantees
        if each.point is not None and each.total is not None
    ]
    lowest = min(each.total for each in price.guarantees if each.total is not None) / 4
    curves = []
    for label, values in (("no method is below", price.least), ("Theorem 3 as stated", price.stated)):
        shown = values >= lowest
        curves += [
            {"C": float(point), "D": float(total), "what": label}
            for point, total in zip(price.points[shown], values[shown], strict=True)
        ]
    # Room for the label of the last one.
    widest = max(each.point for each in price.guarantees if each.point is not None and each.total is not None)
    x = alt.X(
        "C:Q",
        scale=alt.Scale(type="log", domain=[float(price.points[0]), 3 * widest], nice=False),
        title="error of each part (C)",
    )
    y = alt.Y("D:Q", scale=alt.Scale(type="log"), title="error of the sum (D)")
    colour = alt.Color(
        "what:N",
        title=None,
        legend=alt.Legend(orient="bottom"),
        scale=alt.Scale(domain=["no method is below", "Theorem 3 as stated"], range=["#c0392b", "#e0a39c"]),
    )
    lines = alt.Chart(alt.InlineData(values=curves)).mark_line(strokeWidth=2.5).encode(x=x, y=y, color=colour)
    base = alt.Chart(alt.InlineData(values=marks)).encode(x=x, y=y)
    points = base.mark_point(filled=True, size=70, color="#1c2330")
    labels = base.mark_text(align="left", dx=9, dy=3, color="#1c2330").encode(text="method:N")
    title = f"One sum of {price.d:,} parts without negative counts, {_budget(price)}"
    return alt.layer(lines, points, labels).properties(title=title, width=_WIDTH, height=_HEIGHT)


def _budget(price: "Price") -> str:
    budget = price.budget
    if budget.rho is not None:
        return f"ρ = {budget.rho:g}"
    return f"ε = {budget.epsilon:g}" + ("" if budget.delta is None else f", δ = {budget.delta:g}")
