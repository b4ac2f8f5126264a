"""Questions over released rows, and a world to ask them in: every declared group has rows, as databases show groups."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

POLICY: dict[str, Any] = {
    "confide": 1,
    "budget": {"epsilon": 1e6},
    "unit": "person.person_id",
    "tables": {
        "person": {
            "columns": {
                "person_id": {"type": "id"},
                "region": {"values": ["N", "E", "S", "W"]},
                "sex": {"values": ["F", "M"]},
                "age": {"range": [0, 99]},
                "income": {"range": [0, 1000]},
            }
        },
        "visit": {
            "references": {"person_id": "person.person_id"},
            "at_most": {"rows": 4},
            "columns": {
                "cost": {"range": [0, 500]},
                "kind": {"values": ["acute", "check"]},
                "day": {"range": ["2024-01-01", "2024-12-31"]},
            },
        },
        "place": {"public": True},
    },
}


def world(size: int = 900) -> dict[str, pa.Table]:
    random = np.random.default_rng(11)
    visits = random.integers(0, 5, size)
    owners = np.repeat(np.arange(size), visits)
    days = random.integers(0, 366, len(owners))
    return {
        "person": pa.table(
            {
                "person_id": np.arange(size),
                "region": random.choice(list("NESW"), size, p=[0.4, 0.3, 0.2, 0.1]),
                "sex": random.choice(["F", "M"], size, p=[0.55, 0.45]),
                "age": random.integers(0, 100, size),
                "income": random.integers(0, 1001, size),
            }
        ),
        "visit": pa.table(
            {
                "person_id": owners,
                "cost": random.integers(0, 501, len(owners)),
                "kind": random.choice(["acute", "check"], len(owners), p=[0.3, 0.7]),
                "day": [date(2024, 1, 1) + timedelta(days=int(own)) for own in days],
            }
        ),
        "place": pa.table(
            {
                "region": ["N", "N", "E", "S", "X", None],
                "town": ["Nome", "Narvik", "Erfurt", "Siena", "Xanten", "Nowhere"],
                "people": [100, 200, 300, 400, 500, 600],
                "share": [0.25, 0.5, 1.5, 2.0, 2.25, 3.0],
                "founded": [date(1900 + own, 1, 2) for own in range(6)],
            }
        ),
    }


GROUPS = "(SELECT region, COUNT(*) AS n FROM person GROUP BY region)"
BOTH = "(SELECT region, sex, COUNT(*) AS n, SUM(income) AS total, AVG(income) AS mean FROM person GROUP BY region, sex)"
DECADES = "(SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) AS n FROM person GROUP BY decade)"
_TEXTS = Path(__file__).with_name("derived_questions.sql").read_text(encoding="utf-8").splitlines()
EVERY = [line.format(GROUPS=GROUPS, BOTH=BOTH, DECADES=DECADES) for line in _TEXTS if not line.startswith("--")]
