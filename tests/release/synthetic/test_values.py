"""Values inside of bins: which are measured, what that pays, and that records, answers and words follow."""

from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import confide
import confide.testing
from confide.engine.duckdb.engine import DuckDBEngine
from confide.errors import ParameterError
from confide.ledger import MemoryLedger
from confide.mechanism import TestRandomness
from confide.policy import Policy
from confide.privacy.amount import from_quanta
from confide.privacy.budget import Budget, Currency
from confide.privacy.loss import ZCDP, PureDP
from confide.release.holdings import Holdings
from confide.release.synthetic.curator import LedgerCurator
from confide.release.synthetic.records import records
from confide.release.synthetic.request import SynthesisOptions, bind_synthesis
from confide.release.synthetic.synthetic import Synthetic
from confide.synthesis import projection
from confide.workload import domain_of
from tests.conformance.audit import audit
from tests.release.samples import APPROXIMATE, PURE

ROWS = 4_000


def worked() -> pl.DataFrame:
    """Hours heap at 40; days from a first to a last, and amounts with too many values to count."""
    random = np.random.default_rng(3)
    hours = np.where(random.random(ROWS) < 0.5, 40, random.integers(1, 100, ROWS))
    first = random.integers(0, 300, ROWS)
    last = np.minimum(first + random.integers(0, 120, ROWS), 364)
    start = np.datetime64("2024-01-01")
    return pl.DataFrame(
        {
            "sex": random.choice(["F", "M"], ROWS),
            "hours": hours,
            "admitted": start + first,
            "left": start + last,
            "amount": random.integers(0, 50_000, ROWS) * 1.0,
            "rate": random.choice([0.5, 0.75, 2.0], ROWS),
            "note": ["x"] * ROWS,
        }
    )


def rules(budget: dict[str, Any], rows: str = "private") -> dict[str, Any]:
    days = {"range": [date(2024, 1, 1), date(2024, 12, 30)], "bins": 30}
    columns = {
        "sex": {"values": ["F", "M"]},
        "hours": {"range": [1, 99], "bins": 10},
        "admitted": days,
        "left": days,
        "amount": {"range": [0, 50_000], "bins": 10_000},
        "rate": {"range": [0, 2], "grain": 0.25, "bins": 1},
        "note": {"type": "text"},
    }
    table = {"rows": rows, "size": ROWS, "columns": columns}
    return {"confide": 1, "budget": budget, "unit": "row", "tables": {"work": table}}


def made(budget: dict[str, Any], epsilon: object = 20, **more: Any) -> Synthetic:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(projection, "MOST_SPLITS", 1)
        with confide.testing.open(rules(budget), worked(), seed=1) as session:
            return session.synthesize(confide.marginals(2), epsilon, **more)


@pytest.fixture(scope="module")
def twin() -> Synthetic:
    return made(PURE, 60)


def test_records_heap_where_the_data_do(twin: Synthetic) -> None:
    frame = worked()
    drawn = pl.from_arrow(twin.sample(20_000))
    assert isinstance(drawn, pl.DataFrame)
    at_forty = (frame["hours"] == 40).mean()
    assert (drawn["hours"] == 40).mean() == pytest.approx(at_forty, abs=0.03)
    assert drawn["hours"].mean() == pytest.approx(frame["hours"].mean(), abs=1.0)
    assert drawn.schema["hours"] == pl.Int64
    assert set(drawn["rate"].unique().to_list()) <= {k / 4 for k in range(9)}
    for value in (0.5, 0.75, 2.0):
        assert (drawn["rate"] == value).mean() == pytest.approx((frame["rate"] == value).mean(), abs=0.04)
    again = pl.from_arrow(Synthetic.from_bytes(twin.to_bytes()).to_arrow())
    assert isinstance(again, pl.DataFrame)
    assert again.equals(twin.to_polars())


