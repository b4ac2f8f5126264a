"""`planned` where all columns together have too many cells: what is measured, in a session that charges it."""

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import confide
import confide.testing
from confide.errors import ParameterError
from confide.policy import Policy
from confide.privacy.loss import ZCDP, PureDP
from confide.synthesis import merged
from confide.synthesis.curator import MeasuredMarginal
from confide.synthesis.merged_strategy import MergedStrategy, triples_of
from confide.synthesis.planned_strategy import choose_planned, load
from confide.synthesis.projection import TableFit
from confide.synthesis.relaxed import RelaxedTable
from confide.workload import BoundWorkload, domain_of
from tests.synthesis.fitting import uniform_table

SIZES = (40, 30, 50, 20, 2)
N = 4_000


def policy(budget: dict[str, Any]) -> dict[str, Any]:
    columns = {f"c{place}": {"range": [0, size - 1]} for place, size in enumerate(SIZES)}
    return {"confide": 1, "budget": budget, "unit": "row", "tables": {"t": {"size": N, "columns": columns}}}


def data() -> pl.DataFrame:
    generator = np.random.default_rng(1)
    codes = [np.minimum(generator.geometric(0.2, N) - 1, size - 1) for size in SIZES]
    codes[1] = np.where(generator.random(N) < 0.5, codes[0] % SIZES[1], codes[1])
    return pl.DataFrame({f"c{place}": own for place, own in enumerate(codes)})


def workload(k: int = 3) -> BoundWorkload:
    return confide.marginals(k).bound(domain_of(Policy.parse(policy({"epsilon": 1})).tables["t"]))


def pretend_to_fit(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    seen: list[tuple[Any, ...]] = []

    def fitted(sizes: tuple[int, ...], measured: Any, total: float, rows: int, seed: int, *more: Any) -> TableFit:
        seen.append((sizes, measured, total, rows))
        more[1](10, 1.0)
        return TableFit(uniform_table(sizes), 10, 1.0)

    monkeypatch.setattr(merged, "project", fitted)
    return seen


def test_little_noise_leaves_sets_of_three_their_part() -> None:
    many = choose_planned(workload(), ZCDP(Fraction(1)), N, 1)
    few = choose_planned(workload(), ZCDP(Fraction(1, 1_000)), N, 1)
    assert isinstance(many, MergedStrategy)
    assert isinstance(few, MergedStrategy)
    assert [len(step.sets) for step in many.steps(workload())] == [5, 10, 10]  # type: ignore[union-attr]
    assert [len(step.sets) for step in few.steps(workload())] == [5, 10]  # type: ignore[union-attr]
    for strategy in (many, few):
        assert sum(strategy.shares(workload())) == 1
        assert sum(step.share for step in strategy.steps(workload())) == 1
    assert few.alone > many.alone


def test_what_is_asked_for_is_taken() -> None:
    cost = ZCDP(Fraction(1, 100))
    pairs = choose_planned(workload(), cost, N, 1, select="closure", rows=7)
    assert isinstance(pairs, MergedStrategy)
    assert (pairs.threes, pairs.rows) == (0, 7)
    triples = choose_planned(workload(), cost, N, 1, select="all")
    assert isinstance(triples, MergedStrategy)
    assert triples.threes > 0
    assert choose_planned(workload(1), cost, N, 1).shares(workload(1)) == (1, 0, 0)  # type: ignore[union-attr]
    assert triples_of(workload(2)) == ()
    for wrong in (0, 10**6, "many"):
        with pytest.raises(ParameterError, match="rows ="):
            choose_planned(workload(), cost, N, 1, rows=wrong)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="buys nothing"):
        choose_planned(workload(), PureDP(Fraction(1, 10**6)), 100, 1)


@pytest.mark.parametrize("budget", [{"epsilon": 10}, {"epsilon": 10, "delta": 1e-9}], ids=["pure", "approximate"])
def test_a_call_measures_merged_places_and_costs_what_was_asked(
    budget: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = pretend_to_fit(monkeypatch)
    with confide.testing.open(policy(budget), {"t": data()}, seed=1) as session:
        plan = session.plan_synthesize(confide.marginals(3), 2, method="planned")
        twin = session.synthesize(confide.marginals(3), 2, method="planned")
        assert session.budget.spent == pytest.approx(2)
        assert session.synthesize(confide.marginals(3), 2, method="planned").stored
        charges = [entry for entry in session._holdings.ledger.entries() if entry.kind == "charge"]
        assert len(charges) == len(plan.steps) + 1
        assert isinstance(twin.model, RelaxedTable)
        assert twin.domain.sizes == SIZES
        assert twin.sample(20).num_rows == 20
        ((sizes, measured, total, rows),) = seen
        assert total == pytest.approx(N, rel=0.2)
        assert rows == 300
        assert all(merged <= own for merged, own in zip(sizes, SIZES, strict=True))
        assert sizes[2] < SIZES[2]
        for part in measured:
            assert len(part.counts) == np.prod([sizes[column] for column in part.columns])
        assert twin.model.marginal((0, 4), 0, SIZES[0]).sum() == pytest.approx(1, rel=1e-4)


def test_more_is_merged_where_sets_of_three_would_have_too_many_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    ones = tuple(MeasuredMarginal((column,), np.full(size, 100.0), 1.0) for column, size in enumerate(SIZES))
    fine = merged.merged(workload(), ones, 1.0, triples_of(workload()))
    monkeypatch.setattr(merged, "MOST_FITTED", 1_000)
    coarse = merged.merged(workload(), ones, 1.0, triples_of(workload()))
    assert sum(len(set(places.tolist())) for places in coarse) < sum(len(set(places.tolist())) for places in fine)
    sizes = [int(places.max()) + 1 for places in coarse]
    assert sum(np.prod([sizes[column] for column in columns]) for columns in triples_of(workload())) <= 1_000


def test_a_column_that_was_not_measured_is_one_place() -> None:
    bound = confide.marginals(2, ["c0", "c1"]).bound(workload().domain)
    ones = tuple(MeasuredMarginal((column,), np.full(SIZES[column], 100.0), 1.0) for column in (0, 1))
    assert [int(places.max()) + 1 for places in merged.merged(bound, ones, 1.0, ())] == [40, 30, 1, 1, 1]


def test_which_table_is_read_follows_from_the_number_of_cells() -> None:
    assert isinstance(load(uniform_table(SIZES).to_bytes(), SIZES), RelaxedTable)
    assert type(load(np.ones(4, dtype="<f4").tobytes(), (2, 2))).__name__ == "FullTable"


def test_it_finds_what_pairs_have_in_common() -> None:
    """With the fit itself: where c1 follows c0, it does so in the twin."""
    with confide.testing.open(policy({"epsilon": 100, "delta": 1e-9}), {"t": data()}, seed=1) as session:
        twin = session.synthesize(confide.marginals(2), 20, method="planned", rows=50)
        rows = data()
        truth = ((rows["c0"] % SIZES[1]) == rows["c1"]).mean()
        joint = twin.model.marginal((0, 1), 0, SIZES[0])
        found = sum(float(joint[place, place % SIZES[1]]) for place in range(SIZES[0]))
        assert found == pytest.approx(float(truth), abs=0.1)  # type: ignore[arg-type]
