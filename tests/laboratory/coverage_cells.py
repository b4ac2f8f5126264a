"""The cells of the coverage laboratory: tables, joins, graphs, microdata and verdicts on small data made to hurt."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from statistics import variance
from typing import Any, Final

import numpy as np
import polars as pl

import confide
import confide.testing
from confide.release import Session
from tests.laboratory.coverage import Again, Cell, Seen
from tests.laboratory.coverage_kinds import kind_cells
from tests.laboratory.coverage_verdicts import verdict_cells
from tests.release import test_joins

MISS: Final = 0.1
CONFIDENCE: Final = 0.9
GROUPS: Final = ("a", "b", "c", "d", "e")
BUDGETS: Final[dict[str, dict[str, float]]] = {"ε": {"epsilon": 1e6}, "δ": {"epsilon": 1e6, "delta": 1e-6}}
Rows = Mapping[str, np.ndarray]
Ends = tuple[float, float] | None
Truth = Callable[[Rows], Ends]


def policy(budget: str = "ε", rows: str = "private") -> dict[str, Any]:
    columns: dict[str, Any] = {
        "g": {"values": list(GROUPS)},
        "h": {"values": list(range(10))},
        "x": {"range": [0, 1_000]},
        "z": {"range": [-50, 50]},
        "w": {"range": [0, 10_000_000]},
        "u": {"range": "unbounded", "grain": 1},
        "word": {"type": "text"},
    }
    return {"budget": BUDGETS[budget], "unit": "row", "tables": {"t": {"rows": rows, "columns": columns}}}


@cache
def data() -> dict[str, pl.DataFrame]:
    """Frames by what they are."""
    random = np.random.default_rng(12)

    def made(x: Any, g: Any = None, w: Any = None) -> pl.DataFrame:
        x = np.asarray(x, dtype=np.int64)
        rows = len(x)
        groups = random.choice(GROUPS, rows) if g is None else np.asarray(g, dtype=str)
        return pl.DataFrame(
            {
                "g": groups.tolist(),
                "h": (x % 10).tolist(),
                "x": x.tolist(),
                "z": np.clip(x // 10 - 50, -50, 50).tolist(),
                "w": (x * 100 if w is None else np.asarray(w, dtype=np.int64)).tolist(),
                "u": (x * 7 - 900).tolist(),
                "word": [f"word {value % 4}" for value in x.tolist()],
            },
            schema={
                "g": pl.String,
                "h": pl.Int64,
                "x": pl.Int64,
                "z": pl.Int64,
                "w": pl.Int64,
                "u": pl.Int64,
                "word": pl.String,
            },
        )

    heavy = np.clip(np.rint(5 * random.pareto(0.8, 400)), 0, 1_000)
    skewed = ["a"] * 360 + ["b"] * 30 + ["c"] * 3 + ["d"]
    return {
        "no rows": made([]),
        "one row": made([640], ["b"]),
        "all equal": made([500] * 300),
        "all at the clamp": made([1_000] * 300),
        "all at the floor": made([0] * 300),
        "two points": made([0] * 150 + [1_000] * 151),
        "heavy tail": made(heavy, w=np.clip(np.rint(50 * random.pareto(0.6, 400)), 0, 10**7)),
        "ties": made(random.integers(0, 3, 400)),
        "even": made(random.integers(0, 1_001, 400)),
        "skewed groups": made(random.integers(0, 1_001, 394), skewed),
    }


# --- what is true -----------------------------------------------------------------------------------------------------


def _exactly(of: Callable[[Rows], float | None]) -> Truth:
    def truth(rows: Rows) -> Ends:
        found = of(rows)
        return None if found is None else (found, found)

    return truth


def _mean(column: str) -> Truth:
    return _exactly(lambda rows: float(rows[column].mean()) if len(rows[column]) else None)


def _quantile(column: str, q: float) -> Truth:
    """The two order statistics between which every definition lies."""

    def truth(rows: Rows) -> Ends:
        ordered = np.sort(rows[column])
        if not len(ordered):
            return None
        place = q * (len(ordered) - 1)
        return float(ordered[math.floor(place)]), float(ordered[math.ceil(place)])

    return truth


def _between_quartiles(rows: Rows) -> Ends:
    low, high = _quantile("x", 0.25)(rows), _quantile("x", 0.75)(rows)
    return None if low is None or high is None else (high[0] - low[1], high[1] - low[0])


def _ratio(top: Callable[[Rows], float], bottom: Callable[[Rows], float]) -> Truth:
    return _exactly(lambda rows: top(rows) / bottom(rows) if bottom(rows) else None)


def _variance(rows: Rows) -> float | None:
    return float(variance(rows["x"].tolist())) if len(rows["x"]) > 1 else None


def _count(rows: Rows) -> float:
    return len(rows["x"])


@dataclass(frozen=True)
class Asked:
    """A column of an answer: its kind, how it is written, what is true of it, and the mechanisms to try."""

    kind: str
    sql: str
    truth: Truth
    mechanism: str = "auto"
    flat: bool = False


COLUMNS: Final = (
    Asked("COUNT", "COUNT(*)", _exactly(_count)),
    Asked("COUNT with FILTER", "COUNT(*) FILTER (WHERE x > 700)", _exactly(lambda r: float((r["x"] > 700).sum()))),
    Asked("COUNT DISTINCT", "COUNT(DISTINCT h)", _exactly(lambda r: float(len(np.unique(r["h"]))))),
    Asked("SUM", "SUM(x)", _exactly(lambda r: float(r["x"].sum()))),
    Asked("SUM, both signs", "SUM(z)", _exactly(lambda r: float(r["z"].sum()))),
    Asked("linear arithmetic", "SUM(z) * 2 + COUNT(*)", _exactly(lambda r: float(2 * r["z"].sum() + len(r["z"])))),
    Asked("AVG", "AVG(x)", _mean("x")),
    Asked("VARIANCE", "VARIANCE(x)", _exactly(_variance)),
    Asked("STDDEV", "STDDEV(x)", _exactly(lambda r: None if _variance(r) is None else math.sqrt(_variance(r) or 0))),
    Asked("ratio of a sum to a count", "SUM(x) / COUNT(*)", _ratio(lambda r: float(r["x"].sum()), _count)),
    Asked("share", "COUNT(*) FILTER (WHERE x > 700) / COUNT(*)", _ratio(lambda r: float((r["x"] > 700).sum()), _count)),
    Asked(
        "mean of a condition",
        "AVG(CASE WHEN x > 700 THEN 1 ELSE 0 END)",
        _ratio(lambda r: float((r["x"] > 700).sum()), _count),
    ),
    Asked(
        "arithmetic", "ABS(SUM(z) * 2 - 7) + COUNT(*)", _exactly(lambda r: abs(2.0 * r["z"].sum() - 7) + len(r["z"]))
    ),
    *(
        Asked(f"median, {name}", "MEDIAN(x)", _quantile("x", 0.5), name, True)
        for name in ("svt", "pair", "smooth", "em")
    ),
    *(
        Asked(f"0.9-quantile, {name}", "QUANTILE(w, 0.9)", _quantile("w", 0.9), name, True)
        for name in ("svt", "pair", "smooth", "em")
    ),
    Asked("median of an unbounded column", "MEDIAN(u)", _quantile("u", 0.5), "svt", True),
    Asked("MIN", "MIN(x)", _quantile("x", 0), flat=True),
    Asked("MAX", "MAX(w)", _quantile("w", 1), flat=True),
    Asked("interquartile range", "QUANTILE(x, 0.75) - QUANTILE(x, 0.25)", _between_quartiles, flat=True),
    *(
        Asked(f"wide SUM, {name}", "SUM(w)", _exactly(lambda r: float(r["w"].sum())), name)
        for name in ("laplace", "tail", "r2t")
    ),
    Asked("unbounded SUM, svt", "SUM(u)", _exactly(lambda r: float(r["u"].sum())), "svt"),
    Asked("unbounded AVG, svt", "AVG(u)", _mean("u"), "svt"),
    *(Asked(f"wide AVG, {name}", "AVG(w)", _mean("w"), name) for name in ("laplace", "tail", "r2t")),
)


# --- what a run sees --------------------------------------------------------------------------------------------------


def inside(truth: Ends, low: float | None, high: float | None) -> bool:
    if truth is None or low is None or high is None or math.isnan(low) or math.isnan(high):
        return True
    spare = 1e-9 * max(1.0, abs(truth[0]), abs(truth[1]))
    return low <= truth[0] + spare and truth[1] - spare <= high


def grouped(frame: pl.DataFrame, keys: Sequence[str]) -> dict[tuple[Any, ...], Rows]:
    if not keys:
        return {(): {name: frame[name].to_numpy() for name in frame.columns}}
    return {
        key: {name: part[name].to_numpy() for name in frame.columns}
        for key, part in frame.partition_by(*keys, as_dict=True).items()
    }


def shown(answer: Any, keys: int) -> Iterator[tuple[tuple[Any, ...], Any, float, float, float]]:
    """Key, column, estimate and ends of every number of an answer."""
    names = [column.values for column in answer.columns[:keys]]
    for column in answer.columns[keys:]:
        for place, (value, low, high) in enumerate(zip(column.values, column.low, column.high, strict=True)):
            yield tuple(values[place] for values in names), column, value, low, high


def judged(
    kind: str, key: str, truth: Ends, column: Any, ends: tuple[float, float], flat: bool, dense: bool
) -> Iterator[Seen]:
    """An interval; of one that assumes a density what it assumes nothing for, and apart from that the rest."""
    low, high = ends
    half, thin = high / 2 - low / 2, low == high and not flat
    if column.assumes == "always":
        yield Seen(kind, key, float(not inside(truth, low, high)), half, thin)
    elif "upper end" in column.note:
        yield Seen(f"{kind}: lower end", key, float(not inside(truth, low, math.inf)), half, thin)
        said = "upper end, of data as it assumes" if dense else "upper end, of data that may not be as it assumes"
        yield Seen(f"{kind}: {said}", key, float(not inside(truth, -math.inf, high)), assumed=not dense)
    else:
        said = "of data as it assumes" if dense else "of data that may not be as it assumes"
        yield Seen(f"{kind}: {said}", key, float(not inside(truth, low, high)), half, thin, assumed=not dense)


def every(
    sql: str, columns: Mapping[str, Asked], truths: Any, keys: int, epsilon: float, dense: bool = False, **more: Any
) -> Any:
    """Each number by itself."""
    again = Again(lambda session: session.sql(sql, epsilon=epsilon, confidence=CONFIDENCE, **more))

    def look(session: Session) -> Iterator[Seen]:
        for key, column, _, low, high in shown(again(session), keys):
            asked = columns[column.name]
            truth, place = truths(key, asked), f"{key} {column.name}"
            yield from judged(asked.kind, place, truth, column, (low, high), asked.flat, dense)

    return look


def picked(kind: str, sql: str, asked: Asked, truths: Any, keys: int, epsilon: float, **more: Any) -> Any:
    """The share of shown numbers that miss, of rows that were chosen by their values; of one column, the first."""
    again = Again(lambda session: session.sql(sql, epsilon=epsilon, confidence=CONFIDENCE, **more))

    def look(session: Session) -> Iterator[Seen]:
        answer = again(session)
        first = answer.columns[keys].name
        missed = [
            not inside(truths(key, asked), low, high)
            for key, column, _, low, high in shown(answer, keys)
            if column.name == first
        ]
        yield Seen(kind, "shown", sum(missed) / max(1, len(missed)))

    return look


def extreme(kind: str, sql: str, columns: Mapping[str, Asked], truths: Any, epsilon: float) -> Any:
    """Of several columns the one that looks farthest from the middle of what is expected, in its own half-widths."""
    again = Again(lambda session: session.sql(sql, epsilon=epsilon, confidence=CONFIDENCE))

    def look(session: Session) -> Iterator[Seen]:
        answer = again(session)
        found = list(shown(answer, 0))
        widths = [max(high - low, 1e-9) for *_, low, high in found]
        values = [value / width for (_, _, value, _, _), width in zip(found, widths, strict=True)]
        place = max(range(len(values)), key=lambda one: abs(values[one] - float(np.median(values))))
        key, column, _, low, high = found[place]
        yield Seen(kind, "picked", float(not inside(truths(key, columns[column.name]), low, high)))

    return look


# --- tables -----------------------------------------------------------------------------------------------------------


def _opened(rules: dict[str, Any], frames: dict[str, pl.DataFrame], seed: int) -> Callable[[], Session]:
    return lambda: confide.testing.open(rules, frames, seed=seed)


def _planned(sql: str, columns: Mapping[str, Asked], epsilon: float, **more: Any) -> Any:
    """The forecasts that depend on nothing."""

    def forecasts(session: Session) -> dict[str, float]:
        plan = session.plan(sql, epsilon=epsilon, confidence=CONFIDENCE, **more)
        if any("depend" in note for note in plan.notes):
            return {}
        return {columns[name].kind: half for name, half in plan.half_width.items() if name in columns}

    return forecasts


def table_cells() -> Iterator[Cell]:
    seed = 0
    mechanisms = dict.fromkeys(asked.mechanism for asked in COLUMNS)
    for name, frame in data().items():
        for budget, rows, epsilon in (
            ("ε", "private", 0.02),
            ("ε", "public", 2.0),
            ("δ", "private", 2.0),
            ("ε", "private", 200.0),
        ):
            rules, whole = policy(budget, rows), grouped(frame, ())[()]
            for mechanism in mechanisms:
                own = [asked for asked in COLUMNS if asked.mechanism == mechanism]
                # Few at once, so that each has a good part of ε.
                for begin in range(0, len(own), 6):
                    columns = {f"c{place}": asked for place, asked in enumerate(own[begin : begin + 6])}
                    text = ", ".join(f"{asked.sql} AS {label}" for label, asked in columns.items())
                    sql, seed = f"SELECT {text} FROM t", seed + 1
                    look = every(
                        sql, columns, lambda _, asked, whole=whole: asked.truth(whole), 0, epsilon, mechanism=mechanism
                    )
                    said = f"{name}, {rows} rows, {budget}, ε = {epsilon:g}"
                    cell = Cell(
                        f"table {said} {mechanism} {begin}",
                        said,
                        _opened(rules, {"t": frame}, seed),
                        look,
                        MISS,
                        flat=epsilon > 2 or rows == "public",
                    )
                    if name == "even" and epsilon == 2:
                        cell = replace(cell, forecasts=_planned(sql, columns, epsilon, mechanism=mechanism))
                    yield cell


def group_cells() -> Iterator[Cell]:
    count, mean, total = (next(asked for asked in COLUMNS if asked.kind == kind) for kind in ("COUNT", "AVG", "SUM"))
    median = Asked("median", "MEDIAN(x)", _quantile("x", 0.5), flat=True)
    columns = {"n": count, "m": mean, "q": median}
    for place, (name, frame) in enumerate(data().items()):
        for epsilon in (0.1, 5.0):
            by = {"g": grouped(frame, ("g",)), "word": grouped(frame, ("word",))}
            none = {column: np.array([], dtype=np.int64) for column in frame.columns}
            for keys, budget in (("g", "ε"), ("g", "δ"), ("word", "δ")):
                of = by[keys]

                def truths(key: Any, asked: Asked, of: Any = of, none: Any = none) -> Ends:
                    return asked.truth(of.get(key, none))

                known = "keys that are declared" if keys == "g" else "keys that are not declared"
                own = {label: replace(asked, kind=f"{asked.kind} by {known}") for label, asked in columns.items()}
                rules, said = policy(budget), f"{name}, {budget}, ε = {epsilon:g}"
                opened, share = _opened(rules, {"t": frame}, place), epsilon * (1 if keys == "g" else 12)
                text = f"SELECT {keys}, COUNT(*) AS n, AVG(x) AS m, MEDIAN(x) AS q FROM t GROUP BY {keys}"
                yield Cell(f"groups {said} {keys}", said, opened, every(text, own, truths, 1, share), MISS, flat=True)
                looks = [
                    picked(
                        f"{asked.kind}, rows picked by {way}",
                        f"SELECT {keys}, {what} AS v FROM t GROUP BY {keys} {clause}",
                        asked,
                        truths,
                        1,
                        share,
                    )
                    for what, asked in (("COUNT(*)", count), ("AVG(x)", mean), ("SUM(x)", total))
                    for way, clause in (
                        ("HAVING", f"HAVING {what} > {_limit(asked, of)}"),
                        ("ORDER BY ... LIMIT 1", "ORDER BY v DESC LIMIT 1"),
                        ("ORDER BY ... LIMIT 2", "ORDER BY v LIMIT 2"),
                    )
                ]
                yield Cell(f"picked {said} {keys}", said, opened, _all(looks), MISS)


def _all(looks: Sequence[Any]) -> Any:
    return lambda session: (seen for look in looks for seen in look(session))


def _limit(asked: Asked, of: Mapping[Any, Rows]) -> int:
    """A limit that about half of the groups pass."""
    truths = sorted(found[0] for rows in of.values() if (found := asked.truth(rows)) is not None)
    return round(truths[len(truths) // 2]) if truths else 5


def column_cells() -> Iterator[Cell]:
    """The most extreme of five columns: each holds by itself, so by a union the one that is picked misses five times as
    often at most.
    """
    columns = {
        f"c{place}": Asked(
            "COUNT", f"COUNT(*) FILTER (WHERE h = {place})", _exactly(lambda r, h=place: float((r["h"] == h).sum()))
        )
        for place in range(5)
    }
    text = ", ".join(f"{asked.sql} AS {label}" for label, asked in columns.items())
    for place, (name, frame) in enumerate(data().items()):
        whole = grouped(frame, ())[()]
        for epsilon in (0.1, 5.0):
            kind = "COUNT, the most extreme of five columns"
            look = extreme(
                kind, f"SELECT {text} FROM t", columns, lambda _, asked, whole=whole: asked.truth(whole), epsilon
            )
            yield Cell(
                f"columns {name} {epsilon}",
                f"{name}, ε = {epsilon:g}",
                _opened(policy(), {"t": frame}, place),
                look,
                5 * MISS,
            )


# --- joins ------------------------------------------------------------------------------------------------------------


def _join_data(kind: str) -> dict[str, dict[str, pl.DataFrame]]:
    """Few rows: joined evenly, all by one key, by none, and of one row."""
    random = np.random.default_rng(3)
    found = {"even": (test_joins.row_data if kind == "row" else test_joins.key_data)(60 if kind == "row" else 40)}
    if kind == "row":
        one = test_joins.row_data(40)
        found["one key"] = {
            **one,
            "r": one["r"].with_columns(b=pl.lit(1, pl.Int64)),
            "t": one["t"].with_columns(b=pl.lit(1, pl.Int64)),
        }
        found["no match"] = {**one, "t": one["t"].with_columns(b=pl.col("b") + 1_000)}
        found["one row"] = {
            **one,
            "r": one["r"].head(1),
            "t": one["t"].with_columns(b=pl.lit(int(one["r"]["b"][0]), pl.Int64)),
        }
        found["no rows"] = {**one, "r": one["r"].head(0)}
        return found
    base = test_joins.key_data(40)
    five = pl.DataFrame(
        {
            "oid": range(200),
            "pid": [place // 5 for place in range(200)],
            "item": random.integers(0, 20, 200),
            "x": random.integers(0, 11, 200),
            "z": random.integers(-3, 4, 200),
        }
    )
    found["five each"] = {**base, "o": five}
    found["one item"] = {**base, "o": five.with_columns(item=pl.lit(1, pl.Int64))}
    found["one owner"] = {**base, "o": five.head(9).with_columns(pid=pl.lit(0, pl.Int64))}
    found["no rows"] = {**base, "o": five.head(0)}
    return {name: {**frames, "l": _few_lines(frames)} for name, frames in found.items()}


def _few_lines(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Two lines an order, so that nobody has more than the policy says."""
    orders = frames["o"]["oid"].to_list()
    return pl.DataFrame(
        {"oid": [*orders, *orders], "q": [place % 6 for place in range(2 * len(orders))]},
        schema={"oid": pl.Int64, "q": pl.Int64},
    )


