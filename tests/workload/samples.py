"""A small public table: its policy, its domain and its rows."""

from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.policy import Policy
from confide.workload import Domain, domain_of

POLICY: dict[str, Any] = {
    "confide": 1,
    "budget": {"epsilon": 1},
    "unit": "row",
    "tables": {
        "t": {
            "columns": {
                "id": {"type": "id"},
                "sex": {"values": ["F", "M"]},
                "ward": {"values": [1, 2, 3], "nulls": True},
                "age": {"range": [0, 115], "bins": 20},
                "income": {"range": [0, 500_000]},
                "day": {"range": [date(2024, 1, 1), date(2024, 1, 4)]},
                "name": {"type": "text"},
            }
        }
    },
}


def table() -> Any:
    return Policy.parse(POLICY).tables["t"]


def domain() -> Domain:
    return domain_of(table())


def rows(sizes: tuple[int, ...], count: int = 300, seed: int = 0) -> NDArray[np.int64]:
    generator = np.random.default_rng(seed)
    columns = [np.minimum(generator.geometric(0.4, count) - 1, size - 1) for size in sizes]
    return np.stack(columns, axis=1).astype(np.int64)
