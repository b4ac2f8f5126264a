"""Every decider on Adult against two synthetic copies, over the τ and ε of the deciders paper, 100 runs a cell.

The copies: a bootstrap of the rows, and columns drawn independently. 12 COUNT, 9 SUM and 9 MEDIAN queries of mixed
selectivity. Bars: `auto` errs at most 1.05 times as often as the best single decider of its aggregate, and `clip` less
often than each of the paper's three for sums. `python -m bench.trust_adult FOLDER` also draws the figures there.
"""

import gzip
import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import confide
from confide.mechanism import KernelRandomness
from confide.privacy.charge import Charge
from confide.privacy.loss import PureDP
from confide.release.verdict.request import VerdictGroup, prepare_request
from confide.release.verdict.subject import Subject, Wanted, fetch
from confide.trust.seen import Reading, Seen

ADULT = Path(__file__).resolve().parents[2] / "shared" / "data" / "adult" / "adult_raw.csv.gz"
TAUS = ("0.2%", "0.8%", "3.2%", "12.8%", "51.2%")
EPSILONS = tuple(Fraction(1, power) for power in (16, 8, 4, 2, 1))
TAU, EPSILON = "3.2%", Fraction(1, 4)
RUNS = 100
PAPER = {"COUNT": ("laplace", "exponential"), "SUM": ("laplace", "r2t", "svt"), "MEDIAN": ("exponential", "histogram")}
RANGES = {"age": (0, 100), "fnlwgt": (0, 1_500_000), "capital_gain": (0, 100_000), "hours_per_week": (0, 100)}
CHARGE = Charge(0, "", PureDP(Fraction(0)), "benchmark", "", "")

COUNTS = (
    "sex = 'Male'",
    "race = 'White' AND native_country = 'United-States' AND marital_status = 'Married-civ-spouse'",
    "workclass = 'Federal-gov'",
    "relationship = 'Unmarried' AND sex = 'Male'",
    "sex = 'Female' AND education = 'Doctorate'",
    "race = 'Black' AND marital_status = 'Divorced'",
    "education = 'HS-grad' AND marital_status = 'Never-married' AND sex = 'Female'",
    "race = 'Amer-Indian-Eskimo' AND sex = 'Female'",
    "occupation = 'Farming-fishing' AND income = '>50K'",
    "workclass = 'Self-emp-inc' AND education = 'Bachelors'",
    "native_country = 'Mexico' AND education = 'HS-grad'",
    "marital_status = 'Separated' AND sex = 'Male' AND education = 'Masters'",
)
SUMS = (
    ("capital_gain", "age >= 0"),
    ("capital_gain", "education = 'Doctorate'"),
    ("capital_gain", "sex = 'Female' AND marital_status = 'Never-married'"),
    ("fnlwgt", "sex = 'Male'"),
    ("fnlwgt", "race = 'Black' AND marital_status = 'Divorced'"),
    ("fnlwgt", "workclass = 'Federal-gov'"),
    ("hours_per_week", "education = 'Masters'"),
    ("hours_per_week", "occupation = 'Farming-fishing' AND income = '>50K'"),
    ("hours_per_week", "race = 'Amer-Indian-Eskimo' AND sex = 'Female'"),
)
MEDIANS = (
    ("age", "sex = 'Male'"),
    ("age", "education = 'Doctorate'"),
    ("age", "workclass = 'Federal-gov' AND sex = 'Female'"),
    ("age", "marital_status = 'Never-married' AND race = 'Black'"),
    ("age", "native_country = 'Mexico'"),
    ("hours_per_week", "sex = 'Female'"),
    ("hours_per_week", "occupation = 'Farming-fishing'"),
    ("hours_per_week", "education = 'Doctorate' AND income = '>50K'"),
    ("hours_per_week", "relationship = 'Own-child' AND sex = 'Male'"),
)
QUERIES = {
    "COUNT": tuple(f"SELECT COUNT(*) FROM adult WHERE {where}" for where in COUNTS),
    "SUM": tuple(f"SELECT SUM({column}) FROM adult WHERE {where}" for column, where in SUMS),
    "MEDIAN": tuple(f"SELECT MEDIAN({column}) FROM adult WHERE {where}" for column, where in MEDIANS),
}


