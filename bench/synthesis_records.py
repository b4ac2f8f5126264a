"""Records inside of bins: hours of work, age, years of school and losses of Adult in bins, three runs with test noise.

Beside the data: the mean of the hours and the share of records at exactly 40; how far the values of each column are
from those of the data (total variation); and how far all pairs of columns in bins are, which pay a tenth of the cost.
"""

import csv
import gzip
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import confide
import confide.testing
from bench._adult import FOLDER
from confide.workload import places_of, tables_of

BINS = {"age": 10, "hours-per-week": 10, "education-num": 4, "capital-loss": 500}
RANGES = {"age": (17, 90), "hours-per-week": (1, 99), "education-num": (1, 16), "capital-loss": (0, 4_095)}
LISTED = ("workclass", "marital-status", "relationship", "sex", "income")
RUNS = 3


def main() -> None:
    place = Path(os.environ.get(FOLDER, "data")) / "adult" / "adult_raw.csv.gz"
    if not place.is_file():
        print("skipped: set CONFIDE_DATA to a folder that holds adult/adult_raw.csv.gz")
        return
    with gzip.open(place, "rt") as file:
        rows = list(csv.DictReader(file, skipinitialspace=True))
    found: dict[str, Any] = {
        name: np.clip([int(row[name]) for row in rows], low, high) for name, (low, high) in RANGES.items()
    }
    frame = pl.DataFrame(found | {name: [row[name] for row in rows] for name in LISTED})
    hours = frame["hours-per-week"]
    print(f"the data: mean of the hours {hours.mean():.1f}, at 40 {(hours == 40).mean():.1%}", flush=True)
    for epsilon in (0.1, 1, 10):
        for inside in ("even", "measured"):
            _show(epsilon, inside, np.array([_run(frame, epsilon, inside, run) for run in range(RUNS)]))


def _run(frame: pl.DataFrame, epsilon: float, inside: str, seed: int) -> list[float]:
    columns = {name: {"range": list(RANGES[name]), "bins": BINS[name]} for name in RANGES}
    listed = {name: {"values": sorted(frame[name].unique().to_list())} for name in LISTED}
    tables = {"adult": {"size": len(frame), "columns": columns | listed}}
    policy = {"confide": 1, "budget": {"epsilon": 10, "delta": 1e-9}, "unit": "row", "tables": tables}
    with confide.testing.open(policy, frame, seed=seed) as session:
        start = time.perf_counter()
        twin = session.synthesize(confide.marginals(2), epsilon, inside=inside)
        seconds = time.perf_counter() - start
    drawn = pl.from_arrow(twin.to_arrow())
    assert isinstance(drawn, pl.DataFrame)
    hours = drawn["hours-per-week"]
    away = [_variation(frame[name].to_numpy(), drawn[name].to_numpy()) for name in BINS]
    whole = confide.marginals(2).bound(twin.domain)
    exact = tables_of(places_of(frame, twin.domain), twin.domain.sizes, whole.sets)
    pairs = [
        np.abs(
            exact.marginal(own, 0, exact.sizes[own[0]]) / len(frame) - twin.model.marginal(own, 0, exact.sizes[own[0]])
        )
        for own in whole.sets
    ]
    return [
        float(hours.mean() or 0),
        float((hours == 40).mean() or 0),
        *away,
        float(np.mean([p.sum() / 2 for p in pairs])),
        seconds,
    ]


def _variation(data: Any, drawn: Any) -> float:
    size = int(max(data.max(), drawn.max())) + 1
    one, two = (np.bincount(values, minlength=size) / len(values) for values in (data, drawn))
    return float(np.abs(one - two).sum() / 2)


def _show(epsilon: float, inside: str, results: Any) -> None:
    mean = results.mean(axis=0)
    away = ", ".join(f"{name} {value:.3f}" for name, value in zip(BINS, mean[2:-2], strict=True))
    print(
        f"ε = {epsilon:<4} {inside:<9} mean {mean[0]:.1f}, at 40 {mean[1]:.1%}; off by {away}; pairs of bins "
        f"{mean[-2]:.4f}; {mean[-1]:.1f} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
