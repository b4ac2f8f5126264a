"""Beginning with public rows: what is taken, what is refused, that nothing is paid for them, and under which name."""

import json
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import confide
import confide.testing
from confide.errors import ParameterError, SourceError
from confide.release import Session
from confide.release.synthetic.request import SynthesisOptions, bind_synthesis
from confide.release.synthetic.start import starting_rows
from confide.synthesis.reweight import MOST_ROWS, ReweightStrategy
from confide.workload import domain_of
from tests.release.samples import APPROXIMATE, PURE

ROWS = 3_000
WORKLOAD = confide.marginals(2)


def people(seed: int = 1, rows: int = ROWS) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    age = random.integers(0, 100, rows)
    return pl.DataFrame(
        {
            "sex": random.choice(["F", "M"], rows),
            "age": age,
            "member": age + random.integers(0, 40, rows) > 60,
            "born": np.datetime64("2024-01-01") - age * 365,
            "fee": random.choice([0.5, 1.0, 2.5], rows),
        }
    )


def rules(budget: dict[str, Any]) -> dict[str, Any]:
    columns = {
        "sex": {"values": ["F", "M"]},
        "age": {"range": [0, 99], "bins": 10},
        "member": {"values": [True, False]},
        "born": {"range": [date(1924, 1, 1), date(2024, 1, 1)], "bins": 3_653},
        "fee": {"range": [0, 3], "grain": 0.5},
    }
    before = {
        "public": True,
        "columns": {**columns, "age": {"range": [0, 120]}, "fee": {"range": [0, 9], "grain": 0.25}},
    }
    tables = {
        "person": {"size": ROWS, "columns": columns},
        "other": {"columns": {"x": {"values": [1]}}},
        "census": before,
    }
    return {"confide": 1, "budget": budget, "unit": "row", "tables": tables}


def opened(budget: dict[str, Any] = PURE, seed: int = 1) -> Session:
    frames = {"person": people(), "other": pl.DataFrame({"x": [1]}), "census": people(3)}
    return confide.testing.open(rules(budget), frames, seed=seed)


def made(session: Session, epsilon: object = 2, **more: Any) -> Any:
    return session.synthesize(WORKLOAD, epsilon, table="person", inside="even", **more)


def away(twin: Any) -> float:
    text = "SELECT sex, member, COUNT(*) AS n FROM person WHERE age >= 60 GROUP BY sex, member"
    counted = people().filter(pl.col("age") >= 60).group_by("sex", "member").len().rows()
    exact = {(sex, member): n for sex, member, n in counted}
    return float(
        sum(abs(row["n"] - exact.get((row["sex"], row["member"]), 0)) for row in twin.answer(text).to_pylist())
    )


@pytest.mark.parametrize("budget", [PURE, APPROXIMATE], ids=["pure", "approximate"])
def test_a_start_costs_nothing_and_the_call_what_was_asked(budget: dict[str, Any]) -> None:
    with opened(budget) as session:
        plan = session.plan_synthesize(WORKLOAD, 2, table="person", inside="even", start=people(2))
        without = session.plan_synthesize(WORKLOAD, 2, table="person", inside="even", method="rap")
        assert [(step.what, step.cost) for step in plan.steps] == [(step.what, step.cost) for step in without.steps]
        assert plan.settings["start"] == "3,000 rows of a frame"
        assert "by new weights of 3,000 rows of a frame" in str(plan)
        assert not [entry for entry in session._holdings.ledger.entries() if entry.kind == "charge"]
        twin = made(session, start=people(2))
        asked = session._holdings.standing().budget.cost(Fraction(2))
        assert session._holdings.ledger.spent() == asked
        assert twin.kind == "reweight"
        assert away(twin) < 250
        assert made(session, start=people(2)).to_bytes() == twin.to_bytes()
        assert session._holdings.ledger.spent() == asked
        again = type(twin).from_bytes(twin.to_bytes())
        assert again.to_arrow().equals(twin.to_arrow())
        assert set(twin.to_polars()["fee"].unique()) <= {k / 2 for k in range(7)}


@pytest.mark.parametrize("select", ["closure", "marginals", "all"])
def test_it_goes_on_where_it_stopped(select: str) -> None:
    def stop(_: str, done: int, steps: int) -> None:
        if done:
            raise KeyboardInterrupt

    with opened() as session, opened() as other:
        with pytest.raises(KeyboardInterrupt):
            made(session, start=people(2), select=select, progress=stop)
        assert 0 < session.budget.spent < 2
        twin = made(session, start=people(2), select=select)
        assert session.budget.spent == 2
        # The name of the start is made under the ledger's secret, and the noise is the same.
        assert twin.to_bytes() == made(other, start=people(2), select=select).to_bytes()


