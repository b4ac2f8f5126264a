"""What all charts have in common: their looks, the ways to keep them, and what a notebook shows. Nothing is fetched.

Colours are those of [Okabe2008], which people with any kind of colour blindness tell apart.
"""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from confide.errors import ParameterError

COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#595959")
INK: Final = "#1c2330"
GREY: Final = "#7a8294"
PALE: Final = "#d9dee8"

ABOVE: Final[Mapping[str, Any]] = {
    "titleAngle": 0,
    "titleAnchor": "end",
    "titleAlign": "left",
    "titleBaseline": "bottom",
    "titleX": 0,
    "titleY": -8,
}
"""An upright axis has its title above it, to be read without turning the head."""

KINDS: Final = (".html", ".png", ".svg")
_CONVERTED: Final = (".png", ".svg")
_SCALE: Final = 2
"""Dots of a PNG for each of the picture's: sharp on fine screens."""
_FONT: Final = "system-ui, 'Helvetica Neue', Arial, sans-serif"
_LOOKS: Final[Mapping[str, Any]] = {
    "font": _FONT,
    "background": "white",
    "padding": 12,
    "view": {"stroke": None},
    "title": {"anchor": "start", "frame": "group", "fontSize": 15, "fontWeight": 600, "color": INK, "offset": 14,
              "subtitleColor": GREY, "subtitleFontSize": 11.5, "subtitlePadding": 5, "subtitleLineHeight": 15},
    "axis": {"labelColor": INK, "labelFontSize": 11.5, "titleColor": GREY, "titleFontSize": 11.5,
             "titleFontWeight": 400, "gridColor": "#e9ecf2", "domainColor": PALE, "tickColor": PALE, "titlePadding": 8,
             "labelAngle": 0, "labelLimit": 220, "labelFlush": False},
    "legend": {"labelColor": INK, "labelFontSize": 11.5, "titleColor": GREY, "titleFontSize": 11.5,
               "titleFontWeight": 400, "titleOrient": "left", "titleAnchor": "middle", "titlePadding": 10,
               "orient": "top", "direction": "horizontal", "offset": 24, "labelLimit": 200},
    "header": {"labelFontSize": 12, "labelFontWeight": 600, "labelColor": INK, "labelAnchor": "start", "title": None},
    "range": {"category": list(COLOURS)},
}  # fmt: skip


def finished(chart: Any, title: str, subtitle: Sequence[str], path: object = None) -> Any:
    """The Altair chart with its titles and looks; kept in a file, if a path is given.

    It shows itself in a notebook without a network: as a drawing for those that draw, as a picture elsewhere. Its
    `save` makes pages that hold all they need.
    """
    import altair as alt  # noqa: PLC0415  heavy, and loaded when used

    done = chart.properties(title=alt.TitleParams(title, subtitle=list(subtitle))).configure(**_LOOKS)
    object.__setattr__(done, "_repr_mimebundle_", lambda *given, **named: _shown(done))
    object.__setattr__(done, "save", lambda place, **options: save(done, Path(place), **options))
    if path is not None:
        place = place_for(path, "plot")
        save(done, place)
    return done


def place_for(path: object, said: str) -> Path:
    """Where to draw, or a refusal: what cannot be drawn there is refused before anything is spent."""
    place = Path(path) if isinstance(path, str | Path) else None
    if place is None or place.suffix.lower() not in KINDS:
        raise ParameterError(f"{said} {path}: a chart is drawn as {', '.join(KINDS)}")
    if place.is_dir() or not place.parent.is_dir():
        raise ParameterError(f"{said} {path}: there is no folder {place.parent}, or the file is one")
    if place.suffix.lower() in _CONVERTED and not converts():
        raise ParameterError(
            f"{said} {path}: {place.suffix} needs a converter: pip install 'confide[plot]'; .html does not"
        )
    return place


def converts() -> bool:
    """Whether charts become pictures here, and pages that need no network."""
    return find_spec("vl_convert") is not None


def save(chart: Any, place: Path, **options: Any) -> None:
    """Keep a chart in a file. A page fetches its drawing library when it is opened, where no converter is installed."""
    kind = place.suffix.lower()
    own: dict[str, Any] = {"format": kind[1:]}
    if kind == ".html":
        own["inline"] = converts()
    elif kind == ".png":
        own["scale_factor"] = _SCALE
    type(chart).save(chart, str(place), **(own | options))


def drawing(chart: Any) -> str:
    """The chart as SVG, for pages that hold it; where it is converted."""
    import vl_convert  # noqa: PLC0415  an extra

    return str(vl_convert.vegalite_to_svg(chart.to_dict()))


def _shown(chart: Any) -> dict[str, Any]:
    import altair as alt  # noqa: PLC0415  heavy, and loaded when used

    spec = chart.to_dict()
    bundle = {f"application/vnd.vegalite.{alt.SCHEMA_VERSION.split('.')[0]}+json": spec, "text/plain": "<a chart>"}
    if converts():
        bundle["image/svg+xml"] = drawing(chart)
    return bundle
