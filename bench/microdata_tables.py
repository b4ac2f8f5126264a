"""Tables 1 and 2 of "An Uncertainty Principle is a Price of Privacy-Preserving Microdata" (Abowd et al. 2021), again.

Eight of their data sets (`Level00-2d` and seven areas of the American Community Survey), total + both one-way
marginals + all cells, one noise for all methods of a run, 1,000 runs; Laplace noise at ε = 0.5, as in the paper's
tables, and Gaussian noise at ρ = 0.125. Squared errors with their standard errors, beside the published figures.

Then all 23 tables that are here, those of one attribute with their total and cells, and made-up ones of other kinds,
at ε = 1, 0.5 and 0.1 and at ρ = 0.5, 0.125 and 0.005: what the automatic fit has of its goals.

The noise is numpy's: the data are public, and so was the paper's. Run as `python -m bench.microdata_tables [RUNS]
[RUNS ON ALL TABLES]`; no runs, no such part.
"""

import math
import multiprocessing
import multiprocessing.pool
import os
import sys
import time
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from confide.fit import TOTAL, CellDomain, FitProblem, Marginal, MeasuredGroup, fit
from confide.mechanism import DiscreteGaussian, DiscreteLaplace

CENSUS = Path(__file__).resolve().parents[2] / "shared" / "data" / "census" / "benchmark.npz"
METHODS = ("ols", "nnls", "maxfit", "sequential", "reweighted", "pinned", "adaptive")
AS_PUBLISHED = METHODS[:5]
JUDGED = ("ols", "nnls", "reweighted")  # of the others the paper kept only the runs in which its solver succeeded
LAPLACE, GAUSSIAN = "ε = 1/2", "ρ = 1/8"
PUBLISHED_LAWS = (LAPLACE, GAUSSIAN)
ALL_LAWS = ("ε = 1", LAPLACE, "ε = 1/10", "ρ = 1/2", GAUSSIAN, "ρ = 1/200")
DATA = {
    "Level00_2d": "Level00-2d",
    "ST_01_PUMA_01301": "PUMA0101301",
    "ST_08_PUMA_00803": "PUMA0800803",
    "ST_13_PUMA_04600": "PUMA1304600",
    "ST_17_PUMA_03529": "PUMA1703529",
    "ST_17_PUMA_03531": "PUMA1703531",
    "ST_19_PUMA_01700": "PUMA1901700",
    "ST_24_PUMA_01004": "PUMA2401004",
}
# For each published method: sum (Table 1), cells in total and the worst cell (Table 2).
PUBLISHED_TEXT = """
Level00_2d       101.3 10516.5 124.0  461.9  344.2 147.4  533.9  443.7 173.1  149.2  437.3 283.6  108.5  159.2  78.4
ST_01_PUMA_01301 107.2 23906.2 142.9  547.2  809.0 135.6  500.3  910.7 144.6  106.7  782.9 179.7  112.5  731.3 209.8
ST_08_PUMA_00803 107.2 23906.2 142.9  446.1 1179.8 107.5  571.7 1235.3 125.4  120.3 1171.7 189.8  107.2 1123.8 141.9
ST_13_PUMA_04600 107.2 23906.2 142.9  408.1 1313.0 111.9  426.3 1385.5 142.3  120.8 1049.1 126.3  109.8 1264.4 136.0
ST_17_PUMA_03529 107.2 23906.2 142.9  435.3 1243.8 105.3  426.3 1257.2  96.7  134.9 1019.1 114.3  110.9 1285.7 160.5
ST_17_PUMA_03531 107.2 23906.2 142.9  584.0  562.2  94.9  677.4  599.0  72.1  111.4  429.9 112.9  108.1  409.8  78.8
ST_19_PUMA_01700 107.2 23906.2 142.9  395.1 1516.1 115.9  443.6 1665.9 129.7  119.1 1312.1 156.9  110.4 1617.1 205.0
ST_24_PUMA_01004 107.2 23906.2 142.9  369.3 1954.4 130.0  329.0 1971.8 147.8  109.6 1983.4 311.3  107.5 1760.1 168.9
"""
PUBLISHED = {
    name: tuple(tuple(map(float, figures[place : place + 3])) for place in range(0, 15, 3))
    for name, *figures in map(str.split, PUBLISHED_TEXT.strip().splitlines())
}
CHUNK = 50
SEED = 20211207
GOALS = (1.05, 1.02, 1.15)  # sum / OLS, cells / the better of NNLS and ReWeight, worst cell / NNLS


