"""`strategy="net"`: intervals against exact chances, what is refused, what is kept and what one unit may change."""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest

import confide
import confide.testing
from confide.errors import ParameterError
from confide.mechanism import TestRandomness
from confide.mechanism.selection.net import Net, net, tables_of_rows
from confide.privacy.loss import ZCDP, PureDP
from confide.release.workload.chosen_table import ChosenTable, cells_counted, kinds_of, largest_error, queries_of
from confide.release.workload.net_price import PricedNet
from confide.release.workload.request import WorkloadOptions, bind_answer
from confide.workload.asked import AskedTable
from confide.workload.strategy.line import Kind
from tests.release import samples

ROWS = {"x": [0, 0, 2, 3], "g": ["a", "b", "a", "a"]}


def session(
    budget: dict[str, Any] = samples.PURE,
    rows: str = "public",
    size: int | None = 4,
    data: dict[str, list[Any]] = ROWS,
    cells: int = 4,
    unit: str = "row",
    seed: int = 1,
) -> Any:
    """Columns x of some cells and g of two, in which NULL is no value."""
    columns = {"x": {"range": [0, cells - 1]}, "g": {"values": ["a", "b"]}}
    own = {} if unit == "row" else {"id": {"type": "id"}}
    table = {"rows": rows, **({} if size is None else {"size": size}), "columns": own | columns}
    policy = {"confide": 1, "budget": budget, "unit": unit, "tables": {"t": table}}
    keys = {"id": list(range(len(data["x"])))} if own else {}
    return confide.testing.open(policy, data={"t": pl.DataFrame(keys | data, strict=False)}, seed=seed)


def priced(people: Any, workload: Any, epsilon: int = 1) -> PricedNet:
    request = bind_answer(people._holdings, WorkloadOptions(workload, "net"), Fraction(epsilon))
    found = request.price(people._holdings.policy.budget)
    assert isinstance(found, PricedNet)
    return found


def chances(own: Net, counts: np.ndarray) -> np.ndarray:
    """The exact law of the table that is chosen."""
    weights = -float(own.mechanism.rate) * own.errors(counts)
    found: np.ndarray = np.exp(weights - np.logaddexp.reduce(weights))
    return found


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(3), Fraction(8), Fraction(20)])
@pytest.mark.parametrize("kind", ["each", "prefix", "range"])
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_every_interval_covers_as_it_says(epsilon: Fraction, kind: Kind, confidence: float) -> None:
    """Exact, over all data of n rows of which any may have no place, and all tables that may be chosen of them; where
    there are more rows than tables of the net have, as well. Questions in SQL are held too: any two cells, or all.
    """
    sizes, asked = (3,), ((kind,),)
    table = AskedTable((0,), (kind,))
    others = [np.array(query, dtype=np.float64) for query in product([0, 1], repeat=3)]
    for rows, most in ((2, 2), (3, 3), (4, 2)):
        own = net(epsilon, 1, queries_of(sizes, asked), most)
        made = [
            ChosenTable(sizes, tuple(counts), asked, most, own.mechanism.rate, rows) for counts in own.tables.tolist()
        ]
        ends = [each.answers(table, 0, confidence)[1:] for each in made]
        free = [[each.count((0,), query, confidence)[1:] for query in others] for each in made]
        for data in tables_of_rows(3, rows):
            chance = chances(own, data)
            exact = cells_counted(sizes, asked[0]) @ data
            held = np.array([(low <= exact) & (exact <= high) for low, high in ends])
            assert (chance @ held).min() >= confidence
            truths = [query @ data for query in others]
            also = np.array(
                [[low <= truth <= high for (low, high), truth in zip(own, truths, strict=True)] for own in free]
            )
            assert (chance @ also).min() >= confidence


def test_a_width_that_is_one_smaller_would_miss() -> None:
    """Of ten tables: where the bound of the chance of an error of 1 is just below what may be missed, or just above."""
    assert largest_error(10, Fraction(4), 1 - 10 * math.exp(-4) * 1.001) == 0
    assert largest_error(10, Fraction(4), 1 - 10 * math.exp(-4) * 0.999) == 1
    assert largest_error(10, Fraction(3, 2), 0.95) == math.ceil(math.log(200) / 1.5) - 1


def test_nothing_bounds_counts_of_a_number_of_rows_that_is_private() -> None:
    people = session(rows="private")
    found = people.answer(confide.prefixes("x"), epsilon=20, strategy="net")
    assert found.measured.rows is None
    for own in found.tables():
        assert (own.low == 0).all()
        assert np.isinf(own.high).all()
    value = found.sql("SELECT COUNT(*) AS n FROM t WHERE x < 2").values[0]
    assert (value.low[0], value.high[0]) == (0, math.inf)
    assert "∞" in str(found)
    with pytest.raises(ParameterError, match="no band to draw"):
        found.plot()
    plan = people.plan_answer(confide.prefixes("x"), epsilon=20, strategy="net")
    assert "no information" in str(plan)
    assert plan.to_dict()["worst"] is None


