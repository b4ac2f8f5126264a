"""A small made-up world: people, their visits, and public names of regions."""

from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl

PURE: dict[str, Any] = {"epsilon": 100}
APPROXIMATE: dict[str, Any] = {"epsilon": 100, "delta": 1e-9}


def policy(budget: dict[str, Any] = PURE, **more: Any) -> dict[str, Any]:
    """One key unit, references, a public table."""
    return {
        "confide": 1,
        "budget": budget,
        "unit": "person.person_id",
        "tables": {
            "person": {
                "size": 2_000,
                "columns": {
                    "person_id": {"type": "id"},
                    "region": {"values": ["N", "E", "S", "W"]},
                    "sex": {"values": ["F", "M"]},
                    "age": {"range": [0, 115]},
                    "income": {"range": [0, 500_000]},
                    "town": {"type": "text"},
                    "born": {"range": [date(1900, 1, 1), date(2024, 12, 31)]},
                },
            },
            "visit": {
                "references": {"person_id": "person.person_id"},
                "at_most": {"rows": 5, "groups": 2},
                "columns": {
                    "person_id": {"type": "id"},
                    "ward": {"values": [1, 2, 3]},
                    "cost": {"range": [0, 1_000], "grain": 0.01},
                },
            },
            "region_name": {"public": True},
        },
        **more,
    }


def row_policy(budget: dict[str, Any] = PURE, rows: str = "private", **more: Any) -> dict[str, Any]:
    """One table whose rows are the units."""
    columns = {"g": {"values": ["a", "b", "c"]}, "x": {"range": [-10, 30]}, "y": {"range": [0, 1], "grain": 0.001}}
    table = {"rows": rows, "size": 1_000, "columns": columns}
    return {"confide": 1, "budget": budget, "unit": "row", "tables": {"t": table}, **more}


def frames(people: int = 2_000, seed: int = 7) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    regions = random.choice(["N", "E", "S", "W"], people, p=[0.4, 0.3, 0.2, 0.1])
    age = random.integers(0, 100, people)
    visits = random.poisson(1.5, people)
    owners = np.repeat(np.arange(people), visits)
    return {
        "person": pl.DataFrame(
            {
                "person_id": np.arange(people),
                "region": regions,
                "sex": random.choice(["F", "M"], people),
                "age": age,
                "income": random.lognormal(10.3, 0.6, people).round(),
                "town": random.choice(["Alba", "Bern", "Como"], people),
                "born": [date(2024, 1, 1) - timedelta(days=365 * int(a)) for a in age],
            }
        ),
        "visit": pl.DataFrame(
            {
                "person_id": owners,
                "ward": random.integers(1, 4, len(owners)),
                "cost": random.exponential(120, len(owners)).round(2),
            }
        ),
        "region_name": pl.DataFrame({"region": ["N", "E", "S", "W"], "title": ["North", "East", "South", "West"]}),
    }


def rows_frame(count: int = 1_000, seed: int = 3) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {
        "t": pl.DataFrame(
            {
                "g": random.choice(["a", "b"], count),
                "x": random.integers(-10, 31, count),
                "y": random.random(count),
            }
        )
    }
