"""A table of 10⁶ cells: four attributes of 32 values, fitted to all two-way marginals and to ten marginals of a
million people.

Each fit beside its bar of 180 s (of one processor, because machines are shared) and 4 GB, with its certificate: a
bound, derived from the fit itself, of how far its answers are from those of the best table, all together and in
standard deviations of the noise. The data are made up and the noise is numpy's. Run as
`python -m bench.microdata_large [METHOD ...]`.
"""

import itertools
import resource
import sys
import time
from fractions import Fraction

import numpy as np

from confide.fit import (
    METHODS,
    TOTAL,
    CellDomain,
    FitProblem,
    Marginal,
    MeasuredGroup,
    Subtotal,
    error,
    fit,
    round_controlled,
)
from confide.mechanism import DiscreteLaplace

SIZE = 32
PEOPLE = 10**6
BAR_SECONDS = 180
BAR_GIGABYTES = 4


def made_up(domain: CellDomain, generator: np.random.Generator) -> np.ndarray:
    """People whose attributes are skewed, and go together in half of the cases."""
    shares = np.exp(-0.15 * np.arange(SIZE))
    shares /= shares.sum()
    common = generator.choice(SIZE, PEOPLE, p=shares)
    columns = []
    for place in range(len(domain.sizes)):
        alone = generator.choice(SIZE, PEOPLE, p=shares)
        together = (common * (place + 1) + generator.integers(0, 3, PEOPLE)) % SIZE
        columns.append(np.where(generator.random(PEOPLE) < 0.5, together, alone))
    return np.bincount(np.ravel_multi_index(columns, domain.sizes), minlength=domain.cells).astype(np.float64)


def measured(
    domain: CellDomain, truth: np.ndarray, groups: list[Marginal], generator: np.random.Generator
) -> FitProblem:
    """ε = 1 shared by all groups."""
    law = DiscreteLaplace(Fraction(len(groups)))
    found = []
    for group in groups:
        answers = group.answer(domain, truth)
        found.append(MeasuredGroup(group, answers + np.rint(generator.laplace(0, len(groups), len(answers))), law))
    return FitProblem(domain, tuple(found))


def main() -> None:
    wanted = [name for name in sys.argv[1:] if name in METHODS] or ["ols", "nnls", "reweighted", "pinned", "adaptive"]
    generator = np.random.default_rng(32)
    domain = CellDomain(("a", "b", "c", "d"), (SIZE,) * 4)
    truth = made_up(domain, generator)
    pairs = [Marginal(pair) for pair in itertools.combinations(domain.attributes, 2)]
    singles = [Marginal((name,)) for name in domain.attributes]
    for title, groups in (
        ("all six two-way marginals", pairs),
        ("ten marginals, one-way and two-way", singles + pairs),
    ):
        problem = measured(domain, truth, groups, generator)
        answers = sum(len(item.answers) for item in problem.measured)
        print(f"{domain.cells:,} cells, {title}: {answers:,} noisy answers, ε = 1")
        print(
            f"  {'method':12}{'seconds':>9}{'processor':>11}{'peak GB':>9}{'certified distance':>20}{'sum error':>11}"
            f"{'rms error of a marginal count':>32}"
        )
        for method in wanted:
            start, used = time.perf_counter(), time.process_time()
            found = fit(problem, method)  # type: ignore[arg-type]
            seconds, processor = time.perf_counter() - start, time.process_time() - used
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            off = found.cells - truth
            errors = np.concatenate([pair.answer(domain, off) for pair in pairs])
            good = processor <= BAR_SECONDS and peak <= BAR_GIGABYTES
            print(
                f"  {method:12}{seconds:>9.1f}{processor:>11.1f}{peak:>9.2f}"
                f"{found.certificate.distance:>20.1e}{off.sum():>11.1f}"
                f"{np.sqrt(np.mean(errors**2)):>32.2f}   {'' if good else 'ABOVE THE BAR'}",
                flush=True,
            )
        start = time.perf_counter()
        query = Subtotal(pairs[0], np.arange(SIZE**2) % 7 == 0)
        interval = error(problem, query).interval
        print(
            f"  interval of a sum of {int(query.members.sum())} counts: ±{(interval.high - interval.low) / 2:.1f} "
            f"({time.perf_counter() - start:.2f} s)"
        )
        start = time.perf_counter()
        rounded = round_controlled(found, [TOTAL, *pairs[:1], *pairs[5:]])
        print(
            f"  rounded to {int(rounded.counts.sum()):,} records in {time.perf_counter() - start:.1f} s; "
            f"total, (a, b) and (c, d) off by at most {', '.join(f'{miss:.2f}' for miss in rounded.misses)}"
        )


if __name__ == "__main__":
    main()
