"""One pattern of an edge table, counted, paid for and told: what every answer about a graph goes through."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal

from confide.errors import ParameterError, QueryError
from confide.host.progress import Tell, tell
from confide.mechanism.noise.law import miss_rate
from confide.policy import KeyUnit
from confide.privacy.amount import shown_value
from confide.privacy.budget import Budget
from confide.privacy.charge import Charge
from confide.privacy.identity import written
from confide.privacy.loss import ZCDP, PureDP
from confide.release.account import AUTO, pure_width
from confide.release.answer.answer import Answer, KeyColumn, ValueColumn
from confide.release.arguments import confidence_level, exact_epsilon, plain_text, pure_share
from confide.release.cost import Cost
from confide.release.guard import listening
from confide.release.holdings import Holdings
from confide.release.least_epsilon import made_at

if TYPE_CHECKING:
    from confide.engine.protocol import Inquiry
    from confide.engine.read.network import GraphInquiry

UNINFORMED: Final = (
    "no information: too little is seen to learn how much one node has, so the interval is what "
    "holds where no node has more than is kept; say at_most, if you know how many edges a node has at most"
)
MOST_EDGES: Final = 20_000_000
"""A larger table, by the size that the policy states, is not taken out of the database as a graph."""

Protected = Literal["edge", "node"]
Estimate = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Counted:
    """Estimates with the ends of their intervals. `informed`: see `Bounded`. `said`: what they assume, where more of
    it is known once something is released.
    """

    results: tuple[Estimate, ...]
    informed: bool = True
    said: str = ""


@dataclass(frozen=True, slots=True)
class EdgeTable:
    """A table whose rows are edges, who is protected, and what answers about it are made from."""

    holdings: Holdings
    table: str
    source: str
    target: str
    directed: bool
    unit: Protected
    progress: Tell | None = None
    """Hears how far an answer is, in steps whose number is public; no part of what is asked."""
    account: object = AUTO
    """The account of the budget that what is counted is charged to."""

    @property
    def owned(self) -> bool:
        """Whether the policy's unit is a key, which owns part of the edges of a node."""
        return isinstance(self.holdings.policy.unit, KeyUnit)

    @property
    def replaced(self) -> bool:
        """Whether the number of rows is public, so that neighbours replace."""
        return self.holdings.policy.replaces((self.table,))

    @property
    def protected(self) -> str:
        if self.unit == "node":
            return f"node of {self.table}, with all its edges"
        return f"row of {self.table}: a directed edge" if self.directed else f"row of {self.table}: an undirected edge"


