"""A picture of a summary: a panel for each column that has a shape."""

from typing import TYPE_CHECKING, Any

from confide.release.answer.rendering import drawable

if TYPE_CHECKING:
    from confide.release.summary.summary import ColumnSummary, TableSummary

_WIDTH, _HEIGHT = 260, 140
_ACROSS = 3


def panels(summary: "TableSummary") -> Any:
    """Bars for counts, with the ends of their intervals."""
    import altair as alt  # noqa: PLC0415  heavy, and loaded when used

    made = []
    for column in summary.columns:
        rows = _rows(column)
        if not rows:
            continue
        base = alt.Chart(alt.InlineData(values=rows)).encode(
            x=alt.X("value:N", sort=alt.EncodingSortField("order"), title=None)
        )
        bars = base.mark_bar(opacity=0.6).encode(y=alt.Y("rows:Q", title="rows"))
        whiskers = base.mark_rule().encode(y="low:Q", y2="high:Q")
        title = f"{drawable(column.name)}, {summary.confidence:.4g} intervals"
        if summary.measured.test_noise:
            title += " - TEST NOISE"
        made.append(alt.layer(bars, whiskers).properties(title=title, width=_WIDTH, height=_HEIGHT))
    return alt.concat(*made, columns=_ACROSS)


def _rows(column: "ColumnSummary") -> list[dict[str, Any]]:
    named = [(str(bar.first), bar.rows) for bar in column.histogram]
    named += [(str(value), own) for value, own in column.commonest]
    return [
        {"value": drawable(name), "order": place, "rows": own.value, "low": own.low, "high": own.high}
        for place, (name, own) in enumerate(named)
    ]