@pytest.mark.parametrize("budget", [samples.PURE, samples.APPROXIMATE], ids=["pure", "approximate"])
def test_answers_are_those_of_the_table_and_are_kept(budget: dict[str, Any]) -> None:
    people = session(budget)
    asked = confide.ranges("x", by="g")
    found = people.answer(asked, epsilon=50, strategy="net")
    cells = np.array(found.measured.counts).reshape(4, 2)
    (own,) = found.tables()
    starts, stops = np.triu_indices(4)
    sums = [cells[a : b + 1].sum(axis=0) for a, b in zip(starts, stops, strict=True)]
    assert sorted(map(tuple, own.values.tolist())) == sorted(map(tuple, sums))
    free = found.sql("SELECT g, COUNT(*) AS n FROM t WHERE x <> 1 GROUP BY g").values[0]
    assert list(free.values) == cells[[0, 2, 3]].sum(axis=0).tolist()
    assert sum(row["weight"] for row in found.microdata().to_pylist()) == cells.sum()
    spent = people.budget.spent
    again = people.answer(asked, epsilon=50, strategy="net")
    assert again.stored
    assert again.to_bytes() == found.to_bytes()
    assert people.budget.spent == spent
    assert "exponential mechanism" in str(found)
    assert " noise ·" not in str(found)


def test_at_a_high_epsilon_it_is_the_data_and_says_so() -> None:
    """Rows without a value in a column are rows all the same, and in no cell."""
    people = session(data={"x": [0, 0, 2, None], "g": ["a", "b", "a", "a"]})
    found = people.answer(confide.ranges("x", by="g"), epsilon=60, strategy="net")
    assert found.measured.rows == 4
    assert found.measured.counts == (1, 1, 0, 0, 1, 0, 0, 0)
    (own,) = found.tables()
    assert (own.low == own.high).all()


def test_more_rows_than_the_policy_says_give_all_that_may_be() -> None:
    found = session(data={"x": [0] * 9, "g": ["a"] * 9}).answer(confide.prefixes("x"), epsilon=90, strategy="net")
    (own,) = found.tables()
    assert (own.low.max(), own.high.min()) == (0, 9)


def test_fewer_rows_than_the_policy_says_make_the_net_smaller() -> None:
    found = session(data={"x": [1], "g": ["a"]}).answer(confide.prefixes("x"), epsilon=1, strategy="net")
    assert (found.measured.most, found.measured.tables) == (1, 5)
    assert all(own.high.max() <= 1 for own in found.tables())


def test_the_cost_is_what_the_mechanism_loses() -> None:
    pure = priced(session(), confide.prefixes("x"))
    assert pure.loss == PureDP(Fraction(1))
    assert (pure.epsilon, pure.rate) == (1, Fraction(1, 2))
    both = priced(session(samples.APPROXIMATE), confide.prefixes("x"))
    assert isinstance(both.loss, ZCDP)
    assert 0.999 * both.loss.rho < both.epsilon**2 / 8 <= both.loss.rho


def test_the_policy_s_neighbours_lose_no_more_than_the_cost() -> None:
    """Every replaced row, over every table that may be chosen: the rate of the price, on what the price asks."""
    own = priced(session(), confide.ranges("x"), 2)
    made = net(own.epsilon, own.request.counted.rows, queries_of((4,), (("range",),)), 3)
    assert made.mechanism.rate == own.rate
    worst = 0.0
    for data in tables_of_rows(4, 3):
        for gone, new in product(range(4), repeat=2):
            if data[gone]:
                other = data.copy()
                other[gone] -= 1
                other[new] += 1
                worst = max(worst, float(np.abs(np.log(chances(made, data) / chances(made, other))).max()))
    assert 1 < worst <= 2 * (1 + 1e-9)


def test_units_of_several_rows_have_flatter_chances() -> None:
    tables = {
        "p": {"columns": {"id": {"type": "id"}}},
        "v": {
            "size": 5,
            "references": {"id": "p.id"},
            "at_most": {"rows": 3},
            "columns": {"id": {"type": "id"}, "x": {"range": [0, 3]}},
        },
    }
    policy = {"confide": 1, "budget": samples.PURE, "unit": "p.id", "tables": tables}
    data = {"p": pl.DataFrame({"id": [1, 2]}), "v": pl.DataFrame({"id": [1, 1, 2], "x": [0, 1, 2]})}
    people = confide.testing.open(policy, data=data, seed=1)
    own = priced(people, confide.prefixes("x"))
    assert own.rate == Fraction(1, 6)
    assert people.answer(confide.prefixes("x"), epsilon=1, strategy="net").measured.rate == own.rate
    assert not own.rows_public


