"""A question over a join, read once and measured many times: what a hundred calls would give, without reading anew."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from confide.engine.read.join_facts import SharesInquiry
from confide.mechanism import Randomness, TestRandomness
from confide.privacy.charge import Charge
from confide.query.conjunction import BY_ROW, bind_conjunction
from confide.query.tree import Cell, Summary
from confide.release.join.measure import sensitivity, totals
from confide.release.join.request import PricedJoin, join_request


@dataclass
class Prepared:
    """One column, no groups."""

    request: PricedJoin
    randomness: Randomness
    answer: int = 0
    scale: float = 0.0
    totals: tuple[int, ...] = ()

    def measure(self) -> tuple[int, int, int]:
        request = self.request
        if request.mechanism in BY_ROW:
            mechanism = request.smooth(0)
            (noised,), half = mechanism.measure([self.answer], self.scale, request.misses[0], self.randomness)
            return noised, noised - half, noised + half
        result = request.cut(0).measure(self.totals, self.randomness)
        return result.estimate, result.low, result.high


def prepared(
    session: Any,
    sql: str,
    epsilon: object,
    confidence: float,
    mechanism: str,
    bounds: Mapping[str, tuple[Fraction, Fraction]] | None = None,
) -> Prepared:
    holdings = session._holdings
    question = bind_conjunction(sql, holdings.policy, holdings.engine)
    asked = join_request(holdings.policy, question, "", "duckdb", epsilon, confidence, mechanism, {}, bounds or {})
    request = asked.price(holdings.standing().budget)
    charge: Charge = holdings.ledger.charge(request.loss, "bench", f"bench {mechanism} {sql}", "")
    made = Prepared(request, TestRandomness(7))
    if mechanism in BY_ROW:
        weight = question.weights[0]
        cell = Cell("rows" if weight.number is None else "total", weight.number, weight.where)
        exact = holdings.engine.evaluate(Summary(question.relation, question.where, None, (), (cell,)), charge, b"")
        made.answer = int(exact.cells[0][0])
        made.scale = sensitivity(holdings, request, charge).smooth(float(request.smooth(0).alpha))
        return made
    edges = request.cut(0).levels.edges
    (shares,) = holdings.engine.inquire(SharesInquiry(question, 0, edges[-1]), charge)
    made.totals = tuple(totals(shares, edges))
    return made
