"""64 three-way marginals of one table: our exact tables beside the best statement written by hand, engine by engine.

Run as `python -m bench.workload_engines [--rows 10000000] [--engines duckdb spark] [--rounds 2] [--most 100]`. By hand
are one GROUPING SETS, 64 GROUP BYs, and one UNION ALL of them, with the same filter on declared values. Bar: 2 × the
fastest of them. A statement by hand is given up when it has taken longer than the fastest before it, since it cannot be
the fastest any more, or longer than so many seconds.
"""

import argparse
import itertools
import os
import tempfile
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb

import confide
from confide.privacy.charge import Charge
from confide.privacy.loss import PureDP
from confide.query import bind
from confide.query.tabulation import Tabulation
from confide.release.synthetic.request import _declared, _key, _source
from confide.workload import domain_of

COLUMNS = {f"c{place}": [f"v{value}" for value in range(2 + place % 7)] for place in range(12)}
SETS = tuple(itertools.combinations(range(len(COLUMNS)), 3))[::3][:64]
CHARGE = Charge(1, "bench", PureDP(Fraction(1)), "bench", "", "bench")
BAR = 2.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--engines", nargs="+", default=["duckdb", "spark"])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--most", type=float, default=100.0)
    options = parser.parse_args([] if __name__ != "__main__" else None)
    print(
        f"{len(SETS)} three-way marginals of {len(COLUMNS)} columns, {options.rows:,} rows in Parquet, "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before"
    )
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "t.parquet"
        _write(place, options.rows)
        for engine in options.engines:
            _engine(engine, place, Path(folder), options.rounds, options.most)


def _write(place: Path, rows: int) -> None:
    values = ", ".join(
        f"'v' || (hash(i * {2 * number + 3}) % {len(listed)})::VARCHAR AS {label}"
        for number, (label, listed) in enumerate(COLUMNS.items())
    )
    duckdb.connect().execute(f"COPY (SELECT {values} FROM range({rows}) AS r(i)) TO '{place}' (ROW_GROUP_SIZE 1000000)")


def _engine(engine: str, place: Path, folder: Path, rounds: int, most: float) -> None:
    policy = {
        "budget": {"epsilon": 10},
        "unit": "row",
        "version": "bench",
        "source": {"t": str(place) if engine == "duckdb" else f"spark:{place}"},
        "tables": {"t": {"columns": {label: {"values": listed} for label, listed in COLUMNS.items()}}},
    }
    with confide.open(policy, ledger=folder / f"{engine}.ledger", create=True) as session:
        holdings: Any = session._holdings
        summary = bind("SELECT COUNT(*) AS n FROM t", holdings.policy, holdings.engine).summary
        domain = domain_of(holdings.policy.tables["t"])
        source = _source(summary.relation)
        keys = tuple(_key(attribute, source) for attribute in domain.attributes)
        request = Tabulation(summary.relation, _declared(domain, source), None, keys, SETS)
        if engine == "duckdb":
            connection = holdings.engine._connection
            run: Callable[[str], Any] = lambda text: connection.execute(text).fetchall()  # noqa: E731
            end: Callable[[], Any] = connection.interrupt
        else:
            spark = holdings.engine._session.spark
            spark.read.parquet(str(place)).createOrReplaceTempView("t")
            run = lambda text: spark.sql(text).toArrow()  # noqa: E731
            end = spark.sparkContext.cancelAllJobs
        by_hand = {
            "GROUPING SETS": [_grouping_sets()],
            "64 GROUP BYs": _group_bys(padded=False),
            "UNION ALL": [" UNION ALL ".join(_group_bys(padded=True))],
        }
        ours = float("inf")
        best: dict[str, float] = {}
        longer: dict[str, float] = {}
        for _ in range(rounds):
            begun = time.perf_counter()
            holdings.engine.tabulate(request, CHARGE, b"bench")
            ours = min(ours, time.perf_counter() - begun)
            for label, texts in by_hand.items():
                if label in longer:
                    continue
                limit = min([most, *(seconds for other, seconds in best.items() if other != label)])
                seconds = _timed(lambda texts=texts: [run(text) for text in texts], end, limit)  # type: ignore[misc]
                if seconds is not None:
                    best[label] = min(best.get(label, seconds), seconds)
                elif label not in best:
                    longer[label] = limit
    listed = ", ".join(
        [f"{label} {seconds:.2f} s" for label, seconds in best.items()]
        + [f"{label} given up after {seconds:.0f} s" for label, seconds in longer.items()]
    )
    print(f"{engine:10}ours {ours:.2f} s; by hand {listed}")
    fastest, seconds = min(best.items(), key=lambda item: item[1], default=("whatever by hand", most))
    ratio = ours / seconds
    shown = f"{ratio:.2f}" if best else f"below {ratio:.2f}"
    verdict = "ok" if ratio <= BAR else "MISSED" if best else "not known"
    print(f"{'':10}{shown} × {fastest}; bar {BAR} {verdict}", flush=True)


def _timed(call: Callable[[], Any], end: Callable[[], Any], limit: float) -> float | None:
    """The seconds that a call takes; None if it was ended after its limit."""
    taken: list[float] = []
    errors: list[Exception] = []

    def work() -> None:
        begun = time.perf_counter()
        try:
            call()
            taken.append(time.perf_counter() - begun)
        except Exception as error:
            errors.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    worker.join(limit)
    ended = worker.is_alive()
    while worker.is_alive():
        end()
        worker.join(0.5)
    if errors and not ended:
        raise errors[0]
    return None if ended else taken[0]


def _filter() -> str:
    listed = ((label, ", ".join(f"'{value}'" for value in values)) for label, values in COLUMNS.items())
    return " AND ".join(f"{label} IN ({values})" for label, values in listed)


def _grouping_sets() -> str:
    labels = list(COLUMNS)
    sets = ", ".join(f"({', '.join(labels[column] for column in columns)})" for columns in SETS)
    shown = ", ".join(labels[column] for column in dict.fromkeys(itertools.chain(*SETS)))  # Spark wants this order
    counted = f"SELECT {shown}, GROUPING_ID({shown}) AS g, COUNT(*) AS n FROM t WHERE {_filter()}"
    return f"{counted} GROUP BY GROUPING SETS ({sets})"


def _group_bys(padded: bool) -> list[str]:
    labels, texts = list(COLUMNS), []
    for number, columns in enumerate(SETS):
        names = [labels[column] for column in columns]
        shown = ", ".join(f"{name} AS k{place}" for place, name in enumerate(names))
        head = f"{number} AS s, {shown}" if padded else shown
        texts.append(f"SELECT {head}, COUNT(*) AS n FROM t WHERE {_filter()} GROUP BY {', '.join(names)}")
    return texts


if __name__ == "__main__":
    main()