def test_other_rows_are_another_call() -> None:
    """One value that differs is enough, and what the ledger keeps of it is made under its secret."""
    changed = people(2).with_columns(pl.when(pl.int_range(pl.len()) == 7).then(50).otherwise("age").alias("age"))
    with opened() as session, opened() as other:
        keys = []
        for rows in (people(2), changed):
            made(session, 1, start=rows)
            keys.append([own.body["request"] for own in session._holdings.ledger.entries() if own.kind == "charge"][-1])
        assert session.budget.spent == 2
        assert keys[0] != keys[1]
        named = [json.loads(key)[6][2][1] for key in keys]
        assert all(len(name) == 64 for name in named)
        other._holdings.ledger.secret = b"another secret"
        made(other, 1, start=people(2))
        there = [own.body["request"] for own in other._holdings.ledger.entries() if own.kind == "charge"][-1]
        assert json.loads(there)[6][2][1] != named[0]


def test_an_earlier_release_is_a_start(tmp_path: Path) -> None:
    with opened() as session:
        first = made(session, 5)
        kept = confide.load_synthetic(first.save(tmp_path / "first.synthetic"))
        twin = made(session, 1, start=kept)
        assert "rows of an earlier release" in twin.method
        assert session.budget.spent == 6
        assert twin.to_bytes() == made(session, 1, start=first).to_bytes()
    with (
        confide.open(rules(PURE), {"person": people(), "other": pl.DataFrame({"x": [1]}), "census": people(3)},
                     ledger=tmp_path / "ledger", create=True) as real,
        pytest.raises(ParameterError, match="test noise"),
    ):  # fmt: skip
        made(real, 1, start=kept)


def test_a_public_table_of_the_policy_is_a_start() -> None:
    """It is read through its own description: other grains and wider ranges than the private columns have."""
    with opened() as session:
        table = session.policy.tables["person"]
        domain = domain_of(table)
        by_name = starting_rows(session._holdings, "census", domain)
        by_frame = starting_rows(session._holdings, people(3), domain)
        assert by_name.weights.sum() == ROWS
        for place, size in enumerate(domain.sizes):
            counted = np.bincount(by_name.places[:, place], by_name.weights, size)
            np.testing.assert_array_equal(counted, np.bincount(by_frame.places[:, place], minlength=size))
        twin = made(session, 2, start="census")
        assert "the public table census" in twin.method
        assert away(twin) < 250


def test_paths_and_private_tables_are_refused_without_a_look(tmp_path: Path) -> None:
    place = tmp_path / "start.parquet"
    people(2).write_parquet(place)
    with opened() as session:
        for start in (str(place), place, str(tmp_path / "none.parquet"), "person", "other", b"census", ""):
            with pytest.raises(ParameterError, match=r"not the name of a public table .*census"):
                made(session, start=start)
        assert session.budget.spent == 0


def test_rows_that_do_not_fit_are_refused() -> None:
    with opened() as session:
        for start, error, words in (
            (people(2).with_columns(age=200), SourceError, "outside"),
            (people(2).with_columns(sex=pl.lit("X")), SourceError, "not among the values"),
            (pl.DataFrame({"z": [1]}), ParameterError, "none of the columns"),
            (people(2).head(0), SourceError, "no rows"),
            (people(2).select(sex=pl.lit(None, pl.String)), ParameterError, "no row with a declared value"),
        ):
            with pytest.raises(error, match=words):
                made(session, start=start)
        with pytest.raises(ParameterError, match="has no start"):
            made(session, start=people(2), method="mst")
        with pytest.raises(ParameterError, match="begins with rows"):
            made(session, method="reweight")
        with pytest.raises(ParameterError, match="measures whole tables"):
            made(session, start=people(2), select="queries")
        assert session.budget.spent == 0


def test_columns_that_a_start_lacks_are_drawn_and_many_rows_cut() -> None:
    with opened() as session:
        twin = made(session, 5, start=people(2).select("sex", "member"))
        ages = twin.answer("SELECT BIN(age, 50) AS a, COUNT(*) AS n FROM person GROUP BY a").to_pydict()["n"]
        assert ages[0] == pytest.approx(len(people().filter(pl.col("age") < 50)), rel=0.15)
        options = SynthesisOptions(WORKLOAD, 1, "person", start=people(2, MOST_ROWS + 5_000))
        strategy = bind_synthesis(session._holdings, options, session._holdings.standing().budget).strategy
        assert isinstance(strategy, ReweightStrategy)
        assert len(strategy.start.places) == MOST_ROWS