def join_cells() -> Iterator[Cell]:
    rows = [
        ("COUNT", f"SELECT COUNT(*) AS n FROM {test_joins.JOIN}"),
        ("SUM", f"SELECT SUM(x) AS n FROM {test_joins.JOIN}"),
        ("self-join", "SELECT COUNT(*) AS n FROM r AS one JOIN r AS two ON one.b = two.b WHERE one.a <> two.a"),
    ]
    keys = [
        ("COUNT along a reference", "SELECT COUNT(*) AS n FROM p JOIN o ON o.pid = p.id"),
        ("COUNT along two references", "SELECT COUNT(*) AS n FROM o JOIN l ON l.oid = o.oid"),
        ("self-join by owner", "SELECT COUNT(*) AS n FROM o AS one JOIN o AS two ON one.pid = two.pid"),
        ("shared by units", f"SELECT COUNT(*) AS n FROM {test_joins.PAIRS} WHERE one.pid <> two.pid"),
    ]
    for unit, policy_, texts, mechanisms in (
        ("row", test_joins.ROW, rows, ("residual", "elastic")),
        ("key", test_joins.KEY, keys, ("auto", "truncate", "r2t")),
    ):
        for place, (name, frames) in enumerate(_join_data(unit).items()):
            for what, sql in texts:
                ((truth,),) = test_joins.exact(frames, sql)
                own = {key: value for key, value in frames.items() if key in policy_["tables"]}
                for mechanism in mechanisms:
                    if (mechanism == "auto" and what == "shared by units") or (
                        mechanism != "auto" and what == "COUNT along a reference"
                    ):
                        continue  # auto takes what references bound; a reference is no join of its own
                    for epsilon in (0.5, 20.0):
                        asked = Asked(
                            f"join, {what}, {mechanism}",
                            sql,
                            _exactly(lambda _, truth=truth: float(truth or 0)),
                            flat=True,
                        )
                        look = every(
                            sql, {"n": asked}, lambda _, asked: asked.truth({}), 0, epsilon, mechanism=mechanism
                        )
                        said = f"{name}, ε = {epsilon:g}"
                        yield Cell(
                            f"join {unit} {what} {mechanism} {said}", said, _opened(policy_, own, place), look, MISS
                        )


