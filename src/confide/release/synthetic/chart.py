"""Charts of synthetic data: which pairs of columns are backed by a measurement, and the table beside noisy counts."""

import math
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import altair as alt
import numpy as np
from numpy.typing import NDArray

from confide.privacy.amount import show
from confide.release.answer.noisy_bars import MOST_BARS, NoisyBar, noisy_bars
from confide.release.answer.picture import COLOURS, INK, PALE, finished
from confide.release.answer.rendering import drawable
from confide.release.synthetic.report import CONFIDENCE, Backing, NoisyCells, SyntheticReport

if TYPE_CHECKING:
    from confide.release.synthetic.synthetic import Synthetic

_CELL: Final = 30
_KEPT, _LOST = "measured together, kept", "measured together, not kept"
_APART, _NEVER = "each by itself", "not measured"
_SHADES: Final = {_KEPT: COLOURS[2], _LOST: COLOURS[1], _APART: PALE, _NEVER: "#ffffff"}


def backed_pairs(report: SyntheticReport, path: object = None) -> Any:
    """A square for each pair of columns: how far the table is from the noisy counts, in deviations of the noise."""
    made = report.made
    loss: dict[tuple[str, ...], float] = {}
    kept: dict[tuple[str, ...], bool] = {}
    for own in report.marginals:
        for pair in product(own.columns, repeat=2):
            loss[pair] = min(own.loss, loss.get(pair, math.inf))
            kept[pair] = own.kept or kept.get(pair, False)
    names = made.domain.names
    rows = []
    for place, first in enumerate(names):
        for second in names[: place + 1]:
            backing: Backing = (
                ("together" if (first,) in {own.columns for own in report.marginals} else "not measured")
                if first == second
                else report.pairs[(second, first)]
            )
            pair = (first, second)
            together = backing == "together"
            kind = (_KEPT if kept[pair] else _LOST) if together else _APART if backing == "apart" else _NEVER
            rows.append(
                {
                    "one": drawable(first),
                    "two": drawable(second),
                    "kind": kind,
                    "off": f"{math.sqrt(loss[pair]):.1f}" if together else "",
                    "dark": together,
                }
            )
    order = [drawable(name) for name in names]
    axis = alt.Axis(domain=False, ticks=False, title=None)
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("two:N", sort=order, axis=alt.Axis(domain=False, ticks=False, title=None, labelAngle=-45)),
        y=alt.Y("one:N", sort=order, axis=axis),
        tooltip=[
            alt.Tooltip("one:N", title="column"),
            alt.Tooltip("two:N", title="with"),
            alt.Tooltip("kind:N", title="how"),
            alt.Tooltip("off:N", title="off, in deviations of the noise"),
        ],
    )
    shades = alt.Scale(domain=list(_SHADES), range=list(_SHADES.values()))
    squares = base.mark_rect(stroke=PALE, strokeWidth=1).encode(
        color=alt.Color("kind:N", scale=shades, legend=alt.Legend(title=None, columns=1))
    )
    texts = base.mark_text(fontSize=10.5).encode(
        text="off:N", color=alt.condition("datum.dark", alt.value("white"), alt.value(INK))
    )
    chart = alt.layer(squares, texts).properties(width=alt.Step(_CELL), height=alt.Step(_CELL))
    subtitle = [
        "numbers: how far the records are from the noisy counts, in deviations",
        f"of the noise; about 1 is as near as the truth · ε = {show(made.cost.epsilon)}",
    ]
    if made.test_noise:
        subtitle.append("TEST NOISE: protects nobody")
    title = f"{made.table.name}: which pairs of columns a measurement backs"
    return finished(chart, drawable(title), [drawable(line) for line in subtitle], path)


def noisy_beside_table(made: "Synthetic", own: NoisyCells, path: object = None) -> Any:
    """Bars for what the records hold; points and whiskers for the noisy counts and their intervals."""
    bars = []
    for at in list(np.ndindex(*own.noisy.shape))[:MOST_BARS]:
        words = [_words(made, column, own.places[axis], at[axis]) for axis, column in enumerate(own.columns)]
        bars.append(NoisyBar(", ".join(words), round(float(own.noisy[at])), own.half_width, float(own.fitted[at])))
    subtitle = [
        f"bars: the records · points: noisy counts with the {CONFIDENCE:.4g} interval for the exact count on these "
        f"rows · ε = {show(made.cost.epsilon)} for all of it"
    ]
    if own.noisy.size > len(bars):
        subtitle.append(f"{own.noisy.size - len(bars):,} of {own.noisy.size:,} counts are not drawn")
    if made.test_noise:
        subtitle.append("TEST NOISE: protects nobody")
    columns = " × ".join(made.domain.names[column] for column in own.columns)
    return noisy_bars(bars, f"{made.table.name}: counts by {columns}", subtitle, path)


def _words(made: "Synthetic", column: int, measured: NDArray[np.int64], place: int) -> str:
    places = np.flatnonzero(measured == place)
    first = made.domain.attributes[column].label(int(places[0]))
    return first if len(places) == 1 else f"{first} and {len(places) - 1:,} more"