@dataclass(frozen=True, slots=True)
class PatternCount:
    """A pattern's mechanism once its part of ε is known: what it makes of what was read, and what that assumes."""

    mechanism: str
    count: Callable[[Any], Counted]
    assumed: str = ""
    steps: int = 1
    """In how many steps it counts, of which it tells all but the last."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """What is counted. `counting` is made from ε and a miss rate before anything is charged, so that it may refuse."""

    name: str
    mechanism: str
    counting: Callable[[Fraction, float], PatternCount]
    more: str = ""
    keys: KeyColumn | None = None
    reading: "Callable[[GraphInquiry], Inquiry[Any]] | None" = None
    """What is read in place of the whole graph."""
    notes: tuple[str, ...] = ()
    concentrated: Callable[[ZCDP, int, float], PatternCount] | None = None
    """The same from ρ and δ, under a budget that has them, and how many edges a unit changes; None if by ε as well."""


@dataclass(frozen=True, slots=True)
class PatternRequest:
    """A pattern of an edge table at ε."""

    edges: EdgeTable
    pattern: Pattern
    epsilon: Fraction
    confidence: float

    @property
    def purpose(self) -> str:
        edges, pattern = self.edges, self.pattern
        return f"graph: {pattern.name} of {edges.table}({edges.source}, {edges.target}) {pattern.more}".strip()

    def identity(self) -> str:
        edges, pattern = self.edges, self.pattern
        graph = (edges.table, edges.source, edges.target, edges.directed, edges.unit)
        return written("graph", graph, pattern.name, pattern.more, pattern.mechanism, self.epsilon, self.confidence)

    def price(self, budget: Budget) -> "PricedPattern":
        edges, pattern = self.edges, self.pattern

        def made(tried: Fraction) -> tuple[PureDP | ZCDP, PatternCount]:
            loss, share = pure_share(budget, tried)
            # A row that is replaced is one that goes and one that comes.
            changes = 2 if edges.replaced else 1
            if isinstance(loss, ZCDP) and pattern.concentrated is not None:
                loss = ZCDP(loss.rho, budget.explicit_delta(loss))
                return loss, pattern.concentrated(loss, changes, miss_rate(self.confidence))
            return loss, pattern.counting(share / changes, miss_rate(self.confidence))

        return PricedPattern(self, *made_at(self.epsilon, made))

    def decode(self, stored: bytes) -> Answer:
        return Answer.from_bytes(stored)


@dataclass(frozen=True, slots=True)
class PricedPattern:
    """A pattern with the mechanism that its ε buys."""

    request: PatternRequest
    loss: PureDP | ZCDP
    counting: PatternCount

    @property
    def widths(self) -> tuple[float, ...]:
        return (pure_width(self.loss),)

    def measure(self, holdings: Holdings, charge: Charge) -> bytes:
        from confide.engine.read.network import GraphInquiry  # noqa: PLC0415  heavy, and loaded when used

        edges, pattern = self.request.edges, self.request.pattern
        columns = holdings.policy.tables[edges.table].columns
        graph = GraphInquiry(edges.table, columns[edges.source], columns[edges.target], edges.directed)
        inquiry: Inquiry[Any] = graph if pattern.reading is None else pattern.reading(graph)
        steps = self.counting.steps
        tell("reading", 0, steps)
        read = holdings.engine.inquire(inquiry, charge)
        tell("counting", 0, steps)
        measured = self.counting.count(read)
        tell("counting", steps, steps)
        cost = Cost.of(self.request.epsilon, self.loss)
        return _answer(edges, pattern, self.counting, measured, cost, self.request.confidence).to_bytes()


def ask(edges: EdgeTable, pattern: Pattern, epsilon: object, confidence: object) -> Answer:
    """The answer, against one charge; the same again is free."""
    holdings = edges.holdings
    size = holdings.policy.tables[edges.table].size
    if pattern.reading is None and size is not None and size > MOST_EDGES:
        raise QueryError(
            f"{edges.table} has about {size:,} rows, as the policy says, and patterns are counted in graphs of up "
            f"to {MOST_EDGES:,} edges; ask edges() or degree_histogram() with edges as the unit"
        )
    request = PatternRequest(edges, pattern, exact_epsilon(epsilon), confidence_level(confidence))
    with listening(edges.progress):
        asked = holdings.ask(request, edges.account)
    return asked.result.marked(asked.stored)


def _answer(
    edges: EdgeTable, pattern: Pattern, counting: PatternCount, measured: Counted, cost: Cost, confidence: float
) -> Answer:
    values, low, high = zip(*measured.results, strict=True)
    assumed = counting.assumed if measured.informed else ""
    said = measured.said or assumed if measured.informed else UNINFORMED
    assumes = "density" if assumed else "at_most" if pattern.notes else "always"  # notes say what is cut
    column = ValueColumn(pattern.name, "integer", values, low, high, counting.mechanism, assumes, said)
    odd = "self-loops and edges with an unknown end are left out; rows that say the same edge count once"
    return Answer(
        columns=(column,) if pattern.keys is None else (pattern.keys, column),
        confidence=confidence,
        cost=cost,
        unit=edges.protected,
        neighbours="replace-one" if edges.replaced else "add-remove",
        question=f"{pattern.name} of {edges.table}",
        notes=(odd, *pattern.notes),
        test_noise=not edges.holdings.randomness.kernel,
    )


def inside(value: int, half: int) -> Estimate:
    """A count is not negative; below 0 the upper end stays where it is for 0, so that no interval is empty. None is
    without width either, however little noise there is.
    """
    half = max(half, 1)
    return max(value, 0), max(value - half, 0), max(value, 0) + half


def named(mechanism: object, known: tuple[str, ...]) -> str:
    """A mechanism that there is; `auto` is the first."""
    name = plain_text(mechanism)
    if not isinstance(name, str) or name not in ("auto", *known):
        raise ParameterError(f"there is no mechanism {shown_value(name)} for this; there are auto, {', '.join(known)}")
    return known[0] if name == "auto" else name
