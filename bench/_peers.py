"""The same question asked of one peer, in the peer's own environment: `python _peers.py NAME FILE.parquet`."""

import json
import sys
import time
from collections.abc import Callable

GROUPS = 20
RUNS = 3


def report(name: str, column: str, ask: Callable[[], object]) -> None:
    """The shortest of a few runs, opening not counted."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        ask()
        times.append(time.perf_counter() - start)
    print(json.dumps({"name": name, "column": column, "seconds": min(times)}), flush=True)


def opendp(path: str) -> None:
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    frame = pl.scan_parquet(path)
    rows = frame.select(pl.len()).collect().item()
    for column, high in (("x", 100_000), ("y", 1000.0)):
        bounds = (type(high)(0), high)

        def ask(column: str = column, bounds: tuple[float, float] = bounds) -> object:
            context = dp.Context.compositor(
                data=frame.select("g", column),
                privacy_unit=dp.unit_of(contributions=1),
                privacy_loss=dp.loss_of(epsilon=1.0),
                split_evenly_over=1,
                margins=[dp.polars.Margin(by=["g"], invariant="keys", max_length=2 * rows, max_groups=GROUPS)],
            )
            value = pl.col(column)
            if isinstance(bounds[1], float):
                value = value.fill_nan(0.0)
            value = value.fill_null(type(bounds[1])(0))
            query = (
                context.query()
                .group_by("g")
                .agg(dp.len(), value.dp.sum(bounds=bounds).alias("s"), value.dp.mean(bounds=bounds).alias("a"))
            )
            return query.release().collect()

        report("OpenDP (polars)", "integer" if column == "x" else "double", ask)


def smartnoise(path: str) -> None:
    import pyarrow.parquet as pq
    from snsql import Privacy, from_df

    frame = pq.read_table(path).to_pandas()
    columns = {
        "g": {"type": "string"},
        "x": {"type": "int", "lower": 0, "upper": 100_000},
        "y": {"type": "float", "lower": 0.0, "upper": 1000.0},
    }
    metadata = {"": {"s": {"t": {"row_privacy": True, "rows": len(frame), **columns}}}}
    for column in ("x", "y"):
        reader = from_df(frame, privacy=Privacy(epsilon=1.0, delta=1e-6), metadata=metadata)
        sql = f"SELECT g, COUNT(*) AS n, SUM({column}) AS s, AVG({column}) AS a FROM s.t GROUP BY g"
        report("SmartNoise SQL", "integer" if column == "x" else "double", lambda r=reader, q=sql: r.execute(q))


if __name__ == "__main__":
    {"opendp": opendp, "smartnoise": smartnoise}[sys.argv[1]](sys.argv[2])
