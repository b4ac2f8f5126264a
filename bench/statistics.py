"""Medians and means with intervals on Adult's fnlwgt, beside the figures of the confidence-intervals paper.

ε = 1, confidence 0.9, values from 0 to 10⁷, 100 runs each. The half-width is half the mean width of the interval, the
error the 0.9-quantile of |estimate - truth|, as in the paper's Tables 2 and 3. Bars: `pair` at most 320, `smooth` no
wider than the paper's, the trimmed mean at most 180. Coverage is at least 0.9; of `laplace` it is 0.9 exactly, so 100
runs may show a little less.
"""

import csv
import gzip
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from confide.mechanism import KernelRandomness
from confide.mechanism.quantile.choice import quantile_plan
from confide.mechanism.quantile.rank import order_statistics
from confide.mechanism.statistic import Expectation, StatisticEstimate, StatisticPlan
from confide.mechanism.tally import Domain, Neighbours, Tally
from confide.mechanism.total.choice import mean_plan, total_plan
from confide.privacy.amount import root
from confide.privacy.budget import Budget
from confide.privacy.loss import ZCDP

ADULT = Path(__file__).resolve().parents[2] / "shared" / "data" / "adult" / "adult_raw.csv.gz"
DOMAIN = (0, 10**7)
EPSILON = Fraction(1)
CONFIDENCE = 0.9
RUNS = 100
PAPER_MEDIAN = {"em": (1024.9, 47.0), "svt": (1280.5, 105.0), "smooth": (3075.6, 1681.4)}
PAPER_MEAN = (352.0, 266.7)
HALF = Fraction(1, 2)
APPROXIMATE = Budget.of(10, 1e-9)


@dataclass(frozen=True)
class Row:
    """What 100 runs of one mechanism showed."""

    half_width: float
    error: float
    coverage: float
    milliseconds: float


def measure(plan: StatisticPlan, tally: Tally, low: float, high: float) -> Row:
    """`low` and `high` are what must be inside; they differ where a median lies between two values."""
    randomness, truth = KernelRandomness(), (low + high) / 2
    plan.measure(tally, randomness)
    start = time.perf_counter()
    results: list[StatisticEstimate] = [plan.measure(tally, randomness) for _ in range(RUNS)]
    elapsed = (time.perf_counter() - start) / RUNS * 1000
    widths = [(result.interval.high - result.interval.low) / 2 for result in results]
    errors = [abs(result.estimate - truth) for result in results]
    covered = [result.interval.low <= low and high <= result.interval.high for result in results]
    return Row(float(np.mean(widths)), float(np.quantile(errors, 0.9)), float(np.mean(covered)), elapsed)


def show(label: str, row: Row, paper: tuple[float, float] | None = None, bar: float | None = None) -> None:
    beside = f"paper {paper[0]:>9,.1f} {paper[1]:>9,.1f}" if paper else " " * 25
    verdict = "" if bar is None else (f"bar {bar:,.1f} " + ("met" if row.half_width <= bar else "MISSED"))
    print(
        f"{label:<44} ±{row.half_width:>12,.1f} {row.error:>12,.1f} {row.coverage:>6.2f} {row.milliseconds:>6.1f} ms   "
        f"{beside}   {verdict}"
    )


def fnlwgt() -> np.ndarray:
    with gzip.open(ADULT, "rt") as file:
        return np.sort(np.array([int(row["fnlwgt"]) for row in csv.DictReader(file)], dtype=np.int64))


def medians(tally: Tally) -> None:
    ends = tally.order_statistics(np.array(order_statistics(HALF, tally.rows)), *DOMAIN)
    low, high = (float(end) for end in ends)
    relations: tuple[Neighbours, ...] = ("replace-one", "add-remove")
    for neighbours in relations:
        for name in ("pair", "em", "svt", "smooth"):
            plan = quantile_plan(HALF, DOMAIN, EPSILON, CONFIDENCE, neighbours, mechanism=name)
            bars = {"pair": 320.0, "smooth": 3075.6} if neighbours == "replace-one" else {}
            paper = PAPER_MEDIAN.get(name) if neighbours == "replace-one" else None
            show(f"median, {name}, {neighbours}", measure(plan, tally, low, high), paper, bars.get(name))
    plan = quantile_plan(HALF, None, EPSILON, CONFIDENCE, "replace-one")
    show(f"median, {plan.name}, replace-one, unbounded", measure(plan, tally, low, high))
    cost = APPROXIMATE.cost(EPSILON)
    assert isinstance(cost, ZCDP)
    delta = APPROXIMATE.explicit_delta(cost)
    for said, share in (("pure noise at the same ρ", Fraction(0)), ("with a δ", delta)):
        plan = quantile_plan(
            HALF, DOMAIN, root(2 * cost.rho), CONFIDENCE, "replace-one", mechanism="smooth", delta=share
        )
        show(f"median, smooth, ε = 1 of {APPROXIMATE}, {said}", measure(plan, tally, low, high))


