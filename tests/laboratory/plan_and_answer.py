"""Questions with policies and parameters at the edges of what is accepted: what `plan` takes, `sql` must answer.

Everything is drawn from a seed: the policy, tiny data under it, the text, ε, confidence, mechanism, split and bounds.
"""

import math
import random
import re
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

import confide
from confide.engine import Engine
from confide.errors import ConfideError
from confide.ledger import MemoryLedger
from confide.mechanism import TestRandomness
from confide.policy import Policy, load
from confide.release.answer.plan import Plan
from confide.release.custody.sources import open_engine
from confide.release.session import Session

EPSILONS = (1e-30, 1e-24, 1e-18, 1e-15, 1e-12, 1e-9, 1e-6, 1e-4, 0.01, 0.1, 1, 10, 700, 1e4, 1e6)
CONFIDENCES = (1e-12, 0.01, 0.5, 0.95, 0.999, 0.999999999, 0.9999999999999999)
DELTAS = (None, None, 1e-30, 1e-9, 0.01)
RANGES = (
    ([0, 1], 1),
    ([0, 100], 1),
    ([-10, 30], 1),
    ([0, 1], 1e-12),
    ([-1, 1], 0.001),
    ([0, 10**12], 10**12),
    ([-(10**6), 10**6], 0.01),
    ([-4 * 10**18, 4 * 10**18], 1),
    ([4 * 10**18, 4 * 10**18 + 7], 1),
    ([-(2**62) + 1, 2**62 - 1], 1),
    ([0, 4 * 10**30], 10**12),
    ("unbounded", 1),
    ("unbounded", 0.001),
)
MOST_ROWS = (1, 2, 20, 1000, 10**9)
SHARES = ("1e-12", "1e-30", 1, 1000, "1/3", 10**6)

