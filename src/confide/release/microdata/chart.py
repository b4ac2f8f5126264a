"""Charts of microdata: noisy beside fitted counts."""

from typing import TYPE_CHECKING, Any

from confide.privacy.amount import show
from confide.release.answer.noisy_bars import MOST_BARS, NoisyBar, noisy_bars
from confide.release.microdata.marginals import show_marginal

if TYPE_CHECKING:
    from confide.release.microdata.microdata import Microdata


def noisy_and_fitted(made: "Microdata", marginal: object, path: object = None) -> Any:
    """Bars for the fitted counts; points and whiskers for the noisy ones and their intervals."""
    found = made.measured.find(marginal)
    fitted = made.fitted.answer(made.measured.group(found.marginal))
    half = found.law.half_width(made.confidence)
    keys = made.measured.keys(found.marginal)
    bars = [
        NoisyBar(
            ", ".join("NULL" if key.values[row] is None else str(key.values[row]) for key in keys) or "total",
            int(count),
            half,
            float(fitted[row]),
        )
        for row, count in enumerate(found.counts[:MOST_BARS])
    ]
    subtitle = [
        f"bars: fitted by {made.method} · points: noisy counts with the {made.confidence:.4g} interval for the exact "
        f"count on these rows · ε = {show(made.cost.epsilon)}"
    ]
    if len(found.counts) > len(bars):
        subtitle.append(f"{len(found.counts) - len(bars):,} of {len(found.counts):,} counts are not drawn")
    if made.measured.test_noise:
        subtitle.append("TEST NOISE: protects nobody")
    title = (
        f"{made.measured.table}: counts by {show_marginal(found.marginal)}" if keys else f"{made.measured.table}: total"
    )
    return noisy_bars(bars, title, subtitle, path)
