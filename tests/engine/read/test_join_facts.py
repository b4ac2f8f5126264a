"""What engines read for joins, against plain Python on random small tables with odd rows."""

import numpy as np
import polars as pl
import pytest

import confide
from confide.engine.read.join_facts import FrequencyInquiry, ResidualInquiry, SharesInquiry
from confide.mechanism.join.truncation import clipped_totals
from confide.privacy.loss import PureDP
from confide.query.conjunction import bind_conjunction, distinct_owners
from tests.mechanism.join.test_residual import joined, residuals
from tests.release.test_joins import KEY, key_data

POLICY = {
    "confide": 1,
    "budget": {"epsilon": 1_000},
    "unit": "row",
    "tables": {
        "r": {"columns": {"a": {"type": "id"}, "b": {"type": "id"}, "v": {"range": [0, 9]}}},
        "s": {"columns": {"b": {"type": "id"}, "c": {"type": "id"}}},
        "w": {"columns": {"c": {"type": "text"}}},
    },
}


def read(session, sql, kind, *more):
    holdings = session._holdings
    question = bind_conjunction(sql, holdings.policy, holdings.engine)
    charge = holdings.ledger.charge(PureDP(holdings.policy.budget.epsilon / 1000), "test", f"{kind} {sql} {more}", "")
    return question, holdings.engine.inquire(kind(question, *more), charge)


def tables(seed, rows=9):
    random = np.random.default_rng(seed)
    ids = lambda: [None if random.random() < 0.15 else int(v) for v in random.integers(0, 4, rows)]  # noqa: E731
    r = list(zip(ids(), ids(), [int(v) for v in random.integers(0, 10, rows)], strict=True))
    s = list(zip(ids(), ids(), strict=True))
    return r, s


def opened(r, s, words=("1", "2", None)):
    whole = {"a": pl.Int64, "b": pl.Int64, "v": pl.Int64}
    data = {
        "r": pl.DataFrame(r, schema=whole, orient="row"),
        "s": pl.DataFrame(s, schema={"b": pl.Int64, "c": pl.Int64}, orient="row"),
        "w": pl.DataFrame({"c": list(words)}),
    }
    return confide.testing.open(POLICY, data, seed=1)


def known(rows):
    return [row for row in rows if None not in row]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("sql", "query"),
    [
        ("SELECT COUNT(*) AS n FROM r JOIN s ON r.b = s.b", ((0, ("a", "b")), (1, ("b", "c")))),
        (
            "SELECT COUNT(*) AS n FROM r AS x JOIN r AS y ON x.b = y.a JOIN r AS z ON y.b = z.a AND z.b = x.a",
            ((0, ("a", "b")), (0, ("b", "c")), (0, ("c", "a"))),
        ),
        (
            "SELECT COUNT(*) AS n FROM r AS x JOIN s ON x.b = s.b JOIN r AS y ON s.b = y.b",
            ((0, ("a", "b")), (1, ("b", "c")), (0, ("d", "b"))),
        ),
    ],
)
def test_residuals(sql, query, seed):
    r, s = tables(seed)
    with opened(r, s) as session:
        question, found = read(session, sql, ResidualInquiry)
    atoms = ([row[:2] for row in known(r)], known(s))
    expected = residuals(query, atoms)
    for removed, most in found.items():
        # NULLs in columns that join nothing do not matter, so a residual may be larger here than with whole rows only.
        assert most >= expected[removed], (removed, most, expected)
    whole = opened(known(r), known(s))
    with whole as session:
        _, found = read(session, sql, ResidualInquiry)
    assert all(found[removed] >= most for removed, most in expected.items())
    single = [removed for removed in found if len(removed) == 1]
    assert all(found[removed] == expected[removed] for removed in single) or "y.b" in sql
    assert len(question.private) == len(query)


def test_a_filter_of_one_table_makes_residuals_smaller_and_one_of_two_does_not():
    r = [(1, 1, v) for v in range(10)]
    s = [(1, 1)]
    base = "SELECT COUNT(*) AS n FROM r JOIN s ON r.b = s.b"
    with opened(r, s) as session:
        _, every = read(session, base, ResidualInquiry)
        _, few = read(session, f"{base} WHERE v < 3", ResidualInquiry)
        _, across = read(session, f"{base} WHERE r.a <> s.c", ResidualInquiry)
        _, mixed = read(session, f"{base} WHERE v < 3 OR r.a = s.c", ResidualInquiry)
    assert every[frozenset((1,))] == across[frozenset((1,))] == mixed[frozenset((1,))] == 10
    assert few[frozenset((1,))] == 3


def test_ids_stored_as_numbers_and_as_text_meet():
    with opened([(1, 1, 1)], [(1, 2), (1, 1)]) as session:
        sql = "SELECT COUNT(*) AS n FROM s JOIN w ON s.c = w.c"
        _, found = read(session, sql, ResidualInquiry)
        assert found[frozenset((0,))] == 1
        answer = session.sql(sql, epsilon=500)
        assert answer.to_dicts()[0]["n"] == 2


def test_frequencies():
    r, s = [(1, 7, 0), (2, 7, 0), (3, 8, 0), (4, None, 0), (5, None, 0), (6, None, 0)], [(7, 1)]
    with opened(r, s) as session:
        _, found = read(session, "SELECT COUNT(*) AS n FROM r JOIN s ON r.b = s.b", FrequencyInquiry)
    assert found == {(0, "b"): 2, (1, "b"): 1}


@pytest.mark.parametrize("seed", range(3))
def test_contributions_of_units(seed):
    data = key_data(30, seed)
    with confide.testing.open(KEY, data, seed=1) as session:
        question, (shares,) = read(session, "SELECT SUM(x) AS n FROM o JOIN l ON o.oid = l.oid", SharesInquiry, 0)
        assert len(distinct_owners(question)) == 1
        truth = (
            data["o"]
            .join(data["l"], on="oid")
            .group_by("pid")
            .agg(pl.col("x").sum())["x"]
            .value_counts()
            .sort("x")
            .rows()
        )
        weights, counts = zip(*truth, strict=True)
        powers = [2**step for step in range(20)]
        assert clipped_totals(shares.weights, shares.counts, powers) == clipped_totals(weights, counts, powers)
        assert shares.counts.sum() == sum(counts)
        assert len(shares.counts) <= 2 * max(weights).bit_length() + 4
        for largest in (1, 2, 5, 37, 100):
            _, (cut,) = read(session, "SELECT SUM(x) AS n FROM o JOIN l ON o.oid = l.oid", SharesInquiry, 0, largest)
            edges = [*(power for power in powers if power < largest), largest]
            assert clipped_totals(cut.weights, cut.counts, edges) == clipped_totals(weights, counts, edges)
        sql = "SELECT COUNT(*) AS n FROM o AS one JOIN o AS two ON one.item = two.item"
        question, (shares,) = read(session, sql, SharesInquiry, 0)
        assert len(distinct_owners(question)) == 2
        pairs = data["o"].join(data["o"], on="item")
        assert shares.weights.sum() == pairs.height
        together = pairs.group_by("pid", "pid_right").len()
        assert sorted(shares.weights.tolist()) == sorted(together["len"].to_list())


def test_the_plain_join_agrees_with_itself():
    r, s = tables(3)
    names, rows = joined(((0, ("a", "b")), (1, ("b", "c"))), ([row[:2] for row in known(r)], known(s)))
    assert names == ("a", "b", "c")
    assert all(count > 0 for count in rows.values())
