"""A chart of how often a verdict is wrong, by where the private answer may lie."""

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING, Any, Final

import altair as alt

from confide.privacy.amount import show
from confide.release.answer.digits import number
from confide.release.answer.picture import ABOVE, COLOURS, GREY, PALE, finished
from confide.release.answer.rendering import drawable

if TYPE_CHECKING:
    from confide.release.verdict.plan import TrustPlan

_WIDTH: Final = 560
_HEIGHT: Final = 280
_POINTS: Final = 161
_DASHES: Final = [[1, 0], [7, 5], [2, 4], [10, 3], [4, 2], [1, 3]]
_REACH: Final = 3
"""Private answers are shown up to three times τ from the synthetic one."""


def errors_by_answer(plan: "TrustPlan", also: Sequence[str], path: object = None) -> Any:
    """A line for each decider, over a band where yes is right."""
    tau = (plan.interval[1] - plan.interval[0]) / 2
    gaps = [tau * _REACH * (2 * place / (_POINTS - 1) - 1) for place in range(_POINTS)]
    names = list(dict.fromkeys((plan.mechanism, *also)))
    rows = [
        {"answer": plan.synthetic_answer + gap, "error": error, "decider": name}
        for name in names
        for gap, error in zip(gaps, plan.errors(gaps, name), strict=True)
        if not isnan(error)
    ]
    low, high = plan.interval
    inside = alt.Chart(alt.InlineData(values=[{"low": low, "high": high}])).mark_rect(color=PALE, opacity=0.5)
    where = alt.X("low:Q", scale=alt.Scale(zero=False, nice=False), title="private answer")
    band = inside.encode(x=where, x2="high:Q")
    middle = alt.Chart(alt.InlineData(values=[{"at": plan.synthetic_answer, "said": "synthetic answer"}]))
    rule = middle.mark_rule(strokeDash=[3, 3], color=GREY).encode(x="at:Q")
    label = middle.mark_text(align="left", dx=5, baseline="top", color=GREY, fontSize=11).encode(
        x="at:Q", y=alt.value(4), text="said:N"
    )
    legend = alt.Legend(title="decider", symbolType="stroke", symbolStrokeWidth=3) if len(names) > 1 else None
    lines = alt.Chart(alt.InlineData(values=rows)).mark_line(strokeWidth=2).encode(
        x=alt.X("answer:Q", axis=alt.Axis(grid=False, tickCount=7)),
        y=alt.Y(
            "error:Q",
            title="probability of a wrong verdict",
            scale=alt.Scale(domain=[0, 1]),
            axis=alt.Axis(tickCount=5, **ABOVE),
        ),
        color=alt.Color("decider:N", sort=names, legend=legend, scale=alt.Scale(range=list(COLOURS))),
        # Curves may lie on each other: the chosen one is whole, and shows between the dashes of the others.
        strokeDash=alt.StrokeDash("decider:N", sort=names, legend=None, scale=alt.Scale(range=_DASHES)),
        tooltip=[
            alt.Tooltip("decider:N"),
            alt.Tooltip("answer:Q", title="private answer", format=",.6~g"),
            alt.Tooltip("error:Q", title="wrong verdict", format=".3f"),
        ],
    )  # fmt: skip
    title = f"How often a verdict on {number(plan.synthetic_answer)} is wrong"
    subtitle = [f"yes is right in the grey band, within {plan.within} · ε = {show(plan.cost.epsilon)}"]
    if plan.questions > 1:
        subtitle[0] += f" for {plan.questions} questions"
    chart = alt.layer(band, rule, label, lines).properties(width=_WIDTH, height=_HEIGHT)
    return finished(chart, drawable(title), [drawable(line) for line in subtitle], path)
