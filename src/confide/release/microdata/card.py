"""The data card of a release: what it is, what it protects, how exact it is, and what it cannot be used for.

As YAML in the shape of an entry of OpenDP's Deployments Registry, and as a page under the headings that NIST SP 800-226
asks for. What only the publisher knows is left to say, and says so.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any, Final

from confide.errors import ParameterError
from confide.mechanism import NoNoise
from confide.privacy.amount import show
from confide.release.answer.rendering import Rows, html_of
from confide.release.microdata.marginals import show_marginal, show_marginals
from confide.release.microdata.rendering import MOVED, WATERMARK, marginal_rows, moved_rows, risk_rows
from confide.version import VERSION

if TYPE_CHECKING:
    from confide.release.microdata.arrow import Records
    from confide.release.microdata.microdata import Microdata
    from confide.release.microdata.report import MicrodataReport

ABOUT: Final = ("name", "curator", "intended_use", "region", "sector", "collection", "contact")
UNKNOWN: Final = "to be said by the publisher"

_STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1c2330; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin-top: 2rem; border-bottom: 1px solid #ccd; }
.wide { overflow-x: auto; } table { border-collapse: collapse; margin: .6rem 0; font-size: .9rem; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #e4e7ee; text-align: left; vertical-align: top; }
th { vertical-align: bottom; } .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th.number { white-space: normal; } dt { font-weight: 600; margin-top: .5rem; } dd { margin-left: 0; }
ul { padding-left: 1.2rem; } .warn { background: #fff3cd; padding: .6rem 1rem; border-radius: .4rem; }
small { color: #5a6376; }
@media print { body { font-size: 11pt; margin: 0; } table { font-size: 8.5pt; } th, td { padding: .15rem .4rem; }
  tr, dt, dd, li { break-inside: avoid; } h2, dt { break-after: avoid; } }
"""


def card_facts(made: "Microdata", report: "MicrodataReport", about: Mapping[str, str]) -> dict[str, Any]:
    """The card as data, with the sections and names of a registry entry."""
    _check_about(about)
    measured = made.measured
    said = {name: about.get(name, UNKNOWN) for name in ABOUT}
    name = about.get("name", f"Microdata of {measured.table}")
    pure = made.cost.rho is None
    at = "" if pure else f"at δ = {float(measured.delta):.3g} "
    parameters: dict[str, float] = {"epsilon": float(made.cost.epsilon)}
    if made.cost.rho is not None:
        parameters |= {"delta": float(measured.delta), "rho": float(made.cost.rho)}
    return {
        "url_slug": "-".join(re.findall(r"[a-z0-9]+", name.lower())) or "microdata",
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "product": {
                "name": name,
                "data_curators": [said["curator"]],
                "intended_use": said["intended_use"],
                "data_product_type": "Microdata and summary statistics",
                "data_product_region": said["region"],
                "data_product_sector": said["sector"],
                "description": (
                    f"Noisy counts of {len(measured.marginals)} marginals ({show_marginals(measured.names)}) of the "
                    f"table {measured.table}, and a table of non-negative weights fitted to them."
                    + (f" {WATERMARK}." if measured.test_noise else "")
                ),
                "publication_date": datetime.now(UTC).date().isoformat(),
            },
            "dp_flavor": {
                "name": "Pure DP" if pure else "Zero-concentrated DP",
                "input_metric": "units replaced" if measured.neighbours == "replace-one" else "units added or removed",
                "bound_on_input_distance": 1,
                "output_measure": "max divergence" if pure else "zero-concentrated divergence",
                "bound_on_output_distance": parameters["epsilon"] if pure else parameters["rho"],
                "data_domain": _domain_words(made),
                "unprotected_quantities": _unprotected(made),
            },
            "privacy_loss": {
                "privacy_unit": measured.unit,
                "privacy_unit_description": _unit_words(made),
                "privacy_parameters": parameters,
                "privacy_parameters_description": (
                    f"{made.cost} {at}for this release as a whole; other releases from the same data add to it, and "
                    "the publisher's ledger holds their sum."
                ),
            },
            "model": {
                "model_name": "Central",
                "release_type": "One release",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": (
                    f"The fit ({made.method}: {report.words(made.method)}), rounding and all intervals use the noisy "
                    "counts only."
                ),
                "composition": (
                    "One charge for all marginals, whose losses add up to it; durable before anything is read."
                ),
            },
            "implementation": {
                "pre_processing_eda_hyperparameter_tuning": (
                    f"Data collection: {said['collection']}. No tuning on the data. "
                    "Columns, classes and bounds are those of the policy; rows in which a column of "
                    "the release is unknown are not counted, unless the policy makes unknown a class."
                ),
                "mechanisms": "".join(
                    f"- {show_marginal(each.marginal)}: {each.mechanism} on {len(each.counts):,} counts, "
                    f"±{each.law.half_width(made.confidence):,} with confidence {made.confidence:.4g}\n"
                    for each in measured.marginals
                ),
                "justification": " ".join(f"{line[:1].upper()}{line[1:]}." for line in report.lines()),
            },
            "resources": {
                "sources": f"- Made by Confide {VERSION}\n- Contact: {said['contact']}\n",
                "registry_authors": [said["curator"]],
            },
        },
    }