# --- graphs -----------------------------------------------------------------------------------------------------------


def _graphs() -> dict[str, list[tuple[int, int]]]:
    random = np.random.default_rng(5)
    pairs = list(combinations(range(60), 2))
    return {
        "no edges": [],
        "one edge": [(0, 1)],
        "a triangle": [(0, 1), (1, 2), (0, 2)],
        "a star": [(0, leaf) for leaf in range(1, 25)],
        "a clique": list(combinations(range(10), 2)),
        "a path": [(place, place + 1) for place in range(40)],
        "60 nodes, 544 edges": [
            pairs[place] for place in sorted(random.choice(len(pairs), 544, replace=False).tolist())
        ],
    }


def _patterns(edges: Sequence[tuple[int, int]]) -> dict[str, int]:
    near: dict[int, set[int]] = {}
    for a, b in edges:
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)
    triangles = sum(len(near[a] & near[b]) for a, b in edges) // 3
    stars = {leaves: sum(math.comb(len(own), leaves) for own in near.values()) for leaves in (2, 3)}
    corners = [math.comb(len(near[a] & near[b]), 2) for a, b in combinations(near, 2)]
    cliques = sum(d in near[c] for a, b in edges for c, d in combinations(near[a] & near[b], 2)) // 6
    return {
        "edges": len(edges),
        "triangles": triangles,
        "rectangles": sum(corners) // 2,
        "cliques_4": cliques,
        "stars_2": stars[2],
        "stars_3": stars[3],
    }


