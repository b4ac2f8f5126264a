"""The discretised Adult data, where they are: as codes, as a frame, and with a policy."""

import csv
import gzip
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

FOLDER = "CONFIDE_DATA"


@dataclass(frozen=True)
class Adult:
    names: list[str]
    sizes: tuple[int, ...]
    codes: NDArray[np.int64]

    @property
    def frame(self) -> dict[str, Any]:
        return {"adult": pa.table({name: self.codes[:, place] for place, name in enumerate(self.names)})}

    def policy(self, budget: dict[str, Any]) -> dict[str, Any]:
        columns = {name: {"range": [0, size - 1]} for name, size in zip(self.names, self.sizes, strict=True)}
        tables = {"adult": {"size": len(self.codes), "columns": columns}}
        return {"confide": 1, "budget": budget, "unit": "row", "tables": tables}


def adult() -> Adult | None:
    """None where the data are not."""
    folder = Path(os.environ.get(FOLDER, "data")) / "adult"
    data = folder / "adult_discretized.csv.gz"
    if not data.is_file():
        return None
    sizes: dict[str, int] = json.loads((folder / "adult_discretized-domain.json").read_text())
    with gzip.open(data, "rt") as file:
        reader = csv.reader(file)
        header = next(reader)
        codes = np.array(list(reader), dtype=np.int64)[:, [header.index(name) for name in sizes]]
    return Adult(list(sizes), tuple(sizes.values()), codes)
