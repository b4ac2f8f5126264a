"""Charts of what was measured, drawn where CONFIDE_PLOTS names a folder."""

import os
from collections.abc import Sequence
from pathlib import Path


def lines(points: Sequence[tuple[float, float, str]], across: str, up: str, name: str, log: bool = False) -> None:
    """One line for each label through its points (x, y, label), as NAME.svg."""
    folder = os.environ.get("CONFIDE_PLOTS")
    if folder is None:
        return
    import altair as alt  # noqa: PLC0415  loaded when used

    rows = [{across: x, up: y, "what": label} for x, y, label in points]
    scale = alt.Scale(type="log") if log else alt.Scale()
    chart = (
        alt.Chart(alt.Data(values=rows), width=420, height=240)
        .mark_line(point=True)
        .encode(
            x=alt.X(f"{across}:Q", scale=scale),
            y=alt.Y(f"{up}:Q", scale=alt.Scale(zero=True)),
            color=alt.Color("what:N", title=None),
        )
    )
    chart.save(str(Path(folder) / f"{name}.svg"))