@dataclass(frozen=True, slots=True)
class Part:
    """Some runs of one data set: squared errors of each run, and their sums over the runs for each cell."""

    name: str
    law: str
    runs: dict[str, np.ndarray]  # columns: sum, marginals, cells
    squares: dict[str, np.ndarray]
    fourths: dict[str, np.ndarray]
    seconds: dict[str, float]
    failed: dict[str, int]


def law_of(privacy: str, groups: int) -> DiscreteLaplace | DiscreteGaussian:
    """The noise of each count, where as many groups of disjoint counts share ε or ρ evenly."""
    kind, amount = privacy.split(" = ")
    if kind == "ε":
        return DiscreteLaplace(groups / Fraction(amount))
    return DiscreteGaussian(groups / (2 * Fraction(amount)))


def run_part(task: tuple[str, np.ndarray, str, tuple[str, ...], int, int]) -> Part:
    """A chunk of runs. Run i has the same noise for every method, and for every data set of the same shape."""
    name, truth, privacy, methods, first, count = task
    attributes = ("race", "origin")[: truth.ndim]
    domain = CellDomain(attributes, truth.shape)
    groups = (TOTAL, *(Marginal((each,)) for each in attributes if truth.ndim > 1), Marginal(attributes))
    law = law_of(privacy, len(groups))
    exact = [group.answer(domain, truth.ravel()) for group in groups]
    problem = FitProblem(
        domain, tuple(MeasuredGroup(group, answers, law) for group, answers in zip(groups, exact, strict=True))
    )
    runs = {method: np.zeros((count, len(groups))) for method in methods}
    squares = {method: np.zeros(domain.cells) for method in methods}
    fourths = {method: np.zeros(domain.cells) for method in methods}
    seconds, failed = dict.fromkeys(methods, 0.0), dict.fromkeys(methods, 0)
    for run in range(count):
        generator = np.random.default_rng([SEED, first + run])
        noisy = [answers + _noise(generator, law, len(answers)) for answers in exact]
        measured = problem.again(noisy)
        for method in methods:
            start = time.process_time()
            found = fit(measured, method)  # type: ignore[arg-type]
            seconds[method] += time.process_time() - start
            certificate = found.certificate
            bad = certificate.distance > 0.01 or certificate.violation > 1e-4
            failed[method] += bad or bool((method != "ols") and (found.cells < 0).any())
            off = found.cells - truth.ravel()
            errors = [group.answer(domain, off) for group in groups]
            runs[method][run] = [float(each @ each) for each in errors]
            squares[method] += off**2
            fourths[method] += off**4
    return Part(name, privacy, runs, squares, fourths, seconds, failed)


def _noise(generator: np.random.Generator, law: DiscreteLaplace | DiscreteGaussian, count: int) -> np.ndarray:
    if isinstance(law, DiscreteLaplace):
        return generator.laplace(0, float(law.scale), count)
    return generator.normal(0, math.sqrt(law.variance), count)


@dataclass(frozen=True, slots=True)
class Row:
    """Mean squared errors and their standard errors: sum, marginals, cells in total, worst cell."""

    means: tuple[float, ...]
    errors: tuple[float, ...]


def summarise(parts: list[Part], method: str) -> Row:
    runs = np.concatenate([part.runs[method] for part in parts])
    count = len(runs)
    squares = sum(part.squares[method] for part in parts) / count
    fourths = sum(part.fourths[method] for part in parts) / count
    worst = int(np.argmax(squares))
    spread = math.sqrt(max(fourths[worst] - squares[worst] ** 2, 0) / count)
    deviations = runs.std(axis=0, ddof=1) / math.sqrt(count)
    return Row((*runs.mean(axis=0), float(squares[worst])), (*deviations, spread))