def test_days_are_valid_and_nobody_leaves_before_coming(twin: Synthetic) -> None:
    drawn = pl.from_arrow(twin.sample(20_000))
    assert isinstance(drawn, pl.DataFrame)
    assert drawn["admitted"].min() >= date(2024, 1, 1)  # type: ignore[operator]
    assert drawn["left"].max() <= date(2024, 12, 30)  # type: ignore[operator]
    together = drawn.filter(pl.col("admitted").dt.epoch("d") // 30 == pl.col("left").dt.epoch("d") // 30)
    assert len(together) > 1_000
    assert (together["admitted"] <= together["left"]).all()
    assert (together["admitted"] < together["left"]).mean() > 0.8


@pytest.mark.parametrize("turned", [False, True])
def test_days_in_one_bin_come_in_the_order_of_those_in_others(turned: bool) -> None:
    """Where the bins say no order, none is made."""
    table = Policy.parse(rules({"epsilon": 1})).tables["work"]
    domain = domain_of(table, ["admitted", "left"])
    same, apart = np.full((400, 2), 3), np.repeat([[2, 5]], 400, axis=0)
    apart = apart[:, ::-1] if turned else apart
    drawn = records(table, domain, np.concatenate([same, apart]), np.random.default_rng(1)).slice(0, 400)
    first, last = ("left", "admitted") if turned else ("admitted", "left")
    assert all(one <= two for one, two in zip(drawn[first].to_pylist(), drawn[last].to_pylist(), strict=True))
    alone = records(table, domain, np.concatenate([same, apart, apart[:, ::-1]]), np.random.default_rng(1))
    pairs = zip(alone[first].to_pylist()[:400], alone[last].to_pylist()[:400], strict=True)
    assert 100 < sum(one > two for one, two in pairs) < 300


def test_answers_look_inside_of_bins(twin: Synthetic) -> None:
    frame = worked()
    text = "SELECT COUNT(*) AS n FROM work WHERE hours = 40 AND sex = 'F'"
    exact = len(frame.filter((pl.col("hours") == 40) & (pl.col("sex") == "F")))
    assert twin.answer(text).to_pydict()["n"][0] == pytest.approx(exact, abs=120)  # type: ignore[union-attr]
    counts = twin.answer(confide.workload.from_sql([text])).counts()  # type: ignore[union-attr]
    assert counts[0] == pytest.approx(twin.answer(text).to_pydict()["n"][0], rel=1e-6)  # type: ignore[union-attr]
    groups = twin.answer("SELECT BIN(hours, 25) AS h, COUNT(*) AS n FROM work GROUP BY h").to_pydict()  # type: ignore[union-attr]
    assert sum(groups["n"]) == pytest.approx(twin.total, rel=1e-4)
    assert groups["n"][1] == pytest.approx(len(frame.filter(pl.col("hours").is_between(25, 49))), abs=250)
    both = "SELECT COUNT(*) AS n FROM work WHERE hours IN (40, 41) OR hours > 95"
    exact = len(frame.filter(pl.col("hours").is_in([40, 41]) | (pl.col("hours") > 95)))
    assert twin.answer(both).to_pydict()["n"][0] == pytest.approx(exact, abs=150)  # type: ignore[union-attr]


def test_it_is_said_how_values_are_drawn_and_what_is_left_out(twin: Synthetic) -> None:
    assert twin.drawn["hours"] == "bins of 10, by the model; the values inside by their own noisy counts"
    assert twin.drawn["amount"] == "bins of 10000, by the model; all values inside as likely"
    assert twin.drawn["admitted"].startswith("bins of 30 days")
    assert twin.drawn["sex"] == "listed values, by the model"
    assert twin.left_out == {"note": "texts"}
    assert "left out: note (texts)" in str(twin)
    assert "hours (bins of 10" in str(twin)
    report = twin.report()
    assert report.to_dict()["drawn"] == twin.drawn
    for words in ("How records come to their values", "the values inside by their own noisy counts", "left out: texts"):
        assert words in report.page()


@pytest.mark.parametrize("budget", [PURE, APPROXIMATE], ids=["pure", "approximate"])
def test_values_are_paid_from_the_call(budget: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.synthesis.fitting import pretend_to_fit  # noqa: PLC0415

    pretend_to_fit(monkeypatch)
    with confide.testing.open(rules(budget), worked(), seed=1) as session:
        plan = session.plan_synthesize(confide.marginals(2), "0.7")
        assert plan.steps[0].what == "measure every value of 4 columns in bins"
        assert plan.steps[0].answers == 99 + 365 + 365 + 9
        twin = session.synthesize(confide.marginals(2), "0.7")
        asked = session._holdings.standing().budget.cost(Fraction("0.7"))
        assert session._holdings.ledger.spent() == asked
        purposes = [entry.body["purpose"] for entry in session._holdings.ledger.entries() if entry.kind == "charge"]
        assert purposes[0].endswith("measure values of hours; admitted; left; rate")
        assert session.synthesize(confide.marginals(2), "0.7").to_bytes() == twin.to_bytes()
        assert session._holdings.ledger.spent() == asked
        even = session.plan_synthesize(confide.marginals(2), "0.7", inside="even")
        assert [step.what for step in even.steps] == [step.what for step in plan.steps[1:]]
        assert even.deviation < plan.deviation
        drawn = session.synthesize(confide.marginals(2), "0.7", inside="even")
        assert drawn.values == {}
        assert drawn.drawn["hours"].endswith("all values inside as likely")
        with pytest.raises(ParameterError, match="write measured, or even"):
            session.synthesize(confide.marginals(2), 1, inside="guess")


class Values:
    """The step of the values, so many times over in one step, on rows of one column in bins."""

    def __init__(self, values: list[int], rows: str, cost: Currency, seed: int) -> None:
        table = {"rows": rows, "columns": {"x": {"range": [0, 3], "bins": 2}}}
        policy = Policy.parse({"confide": 1, "budget": {"epsilon": 1}, "unit": "row", "tables": {"t": table}})
        budget = Budget.of(10**6) if isinstance(cost, PureDP) else Budget.of(10**6, Fraction(1, 10))
        engine = DuckDBEngine(policy, {"t": pl.DataFrame({"x": values})})
        self.holdings = Holdings(policy, engine, MemoryLedger(budget, {}), TestRandomness(seed))
        options = SynthesisOptions(confide.marginals(1), 1)
        self.request = bind_synthesis(self.holdings, options, self.holdings.standing().budget)
        assert self.request.values is not None
        self.cost = cost

    def measured(self, runs: int) -> np.ndarray:
        request, step = self.request, self.request.values
        assert step is not None
        # So much for the call that a tenth of it is `runs` times the cost.
        amount = (self.cost.epsilon if isinstance(self.cost, PureDP) else self.cost.rho) * runs / step.share
        cost: Currency = (
            PureDP(amount + from_quanta(1)) if isinstance(self.cost, PureDP) else ZCDP(amount + from_quanta(1))
        )
        many = type(step)(step.columns * runs, step.attributes * runs, step.share)
        made = LedgerCurator(
            self.holdings, request.tabulation, request.workload, cost, request.tables, request.rows, "run", values=many
        )
        read = made._read
        made._read = lambda charge: _repeated(read(charge), runs)  # type: ignore[method-assign]
        return np.array([part.counts for part in made.measure_values()]).astype(np.int64)


def _repeated(exact: Any, runs: int) -> Any:
    """The column of values, as often as it is asked for."""

    class Repeated:
        sizes = (*exact.sizes[:1], *(exact.sizes[1:] * runs))

        def marginal(self, columns: tuple[int, ...], start: int, stop: int) -> Any:
            return exact.marginal((1,), start, stop)

    return Repeated()


@pytest.mark.parametrize("cost", [PureDP(Fraction(1)), ZCDP(Fraction(1, 4))], ids=["pure", "zcdp"])
@pytest.mark.parametrize(
    ("neighbour", "rows"),
    [([0, 1, 1, 2, 3], "private"), ([3, 0, 1, 1, 2, 3], "public")],
    ids=["fewer", "other"],
)
def test_values_of_neighbours_stay_within_what_was_paid(cost: Currency, neighbour: list[int], rows: str) -> None:
    one, two = (
        Values(values, rows, cost, seed).measured(20_000) for seed, values in enumerate(([1, 0, 1, 1, 2, 3], neighbour))
    )
    assert abs(one.mean(axis=0) - two.mean(axis=0)).max() > 0.5
    assert not audit(one, two, cost).violated