AGGREGATES = (
    "COUNT(*)", "COUNT(x)", "COUNT(DISTINCT s)", "COUNT(*) FILTER (WHERE b > 1)", "SUM(x)", "SUM(y)", "AVG(x)",
    "AVG(y)", "SUM(x * y)", "AVG(x * y)", "AVG(x + y)", "SUM(ABS(x))", "SUM(x) / COUNT(*)", "VARIANCE(x)",
    "STDDEV(y)", "VAR_POP(y)", "MIN(x)", "MAX(x)", "MEDIAN(x)", "MEDIAN(y)", "QUANTILE(x, 0.123457)",
    "QUANTILE(y, 0.9)", "QUANTILE(x, 0.999999)", "COUNT(DISTINCT id)", "ROUND(AVG(x), 2)",
    "SUM(LEAST(x, 5)) * 1e6", "MEDIAN(x + y)", "SUM(CASE WHEN b = 1 THEN x ELSE y END)",
    "100 * COUNT(*) FILTER (WHERE b = 2) / COUNT(*)", "MEDIAN(d - DATE '1990-01-01')", "MIN(d)", "SUM(x) - SUM(y)",
    "ABS(SUM(x)) * 1e9", "SUM(x) * SUM(y)", "SUM(x) * SUM(x) / SUM(y)", "CORR(x, y)", "COVAR_POP(x, b)",
    "REGR_SLOPE(x, y)", "REGR_R2(b, y)", "BOOL_OR(x > 3)", "BOOL_AND(b = 1)", "SUM(DISTINCT b)", "AVG(DISTINCT x)",
    "AVG(FLOOR(x / 7))", "SUM(SQRT(ABS(b)))", "AVG(b / NULLIF(x, 0))", "AVG(LENGTH(s))", "SUM(MONTH(d))",
    "AVG(CASE WHEN x > 0 THEN LN(x) END)", "SUM(ABS(b) % 2)",
)  # fmt: skip
KEYS = (
    "", "", "", "g", "b", "BIN(d, 30)", "s", "g, b", "b > 1", "DATE_TRUNC('month', d)", "CASE WHEN b = 1 THEN 'x' END",
)  # fmt: skip
WHERES = (
    "", "", "WHERE b = 1", "WHERE x > 3", "WHERE y IS NULL", "WHERE s LIKE 'a%'", "WHERE MONTH(d) > 3 AND x // 2 = 1",
    "WHERE EXISTS (SELECT 1 FROM v WHERE v.id = t.id AND v.w > 2)", "WHERE id NOT IN (SELECT id FROM v WHERE k = 1)",
    "WHERE x > (SELECT AVG(x) FROM t)",
)  # fmt: skip
WHOLE = (
    "SELECT AVG(n) AS a, MAX(n) AS c, COUNT(*) FILTER (WHERE n > 3) AS e FROM "
    "(SELECT g, COUNT(*) AS n FROM t GROUP BY g)",
    "WITH one AS (SELECT g, SUM(x) AS n FROM t GROUP BY g), "
    "two AS (SELECT g, COUNT(*) AS n FROM t WHERE b = 1 GROUP BY g) "
    "SELECT g, one.n / NULLIF(two.n, 0) AS a, one.n - two.n AS c FROM one JOIN two USING (g)",
    "SELECT g, COUNT(*) AS a FROM t GROUP BY g UNION ALL SELECT 'all', COUNT(*) FROM t",
    "SELECT g, 100 * COUNT(*) / SUM(COUNT(*)) OVER () AS a, "
    "RANK() OVER (ORDER BY COUNT(*) DESC) AS c FROM t GROUP BY g",
    "SELECT b, SUM(SUM(y)) OVER (ORDER BY b) AS a FROM t GROUP BY b",
    "SELECT g, AVG(x) AS a FROM t GROUP BY g QUALIFY ROW_NUMBER() OVER (ORDER BY a DESC) = 1",
    "SELECT g, AVG(x) - (SELECT AVG(x) FROM t) AS a FROM t GROUP BY g",
    "SELECT COUNT(*) AS a FROM t WHERE y <= (SELECT MEDIAN(y) FROM t)",
    "SELECT SUM(w) AS a FROM v WHERE w > (SELECT SUM(w) / COUNT(*) FROM v)",
    "SELECT g, LN(COUNT(*)) AS a, CASE WHEN AVG(x) > 5 THEN 'high' ELSE 'low' END AS c FROM t GROUP BY g",
    "SELECT g, COUNT(*) AS a FROM t GROUP BY ROLLUP(g)",
    "SELECT g, BIN(d, 100) AS m, COUNT(*) AS a FROM t GROUP BY CUBE(g, m)",
    "SELECT g, BIN(d, 200) AS m, COUNT(*) AS a FROM t WHERE x > 3 GROUP BY GROUPING SETS ((g, m), (g), ())",
    "SELECT k, AVG(c) AS a, COUNT(*) AS e FROM (SELECT id, k, COUNT(*) AS c FROM v GROUP BY id, k) AS i GROUP BY k",
    "SELECT c, COUNT(*) AS a FROM (SELECT id, COUNT(*) AS c FROM v GROUP BY id) AS i GROUP BY c",
)
"""Several tables at once, questions on released rows, and one number of each unit."""
WORKLOADS = (
    "marginals(1, ['g'])", "marginals(2, ['g', 'k'])", "ranges('d', bins=30)", "prefixes('d', bins=7)",
    "prefixes('d', bins=1, by=['g'])", "prefixes('x', bins=1)", "ranges('y', bins=10)", "marginals(1, ['k'])",
    "ranges('d', bins=60) + marginals(1, ['g'])",
)  # fmt: skip
STRATEGIES = (
    "auto", "auto", "direct", "identity", "hierarchy", "wavelet", "prefix", "optimised", "residual", "privtree", "dawa",
)  # fmt: skip
LINEAR = (
    "COUNT(*)", "COUNT(x)", "COUNT(*) FILTER (WHERE b > 1)", "SUM(x)", "SUM(y)", "SUM(x * y)", "SUM(ABS(x))",
    "SUM(LEAST(x, 5)) * 1e6", "SUM(CASE WHEN b = 1 THEN x ELSE y END)", "SUM(x) - SUM(y)",
)  # fmt: skip
_DIRECT = {"discrete laplace", "discrete gaussian"}
OF_QUANTILES = ("auto", "pair", "em", "svt", "smooth")
OF_SUMS = ("auto", "laplace", "svt", "r2t", "tail")
JOINED = (
    "SELECT COUNT(*) AS a FROM t JOIN v ON t.id = v.id",
    "SELECT SUM(w) AS a FROM t JOIN v ON t.id = v.id",
    "SELECT AVG(w) AS a, COUNT(*) AS c FROM t JOIN v ON t.id = v.id",
    "SELECT COUNT(*) AS a FROM v AS p JOIN v AS q ON p.k = q.k",
    "SELECT SUM(p.w) AS a FROM v AS p JOIN v AS q ON p.k = q.k",
    "SELECT SUM(p.w) AS a FROM v AS p JOIN v AS q ON p.k = q.k JOIN v AS r ON q.k = r.k",
    "SELECT COUNT(*) AS a FROM v AS p JOIN v AS q ON p.k = q.k JOIN v AS r ON q.k = r.k",
    "SELECT t.g, COUNT(*) AS a FROM t JOIN v ON t.id = v.id GROUP BY t.g",
    "SELECT SUM(p.w * q.w) AS a FROM v AS p JOIN v AS q ON p.k = q.k",
)
BY_ROW = ("auto", "residual", "elastic")