def ratio(parts: list[Part], method: str, other: str, column: int) -> tuple[float, float]:
    """The ratio of two means over the same runs, and its standard error."""
    first = np.concatenate([part.runs[method][:, column] for part in parts])
    second = np.concatenate([part.runs[other][:, column] for part in parts])
    value = first.mean() / second.mean()
    return value, float((first - value * second).std(ddof=1) / second.mean() / math.sqrt(len(first)))


def print_table(kind: str, parts: dict[str, list[Part]]) -> bool:
    """All figures of one noise; says whether the judged ones are within three standard errors of the published."""
    agree = True
    print(f"\n{kind}: squared errors, ± standard error" + ("; the published figure below" if kind == LAPLACE else ""))
    print(f"{'':14}{'':12}{'sum':>18}{'marginal 1':>18}{'marginal 2':>18}{'cells':>18}{'worst cell':>18}   failed runs")
    for name, label in DATA.items():
        for method in METHODS:
            row = summarise(parts[name], method)
            figures = "".join(
                f"{mean:>10.1f} ±{error:<6.1f}" for mean, error in zip(row.means, row.errors, strict=True)
            )
            failed = sum(part.failed[method] for part in parts[name])
            print(f"{label if method == 'ols' else '':14}{method:12}{figures}   {failed}")
            if kind != LAPLACE or method not in AS_PUBLISHED:
                continue
            published = PUBLISHED[name][AS_PUBLISHED.index(method)]
            marks = []
            for figure, column in zip(published, (0, 3, 4), strict=True):
                apart = (row.means[column] - figure) / (row.errors[column] * math.sqrt(2))  # both are from 1,000 runs
                agree &= abs(apart) <= 3 or method not in JUDGED
                marks.append(f"{figure:>10.1f} ({apart:+.1f})")
            print(f"{'':14}{'':12}{marks[0]:>18}{'':36}{marks[1]:>18}{marks[2]:>18}")
    return agree


def print_goals(parts: dict[str, list[Part]]) -> int:
    """What the automatic fit is for: sum <= 1.05 × OLS, cells <= 1.02 × the better published, worst <= 1.15 × NNLS.

    Says how many of the tables it has all three on.
    """
    print("\nadaptive against the goals (± standard error of the ratio over the same runs); then cells in total")
    print(f"{'':18}{'sum / OLS':>16}{'cells / better':>18}{'worst / NNLS':>16}{'NNLS':>10}{'ReWeight':>10}{'ours':>10}")
    good = 0
    for name, found in parts.items():
        rows = {method: summarise(found, method) for method in (*JUDGED, "adaptive")}
        better = min(("nnls", "reweighted"), key=lambda method: rows[method].means[-2])
        total, cells = ratio(found, "adaptive", "ols", 0), ratio(found, "adaptive", better, -1)
        worst = rows["adaptive"].means[-1] / rows["nnls"].means[-1]
        missed = [
            goal
            for goal, value, most in zip(("sum", "cells", "worst"), (total[0], cells[0], worst), GOALS, strict=True)
            if value > most
        ]
        good += not missed
        figures = "".join(f"{rows[method].means[-2]:>10,.0f}" for method in ("nnls", "reweighted", "adaptive"))
        print(
            f"{DATA.get(name, name):18}{total[0]:>9.3f} ±{total[1]:.3f}{cells[0]:>11.3f} ±{cells[1]:.3f}{worst:>16.3f}"
            f"{figures}   {'' if not missed else 'misses ' + ', '.join(missed)}",
            flush=True,
        )
    return good


