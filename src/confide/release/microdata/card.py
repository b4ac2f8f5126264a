"""The data card of a release: what it is, what it protects, how exact it is, and what it cannot be used for.

As YAML in the shape of an entry of OpenDP's Deployments Registry, and as a page under the headings that NIST SP 800-226
asks for. What only the publisher knows is left to say, and says so.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any

from confide.mechanism import NoNoise
from confide.release.answer.data_card import (
    ABOUT,
    MODEL,
    UNKNOWN,
    bullets,
    check_about,
    flavour,
    listing,
    page,
    section,
    slug,
    unit_words,
    wide_table,
)
from confide.release.microdata.marginals import show_marginal, show_marginals
from confide.release.microdata.rendering import MOVED, WATERMARK, marginal_rows, moved_rows, risk_rows
from confide.version import VERSION

if TYPE_CHECKING:
    from confide.release.microdata.arrow import Records
    from confide.release.microdata.microdata import Microdata
    from confide.release.microdata.report import MicrodataReport


def card_facts(made: "Microdata", report: "MicrodataReport", about: Mapping[str, str]) -> dict[str, Any]:
    """The card as data, with the sections and names of a registry entry."""
    check_about(about)
    measured = made.measured
    said = {name: about.get(name, UNKNOWN) for name in ABOUT}
    name = about.get("name", f"Microdata of {measured.table}")
    pure = made.cost.rho is None
    at = "" if pure else f"at δ = {float(measured.delta):.3g} "
    parameters: dict[str, float] = {"epsilon": float(made.cost.epsilon)}
    if made.cost.rho is not None:
        parameters |= {"delta": float(measured.delta), "rho": float(made.cost.rho)}
    return {
        "url_slug": slug(name, "microdata"),
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
            "dp_flavor": flavour(made.cost, measured.neighbours, _domain_words(made), _unprotected(made)),
            "privacy_loss": {
                "privacy_unit": measured.unit,
                "privacy_unit_description": unit_words(measured.unit, measured.neighbours, made.cost),
                "privacy_parameters": parameters,
                "privacy_parameters_description": (
                    f"{made.cost} {at}for this release as a whole; other releases from the same data add to it, and "
                    "the publisher's ledger holds their sum."
                ),
            },
            "model": dict(MODEL),
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
        section("Unit and privacy loss"),
        listing(
            (
                ("Protected", loss["privacy_unit_description"]),
                ("Loss", loss["privacy_parameters_description"]),
                ("Kind of guarantee", f"{facts['dp_flavor']['name']}, central model"),
                ("Not protected", facts["dp_flavor"]["unprotected_quantities"]),
            )
        ),
        section("Algorithms"),
        wide_table(marginal_rows(made)),
        f"<p>{escape(facts['accounting']['post_processing'])} Noise is drawn exactly, on whole numbers.</p>",
        section("Bias and accuracy"),
        "<p>The noisy counts are unbiased; each interval holds by itself with the confidence stated, whatever the data "
        "are. The fitted table is biased, as every table without negative counts must be:</p>",
        bullets(report.lines()),
        wide_table(risk_rows(report)) if report.risks else "",
        wide_table(moved_rows(report)),
        f"<p><small>{escape(MOVED)}</small></p>",
    ]
    if records is not None:
        parts.append(f"<p>{escape(str(records)).replace(chr(10), '<br>')}</p>")
    parts += [
        section("Side channels"),
        "<p>Which columns, classes, marginals and mechanisms there are follows from the policy and from the request, "
        "not from the data. How long the release took to compute is not part of it.</p>",
        section("Data collection"),
        listing(
            (
                ("Curator", product["data_curators"][0]),
                ("How the data were collected", about.get("collection", UNKNOWN)),
                ("Intended use", product["intended_use"]),
                ("What the columns are", facts["dp_flavor"]["data_domain"]),
            )
        ),
        section("Files"),
        listing(
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
    return page(product["name"], parts)


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