@dataclass(frozen=True)
class Case:
    """One question under one policy, on data that fit it."""

    number: int
    policy: dict[str, Any]
    data: dict[str, pl.DataFrame]
    sql: str
    options: dict[str, Any]

    def __str__(self) -> str:
        tables = {name: frame.to_dicts()[:6] for name, frame in self.data.items()}
        return f"case {self.number}: {self.sql!r} {self.options}\n{self.policy}\n{tables}"


@dataclass
class Outcome:
    """How a case ended: refused before anything was charged, answered, or what must not be."""

    case: Case
    kind: str
    """refused, answered, or wrong."""
    detail: str = ""
    ratios: dict[str, float] = field(default_factory=dict)
    """Of each column that the plan claims to know, the half-width of the interval over the one that was forecast."""


def cases(seed: int, count: int, per_world: int = 8) -> Iterator[Case]:
    """So many of them; a few questions to each policy."""
    for number in range(count):
        world = random.Random(f"{seed}/{number // per_world}")
        policy, data = _world(world)
        yield _case(random.Random(f"{seed}/{number}/question"), number, policy, data)


def run(case: Case, session: Session) -> Outcome:
    """Plan and ask. A plan may refuse, with an error of ours; the question may only where its plan does."""
    options = dict(case.options)
    workload = _workload(case.sql)
    planned, asked = (session.plan, session.sql) if workload is None else (session.plan_answer, session.answer)
    what: Any = case.sql if workload is None else workload
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            plan: Any = planned(what, **options)
            refusal = ""
        except ConfideError as error:
            plan, refusal = None, str(error)
        except Exception as error:  # whatever it is, it is wrong
            return Outcome(case, "wrong", f"plan raised {_told(error)}")
        spent = session._holdings.ledger.spent()
        try:
            answer: Any = asked(what, **options)
        except ConfideError as error:
            if session._holdings.ledger.spent() != spent:
                return Outcome(case, "wrong", f"charged, then refused: {error!r}")
            if plan is not None and type(error).__name__ != "BudgetError":
                return Outcome(case, "wrong", f"planned, then refused: {error!r}")
            return Outcome(case, "refused", str(error))
        except Exception as error:
            return Outcome(case, "wrong", f"sql raised {_told(error)}")
    if plan is None:
        return Outcome(case, "wrong", f"answered, but the plan refused: {refusal}")
    if session._holdings.ledger.spent() == spent:
        return Outcome(case, "wrong", "answered for nothing")
    return Outcome(case, "answered", "", _ratios(case, plan, answer) if workload is None else _widths(plan, answer))


def _workload(text: str) -> Any:
    """The workload that a text stands for, if it is one."""
    return (
        eval(f"+confide.{text}".replace(" + ", " + confide.")[1:], {"confide": confide}) if text in WORKLOADS else None
    )


def _widths(plan: Any, answers: Any) -> dict[str, float]:
    """The widest upper half over what was planned as the widest; where parts are found only, nothing is planned."""
    if answers.strategy.startswith(("privtree", "dawa")):
        return {}
    halves = [(own.high - own.values)[own.high > 0] for own in answers.tables()]
    seen = sum(half.size for half in halves)
    widest = max((float(half.max()) for half in halves if half.size), default=0.0)
    ratio = widest / plan.worst
    # Ends are whole, and where the widest is cut at zero what is left may be narrower.
    return {} if widest < 10 or (ratio < 1 and seen < len(answers)) else {"widest": ratio}


def _told(error: Exception) -> str:
    places = [frame for frame in traceback.extract_tb(error.__traceback__) if "confide" in frame.filename]
    return f"{error!r} at {Path(places[-1].filename).name}:{places[-1].lineno}: {places[-1].line}"


