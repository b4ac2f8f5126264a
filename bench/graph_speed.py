"""How long triangles of a graph with nodes as units take, from the question to the answer, by both mechanisms.

Bar: at most 10 s by the clock on two processors that nobody else uses, on a graph of the size of ten people's friends.
Once it was 92 s by `truncate` and 52 s by `r2t`; when levels began to be solved one after the other, 6.9 s of one
processor on a graph of that size, and 10.6 s on HepPh. By the clock a figure is worth what the load beside it allows;
what the calling thread works is what the clock would show where nobody else does, but for what it waits for the other.
"""

import os
import time

import numpy as np
import polars as pl

import confide
from bench._graphs import hepph, social

BAR = 10.0
BEFORE = {"social": {"truncate": 92.0, "r2t": 52.0}, "HepPh": {}}
POLICY = {
    "confide": 1,
    "budget": {"epsilon": 10},
    "unit": "row",
    "tables": {"friend": {"columns": {"one": {"type": "id"}, "other": {"type": "id"}}}},
}


def main() -> None:
    for name, edges in (("social", social()), ("HepPh", hepph())):
        if edges is None:
            print(f"{name}: skipped, it is not there (CONFIDE_DATA names the folder of data sets)")
            continue
        print(f"{name}: {len(np.unique(edges)):,} nodes, {len(edges):,} edges; triangles, nodes as units, ε = 1")
        for mechanism in ("truncate", "r2t"):
            _timed(name, edges, mechanism)


def _timed(name: str, edges: np.ndarray, mechanism: str) -> None:
    friend = pl.DataFrame({"one": edges[:, 0], "other": edges[:, 1]})
    with confide.testing.open(POLICY, {"friend": friend}, seed=1) as session:
        nodes = session.graph("friend", "one", "other", unit="node")
        clock, worked, own = time.perf_counter(), time.process_time(), time.thread_time()
        answer = nodes.triangles(epsilon=1, mechanism=mechanism)
        clock, worked = time.perf_counter() - clock, time.process_time() - worked
        own = time.thread_time() - own
    before = BEFORE[name].get(mechanism)
    once = "" if before is None else f", once {before:.0f} s"
    verdict = "met" if clock <= BAR else f"not met, with a load of {os.getloadavg()[0]:.1f} on {os.cpu_count()}"
    column = answer.columns[0]
    print(
        f"  {mechanism:<9} {clock:5.1f} s by the clock (bar {BAR:.0f} s: {verdict}{once}), "
        f"{worked:5.1f} s of all processors, {own:.1f} s of the calling thread; "
        f"{column.values[0]:,} ({column.low[0]:,} … {column.high[0]:,})"
    )


if __name__ == "__main__":
    main()