def made_up() -> dict[str, np.ndarray]:
    """Tables of other kinds than those of the paper, for which nothing was set."""
    tables = {}
    for seed in range(3):  # areas: skewed marginals, and cells that depend on both
        made = np.random.default_rng([seed, 1])
        shares = np.outer(made.dirichlet(np.full(9, 0.25)), made.dirichlet(np.full(24, 0.15)))
        shares *= made.gamma(0.5, 2, shares.shape)
        tables[f"area {seed + 1}"] = made.multinomial(1_500, (shares / shares.sum()).ravel()).reshape(shares.shape)
    made = np.random.default_rng(2)
    ranks = made.permutation(1 / np.arange(1, 151) ** 1.3)
    tables["ranks, 500"] = made.multinomial(500, ranks / ranks.sum())
    tables["ranks, 20,000"] = made.multinomial(20_000, ranks / ranks.sum())
    tables["around 4"] = made.poisson(4, 80)
    tables["a bell"] = np.rint(100 * np.exp(-(((np.arange(60) - 30) / 8) ** 2) / 2))
    tables["heavy tails"] = np.rint(np.exp(made.normal(1, 1.5, (12, 15))))
    tables["up to 40"] = made.integers(0, 40, (8, 20))
    lone = np.zeros(225)
    lone[made.choice(225, 12, replace=False)] = made.integers(5, 60, 12)
    tables["twelve alone"] = lone.reshape(15, 15)
    return {name: table.astype(np.float64) for name, table in tables.items()}


def measure(
    pool: multiprocessing.pool.Pool, truths: dict[str, np.ndarray], privacy: str, methods: tuple[str, ...], count: int
) -> dict[str, list[Part]]:
    tasks = [
        (name, truth, privacy, methods, first, min(CHUNK, count - first))
        for name, truth in truths.items()
        for first in range(0, count, CHUNK)
    ]
    found = pool.map(run_part, tasks, chunksize=1)
    return {name: [part for part in found if part.name == name] for name in truths}


def as_published(pool: multiprocessing.pool.Pool, truths: dict[str, np.ndarray], count: int) -> None:
    truths = {name: truths[name] for name in DATA}
    for kind in PUBLISHED_LAWS:
        start = time.perf_counter()
        parts = measure(pool, truths, kind, METHODS, count)
        elapsed = time.perf_counter() - start
        found = [part for each in parts.values() for part in each]
        agree = print_table(kind, parts)
        seconds = {method: sum(part.seconds[method] for part in found) for method in METHODS}
        six = sum(seconds[method] for method in METHODS if method != "adaptive")
        failed = sum(sum(part.failed.values()) for part in found)
        print(
            f"\n{len(DATA)} data sets × {count} runs × {len(METHODS)} methods in {elapsed:.0f} s on two processes; "
            f"processor time {six:.0f} s for the six methods without adaptive ({six / 2:.0f} s on each core; "
            f"bar: 360 s), {seconds['adaptive']:.0f} s for adaptive; failed runs: {failed}"
        )
        print("milliseconds a fit: " + ", ".join(f"{m} {1e3 * s / len(DATA) / count:.2f}" for m, s in seconds.items()))
        if kind == LAPLACE:
            print(f"OLS, NNLS and ReWeight within three standard errors of every published figure: {_said(agree)}")
        print(f"goals of the automatic fit reached on {print_goals(parts)} of {len(parts)}", flush=True)


def on_all(pool: multiprocessing.pool.Pool, truths: dict[str, np.ndarray], count: int) -> None:
    for privacy in ALL_LAWS:
        parts = measure(pool, truths, privacy, (*JUDGED, "adaptive"), count)
        print(f"\n{privacy}, {count} runs")
        good = print_goals(parts)
        failed = sum(sum(part.failed.values()) for each in parts.values() for part in each)
        print(f"goals of the automatic fit reached on {good} of {len(parts)}; failed runs: {failed}", flush=True)


def _said(yes: bool) -> str:
    return "yes" if yes else "NO"


def main() -> None:
    if not CENSUS.exists():
        print(f"the census tables are not here (looked for {CENSUS.name} in the shared data folder beside the project)")
        return
    numbers = [int(text) for text in sys.argv[1:] if text.isdigit()]
    published, everywhere = (numbers + [1000, 50][len(numbers) :])[:2]
    os.environ["OMP_NUM_THREADS"] = "1"  # for the workers: two processes, one thread each
    with np.load(CENSUS) as tables:
        truths = {name: tables[name].astype(np.float64) for name in tables.files}
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        if published:
            as_published(pool, truths, published)
        if everywhere:
            on_all(pool, truths | made_up(), everywhere)


if __name__ == "__main__":
    main()