def run_all(seed: int, count: int) -> Iterator[Outcome]:
    """All of them; each question has a ledger of its own, so that none is refused for want of a budget."""
    engine: Engine | None = None
    known: object = None
    for case in cases(seed, count):
        rules = load(case.policy)
        if engine is None or case.policy != known:
            if engine is not None:
                engine.close()
            engine, known = open_engine(rules, case.data), case.policy
        book = MemoryLedger(rules.budget, rules.analysts)
        yield run(case, Session(rules, engine, book, randomness=TestRandomness(case.number)))
    if engine is not None:
        engine.close()


def _ratios(case: Case, plan: Plan, answer: Any) -> dict[str, float]:
    """Of what the plan names without saying that it depends on something: there the law alone says how wide an interval
    is, in every group. Intervals that are cut where the answer cannot lie are left out.
    """
    columns = re.split(r"^SELECT |, (?=[A-Z(])| FROM ", case.sql)
    linear = {name for text, _, name in (column.rpartition(" AS ") for column in columns) if text in LINEAR}
    result = {}
    for column in plan.columns:
        if column.name in linear and set(column.mechanism.split(" + ")) <= _DIRECT and column.depends:
            result[column.name] = math.nan  # the law alone says this width, whatever the plan says it depends on
        if column.depends or column.mechanism == "exact" or not column.half_width:
            continue
        if case.sql in WHOLE and case.options["confidence"] < 0.01:
            continue  # ends are rounded by more than that
        rows = answer.to_dicts()
        # Of several tables, and of what is made of released rows, the widest is planned.
        if case.sql in WHOLE and rows:
            rows = [max(rows, key=lambda row, name=column.name: _width(row, name))]
        for row in rows:
            low, value, high = (float(row[f"{column.name}{end}"]) for end in ("_low", "", "_high"))
            if low < value < high and abs(low + high - 2 * value) <= 0.02 * (high - low):
                ratio = (high - low) / 2 / column.half_width
                if abs(math.log(ratio)) >= abs(math.log(result.get(column.name, 1.0))):
                    result[column.name] = ratio
    return result


def _width(row: Any, name: str) -> float:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return 0.0 if isinstance(low, str) or low is None or high is None else float(high) - float(low)


# --- worlds -----------------------------------------------------------------------------------------------------------


def _world(draw: random.Random) -> tuple[dict[str, Any], dict[str, pl.DataFrame]]:
    delta = draw.choice(DELTAS)
    budget = {"epsilon": 10**6} | ({} if delta is None else {"delta": delta})
    by_key = draw.random() < 0.5
    columns = {
        "id": {"type": "id"},
        "g": {"values": ["a", "b", "c"]},
        "b": {"values": [1, 2, 3], "nulls": True},
        "x": _ranged(draw),
        "y": _ranged(draw),
        "d": {"range": [_day(1990), _day(1991)]},
        "s": {"type": "text"},
    }
    visits = {"id": {"type": "id"}, "w": _ranged(draw), "k": {"values": [0, 1, 2]}}
    first: dict[str, Any] = {"columns": columns}
    second: dict[str, Any] = {"columns": visits}
    if draw.random() < 0.3:
        first["size"] = draw.choice([1, 1000, 10**9])
    if by_key:
        second["references"] = {"id": "t.id"}
        second["at_most"] = {"rows": draw.choice(MOST_ROWS)}
        if draw.random() < 0.5:
            first["at_most"] = {"rows": draw.choice(MOST_ROWS)}
        elif draw.random() < 0.5:
            first["rows"] = "public"
    elif draw.random() < 0.4:
        first["rows"] = "public"
    policy = {"confide": 1, "budget": budget, "unit": "t.id" if by_key else "row", "tables": {"t": first, "v": second}}
    rows = draw.choice([0, 1, 2, 7, 40])
    return policy, _frames(draw, load(policy), rows)


def _ranged(draw: random.Random) -> dict[str, Any]:
    ends, grain = draw.choice(RANGES)
    column = {"range": ends, "grain": grain}
    if draw.random() < 0.3:
        column["typical"] = [0, 1000] if ends == "unbounded" else ends
    return column


def _day(year: int) -> Any:
    from datetime import date  # noqa: PLC0415

    return date(year, 1, 1)


