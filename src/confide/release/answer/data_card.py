"""What the data cards of all products have in common: who may say what, the guarantee in words, and the page.

As YAML a card has the shape of an entry of OpenDP's Deployments Registry, as a page the headings that NIST SP 800-226
asks for. What only the publisher knows is left to say, and says so.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

from confide.errors import ParameterError
from confide.privacy.amount import show
from confide.release.answer.rendering import Rows, html_of
from confide.release.cost import Cost

ABOUT: Final = ("name", "curator", "intended_use", "region", "sector", "collection", "contact")
UNKNOWN: Final = "to be said by the publisher"

STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1c2330; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin-top: 2rem; border-bottom: 1px solid #ccd; }
.wide { overflow-x: auto; } table { border-collapse: collapse; margin: .6rem 0; font-size: .9rem; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #e4e7ee; text-align: left; vertical-align: top; }
th { vertical-align: bottom; } .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th.number { white-space: normal; } dt { font-weight: 600; margin-top: .5rem; } dd { margin-left: 0; }
ul { padding-left: 1.2rem; } .warn { background: #fff3cd; padding: .6rem 1rem; border-radius: .4rem; }
small { color: #5a6376; } svg { overflow: visible; }
@media print { body { font-size: 11pt; margin: 0; } table { font-size: 8.5pt; } th, td { padding: .15rem .4rem; }
  tr, dt, dd, li { break-inside: avoid; } h2, dt { break-after: avoid; } }
"""


def check_about(about: Mapping[str, str]) -> None:
    """Refuse what a card has no place for."""
    unknown = sorted(set(about) - set(ABOUT))
    if unknown:
        raise ParameterError(f"about has {', '.join(unknown)}; a card has {', '.join(ABOUT)}")
    wrong = [name for name, value in about.items() if not isinstance(value, str)]
    if wrong:
        raise ParameterError(f"about[{wrong[0]!r}] must be a text")


def slug(name: str, otherwise: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", name.lower())) or otherwise


def flavour(cost: Cost, neighbours: str, domain: str, unprotected: str) -> dict[str, Any]:
    """What kind of guarantee it is."""
    pure = cost.rho is None
    return {
        "name": "Pure DP" if pure else "Zero-concentrated DP",
        "input_metric": "units replaced" if neighbours == "replace-one" else "units added or removed",
        "bound_on_input_distance": 1,
        "output_measure": "max divergence" if pure else "zero-concentrated divergence",
        "bound_on_output_distance": float(cost.epsilon if cost.rho is None else cost.rho),
        "data_domain": domain,
        "unprotected_quantities": unprotected,
    }


def unit_words(unit: str, neighbours: str, cost: Cost) -> str:
    what = "one row" if unit == "row" else f"whoever {unit} stands for, with all their rows"
    change = "replacing" if neighbours == "replace-one" else "adding or removing"
    amount = f"ε = {show(cost.epsilon)}" if cost.rho is None else f"ρ = {float(cost.rho):.4g}"
    return f"{what}: {change} one changes the probability of any release by a factor bounded through {amount}"


MODEL: Final[Mapping[str, str]] = {
    "model_name": "Central",
    "release_type": "One release",
    "data_source_type": "Static",
    "access_type": "Non-interactive",
}


# --- the page ---------------------------------------------------------------------------------------------------------


def wide_table(shown: tuple[tuple[str, ...], Rows]) -> str:
    """A table that scrolls by itself where the page is narrow."""
    return f"<div class='wide'>{html_of(*shown)}</div>"


def section(title: str) -> str:
    return f"<h2>{escape(title)}</h2>"


def listing(pairs: Iterable[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in pairs) + "</dl>"


def bullets(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def page(name: str, parts: Iterable[str]) -> str:
    """A page of its own, without scripts and without anything fetched."""
    first = "<meta charset='utf-8'><meta name='viewport' content='width=device-width, initial-scale=1'>"
    head = f"{first}<title>{escape(name)}</title><style>{STYLE}</style>"
    return f"<!doctype html><html lang='en'><head>{head}</head><body>{''.join(parts)}</body></html>\n"