def card_html(
    made: "Microdata", report: "MicrodataReport", about: Mapping[str, str], records: "Records | None" = None
) -> str:
    """The card as a page of its own, without scripts and without anything fetched."""
    facts = card_facts(made, report, about)["deployment"]
    product, loss = facts["product"], facts["privacy_loss"]
    parts = [f"<h1>{escape(product['name'])}</h1>", f"<p><small>{escape(product['publication_date'])}</small></p>"]
    if made.measured.test_noise:
        parts.append(f"<p class='warn'><b>{escape(WATERMARK)}</b></p>")
    parts += [
        f"<p>{escape(product['description'])}</p>",
        _section("Unit and privacy loss"),
        _list(
            (
                ("Protected", loss["privacy_unit_description"]),
                ("Loss", loss["privacy_parameters_description"]),
                ("Kind of guarantee", f"{facts['dp_flavor']['name']}, central model"),
                ("Not protected", facts["dp_flavor"]["unprotected_quantities"]),
            )
        ),
        _section("Algorithms"),
        _table(marginal_rows(made)),
        f"<p>{escape(facts['accounting']['post_processing'])} Noise is drawn exactly, on whole numbers.</p>",
        _section("Bias and accuracy"),
        "<p>The noisy counts are unbiased; each interval holds by itself with the confidence stated, whatever the data "
        "are. The fitted table is biased, as every table without negative counts must be:</p>",
        f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in report.lines())}</ul>",
        _table(risk_rows(report)) if report.risks else "",
        _table(moved_rows(report)),
        f"<p><small>{escape(MOVED)}</small></p>",
    ]
    if records is not None:
        parts.append(f"<p>{escape(str(records)).replace(chr(10), '<br>')}</p>")
    parts += [
        _section("Side channels"),
        "<p>Which columns, classes, marginals and mechanisms there are follows from the policy and from the request, "
        "not from the data. How long the release took to compute is not part of it.</p>",
        _section("Data collection"),
        _list(
            (
                ("Curator", product["data_curators"][0]),
                ("How the data were collected", about.get("collection", UNKNOWN)),
                ("Intended use", product["intended_use"]),
                ("What the columns are", facts["dp_flavor"]["data_domain"]),
            )
        ),
        _section("Files"),
        _list(
            (
                (
                    "noisy/*.parquet",
                    "noisy counts of each marginal with the ends of their intervals; use for statistics",
                ),
                ("table.parquet", "the fitted table: combinations of values and their weights"),
                ("records.parquet", "whole records, if they could be made"),
                ("card.yaml", "this card for machines"),
                ("release.json", "laws of the noise and what else it takes to load the release again"),
            )
        ),
        f"<p><small>Made by Confide {VERSION}. Contact: {escape(about.get('contact', UNKNOWN))}.</small></p>",
    ]
    title = escape(product["name"])
    page = "<meta charset='utf-8'><meta name='viewport' content='width=device-width, initial-scale=1'>"
    head = f"{page}<title>{title}</title><style>{_STYLE}</style>"
    return f"<!doctype html><html lang='en'><head>{head}</head><body>{''.join(parts)}</body></html>\n"


def _check_about(about: Mapping[str, str]) -> None:
    unknown = sorted(set(about) - set(ABOUT))
    if unknown:
        raise ParameterError(f"about has {', '.join(unknown)}; a card has {', '.join(ABOUT)}")
    wrong = [name for name, value in about.items() if not isinstance(value, str)]
    if wrong:
        raise ParameterError(f"about[{wrong[0]!r}] must be a text")


def _domain_words(made: "Microdata") -> str:
    parts = []
    for attribute in made.measured.attributes:
        values = ["NULL" if value is None else str(value) for value in attribute.values]
        shown = ", ".join(values) if len(values) <= 12 else f"{values[0]} ... {values[-1]} ({len(values):,} classes)"
        wide = f", each {attribute.width} wide" if attribute.width not in ("", "1") else ""
        parts.append(f"{attribute.name}: {shown}{wide}")
    return "; ".join(parts)


def _unprotected(made: "Microdata") -> str:
    public = made.problem.public
    exact = [show_marginal(each.marginal) for each in made.measured.marginals if isinstance(each.law, NoNoise)]
    stated = len(public.totals) - len(exact)
    found = []
    if exact:
        found.append(f"{', '.join(exact)}, which the policy makes public")
    if stated:
        found.append(f"{stated} stated public total{'s' * (stated > 1)}, taken as exact")
    if public.zeros is not None:
        found.append(f"{int(public.zeros.sum()):,} cells stated to be impossible")
    return "; ".join(found) or "none"


def _unit_words(made: "Microdata") -> str:
    measured = made.measured
    what = "one row" if measured.unit == "row" else f"whoever {measured.unit} stands for, with all their rows"
    change = "replacing" if measured.neighbours == "replace-one" else "adding or removing"
    amount = f"ε = {show(made.cost.epsilon)}" if made.cost.rho is None else f"ρ = {float(made.cost.rho):.4g}"
    return f"{what}: {change} one changes the probability of any release by a factor bounded through {amount}"


def _table(shown: tuple[tuple[str, ...], Rows]) -> str:
    """A table that scrolls by itself where the page is narrow."""
    return f"<div class='wide'>{html_of(*shown)}</div>"


def _section(title: str) -> str:
    return f"<h2>{escape(title)}</h2>"


def _list(pairs: tuple[tuple[str, str], ...]) -> str:
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in pairs) + "</dl>"