def means(tally: Tally, trimmed: bool) -> None:
    truth, kind = tally.total() / tally.rows, "trimmed mean" if trimmed else "mean"
    domains: tuple[Domain | None, ...] = (DOMAIN, None)
    for domain in domains:
        for name in ("laplace", "svt", "r2t", "tail") if domain else ("svt",):
            plan = mean_plan(domain, EPSILON, CONFIDENCE, "replace-one", mechanism=name)
            label = f"{kind}, {name}{'' if domain else ', unbounded'} ({plan.assumes})"
            with_paper = trimmed and name == "svt"
            bar = 180.0 if with_paper and domain else None
            show(label, measure(plan, tally, truth, truth), PAPER_MEAN if with_paper else None, bar)
            if with_paper and domain:
                print(f"{'':<44}  assumes {plan.condition}")


def totals(tally: Tally) -> None:
    truth = tally.total()
    for name in ("laplace", "svt", "r2t", "tail"):
        plan = total_plan(DOMAIN, EPSILON, CONFIDENCE, "add-remove", mechanism=name)
        show(f"sum, {name}, add-remove ({plan.assumes})", measure(plan, tally, truth, truth))


def speed() -> None:
    generator = np.random.default_rng(1)
    for distinct in (10_000, 1_000_000):
        values = np.sort(generator.choice(10**9, distinct, replace=False)).astype(np.int64)
        tally = Tally(values, np.full(distinct, 10**6 // distinct, dtype=np.int64))
        makers: dict[str, Callable[[], StatisticPlan]] = {
            f"median by {name}": lambda name=name: quantile_plan(  # type: ignore[misc]
                HALF, (0, 10**9), EPSILON, CONFIDENCE, "add-remove", mechanism=name
            )
            for name in ("pair", "em", "svt", "smooth")
        }
        for name, make in makers.items():
            plan, randomness = make(), KernelRandomness()
            times = []
            for _ in range(5):
                start = time.perf_counter()
                plan.measure(tally, randomness)
                times.append(time.perf_counter() - start)
            print(f"{distinct:>9,} distinct values  {name:<18} {min(times) * 1000:8.1f} ms")


def forecasts(tally: Tally) -> None:
    """What is said beforehand, from the number of rows and the range in which nine tenths of them lie."""
    values = np.repeat(tally.values, tally.counts)
    spread = float(np.quantile(values, 0.95) - np.quantile(values, 0.05))
    expectation = Expectation(tally.rows, spread)
    for name in ("pair", "em", "svt", "smooth"):
        plan = quantile_plan(HALF, DOMAIN, EPSILON, CONFIDENCE, "replace-one", 1, name, expectation)
        print(f"forecast median, {name:<8} ±{plan.forecast.half_width:>9,.0f}   ({plan.forecast.basis})")
    auto = quantile_plan(HALF, DOMAIN, EPSILON, CONFIDENCE, "replace-one", expectation=expectation)
    print(f"auto takes {auto.name}")


def main() -> None:
    if ADULT.exists():
        values = fnlwgt()
        cut = len(values) // 20
        print(f"{'':<44}  {'half-width':>12} {'0.9 error':>12} {'cover':>6}")
        medians(Tally.of(values))
        means(Tally.of(values[cut : len(values) - cut]), trimmed=True)
        means(Tally.of(values), trimmed=False)
        totals(Tally.of(values))
        forecasts(Tally.of(values))
    else:
        print(
            f"Adult is not here (looked for {ADULT.name} in the shared data folder beside the project): tables skipped"
        )
    speed()


if __name__ == "__main__":
    main()