def test_of_units_with_a_key_the_number_of_rows_is_not_taken_for_public() -> None:
    """As of a count in SQL: rows are cut to one for each key, and which unit has any is for the data to say."""
    own = priced(session(unit="t.id"), confide.prefixes("x"))
    assert own.request.counted.neighbours == "replace-one"
    assert not own.rows_public
    assert own.widths == (math.inf,)


def test_a_public_number_of_units_bounds_no_rows_of_other_tables() -> None:
    tables = {
        "p": {"rows": "public", "columns": {"id": {"type": "id"}}},
        "v": {
            "size": 5,
            "references": {"id": "p.id"},
            "at_most": {"rows": 3},
            "columns": {"id": {"type": "id"}, "x": {"range": [0, 3]}},
        },
    }
    policy = {"confide": 1, "budget": samples.PURE, "unit": "p.id", "tables": tables}
    data = {"p": pl.DataFrame({"id": [1, 2]}), "v": pl.DataFrame({"id": [1, 1, 2], "x": [0, 1, 2]})}
    people = confide.testing.open(policy, data=data, seed=1)
    assert not priced(people, confide.prefixes("x")).rows_public
    (own,) = people.answer(confide.prefixes("x"), epsilon=1, strategy="net").tables()
    assert np.isinf(own.high).all()


def test_neighbours_with_values_that_have_no_place_have_the_same_public_number() -> None:
    """What is told beside the table is told of neighbours alike."""
    for data in ({"x": [0, 1], "g": ["a", "b"]}, {"x": [0, None], "g": ["a", "c"]}):
        found = session(data=data).answer(confide.marginals(k=1, columns=["g", "x"]), epsilon=1, strategy="net")
        assert (found.measured.rows, found.measured.most) == (2, 2)


def test_what_is_refused() -> None:
    asked = confide.prefixes("x")
    with pytest.raises(ParameterError, match=r"at most 16 cells together, and these 1 have 17; take wider bins"):
        session(cells=17).plan_answer(asked, epsilon=1, strategy="net")
    with pytest.raises(ParameterError, match=r"these 2 have 18"):
        session(cells=9).answer(confide.ranges("x", by="g"), epsilon=1, strategy="net")
    with pytest.raises(ParameterError, match=r"it says size: 7 of t; size: 6 or less would fit"):
        session(size=7).answer(asked, epsilon=1, strategy="net")
    with pytest.raises(ParameterError, match=r"it says no size of t"):
        session(size=None).answer(asked, epsilon=1, strategy="net")
    with pytest.raises(ParameterError, match="within= is not for strategy='net'"):
        session().plan_answer(asked, within=1, strategy="net")
    with pytest.raises(ParameterError, match="chooses by the largest error"):
        session().answer(asked, epsilon=1, strategy="net", goal="worst")
    people = session(size=7)
    with pytest.raises(ParameterError):
        people.answer(asked, epsilon=1, strategy="net")
    assert people.budget.spent == 0


def test_a_count_that_was_not_asked_for_has_a_bound_only_by_its_cells() -> None:
    """Of prefixes nothing is known of a cell but what all rows allow; of cells two are off by twice as much."""
    prefixes = ChosenTable((3,), (1, 0, 1), (("prefix",),), 3, Fraction(3), 3)
    error = prefixes.error(0.95)
    assert error == 1
    assert prefixes.count((0,), np.array([1.0, 1.0, 0.0]), 0.95) == (1, 0, 2)
    assert prefixes.count((0,), np.array([0.0, 1.0, 0.0]), 0.95) == (0, 0, 3)
    assert prefixes.count((0,), np.zeros(3), 0.95) == (0, 0, 0)
    cells = ChosenTable((3,), (1, 0, 1), (("each",),), 3, Fraction(3), 3)
    assert cells.count((0,), np.array([1.0, 1.0, 0.0]), 0.95) == (1, 0, 3)
    assert cells.count((0,), np.array([1.0, -1.0, 0.0]), 0.95) == (1, -1, 3)
    assert prefixes.count((0,), np.array([1.0, -1.0, 0.0]), 0.95) == (1, -3, 3)


def test_columns_of_one_cell_change_nothing() -> None:
    assert kinds_of((1, 4), AskedTable((0, 1), ("each", "prefix"))) == ("total", "prefix")
    assert cells_counted((1, 2), ("total", "prefix")).tolist() == [[1, 0], [1, 1]]
    assert net(Fraction(1), 1, cells_counted((2,), ("each",)), 1).choose(np.array([0, 1]), TestRandomness(1)).sum() <= 1


def test_what_is_kept_is_read_as_it_was() -> None:
    made = ChosenTable((2, 2), (1, 0, 0, 2), (("each", "total"), ("prefix", "each")), 4, Fraction(1, 3), None)
    read = ChosenTable.from_bytes(made.to_bytes())
    names = ("sizes", "counts", "asked", "most", "rate", "rows")
    assert [getattr(read, name) for name in names] == [getattr(made, name) for name in names]
