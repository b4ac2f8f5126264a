"""The strongest test of joins: a query, data, a neighbour; the exact numbers before noise against what is declared."""

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import confide
from confide.engine.read.join_facts import SharesInquiry
from confide.mechanism.join.truncation import Levels
from confide.privacy.loss import PureDP
from confide.query.conjunction import bind_conjunction
from confide.query.tree import Cell, Summary
from confide.release.join.measure import sensitivity, totals
from confide.release.join.request import join_request
from tests.release.test_joins import KEY, ROW, key_data, row_data

SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.audit) for seed in (0, 2, 3, 4, 5))]
BY_ROW = [
    "SELECT COUNT(*) AS n FROM r JOIN t ON r.b = t.b",
    "SELECT g, COUNT(*) AS n FROM r JOIN t ON r.b = t.b WHERE x > 0 GROUP BY g",
    "SELECT SUM(x) AS n FROM r JOIN t ON r.b = t.b AND r.a = t.c",
    "SELECT g, SUM(y) AS n FROM label JOIN r ON label.a = r.a JOIN t ON t.b = r.b WHERE word = 'odd' GROUP BY g",
    "SELECT COUNT(*) AS n FROM r AS u JOIN r AS v ON u.b = v.b WHERE u.x < v.x OR v.g = 'p'",
    "SELECT COUNT(*) AS n FROM r AS u JOIN r AS v ON u.b = v.a JOIN r AS w ON v.b = w.a AND w.b = u.a",
    "SELECT COUNT(*) AS n FROM r AS u JOIN t ON u.b = t.b JOIN r AS v ON v.b = t.b AND v.a = t.c",
    "SELECT COUNT(*) AS n FROM label AS one JOIN r ON one.a = r.a JOIN t ON r.b = t.b "
    "LEFT JOIN label AS two ON two.word = one.word",
    "SELECT COUNT(*) AS n FROM r JOIN t ON r.b = t.b LEFT JOIN label ON label.a = t.c WHERE word IS NULL OR x > 2",
]
BY_KEY = [
    "SELECT COUNT(*) AS n FROM p JOIN o ON p.id = o.pid JOIN l ON l.oid = o.oid",
    "SELECT SUM(q) AS n FROM l",
    "SELECT g, SUM(x) AS n FROM p JOIN o ON p.id = o.pid GROUP BY g",
    "SELECT COUNT(*) AS n FROM o AS one JOIN o AS two ON one.item = two.item WHERE one.x <= two.x",
    "SELECT SUM(one.x) AS n FROM o AS one JOIN o AS two ON one.item = two.item JOIN o AS c ON two.item = c.item",
]


def facts(policy, data, sql, mechanism):
    """The exact numbers of every group, the bound on what one row changes, and α."""
    with confide.testing.open(policy, data, seed=1) as session:
        holdings = session._holdings
        question = bind_conjunction(sql, holdings.policy, holdings.engine)
        asked = join_request(holdings.policy, question, "", "duckdb", 1, 0.9, mechanism, {}, {})
        request = asked.price(holdings.standing().budget)
        charge = holdings.ledger.charge(PureDP(Fraction(1)), "test", sql, "")
        (weight,) = question.weights
        cell = Cell("rows" if weight.number is None else "total", weight.number, weight.where)
        summary = Summary(question.relation, question.where, None, question.keys, (cell,))
        exact = holdings.engine.evaluate(summary, charge, b"").cells[0]
        alpha = float(request.smooth(0).alpha)
        return exact, sensitivity(holdings, request, charge).smooth(alpha) * max(1, weight.span.largest), alpha


@pytest.mark.parametrize("mechanism", ["residual", "elastic"])
@pytest.mark.parametrize("sql", BY_ROW)
@pytest.mark.parametrize("seed", SEEDS)
def test_one_row_changes_no_more_than_the_bound(sql, seed, mechanism):
    random = np.random.default_rng(seed)
    data = row_data(25, seed)
    few = {
        "r": data["r"].with_columns(pl.col("a") % 4, pl.col("b") % 4),
        "t": data["t"].with_columns(pl.col("b", "c") % 4),
    }
    data = {**data, **few}
    here, bound, alpha = facts(ROW, data, sql, mechanism)
    table = "r" if seed % 2 or "t.b" not in sql else "t"
    value = [None, 1, 2][seed % 3]
    if table == "r":
        row = pl.DataFrame({"a": [value], "b": [1], "x": [10**9], "g": ["p"]}, schema=data["r"].schema)
    else:
        row = pl.DataFrame({"b": [1], "c": [value], "y": [math.inf]}, schema=data["t"].schema)
    place = int(random.integers(0, 25))
    for other in (pl.concat([data[table], row]), pl.concat([data[table][:place], data[table][place + 1 :]])):
        there, near, _ = facts(ROW, {**data, table: other}, sql, mechanism)
        assert int(np.abs(here - there).sum()) <= min(bound, near) * (1 + 1e-9)
        assert abs(math.log(bound) - math.log(near)) <= alpha + 1e-9


@pytest.mark.parametrize("sql", BY_KEY)
@pytest.mark.parametrize("seed", SEEDS)
def test_one_unit_changes_no_more_than_its_level(sql, seed):
    """A unit leaves with its orders and their lines; what is left at every level changes by no more than the level."""
    data = key_data(12, seed)
    data = {**data, "o": data["o"].with_columns(pl.col("item") % 9)}
    levels = Levels(64, max(1, sql.count("o AS")))
    shared = levels.owners > 1

    def cut(world):
        with confide.testing.open(KEY, world, seed=1) as session:
            holdings = session._holdings
            question = bind_conjunction(sql, holdings.policy, holdings.engine)
            charge = holdings.ledger.charge(PureDP(Fraction(1)), "test", sql, "")
            shares = holdings.engine.inquire(SharesInquiry(question, 0), charge)
            return [totals(group, levels.edges) for group in shares]

    before = cut(data)
    for leaves in range(0, 12, 4):
        orders = data["o"].filter(pl.col("pid") == leaves)["oid"]
        rest = {
            "p": data["p"].filter(pl.col("id") != leaves),
            "o": data["o"].filter(pl.col("pid") != leaves),
            "l": data["l"].filter(~pl.col("oid").is_in(orders.implode())),
        }
        after = cut(rest)
        for first, second in zip(before, after, strict=True):
            for place, (one, two) in enumerate(zip(first, second, strict=True)):
                assert -shared <= one - two <= levels.sensitivity(place)
            changes = [a - b for a, b in zip(levels.gains(first), levels.gains(second), strict=True)]
            assert all((-1 if shared else 0) <= change <= (2 if shared else 1) for change in changes)
