"""Time and memory of planning and answering all marginals of many columns, on made-up rows.

Run as `python -m bench.workload_marginals [k [columns [rows]]]`: by default all tables of three of 100 columns of ten
values each, of 100,000 rows. Noise is the kernel's. Memory is the largest that the process had at any time; what it
had before the first call is beside it.
"""

import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import confide

VALUES = 10


def main() -> None:
    given = [int(own) for own in sys.argv[1:] if own.isdigit()]
    k, columns, rows = [*given, *(3, 100, 100_000)[len(given) :]]
    names = [f"c{place}" for place in range(columns)]
    policy = {
        "budget": {"epsilon": 10, "delta": 1e-9},
        "unit": "row",
        "tables": {"t": {"size": rows, "columns": {name: {"values": list(range(VALUES))} for name in names}}},
    }
    random = np.random.default_rng(1)
    shared = random.integers(0, VALUES, rows)  # columns depend on each other
    data = {name: np.where(random.random(rows) < 0.3, shared, random.binomial(VALUES - 1, 0.3, rows)) for name in names}
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "ledger"
        session = confide.open(policy, data={"t": data}, ledger=ledger, create=True)
        print(f"{k} of {columns} columns of {VALUES} values, {rows:,} rows; {_memory():,.0f} MiB before")
        wanted = confide.marginals(k=k)
        with timed("planned"):
            plan = session.plan_answer(wanted, epsilon=1)
        print(f"  {len(plan.groups)} groups, {plan.measured:,} numbers, ±{plan.worst:,.1f} at 95 %")
        with timed("answered"):
            answers = session.answer(wanted, epsilon=1)
        kept = sum(path.stat().st_size for path in Path(folder).iterdir())
        print(f"  {answers.strategy}, {kept / 2**20:,.0f} MiB on disk with the ledger")
        with timed("the same again"):
            session.answer(wanted, epsilon=1)
        with timed("1,000 tables with their intervals"):
            held = cells = 0
            for own in answers.some(range(0, len(answers.linear.tables), max(1, len(answers.linear.tables) // 1_000))):
                shape = [VALUES] * k
                codes = np.ravel_multi_index([data[names[column]] for column in own.asked.columns], shape)
                truth = np.bincount(codes, minlength=VALUES**k).reshape(shape)
                held += int(((own.low <= truth) & (truth <= own.high)).sum())
                cells += truth.size
        print(f"  {held / cells:.4f} of {cells:,} intervals of 95 % hold")
        session.close()


@contextmanager
def timed(what: str) -> Iterator[None]:
    begin, own = time.perf_counter(), time.process_time()
    yield
    took, used = time.perf_counter() - begin, time.process_time() - own
    print(f"{what} in {took:,.1f} s ({used:,.1f} s of processors), at most {_memory():,.0f} MiB so far", flush=True)


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


if __name__ == "__main__":
    main()
