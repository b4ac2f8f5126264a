"""The made-up country: always the same, and with what it says depends on what."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from confide.cli.census import EDUCATIONS, MOST_VISITS, REASONS, REGIONS, SEXES, Census, make_census


@pytest.fixture(scope="module")
def census() -> Census:
    return make_census(20_000)


def test_it_is_the_same_country_every_time(census: Census) -> None:
    again = make_census(20_000)
    for table in ("person", "visit", "region_name"):
        first, second = getattr(census, table), getattr(again, table)
        assert all(np.array_equal(first[name], second[name]) for name in first)


def test_values_are_within_what_the_policy_says(census: Census) -> None:
    person, visit = census.person, census.visit
    assert sorted(person["person_id"]) == list(range(1, 20_001))
    assert (person["age"].min(), person["age"].max()) >= (0, 90)
    assert person["age"].max() <= 105
    for column, values in (("region", REGIONS), ("sex", SEXES), ("education", EDUCATIONS)):
        assert set(person[column]) == set(values)
    assert set(visit["reason"]) == set(REASONS)
    assert set(visit["person_id"]) <= set(person["person_id"])
    assert np.datetime64("2024-01-01") <= visit["day"].min() <= visit["day"].max() <= np.datetime64("2024-12-31")
    assert 0 <= visit["cost"].min() <= visit["cost"].max() <= 2_000


def test_there_is_something_to_find(census: Census) -> None:
    person = census.person
    adults = person["age"] >= 18
    income = {level: person["income"][adults & (person["education"] == level)].mean() for level in EDUCATIONS}
    assert income["none"] < income["school"] < income["degree"]
    age = {region: person["age"][person["region"] == region].mean() for region in REGIONS}
    assert age["C"] < age["N"] < age["S"]
    visits = np.bincount(census.visit["person_id"], minlength=20_001)[person["person_id"]]
    assert visits[person["age"] < 30].mean() < visits[person["age"] > 70].mean()
    assert 2.5 < visits.mean() < 4
    assert 0 < (visits > MOST_VISITS).mean() < 0.03  # the bound is felt, and not by many
    assert person["income"][~adults].max() == 0
    _, holders = np.unique(person["job"][adults].astype(str), return_counts=True)
    assert (holders <= 3).sum() > 100
    assert (holders > 100).sum() > 15


def test_it_is_written_as_parquet(census: Census, tmp_path: Path) -> None:
    census.write(tmp_path)
    assert pq.read_metadata(tmp_path / "person.parquet").num_rows == 20_000
    schema = pq.read_schema(tmp_path / "visit.parquet")
    assert [str(kind) for kind in schema.types] == ["int64", "date32[day]", "string", "double"]
    assert pq.read_table(tmp_path / "person.parquet")["job"].null_count > 0
