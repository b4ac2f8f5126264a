"""Policies that several tests start from."""

from collections.abc import Callable
from typing import Any

import pytest

from confide.errors import PolicyError, Problem
from confide.policy import Policy

PEOPLE = """\
confide: 1
source: {person: person.parquet, visit: visit.csv}    # paths relative to this file
budget: {epsilon: 3, delta: 1e-9}
unit: person.person_id
tables:
  person:
    columns:
      person_id: {type: id}
      region: {values: [N, E, S, W]}
      sex:    {values: [F, M]}
      age:    {range: [0, 115]}
      income: {range: [0, 500000], grain: 1}
  visit:
    references: {person_id: person.person_id}
    at_most: {rows: 20, groups: 5}
    rows: private
    columns:
      cost: {range: [0, 10000], grain: 0.01}
  region_name: {public: true}
"""

METADATA = """\
"":
  Census:
    Person:
      max_ids: 1
      rows: 1000
      age:
        type: int
        lower: 0
        upper: 100
      sex:
        type: string
        cardinality: 2
      income:
        type: float
        lower: 0.5
        upper: 500000.25
      height: {type: float, lower: 0, upper: 100}
      married: {type: boolean, nullable: true}
      born: {type: datetime}
      seen: {type: datetime, lower: 2020-01-01, upper: 2024-12-31}
      score: {type: int}
      weight: {type: float}
      person_id:
        type: int
        private_id: True
budget: {epsilon: 2, delta: 1e-8}
source: person.csv
"""


def people() -> dict[str, Any]:
    """The same policy as a dict, fresh each time, to be spoiled."""
    return {
        "confide": 1,
        "source": {"person": "person.parquet", "visit": "visit.csv"},
        "budget": {"epsilon": 3, "delta": 1e-9},
        "unit": "person.person_id",
        "tables": {
            "person": {
                "columns": {
                    "person_id": {"type": "id"},
                    "region": {"values": ["N", "E", "S", "W"]},
                    "sex": {"values": ["F", "M"]},
                    "age": {"range": [0, 115]},
                    "income": {"range": [0, 500000], "grain": 1},
                }
            },
            "visit": {
                "references": {"person_id": "person.person_id"},
                "at_most": {"rows": 20, "groups": 5},
                "rows": "private",
                "columns": {"cost": {"range": [0, 10000], "grain": 0.01}},
            },
            "region_name": {"public": True},
        },
    }


def rows(**columns: Any) -> dict[str, Any]:
    """A policy with unit row and one table of the given columns."""
    return {"budget": {"epsilon": 1}, "unit": "row", "tables": {"t": {"columns": columns}}}


def problems_of(read: Callable[[], Policy]) -> tuple[Problem, ...]:
    """The problems that reading raises; reading must not succeed."""
    with pytest.raises(PolicyError) as caught:
        read()
    return caught.value.problems


def only_problem(read: Callable[[], Policy]) -> Problem:
    found = problems_of(read)
    assert len(found) == 1, [str(problem) for problem in found]
    return found[0]