@dataclass(frozen=True)
class Cell:
    """How often one decider was wrong about one query."""

    aggregate: str
    query: int
    copy: str
    tau: str
    epsilon: Fraction
    decider: str
    right: bool
    error: float


def read_adult() -> pl.DataFrame:
    with gzip.open(ADULT) as file:
        frame = pl.read_csv(file.read())
    return frame.rename({name: name.replace("-", "_") for name in frame.columns})


def copies(adult: pl.DataFrame) -> dict[str, pl.DataFrame]:
    random = np.random.default_rng(20_231)
    rows = len(adult)
    columns = {name: adult[name].gather(random.integers(0, rows, rows)) for name in adult.columns}
    return {"bootstrap": adult[random.integers(0, rows, rows)], "independent": pl.DataFrame(columns)}


def rules(adult: pl.DataFrame) -> dict[str, Any]:
    texts = {name: {"values": sorted(adult[name].unique())} for name in adult.columns if adult[name].dtype == pl.String}
    columns = texts | {name: {"range": list(ends)} for name, ends in RANGES.items()}
    tables = {"adult": {"columns": columns}}
    return {"confide": 1, "budget": {"epsilon": 1000}, "unit": "row", "tables": tables}


def measure(aggregate: str, number: int, copy: str, group: VerdictGroup, question: Subject, read: Any) -> list[Cell]:
    """All deciders of one query at one τ."""
    truth = inside(group, question, read)
    cells = []
    for epsilon in EPSILONS:
        for name in ("auto", *group.chooser.names):
            decider = group.chooser.make(group.chooser.resolve(name, epsilon)[0], epsilon)
            bits = decider.decide(read(decider.reading), KernelRandomness(), RUNS)
            wrong = float((bits != truth).mean())
            cells.append(Cell(aggregate, number, copy, "", epsilon, name, truth, wrong))
    return cells


def inside(group: VerdictGroup, question: Subject, read: Any) -> bool:
    margin: Any = group.chooser.make("optimal", Fraction(1))
    return bool(margin.margin.of(read(margin.reading)) >= 1)


def run() -> list[Cell]:
    adult = read_adult()
    cells: list[Cell] = []
    with confide.testing.open(rules(adult), {"adult": adult}, seed=1) as session:
        holdings, bind = session._holdings, session._reader("duckdb")
        for copy, frame in copies(adult).items():
            with session.open_copy(frame) as opened:
                for aggregate, texts in QUERIES.items():
                    for number, text in enumerate(texts):
                        for tau in TAUS:
                            request = prepare_request(holdings, text, opened, tau, "auto", "balanced", bind)
                            question = request.questions[0]

                            @cache
                            def read(reading: Reading, question: Subject = question) -> Seen:
                                wanted = [Wanted(question, (reading,))]
                                return fetch(wanted, lambda s: holdings.engine.evaluate(s, CHARGE, b""))[0][0]

                            found = measure(aggregate, number, copy, request.groups[0], question, read)
                            cells += [Cell(**{**vars(cell), "tau": tau}) for cell in found]
    return cells


def mean(cells: list[Cell], **where: Any) -> float:
    chosen = [cell.error for cell in cells if all(getattr(cell, name) == value for name, value in where.items())]
    return float(np.mean(chosen)) if chosen else float("nan")