def _frames(draw: random.Random, policy: Policy, rows: int) -> dict[str, pl.DataFrame]:
    nothing = draw.random() < 0.15

    def column(values: Any, count: int, kind: Any) -> pl.Series:
        drawn = [None if nothing or draw.random() < 0.1 else draw.choice(values) for _ in range(count)]
        return pl.Series(drawn, dtype=kind)

    def numbers(table: str, name: str, count: int) -> pl.Series:
        found = policy.tables[table].columns[name]
        if not hasattr(found, "low"):
            return column([-(10.0**18), -1.0, 0.0, 3.0, 10.0**18, 1e300], count, pl.Float64)
        low, high = float(found.low), float(found.high)
        return column([low, high, (low + high) / 2, low - 1e19, math.inf, math.nan], count, pl.Float64)

    visits = draw.choice([0, 1, 3, 60])
    t = {
        "id": pl.Series(range(rows), dtype=pl.Int64) if draw.random() < 0.7 else column(range(3), rows, pl.Int64),
        "g": column(["a", "b", "c", "z"], rows, pl.String),
        "b": column([1, 2, 3, 9], rows, pl.Int64),
        "x": numbers("t", "x", rows),
        "y": numbers("t", "y", rows),
        "d": column([_day(1980), _day(1990), _day(1991)], rows, pl.Date),
        "s": column(["a", "ab", "", "é"], rows, pl.String),
    }
    v = {
        "id": column(range(8), visits, pl.Int64),
        "w": numbers("v", "w", visits),
        "k": column([0, 1, 2], visits, pl.Int64),
    }
    return {"t": pl.DataFrame(t), "v": pl.DataFrame(v)}


# --- questions --------------------------------------------------------------------------------------------------------


def _case(draw: random.Random, number: int, policy: dict[str, Any], data: dict[str, pl.DataFrame]) -> Case:
    options: dict[str, Any] = {"epsilon": draw.choice(EPSILONS), "confidence": draw.choice(CONFIDENCES)}
    if draw.random() < 0.5:
        options["confidence"] = 0.95
    kind = draw.random()
    if kind < 0.2:
        return Case(number, policy, data, draw.choice(WHOLE), options)
    if kind < 0.3:
        own = {"strategy": draw.choice(STRATEGIES), "table": draw.choice(["t", "t", "v"])}
        return Case(number, policy, data, draw.choice(WORKLOADS), {**options, **own})
    if kind < 0.45:
        sql = draw.choice(JOINED)
        options["mechanism"] = draw.choice(("auto", "truncate", "r2t") if policy["unit"] == "t.id" else BY_ROW)
        if draw.random() < 0.3 and options["mechanism"] in ("truncate", "r2t"):
            options["bounds"] = {"a": [0, draw.choice([1, 1000, 2**50])]}
    else:
        chosen = draw.sample(AGGREGATES, draw.choice([1, 1, 1, 2, 3]))
        if draw.random() < 0.1:
            chosen = ["AVG(m)"]
        names = ("n1", "n2", "n3")
        keys = draw.choice(KEYS) if chosen != ["AVG(m)"] else ""
        shown = ", ".join([*([keys] if keys else []), *(f"{a} AS {n}" for a, n in zip(chosen, names, strict=False))])
        source = draw.choice(["t", "t", "t", "v"]) if not re.search(r"[ysdbgx]\b", shown) else "t"
        if chosen == ["AVG(m)"]:
            source = "(SELECT id, SUM(w) AS m FROM v GROUP BY id) AS i"
        where = draw.choice(WHERES) if source == "t" else ""
        sql = f"SELECT {shown} FROM {source} {where}" + (f" GROUP BY {keys}" if keys else "")
        if draw.random() < 0.2 and len(chosen) > 1:
            options["split"] = {names[place]: draw.choice(SHARES) for place in range(len(chosen))}
        options["mechanism"] = draw.choice(_mechanisms(chosen))
    return Case(number, policy, data, sql, options)


def _mechanisms(chosen: list[str]) -> tuple[str, ...]:
    """Those that all columns have, most of the time."""
    if all(re.match(r"MEDIAN|QUANTILE|MIN|MAX", aggregate) for aggregate in chosen):
        return OF_QUANTILES
    if all(re.fullmatch(r"(SUM|AVG)\([xy]\)", aggregate) for aggregate in chosen):
        return OF_SUMS
    return ("auto",)
