"""Cells for statistics of two numbers, released rows, workloads, summaries and populations."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import polars as pl

import confide
import confide.testing
from confide.release import Session
from confide.release.summary.summary import TableSummary
from tests.laboratory.coverage import Again, Cell, Seen
from tests.laboratory.remembering import widths_remembered

MISS: Final = 0.1
CONFIDENCE: Final = 0.9
GROUPS: Final = ("a", "b", "c", "d", "e")
EPSILONS: Final = (0.1, 5.0)
Frame = pl.DataFrame


def missed(truth: float | None, low: float, high: float) -> float:
    """1 where an interval does not hold the exact number, if there is one."""
    if truth is None or np.isnan(truth) or np.isnan(low) or np.isnan(high):
        return 0.0
    spare = 1e-9 * max(1.0, abs(truth))
    return float(not low - spare <= truth <= high + spare)


def _numbers(answer: Any, keys: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], Any, float, float]]:
    """Key, column and ends of every number that an answer shows; a truth of a condition is 0 or 1."""
    shown = [column for column in answer.columns if not hasattr(column, "low")]
    named = [column.values for column in shown if column.name in keys]
    for column in answer.columns:
        if hasattr(column, "low"):
            for place, (low, high) in enumerate(zip(column.low, column.high, strict=True)):
                if low is not None and high is not None:
                    yield tuple(own[place] for own in named), column, float(low), float(high)


def _sql(kind: str, text: str, keys: Sequence[str], truths: Any, epsilon: float, picked: bool = False) -> Any:
    """Every number by itself, or the share that misses of rows that were picked by their values."""
    again = Again(lambda session: session.sql(text, epsilon=epsilon, confidence=CONFIDENCE))

    def look(session: Session) -> Iterator[Seen]:
        misses = []
        for key, column, low, high in _numbers(again(session), keys):
            own = truths.get(key)
            if own is None or column.name not in own:
                continue
            miss, assumed = missed(own[column.name], low, high), column.assumes != "always"
            misses.append(miss)
            if not picked:
                said = ": of data that may not be as it assumes" if assumed else ""
                yield Seen(f"{kind}{said}", f"{key} {column.name}", miss, high / 2 - low / 2, assumed=assumed)
        if picked:
            yield Seen(kind, "shown", sum(misses) / max(1, len(misses)))

    return look


def _all(looks: Sequence[Any]) -> Any:
    return lambda session: (seen for look in looks for seen in look(session))


# --- one table of numbers ---------------------------------------------------------------------------------------------


def _of_two(frame: Frame) -> dict[str, float | None]:
    """Statistics of two numbers, and values that count once."""
    x, z = (frame[name].to_numpy().astype(np.float64) for name in ("x", "z"))
    rows, once = len(x), np.unique(x)
    varies = rows > 1 and np.ptp(x) > 0
    both = varies and np.ptp(z) > 0
    return {
        "r": float(np.corrcoef(x, z)[0, 1]) if both else None,
        "c": float(np.cov(x, z, bias=True)[0, 1]) if rows else None,
        "slope": float(np.cov(x, z, bias=True)[0, 1] / x.var()) if varies else None,
        "once": float(once.sum()),
        "middle": float(once.mean()) if rows else None,
        "some": float((x > 990).any()) if rows else None,
        "each": float((x > 5).all()) if rows else None,
    }


_TWO: Final = {
    "CORR, COVAR, REGR_SLOPE": "CORR(x, z) AS r, COVAR_POP(x, z) AS c, REGR_SLOPE(z, x) AS slope",
    "SUM and AVG of DISTINCT": "SUM(DISTINCT x) AS once, AVG(DISTINCT x) AS middle",
    "BOOL_OR, BOOL_AND": "BOOL_OR(x > 990) AS some, BOOL_AND(x > 5) AS each",
}


def table_looks(frame: Frame, epsilon: float, _: str) -> Iterator[Any]:
    truths = {(): _of_two(frame)}
    by_group = {(group,): _of_two(frame.filter(pl.col("g") == group)) for group in GROUPS}
    for kind, shown in _TWO.items():
        yield _sql(kind, f"SELECT {shown} FROM t", (), truths, epsilon)
        yield _sql(f"{kind} by group", f"SELECT g, {shown} FROM t GROUP BY g", ("g",), by_group, epsilon)
    text = "SELECT g, REGR_SLOPE(z, x) AS slope FROM t GROUP BY g ORDER BY slope DESC LIMIT 1"
    yield _sql("REGR_SLOPE, the largest", text, ("g",), by_group, epsilon, picked=True)


# --- released rows ----------------------------------------------------------------------------------------------------


def derived_looks(frame: Frame, epsilon: float, _: str) -> Iterator[Any]:
    """What is made of counts and sums of five groups, and the rows that look largest."""
    counts = {group: frame.filter(pl.col("g") == group).height for group in GROUPS}
    sums = {group: float(frame.filter(pl.col("g") == group)["x"].sum()) for group in GROUPS}
    total, upto = sum(counts.values()), np.cumsum([counts[group] for group in GROUPS])
    places = {group: 1.0 + sum(other > counts[group] for other in counts.values()) for group in GROUPS}
    by_group: dict[tuple[Any, ...], dict[str, float | None]] = {
        (group,): {
            "share": 100 * counts[group] / total if total else None,
            "upto": float(upto[place]),
            "rank": places[group],
            "mean": sums[group] / counts[group] if counts[group] else None,
            "gap": counts[group] - total / 5,
            "n": float(counts[group]),
        }
        for place, group in enumerate(GROUPS)
    }
    inner = "SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g"
    texts = {
        "share of a total": "SELECT g, 100 * COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM t GROUP BY g",
        "running sum": "SELECT g, SUM(COUNT(*)) OVER (ORDER BY g) AS upto FROM t GROUP BY g",
        "rank": "SELECT g, RANK() OVER (ORDER BY COUNT(*) DESC) AS rank FROM t GROUP BY g",
        "gap to the mean of groups": "SELECT g, COUNT(*) - AVG(COUNT(*)) OVER () AS gap FROM t GROUP BY g",
        "ratio of released": f"SELECT g, s / NULLIF(n, 0) AS mean FROM ({inner}) AS i",
    }
    for kind, text in texts.items():
        yield _sql(f"derived, {kind}", text, ("g",), by_group, epsilon)
    for kind, name in (("share of a total", "share"), ("gap to the mean of groups", "gap")):
        text = f"{texts[kind]} ORDER BY {name} DESC LIMIT 1"
        yield _sql(f"derived, {kind}, the largest", text, ("g",), by_group, epsilon, picked=True)
    whole: dict[tuple[Any, ...], dict[str, float | None]] = {
        (): {"m": total / 5, "most": float(max(counts.values())), "large": float(sum(n > 60 for n in counts.values()))}
    }
    text = f"SELECT AVG(n) AS m, MAX(n) AS most, COUNT(*) FILTER (WHERE n > 60) AS large FROM ({inner}) AS i"
    yield _sql("derived, aggregates of released rows", text, (), whole, epsilon)
    tables: dict[tuple[Any, ...], dict[str, float | None]] = {
        (g, h): {"n": float(_where(frame, g, h).height)} for g in (*GROUPS, None) for h in (*range(10), None)
    }
    text = "SELECT g, h, COUNT(*) AS n FROM t GROUP BY CUBE(g, h)"
    yield _sql("CUBE, counts", text, ("g", "h"), tables, epsilon)


def _where(frame: Frame, g: str | None, h: int | None) -> Frame:
    frame = frame if g is None else frame.filter(pl.col("g") == g)
    return frame if h is None else frame.filter(pl.col("h") == h)


# --- workloads --------------------------------------------------------------------------------------------------------


_ONE: Final = ("direct", "identity", "hierarchy", "wavelet", "prefix", "optimised", "privtree", "dawa")


def workload_looks(frame: Frame, epsilon: float, budget: str) -> Iterator[Any]:
    cells = np.histogram(frame["z"].to_numpy(), np.arange(-50, 60, 5) - 0.5)[0]
    for strategy in _ONE:
        for what in ("ranges", "prefixes"):
            yield _workload(f"{what} by {strategy}", getattr(confide, what)("z", bins=5), strategy, cells, epsilon)
    counts = np.array([[_where(frame, g, h).height for h in range(10)] for g in GROUPS])
    for strategy in ("direct", "identity", "privtree", *(["residual"] if budget == "δ" else [])):
        yield _tables(f"marginals by {strategy}", strategy, counts, epsilon)


def _workload(kind: str, wanted: Any, strategy: str, cells: Any, epsilon: float) -> Any:
    """Stretches of one column: each, the one that looks largest for its width, and a sum of many that is free."""
    again = Again(lambda session: session.answer(wanted, epsilon, CONFIDENCE, strategy=strategy, table="t"))
    sums = np.concatenate([[0], np.cumsum(cells)])

    def look(session: Session) -> Iterator[Seen]:
        answers = again(session)
        with widths_remembered():
            found = answers.to_arrow().to_pydict()
        wide = []
        for place, (first, last) in enumerate(zip(found["z_from"], found["z_to"], strict=True)):
            begin, end = (int(first) + 50) // 5, (int(last) + 50) // 5 + 1
            low, high = found["count_low"][place], found["count_high"][place]
            miss = missed(float(sums[end] - sums[begin]), low, high)
            wide.append((found["count"][place] / max(1e-9, high - low), miss))
            yield Seen(f"workload, {kind}", f"{first} {last}", miss, (high - low) / 2)
        yield Seen(f"workload, {kind}, the most extreme", "picked", max(wide)[1], allowed=min(1.0, MISS * len(wide)))
        text = "SELECT COUNT(*) FILTER (WHERE z < -30) + COUNT(*) FILTER (WHERE z >= 10) AS n FROM t"
        answer = answers.sql(text)
        low, high = float(answer["n"].low[0]), float(answer["n"].high[0])
        yield Seen(f"workload, {kind}, a sum", "n", missed(float(sums[4] + sums[-1] - sums[12]), low, high))

    return look


def _tables(kind: str, strategy: str, counts: Any, epsilon: float) -> Any:
    wanted = confide.marginals(1, ["g", "h"]) + confide.marginals(2, ["g", "h"])
    again = Again(lambda session: session.answer(wanted, epsilon, CONFIDENCE, strategy=strategy, table="t"))
    exact = {(5,): counts.sum(axis=1), (10,): counts.sum(axis=0), (5, 10): counts}

    def look(session: Session) -> Iterator[Seen]:
        answers = again(session)
        with widths_remembered():
            tables = list(answers.tables())
        for own in tables:
            truths = exact[own.values.shape].reshape(-1)
            for place, (truth, low, high) in enumerate(
                zip(truths, own.low.reshape(-1), own.high.reshape(-1), strict=True)
            ):
                yield Seen(f"workload, {kind}", f"{own.title} {place}", missed(float(truth), float(low), float(high)))
        answer = answers.sql("SELECT COUNT(*) AS n FROM t WHERE g IN ('a', 'b') AND h < 4")
        low, high = float(answer["n"].low[0]), float(answer["n"].high[0])
        yield Seen(f"workload, {kind}, a sum", "n", missed(float(counts[:2, :4].sum()), low, high))

    return look


# --- summaries --------------------------------------------------------------------------------------------------------


def summary_looks(frame: Frame, epsilon: float, _: str) -> Iterator[Any]:
    again = Again(lambda session: session.summary(epsilon, "t"))

    def look(session: Session) -> Iterator[Seen]:
        found = TableSummary(again(session), CONFIDENCE)
        yield Seen("summary, rows", "", missed(float(frame.height), found.rows.low, found.rows.high))
        for column in found.columns:
            if column.name not in ("x", "z", "g", "h"):
                continue
            yield Seen("summary, missing", column.name, missed(0.0, column.missing.low, column.missing.high))
            ordered = np.sort(frame[column.name].to_numpy()) if column.quantiles else np.empty(0)
            for share, own in column.quantiles.items():
                if len(ordered):
                    part = float(share.strip("%")) / 100 * (len(ordered) - 1)
                    low, high = ordered[int(np.floor(part))], ordered[int(np.ceil(part))]
                    miss = missed(min(max(float(own.low), float(low)), float(high)), own.low, own.high)
                    yield Seen("summary, quantiles", f"{column.name} {share}", miss)
            misses = [
                missed(float((frame[column.name] == value).sum()), own.low, own.high) for value, own in column.commonest
            ]
            if misses:
                yield Seen("summary, commonest values that are shown", column.name, sum(misses) / len(misses))

    yield look


# --- populations ------------------------------------------------------------------------------------------------------


MEANS: Final = {"even": 500.0, "rare and large": 20.0, "two points": 100.0}


def _population(shape: str, random: np.random.Generator, rows: int) -> Any:
    if shape == "even":
        return random.integers(0, 1_001, rows)
    if shape == "two points":
        return np.where(random.random(rows) < 0.1, 1_000, 0)
    return np.where(random.random(rows) < 0.02, 1_000, 0)


def population_cells(policy: Callable[..., dict[str, Any]]) -> Iterator[Cell]:
    """What is true is the population's: rows are drawn anew from it for every run, so noise and sampling both vary."""
    for shape, truth in MEANS.items():
        for rows in (30, 400):
            for epsilon in EPSILONS:
                said = f"{shape}, {rows} drawn rows, ε = {epsilon:g}"
                look = _Drawn(shape, truth, rows, epsilon, policy())
                yield Cell(f"population {said}", said, look.opened, look, MISS)


