"""The questions of the demo, from easy to hard, and their true answers.

Only the demo may know the truth: it made the data. A truth is the exact answer on the data as the policy reads them,
clamped and bounded, for that is what an interval promises to hold; what the bounds themselves change is said apart.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from confide.cli.census import EDUCATIONS, MOST_VISITS, REGION_NAMES, REGIONS, SEXES, Array, Census

HIGHEST_INCOME = 150_000
HIGHEST_TOTAL = 2_000

Truth = Mapping[tuple[object, ...], Mapping[str, float]]
"""The true value of every column, by the keys of its row."""


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """One question: what to notice, the SQL, what it may cost, and the truth to compare with."""

    title: str
    lesson: str
    sql: str
    epsilon: str
    truth: Callable[[Census], Truth]
    remark: Callable[[Census], str] = lambda _: ""
    bounds: Mapping[str, tuple[int, int]] | None = None


def _older(census: Census) -> Truth:
    return {(): {"people": int((census.person["age"] >= 65).sum())}}


def _by_education_and_sex(census: Census) -> Truth:
    person = census.person
    return {
        (education, sex): {"people": int(((person["education"] == education) & (person["sex"] == sex)).sum())}
        for education in EDUCATIONS
        for sex in SEXES
    }


def _incomes(census: Census) -> dict[str, Array]:
    person = census.person
    return {
        education: person["income"][(person["age"] >= 18) & (person["education"] == education)]
        for education in EDUCATIONS
    }


def _income_by_education(census: Census) -> Truth:
    clamped = {education: np.minimum(income, HIGHEST_INCOME) for education, income in _incomes(census).items()}
    return {
        (education,): {"average": float(income.mean()), "spread": float(income.std(ddof=1))}
        for education, income in clamped.items()
    }


def _clamping(census: Census) -> str:
    income = _incomes(census)["degree"]
    moved = float(income.mean() - np.minimum(income, HIGHEST_INCOME).mean())
    return (
        f"The policy clamps incomes at {HIGHEST_INCOME:,}. That lowers the average of people with a degree by"
        f" {moved:,.0f}, which no interval shows: bounds are the custodian's choice, and public."
    )


def _visit_counts(census: Census) -> Array:
    return np.bincount(census.visit["person_id"], minlength=len(census.person["age"]) + 1)[census.person["person_id"]]


def _visits_by_region(census: Census) -> Truth:
    bounded = np.minimum(_visit_counts(census), MOST_VISITS)
    names = dict(zip(REGIONS, REGION_NAMES, strict=True))
    return {(names[region],): {"visits": int(bounded[census.person["region"] == region].sum())} for region in REGIONS}


def _bounding(census: Census) -> str:
    counts = _visit_counts(census)
    left_out = float(1 - np.minimum(counts, MOST_VISITS).sum() / counts.sum())
    return (
        f"{(counts > MOST_VISITS).sum():,} people have more than {MOST_VISITS} visits. What is beyond the bound,"
        f" {left_out:.1%} of all visits, is left out, here as well as in the truth beside it."
    )


def _totals(census: Census) -> Array:
    total = np.bincount(census.visit["person_id"], weights=np.rint(census.visit["cost"] * 100)) / 100
    patients = np.unique(census.visit["person_id"])
    totals: Array = np.clip(total[patients], 0, HIGHEST_TOTAL)
    return totals


def _per_patient(census: Census) -> Truth:
    totals = _totals(census)
    return {(): {"average": float(totals.mean()), "percent_over_1000": 100 * float((totals > 1000).mean())}}


def _common_jobs(census: Census) -> Truth:
    person = census.person
    titles, counts = np.unique(person["job"][person["age"] >= 18].astype(str), return_counts=True)
    return {(str(title),): {"people": int(count)} for title, count in zip(titles, counts, strict=True)}


def _hidden_jobs(census: Census) -> str:
    counts = np.array([row["people"] for row in _common_jobs(census).values()])
    return (
        f"The data holds {len(counts):,} titles, {(counts <= 3).sum():,} of them with at most three holders. None of"
        " those appears: a title that only one person has would give that person away."
    )


QUESTIONS = (
    DemoQuestion(
        "A count",
        "Noise hides any one person, and the interval says how much noise: 19 times in 20 it holds the exact answer.",
        "SELECT COUNT(*) AS people FROM person WHERE age >= 65",
        "0.2",
        _older,
    ),
    DemoQuestion(
        "Counts by group",
        "One person is in one group only, so six counts cost as much as one. A declared group is shown even if empty.",
        "SELECT education, sex, COUNT(*) AS people\nFROM person GROUP BY education, sex",
        "0.3",
        _by_education_and_sex,
    ),
    DemoQuestion(
        "An average and a spread",
        "An average is a noisy sum over a noisy count, and its interval accounts for both. ε pays for the whole call.",
        "SELECT education, AVG(income) AS average, STDDEV(income) AS spread\n"
        "FROM person WHERE age >= 18 GROUP BY education",
        "0.5",
        _income_by_education,
        _clamping,
    ),
    DemoQuestion(
        "A join",
        f"A person may have many visits. The policy lets each contribute {MOST_VISITS}, enforced after the join, and"
        " the noise hides all of them.",
        "SELECT r.name, COUNT(*) AS visits FROM visit v\n"
        "JOIN person p ON v.person_id = p.person_id\n"
        "JOIN region_name r ON p.region = r.region\n"
        "GROUP BY r.name ORDER BY visits DESC",
        "0.5",
        _visits_by_region,
        _bounding,
    ),
    DemoQuestion(
        "A total per person, then a ratio",
        "The inner query makes one number of each person's visits, so that a person counts once, whatever they did.",
        "SELECT AVG(total) AS average,\n"
        "  100 * COUNT(*) FILTER (WHERE total > 1000) / COUNT(*) AS percent_over_1000\n"
        "FROM (SELECT person_id, SUM(cost) AS total FROM visit GROUP BY person_id)",
        "0.3",
        _per_patient,
        bounds={"total": (0, HIGHEST_TOTAL)},
    ),
    DemoQuestion(
        "Groups nobody listed",
        "Job titles are free text. A title appears only if enough people share it: a noisy threshold, paid for with δ.",
        "SELECT job, COUNT(*) AS people FROM person WHERE age >= 18\nGROUP BY job ORDER BY people DESC",
        "0.5",
        _common_jobs,
        _hidden_jobs,
    ),
)

REFUSED = "SELECT person_id, income FROM person ORDER BY income DESC LIMIT 10"
