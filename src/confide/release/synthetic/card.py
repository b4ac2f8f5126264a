"""The data card of synthetic data, and the page that shows it with the report.

As YAML in the shape of an entry of OpenDP's Deployments Registry, and as a page under the headings that NIST SP 800-226
asks for. What only the publisher knows is left to say, and says so.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from html import escape
from typing import Any

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
from confide.release.answer.picture import converts, drawing
from confide.release.synthetic.rendering import PREDICTED, WATERMARK, kept_rows, left_out, predicted_rows
from confide.release.synthetic.report import SyntheticReport
from confide.version import VERSION


def card_facts(report: SyntheticReport, about: Mapping[str, str]) -> dict[str, Any]:
    """The card as data, with the sections and names of a registry entry."""
    check_about(about)
    made = report.made
    said = {name: about.get(name, UNKNOWN) for name in ABOUT}
    name = about.get("name", f"Synthetic records of {made.table.name}")
    parameters: dict[str, float] = {"epsilon": float(made.cost.epsilon)}
    if made.cost.rho is not None:
        parameters["rho"] = float(made.cost.rho)
    description = f"Made-up records of the table {made.table.name}, about {len(made):,}, fitted to {made.workload}."
    return {
        "url_slug": slug(name, "synthetic-records"),
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "product": {
                "name": name,
                "data_curators": [said["curator"]],
                "intended_use": said["intended_use"],
                "data_product_type": "Synthetic data",
                "data_product_region": said["region"],
                "data_product_sector": said["sector"],
                "description": description + (f" {WATERMARK}." if made.test_noise else ""),
                "publication_date": datetime.now(UTC).date().isoformat(),
            },
            "dp_flavor": flavour(made.cost, made.neighbours, _domain_words(report), "none"),
            "privacy_loss": {
                "privacy_unit": made.unit,
                "privacy_unit_description": unit_words(made.unit, made.neighbours, made.cost),
                "privacy_parameters": parameters,
                "privacy_parameters_description": (
                    f"{made.cost} for this release as a whole; other releases from the same data add to it, and the "
                    "publisher's ledger holds their sum."
                ),
            },
            "model": dict(MODEL),
            "accounting": {
                "post_processing": "The fit, the records and all intervals use what was measured with noise only.",
                "composition": "One charge for each step, whose losses add up to it; durable before anything is read.",
            },
            "implementation": {
                "pre_processing_eda_hyperparameter_tuning": (
                    f"Data collection: {said['collection']}. No tuning on the data. Columns, bins and bounds are those "
                    "of the policy and the request; rows in which a column of the release is unknown are not counted."
                ),
                "mechanisms": f"{made.method}; {len(report.marginals):,} marginals are known with exact integer noise",
                "justification": " ".join(f"{line[:1].upper()}{line[1:]}." for line in report.lines()),
            },
            "resources": {
                "sources": f"- Made by Confide {VERSION}\n- Contact: {said['contact']}\n",
                "registry_authors": [said["curator"]],
            },
        },
    }


def card_page(report: SyntheticReport, about: Mapping[str, str]) -> str:
    """Report and card as a page of its own, without scripts and without anything fetched."""
    facts = card_facts(report, about)["deployment"]
    product, loss = facts["product"], facts["privacy_loss"]
    parts = [f"<h1>{escape(product['name'])}</h1>", f"<p><small>{escape(product['publication_date'])}</small></p>"]
    if report.made.test_noise:
        parts.append(f"<p class='warn'><b>{escape(WATERMARK)}</b></p>")
    parts += [
        f"<p>{escape(product['description'])}</p>",
        section("Unit and privacy loss"),
        listing(
            (
                ("Protected", loss["privacy_unit_description"]),
                ("Loss", loss["privacy_parameters_description"]),
                ("Kind of guarantee", f"{facts['dp_flavor']['name']}, central model"),
            )
        ),
        section("What the records are good for"),
        bullets(report.lines()),
    ]
    drawn = _drawing(report)
    if drawn is not None:
        parts += [section("Which pairs of columns are backed"), f"<div class='wide'>{drawn}</div>"]
    if report.marginals:
        parts += [section("What was measured"), wide_table(kept_rows(report)), bullets(left_out(report))]
    if report.predictions:
        parts += [section("What a learner finds"), wide_table(predicted_rows(report)), f"<p>{escape(PREDICTED)}</p>"]
    parts += [section("How records come to their values"), listing(tuple(_records(report)))]
    parts += [
        section("Algorithms"),
        f"<p>{escape(facts['implementation']['mechanisms'])}. {escape(facts['accounting']['post_processing'])}</p>",
        section("Data collection"),
        listing(
            (
                ("Curator", product["data_curators"][0]),
                ("How the data were collected", about.get("collection", UNKNOWN)),
                ("Intended use", product["intended_use"]),
                ("What the columns are", facts["dp_flavor"]["data_domain"]),
            )
        ),
        f"<p><small>Made by Confide {VERSION}. Contact: {escape(about.get('contact', UNKNOWN))}.</small></p>",
    ]
    return page(product["name"], parts)


def _records(report: SyntheticReport) -> Iterator[tuple[str, str]]:
    """The columns that records have, and those that they have not."""
    yield from report.made.drawn.items()
    for name, why in report.made.left_out.items():
        yield name, f"left out: {why}"


def _drawing(report: SyntheticReport) -> str | None:
    """The map of pairs as a drawing inside the page; None where what draws it is not installed."""
    return drawing(report.plot()) if converts() and len(report.made.domain) > 1 else None


def _domain_words(report: SyntheticReport) -> str:
    made = report.made
    parts = []
    for place, own in enumerate(made.domain.attributes):
        labels = [own.label(at) for at in range(min(own.size, 13))]
        shown = (
            ", ".join(labels) if own.size <= 12 else f"{labels[0]} ... {own.label(own.size - 1)} ({own.size:,} places)"
        )
        parts.append(f"{made.domain.names[place]}: {shown}")
    return "; ".join(parts)