class _Drawn:
    """A session for each run: of rows that were drawn for it."""

    def __init__(self, shape: str, truth: float, rows: int, epsilon: float, rules: dict[str, Any]) -> None:
        self._shape, self._truth, self._rows, self._epsilon, self._rules = shape, truth, rows, epsilon, rules
        self._random = np.random.default_rng(rows)

    def opened(self) -> Session:
        x = _population(self._shape, self._random, self._rows)
        frame = pl.DataFrame(
            {"g": ["a"] * len(x), "h": x % 10, "x": x, "z": x * 0, "w": x, "u": x, "word": ["w"] * len(x)}
        )
        return confide.testing.open(self._rules, {"t": frame}, seed=int(self._random.integers(2**31)))

    def __call__(self, _: Session) -> Iterator[Seen]:
        text = "SELECT AVG(x) AS m, COUNT(*) FILTER (WHERE x > 990) / COUNT(*) AS s FROM t"
        shares = {"even": 10 / 1_001, "rare and large": 0.02, "two points": 0.1}
        with self.opened() as session:
            answer = session.sql(text, epsilon=self._epsilon, confidence=CONFIDENCE, population=True)
            for name, kind, truth in (("m", "mean", self._truth), ("s", "share", shares[self._shape])):
                own = answer[name]
                yield Seen(f"{kind} of a population", name, missed(truth, float(own.low[0]), float(own.high[0])))


_FEW: Final = ("no rows", "two points", "heavy tail", "skewed groups", "ties")


def kind_cells(policy: Callable[..., dict[str, Any]], frames: Mapping[str, Frame]) -> Iterator[Cell]:
    groups = {"two": table_looks, "derived": derived_looks, "workload": workload_looks, "summary": summary_looks}
    for place, (name, frame) in enumerate(frames.items()):
        for budget, epsilon in (("ε", 0.1), ("ε", 5.0), ("δ", 1.0)):
            said = f"{name}, {budget}, ε = {epsilon:g}"
            for group, looks in groups.items():
                if group in ("workload", "summary") and name not in _FEW:
                    continue  # they take longest, and see counts alone
                for number, look in enumerate(looks(frame, epsilon, budget)):
                    opened = _opened(policy(budget), frame, place)
                    yield Cell(f"{group} {said} {number}", said, opened, look, MISS)
    yield from population_cells(policy)


def _opened(rules: dict[str, Any], frame: Frame, seed: int) -> Callable[[], Session]:
    return lambda: confide.testing.open(rules, {"t": frame}, seed=seed)
