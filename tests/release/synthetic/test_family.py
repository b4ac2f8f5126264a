"""Tables that refer to each other: one cost, keys that fit, joins that are like the data's, and what a unit changes."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import confide
import confide.testing
from confide.errors import BudgetError, ParameterError, QueryError, SourceError
from confide.privacy.charge import Charge
from confide.privacy.loss import ZCDP, PureDP
from confide.release import Session
from confide.release.synthetic.family import bound_counts, bound_rows, family_of
from confide.release.synthetic.matching import matched
from confide.release.synthetic.related_tables import SyntheticTables
from confide.release.synthetic.request import SynthesisOptions
from tests.release.samples import APPROXIMATE, PURE

WORKLOAD = confide.marginals(2)
CHARGE = Charge(1, "k", PureDP(Fraction(1)), "p", "", "l")
PEOPLE = 3_000


def world(seed: int = 1, people: int = PEOPLE) -> dict[str, pl.DataFrame]:
    """Old people visit more often, and other wards; what a visit costs hangs on its ward."""
    random = np.random.default_rng(seed)
    band = random.choice(["young", "middle", "old"], people, p=[0.5, 0.3, 0.2])
    mean = {"young": 0.4, "middle": 1.2, "old": 3.0}
    visits = np.minimum(random.poisson([mean[own] for own in band]), 6)
    owners = np.repeat(np.arange(people), visits)
    old = (band == "old")[owners]
    ward = np.where(random.random(len(owners)) < np.where(old, 0.8, 0.2), 1, random.integers(2, 4, len(owners)))
    person = pl.DataFrame({"pid": np.arange(people), "band": band, "sex": random.choice(["F", "M"], people)})
    visit = pl.DataFrame({"vid": np.arange(len(owners)), "person": owners, "ward": ward, "cost": ward * 10})
    letter = pl.DataFrame(
        {"person": random.integers(0, people, people // 2), "kind": random.choice(["a", "b"], people // 2)}
    )
    return {"person": person, "visit": visit, "letter": letter}


def rules(budget: dict[str, Any], rows: str = "private", **more: Any) -> dict[str, Any]:
    refers = {"person": "person.pid"}
    number = {"type": "id"}
    person = {"pid": number, "band": {"values": ["young", "middle", "old"]}, "sex": {"values": ["F", "M"]}}
    ward = {"values": [1, 2, 3]}
    visit = {"vid": number, "person": number, "ward": ward, "cost": {"range": [0, 40], "bins": 10}}
    letter = {"person": number, "kind": {"values": ["a", "b"]}}
    tables = {
        "person": {"size": PEOPLE, "rows": rows, "columns": person},
        "visit": {"references": refers, "at_most": {"rows": 6, "groups": 3}, "columns": visit},
        "letter": {"references": refers, "at_most": {"rows": 2}, "columns": letter},
        "ward": {"public": True, "columns": {"ward": ward}},
    }
    return {"confide": 1, "budget": budget, "unit": "person.pid", "tables": tables, **more}


def opened(budget: dict[str, Any] = APPROXIMATE) -> Session:
    frames = {**world(), "ward": pl.DataFrame({"ward": [1, 2, 3]})}
    return confide.testing.open(rules(budget), frames, seed=1)


def made(session: Session, epsilon: object = 20, children: Any = "visit", **more: Any) -> SyntheticTables:
    return session.synthesize_tables(WORKLOAD, epsilon, children, **{"method": "mst", **more})


@pytest.fixture(scope="module")
def twin() -> Iterator[SyntheticTables]:
    with opened() as session:
        yield made(session, 50)


JOIN = "SELECT band, ward, COUNT(*) AS n FROM person JOIN visit ON visit.person = person.pid GROUP BY band, ward"
NUMBERS = (
    "SELECT band, c, COUNT(*) AS n FROM (SELECT pid, band, COUNT(person) AS c FROM person LEFT JOIN visit "
    "ON visit.person = person.pid GROUP BY pid, band) AS i GROUP BY band, c"
)


def away(twin: SyntheticTables, sql: str) -> float:
    """Total variation of the groups of a query, from those of the data."""
    import duckdb  # noqa: PLC0415

    connection = duckdb.connect()
    for name, frame in world().items():
        connection.register(name, frame.to_arrow())
    exact = {row[:-1]: row[-1] for row in connection.execute(sql).fetchall()}
    found = {tuple(row.values())[:-1]: row["n"] for row in twin.answer(sql).to_pylist()}
    both = exact.keys() | found.keys()
    return sum(abs(exact.get(key, 0) - found.get(key, 0)) for key in both) / 2 / sum(exact.values())


def test_joins_and_numbers_of_children_are_like_the_data(twin: SyntheticTables) -> None:
    assert away(twin, JOIN) < 0.08
    assert away(twin, NUMBERS) < 0.08


def test_keys_fit_and_are_bounded(twin: SyntheticTables) -> None:
    person, visit = (pl.from_arrow(twin.tables[name]) for name in ("person", "visit"))
    assert isinstance(person, pl.DataFrame)
    assert isinstance(visit, pl.DataFrame)
    assert person.columns == ["pid", "band", "sex"]
    assert visit.columns == ["vid", "person", "ward", "cost"]
    assert person["pid"].to_list() == list(range(1, len(twin) + 1))
    assert visit["vid"].n_unique() == len(visit)
    assert set(visit["person"]) <= set(person["pid"])
    assert visit.group_by("person").len()["len"].max() <= 6  # type: ignore[operator]
    assert twin.tables["visit"].equals(twin.tables["visit"])
    some = twin.sample(10)
    assert some["person"].num_rows == 10
    assert set(some["visit"]["person"].to_pylist()) <= set(range(1, 11))
    # Values inside of bins, as of one table: a visit costs 10, 20 or 30.
    assert visit.filter(pl.col("cost").is_in([10, 20, 30])).height > 0.9 * len(visit)


@pytest.mark.parametrize("budget", [PURE, APPROXIMATE], ids=["pure", "approximate"])
@pytest.mark.parametrize("children", ["visit", ["visit", "letter"]], ids=["one", "two"])
def test_all_of_it_costs_what_was_asked_to_the_last_digit(budget: dict[str, Any], children: Any) -> None:
    with opened(budget) as session:
        plan = session.plan_synthesize_tables(WORKLOAD, "0.7", children, method="mst")
        assert session.budget.spent == 0
        asked = session._holdings.standing().budget.cost(Fraction("0.7"))
        amount = asked.rho if isinstance(asked, ZCDP) else asked.epsilon
        assert sum(step.cost * step.times for step in plan.steps) == pytest.approx(float(amount), rel=1e-6)
        assert plan.steps[0].what.startswith("person with numbers of visit: ")
        assert plan.left_out == {}
        twin = made(session, "0.7", children)
        assert session._holdings.ledger.spent() == asked
        assert twin.cost.epsilon == Fraction("0.7")
        assert list(twin.tables) == ["person", *([children] if isinstance(children, str) else children)]
        again = made(session, "0.7", children)
        assert again.stored
        assert again.to_bytes() == twin.to_bytes()
        assert session._holdings.ledger.spent() == asked


def test_a_call_that_was_stopped_goes_on_and_says_what_was_spent() -> None:
    with opened() as session, opened() as other:
        told: list[str] = []

        def stop(what: str, *_: object) -> None:
            told.append(what)
            if told.count("measuring single columns") == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt) as stopped:
            made(session, 5, progress=stop)
        assert stopped.value.__notes__[0].startswith(f"ε = {session.budget.spent:.6g} of ε = 5 was spent")
        assert 0 < session.budget.spent < 5
        assert made(session, 5).to_bytes() == made(other, 5).to_bytes()
        assert session.budget.spent == 5


def test_what_the_budget_does_not_hold_is_refused_whole() -> None:
    with opened({"epsilon": 1}) as session:
        assert not session.plan_synthesize_tables(WORKLOAD, 2, "visit", method="mst").affordable
        with pytest.raises(BudgetError, match="Nothing was charged"):
            made(session, 2)
        assert session.budget.spent == 0


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"children": "ward"}, "has no reference to person.pid; tables that have one are visit, letter"),
        ({"children": "person"}, "has no reference"),
        ({"children": "nothing"}, "has no reference"),
        ({"children": []}, "not a list of tables"),
        ({"children": 3}, "not a list of tables"),
        ({"children": ["visit", "visit"]}, "names a table twice"),
        ({"bins": {"height": 3}}, "no column 'height' in person, visit"),
        ({"columns": ["band", "height"]}, "no column 'height' in person, visit"),
        ({"workload": confide.marginals(2, ["band", "sex"])}, "all their columns alike"),
        ({"workload": "all"}, "all their columns alike"),
        ({"epsilon": 0}, "above 0"),
    ],
)
def test_bad_input_is_refused(more: dict[str, Any], words: str) -> None:
    arguments = {"workload": WORKLOAD, "epsilon": 1, "children": "visit", "method": "mst"} | more
    with opened() as session:
        for call in (session.synthesize_tables, session.plan_synthesize_tables):
            with pytest.raises(ParameterError, match=words):
                call(**arguments)
        assert session.budget.spent == 0


def test_rows_as_units_are_refused() -> None:
    frames, parsed = {**world(), "ward": pl.DataFrame({"ward": [1]})}, {**rules(PURE), "unit": "row"}
    for table in parsed["tables"].values():
        table.pop("at_most", None)
    with (
        confide.testing.open(parsed, frames, seed=1) as session,
        pytest.raises(ParameterError, match="one table at a time"),
    ):
        made(session)


# --- what a unit changes ----------------------------------------------------------------------------------------------


def tiny(people: list[tuple[str, tuple[int, ...]]]) -> dict[str, pl.DataFrame]:
    """People by their band, each with the wards of their visits."""
    visits = [(owner, ward) for owner, (_, wards) in enumerate(people) for ward in wards]
    person = {"pid": list(range(len(people))), "band": [band for band, _ in people], "sex": ["F"] * len(people)}
    visit = {
        "vid": list(range(len(visits))),
        "person": [own for own, _ in visits],
        "ward": [ward for _, ward in visits],
    }
    types = {"vid": pl.Int64, "person": pl.Int64, "ward": pl.Int64}
    return {"person": pl.DataFrame(person, {"pid": pl.Int64, "band": pl.String, "sex": pl.String}),
            "visit": pl.DataFrame(visit, types).with_columns(cost=pl.col("ward") * 10)}  # fmt: skip


def exact_counts(people: list[tuple[str, tuple[int, ...]]], rows: str) -> tuple[list[np.ndarray], list[Any]]:
    """All cells of the two tables, and what the code says that a unit changes in them."""
    budget = {"epsilon": 1}
    parsed = rules(budget, rows)
    parsed["tables"]["visit"]["at_most"] = {"rows": 2, "groups": 2}
    frames = tiny(people)
    others = {"letter": pl.DataFrame({"person": [0], "kind": ["a"]}), "ward": pl.DataFrame({"ward": [1]})}
    with confide.testing.open(parsed, {**frames, **others}, seed=1) as session:
        session._holdings.ledger.secret = b"a secret of both"
        family = family_of(session.policy, None, "visit")
        options = SynthesisOptions(WORKLOAD, 1)
        cells, said = [], []
        for bind in (bound_counts, bound_rows):
            bound = bind(session._holdings, options, family, family.children[0])
            tabulation = bound.counted.tabulation
            every = tuple(range(len(bound.workload.domain)))
            whole = type(tabulation)(
                **{name: getattr(tabulation, name) for name in tabulation.__slots__} | {"sets": (every,)}
            )
            found = session._holdings.engine.tabulate(whole, CHARGE, session._holdings.ledger.secret)
            cells.append(found.marginal(every, 0, found.sizes[0]).reshape(-1))
            said.append(bound.counted.sensitivity(grouped=True))
    return cells, said


UNITS = [
    (band, wards)
    for band in ("young", "old")
    for many in range(4)
    for wards in combinations_with_replacement((1, 2), many)
]


@pytest.mark.parametrize("rows", ["private", "public"])
def test_no_unit_changes_more_than_what_is_paid_for(rows: str) -> None:
    """Every person with up to three visits, of which two count, beside others; or in place of every tenth of them."""
    others = [("young", (1,)), ("old", (2, 3))]
    base = {unit: exact_counts([*others, unit], rows) for unit in UNITS}
    without, said = exact_counts(others, rows)
    largest = [0, 0]
    for unit, (cells, _) in base.items():
        beside = [without] if rows == "private" else [base[other][0] for other in UNITS[::5] if other != unit]
        for other in beside:
            for place in range(2):
                change = np.abs(cells[place] - other[place])
                assert change.sum() <= said[place].l1
                assert (change**2).sum() <= said[place].l2_squared
                largest[place] = max(largest[place], int(change.sum()))
    assert largest == [own.l1 for own in said]


# --- pieces -----------------------------------------------------------------------------------------------------------


def test_rows_meet_rows_that_agree_with_them() -> None:
    generator = np.random.default_rng(1)
    wanted = generator.integers(0, 3, (500, 2))
    found = wanted[generator.permutation(500)]
    chosen = matched(wanted, found, generator)
    assert sorted(chosen) == list(range(500))
    np.testing.assert_array_equal(found[chosen], wanted)
    other = found.copy()
    other[:, 1] = 5
    chosen = matched(wanted, other, generator)
    assert sorted(chosen) == list(range(500))
    np.testing.assert_array_equal(other[chosen][:, 0], wanted[:, 0])
    assert matched(wanted[:0], found[:0], generator).tolist() == []


def test_tables_are_kept_and_written(twin: SyntheticTables, tmp_path: Path) -> None:
    again = confide.load_synthetic_tables(twin.save(tmp_path / "twin.synthetic"))
    assert again.to_bytes() == twin.to_bytes()
    assert again.tables["visit"].equals(twin.tables["visit"])
    assert str(again) == str(twin)
    written = twin.to_parquet(tmp_path / "out")
    assert {name: place.name for name, place in written.items()} == {
        "person": "person.parquet",
        "visit": "visit.parquet",
    }
    assert len(pl.read_parquet(written["visit"])) == twin.tables["visit"].num_rows
    for cut in (30, len(twin.to_bytes()) - 5):
        with pytest.raises(SourceError, match="damaged"):
            SyntheticTables.from_bytes(twin.to_bytes()[:cut])
    assert "about" in repr(twin)
    assert "visit with columns of person" in twin._repr_html_()
    assert twin.drawn["visit"]["person"] == "the key of a record of person that agrees with its columns"
    assert "band" in twin.drawn["person"]
    assert "person_band" not in twin.drawn["visit"]
    assert twin.left_out == {"person": {}, "visit": {}}


def test_queries_reach_nothing_but_the_records(twin: SyntheticTables, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    for sql in (
        f"SELECT * FROM read_csv('{tmp_path}/secret.csv')",
        "SELECT nothing FROM person",
        "COPY person TO 'x'",
        "",
    ):
        with pytest.raises(QueryError, match="the records"):
            twin.answer(sql)
    with pytest.raises(ParameterError, match="in SQL"):
        twin.answer(3)  # type: ignore[arg-type]


def test_they_can_be_asked_about(twin: SyntheticTables) -> None:
    with opened() as session:
        sql = "SELECT COUNT(*) FROM visit WHERE ward = 1"
        assert session.trust(sql, twin, within=1_500, epsilon=20).trusted