def graph_cells() -> Iterator[Cell]:
    rules = {
        "budget": {"epsilon": 1e6},
        "unit": "row",
        "tables": {"edge": {"columns": {"src": {"type": "id"}, "dst": {"type": "id"}}}},
    }
    ways = [("edge", "edges", "laplace")]
    ways += [("edge", what, way) for what in ("triangles", "stars_2", "stars_3") for way in ("ladder", "smooth")]
    ways += [("edge", what, "smooth") for what in ("rectangles", "cliques_4")]
    ways += [
        ("node", what, way)
        for what in ("edges", "triangles", "rectangles", "cliques_4", "stars_2")
        for way in ("truncate", "r2t")
    ]
    for place, (name, edges) in enumerate(_graphs().items()):
        frame = pl.DataFrame(
            {"src": [a for a, _ in edges], "dst": [b for _, b in edges]}, schema={"src": pl.Int64, "dst": pl.Int64}
        )
        for unit, what, way in ways:
            for epsilon in (0.5, 10.0):
                said, kind = f"{name}, ε = {epsilon:g}", f"graph, {what} for {unit}s, {way}"
                look = _pattern(kind, unit, what, way, epsilon, _patterns(edges)[what])
                yield Cell(
                    f"graph {unit} {what} {way} {said}", said, _opened(rules, {"edge": frame}, place), look, MISS
                )