def report(cells: list[Cell]) -> None:
    for aggregate, texts in QUERIES.items():
        own = [cell for cell in cells if cell.aggregate == aggregate]
        names = list(dict.fromkeys(cell.decider for cell in own))
        yes = np.mean([cell.right for cell in own])
        print(f"\n{aggregate}: {len(texts)} queries, 2 copies, 25 cells each, {RUNS} runs; yes is right in {yes:.0%}")
        print(f"  {'mean error':<20}{'all':>8}{'bootstrap':>11}{'independ.':>11}{'yes right':>11}{'no right':>10}")
        for name in sorted(names, key=lambda name: mean(own, decider=name)):
            parts = [mean(own, decider=name), mean(own, decider=name, copy="bootstrap"),
                     mean(own, decider=name, copy="independent"), mean(own, decider=name, right=True),
                     mean(own, decider=name, right=False)]  # fmt: skip
            print(
                f"  {name:<20}" + "".join(f"{part:>{w}.4f}" for part, w in zip(parts, (8, 11, 11, 11, 10), strict=True))
            )
        for varied, heads, fixed in (
            ("τ at ε = 0.25", TAUS, {"epsilon": EPSILON}),
            ("ε at τ = 3.2 %", EPSILONS, {"tau": TAU}),
        ):
            print(
                f"  mean error by {varied:<16}"
                + "".join(f"{head if isinstance(head, str) else float(head):>9}" for head in heads)
            )
            for name in names:
                which = "tau" if fixed.keys() == {"epsilon"} else "epsilon"
                row = [mean(own, decider=name, **fixed, **{which: head}) for head in heads]
                print(f"    {name:<28}" + "".join(f"{part:>9.3f}" for part in row))
        best = min((name for name in names if name != "auto"), key=lambda name: mean(own, decider=name))
        ratio = mean(own, decider="auto") / mean(own, decider=best)
        print(f"  auto / best single decider ({best}): {ratio:.3f}   bar 1.05: {'met' if ratio <= 1.05 else 'MISSED'}")
        if aggregate == "SUM":
            ours = mean(own, decider="clip")
            for name in PAPER["SUM"]:
                theirs = mean(own, decider=name)
                print(f"  clip {ours:.4f} below {name} {theirs:.4f}: {'met' if ours < theirs else 'MISSED'}")


def draw(cells: list[Cell], folder: Path) -> None:
    """Error by τ and by ε for four queries of each aggregate, and on average: as Figures 5 to 10 of the paper."""
    import altair as alt  # noqa: PLC0415  heavy

    for aggregate in QUERIES:
        own = [cell for cell in cells if cell.aggregate == aggregate and cell.decider != "exponential-naive"]
        shown = {"mean": own} | {f"{aggregate.lower()} {n + 1}": [c for c in own if c.query == n] for n in (0, 3, 5, 7)}
        rows = []
        for panel, part in shown.items():
            for name in dict.fromkeys(cell.decider for cell in own):
                rows += [
                    {"panel": panel, "by": "τ, % (ε = 0.25)", "x": float(tau[:-1]), "decider": name,
                     "error": mean(part, decider=name, tau=tau, epsilon=EPSILON)} for tau in TAUS
                ] + [
                    {"panel": panel, "by": "ε (τ = 3.2 %)", "x": float(e), "decider": name,
                     "error": mean(part, decider=name, tau=TAU, epsilon=e)} for e in EPSILONS
                ]  # fmt: skip
        panels = []
        for by in dict.fromkeys(row["by"] for row in rows):
            chart = alt.Chart(alt.InlineData(values=[row for row in rows if row["by"] == by])).mark_line()
            marks = sorted({float(row["x"]) for row in rows if row["by"] == by})  # type: ignore[arg-type]
            encoded = chart.encode(
                x=alt.X(
                    "x:Q", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(values=marks, grid=False), title=by
                ),
                y=alt.Y("error:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(grid=False), title="error"),
                color="decider:N",
            )
            panels.append(
                encoded.properties(width=130, height=110).facet(
                    column=alt.Column("panel:N", title=None, sort=list(shown))
                )
            )
        alt.vconcat(*panels, title=f"{aggregate} on Adult, two copies, {RUNS} runs").save(
            str(folder / f"trust_{aggregate.lower()}.svg"), format="svg"
        )


def draw_gaps(folder: Path) -> None:
    """The forecast of one query, as Figure 4 of the paper."""
    adult = read_adult()
    with confide.testing.open(rules(adult), {"adult": adult}, seed=1) as session:
        plan = session.plan_trust(QUERIES["COUNT"][3], copies(adult)["bootstrap"], within=30, epsilon=Fraction(1, 10))
        assert isinstance(plan, confide.TrustPlan)
        plan.plot("laplace", "exponential").save(str(folder / "trust_gaps.svg"), format="svg")


def main() -> None:
    if not ADULT.exists():
        print(f"skipped: there is no {ADULT.name} where the shared data are")
        return
    cells = run()
    report(cells)
    if __name__ == "__main__" and len(sys.argv) > 1:
        draw(cells, Path(sys.argv[1]))
        draw_gaps(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
