"""A made-up country: people, their visits to a doctor, and the names of its regions. Nobody in it exists.

What depends on what, so that there is something to find:
- age: a broad middle, fewer of the old; the centre (C) is younger, the south (S) older;
- education: degrees are more common among those born later, and in the centre;
- job: by education; a few dozen titles are common, and some hundreds of rare ones have one to three holders each;
- income: grows with age until 55, with education and in the centre; log-normal, so a few earn far more than the rest;
- visits: about three a year, more for the old, few people with very many; reason by age, cost by reason.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from confide.privacy.public_randomness import public_generator

Array = NDArray[Any]

REGIONS = ("N", "E", "S", "W", "C")
REGION_NAMES = ("Northmark", "Eastholm", "Southmere", "Westford", "Centra")
SEXES = ("F", "M")
EDUCATIONS = ("none", "school", "degree")
REASONS = ("check-up", "illness", "injury", "chronic")
OLDEST = 105
MOST_VISITS = 12
"""The policy's bound on the visits of one person; a few people have more."""

_SEED = 20_240_101
_FIRST_DAY = np.datetime64("2024-01-01")
_TRADES = ("baker", "builder", "carer", "clerk", "cook", "driver", "farmer", "fitter", "gardener", "painter",
           "porter", "printer", "sailor", "seller", "tailor", "welder")  # fmt: skip
_OFFICES = ("analyst", "architect", "chemist", "editor", "engineer", "judge", "lecturer", "nurse", "physician",
            "planner", "teacher", "translator")  # fmt: skip
_RARE = ("bell founder", "clock mender", "diver", "falconer", "glass blower", "harp maker", "lighthouse keeper",
         "map engraver", "organ tuner", "puppeteer", "stone letterer", "tea taster")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Census:
    """The three tables, as columns of arrays."""

    person: dict[str, Array]
    visit: dict[str, Array]
    region_name: dict[str, Array]

    def write(self, folder: Path) -> None:
        """One Parquet file per table."""
        for name in self.__dataclass_fields__:
            columns = getattr(self, name)
            arrays = {column: pa.array(values, from_pandas=True) for column, values in columns.items()}
            pq.write_table(pa.table(arrays), folder / f"{name}.parquet")


def make_census(people: int) -> Census:
    """The same country for the same number of people, always."""
    random = public_generator(_SEED)
    person = _people(random, people)
    names = {
        "region": np.array(REGIONS, dtype=object),
        "name": np.array(REGION_NAMES, dtype=object),
        "coast": np.array([True, True, True, False, False]),
    }
    return Census(person, _visits(random, person), names)


def _people(random: np.random.Generator, people: int) -> dict[str, Array]:
    region = random.choice(len(REGIONS), people, p=(0.12, 0.18, 0.22, 0.16, 0.32))
    shift = np.array([0, 0, 6, 2, -5])[region]
    age = np.clip(np.rint(105 * random.beta(1.5, 2.2, people) + shift), 0, OLDEST).astype(np.int32)
    adult = age >= 18
    degree = random.random(people) < np.clip(0.52 - 0.005 * age + 0.12 * (region == 4), 0.05, 0.9)
    school = random.random(people) < np.clip(0.97 - 0.003 * age, 0.5, 1)
    education = np.where(adult & degree, 2, np.where(adult & school, 1, 0))
    experience = np.minimum(age, 55) - 18
    level = 9.55 + 0.022 * experience + np.array([-0.25, 0.0, 0.45])[education] + 0.12 * (region == 4)
    income = np.where(adult, np.exp(level + random.normal(0, 0.5, people)), 0)
    return {
        "person_id": random.permutation(people) + 1,
        "region": np.array(REGIONS, dtype=object)[region],
        "sex": np.array(SEXES, dtype=object)[random.integers(0, 2, people)],
        "age": age,
        "education": np.array(EDUCATIONS, dtype=object)[education],
        "income": np.rint(income / 10).astype(np.int64) * 10,
        "job": _jobs(random, education, adult),
    }


def _jobs(random: np.random.Generator, education: Array, adult: Array) -> Array:
    """Common titles by falling shares; then some hundreds of rare ones, each for one to three people."""
    people = len(education)
    jobs = np.full(people, None, dtype=object)
    for level, titles in ((0, _TRADES), (1, _TRADES + _OFFICES[:4]), (2, _OFFICES)):
        shares = 1 / np.arange(1, len(titles) + 1) ** 0.8
        here = np.flatnonzero(adult & (education == level))
        jobs[here] = np.array(titles, dtype=object)[random.choice(len(titles), len(here), p=shares / shares.sum())]
    grown = random.permutation(np.flatnonzero(adult))
    for number in range(min(400, people // 100)):
        holders, grown = np.split(grown, [1 + number % 3])
        jobs[holders] = f"{_RARE[number % len(_RARE)]} no. {number // len(_RARE) + 1}"
    return jobs


def _visits(random: np.random.Generator, person: dict[str, Array]) -> dict[str, Array]:
    age = person["age"]
    rate = random.gamma(3, (1.2 + 0.045 * age) / 3)  # people differ: some hardly ever go, some very often
    who = np.repeat(np.arange(len(age)), random.poisson(rate))
    old = age[who] / OLDEST
    chances = np.stack([0.35 - 0.2 * old, 0.35 - 0.1 * old, 0.2 - 0.1 * old, 0.1 + 0.4 * old]).cumsum(axis=0)
    reason = (random.random(len(who)) >= chances[:-1]).sum(axis=0)
    cost = random.gamma(2, np.array([20, 45, 110, 80])[reason])
    order = random.permutation(len(who))
    return {
        "person_id": person["person_id"][who][order],
        "day": (_FIRST_DAY + random.integers(0, 366, len(who)))[order],
        "reason": np.array(REASONS, dtype=object)[reason][order],
        "cost": np.round(cost, 2)[order],
    }