def _pattern(kind: str, unit: str, what: str, way: str, epsilon: float, truth: int) -> Any:
    name, _, leaves = what.partition("_")

    def call(session: Session) -> Any:
        asked = getattr(session.graph("edge", "src", "dst", unit=unit), name)
        return asked(*([int(leaves)] if leaves else []), epsilon=epsilon, confidence=CONFIDENCE, mechanism=way)

    again = Again(call)

    def look(session: Session) -> Iterator[Seen]:
        for _, column, _, low, high in shown(again(session), 0):
            yield from judged(kind, "", (truth, truth), column, (low, high), flat=False, dense=False)

    return look


# --- microdata --------------------------------------------------------------------------------------------------------


def microdata_cells() -> Iterator[Cell]:
    for place, (name, frame) in enumerate(data().items()):
        for budget, epsilon in (("ε", 0.1), ("ε", 5.0), ("δ", 1.0)):
            said = f"{name}, {budget}, ε = {epsilon:g}"
            yield Cell(
                f"microdata {said}", said, _opened(policy(budget), {"t": frame}, place), _tables(frame, epsilon), MISS
            )


def _tables(frame: pl.DataFrame, epsilon: float) -> Any:
    counts = {
        keys: {key: len(rows["x"]) for key, rows in grouped(frame, keys).items()} for keys in (("g",), ("g", "h"))
    }
    queries: list[tuple[str, Any, int]] = [
        ("the total", {}, frame.height),
        (
            "a selection",
            {"g": ["a", "b"], "h": [1, 2, 3]},
            frame.filter(pl.col("g").is_in(["a", "b"]) & pl.col("h").is_in([1, 2, 3])).height,
        ),
        (
            "a difference",
            [(1, {"g": "a"}), (-1, {"g": "b"})],
            frame.filter(pl.col("g") == "a").height - frame.filter(pl.col("g") == "b").height,
        ),
    ]

    def look(session: Session) -> Iterator[Seen]:
        made = session.microdata([("g",), ("g", "h")], epsilon, "ols", confidence=CONFIDENCE, table="t")
        for keys, own in counts.items():
            for key, _, _, low, high in shown(made.noisy(keys), len(keys)):
                truth = own.get(key, 0)
                yield Seen("microdata, noisy counts", f"{key}", float(not inside((truth, truth), low, high)))
        for what, query, truth in queries:
            found = made.error(query)
            yield Seen(
                f"microdata, {what} from all counts", "", float(not inside((truth, truth), found.low, found.high))
            )

    return look


@cache
def cells() -> tuple[Cell, ...]:
    found = (
        *table_cells(),
        *group_cells(),
        *column_cells(),
        *join_cells(),
        *graph_cells(),
        *microdata_cells(),
        *verdict_cells(),
        *kind_cells(policy, data()),
    )
    assert len({cell.name for cell in found}) == len(found)
    return found
