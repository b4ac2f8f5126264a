"""What a release measures before noise, and whether two neighbours differ there by more than was paid for.

`watched` writes down the exact numbers at every door where noise is added or chance decides, for every mechanism.
`violations` judges two such records of neighbouring data: the loss that the noise would really cost, summed over all
doors, must not exceed the charge; bounds that follow the data must be smooth; ladders must be ladders.

What is measured after a choice hangs on what was chosen. Where that is parts of a column, or a number that becomes a
constant of a later question, the second side is given the choice of the first (`like`): so both measure the same.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

from confide.mechanism.graph.ladder import Ladder
from confide.mechanism.join.truncation import Levels
from confide.mechanism.noise.additive import Additive
from confide.mechanism.noise.law import DiscreteGaussian, DiscreteLaplace
from confide.mechanism.quantile.pair import ScoredEnd
from confide.mechanism.selection.even_parts import EvenParts
from confide.mechanism.selection.net import Net
from confide.mechanism.selection.sparse_vector import SparseVector
from confide.mechanism.smooth.gaussian import SmoothGaussian
from confide.mechanism.smooth.smooth import Smooth, SmoothLog
from confide.mechanism.smooth.vector import SmoothVector
from confide.privacy.loss import ZCDP, PrivacyLoss, PureDP
from confide.release import question_call
from confide.release.block_noise import BlockNoise
from confide.release.synthetic.curator import LedgerCurator
from confide.release.workload import partition_price
from confide.synthesis.selection import LargestError
from confide.trust import clip, median, optimal, plug_in
from confide.trust import exponential_decider as exponential
from confide.trust import race_decider as race
from confide.trust import sparse_decider as sparse
from tests.laboratory.losses import Tree, Walk, Weights, covered_loss, drawn_loss, split_loss, walked_loss

SLACK = 1e-6
"""What doubles may add to a loss."""

_DECIDERS = (
    clip.Clip, exponential.Graded, exponential.Naive, median.Selected, median.Histogram, optimal.Optimal,
    plug_in.PlugIn, plug_in.PlugInMean, race.Raced, sparse.SparseDecider,
)  # fmt: skip


@dataclass(frozen=True)
class Noised:
    """Integers to which noise of one law is added; factors, where there are some, multiply its variance."""

    law: Any
    exact: tuple[int, ...]
    factors: tuple[int, ...] = ()


@dataclass(frozen=True)
class Smoothed:
    """Integers that get noise in proportion to a bound that follows the data."""

    alpha: float
    exact: tuple[int, ...]
    bound: float


@dataclass(frozen=True)
class Climbed:
    """A count that is drawn from a ladder."""

    count: int
    rungs: tuple[int, ...]


@dataclass(frozen=True)
class Walked:
    """What a level is learnt by."""

    levels: Levels
    gains: tuple[int, ...]


@dataclass(frozen=True)
class Decided:
    """The probability of yes."""

    chance: float


@dataclass(frozen=True)
class Logged:
    """A logarithm that changes by so much at most, and gets noise for that."""

    alpha: float
    exact: float


@dataclass(frozen=True, eq=False)
class Drawn:
    """Candidates of which one is drawn."""

    weights: Weights


@dataclass(frozen=True, eq=False)
class Streamed:
    """Queries of which the first are found that reach a threshold."""

    walks: tuple[Walk, ...]


@dataclass(frozen=True, eq=False)
class Split:
    """Cells whose parts are split privately, and the edges that came out."""

    tree: Tree
    edges: Any


@dataclass(frozen=True, eq=False)
class Covered:
    """Cells that are covered by parts of noisy costs, and the edges that came out."""

    mechanism: Any
    counts: Any
    edges: Any


@dataclass(frozen=True)
class Settled:
    """Numbers that were released, and are constants of what is asked next."""

    numbers: tuple[Any, ...]


@dataclass(frozen=True)
class Stepped:
    """The beginning of a step that has a charge of its own."""


Door = Noised | Smoothed | Climbed | Walked | Decided | Logged | Drawn | Streamed | Split | Covered | Settled | Stepped


def _whole(values: Any) -> tuple[int, ...]:
    return tuple(int(value) for value in np.ravel(np.asarray(values, dtype=object)))


_OUTER = (*_DECIDERS, Smooth, SmoothVector, SmoothGaussian)
"""What may be made of doors: the outer one is the one that is passed."""


@contextmanager
def watched(like: Sequence[Door] = ()) -> Iterator[list[Door]]:  # noqa: PLR0915  a line for each door
    """The doors that are passed inside, in their order. `like`: those of the other side, whose choices are taken."""
    doors: list[Door] = []
    chosen = [door for door in like if isinstance(door, Split | Covered | Settled)]
    inside = 0

    def watch(kind: type, method: str, door: Callable[..., Door]) -> Any:
        plain = getattr(kind, method)

        def through(self: Any, *arguments: Any, **named: Any) -> Any:
            nonlocal inside
            if not inside:
                doors.append(door(self, *arguments))
            inside += kind in _OUTER
            try:
                return plain(self, *arguments, **named)
            finally:
                inside -= kind in _OUTER

        return patch.object(kind, method, through)

    def taken(kind: type[Any]) -> Any:
        """The next choice of the other side, if it is of this kind."""
        return chosen.pop(0) if chosen and isinstance(chosen[0], kind) else None

    def smoothed(mechanism: Any, answer: Any, bound: float, *_: Any) -> Door:
        return Smoothed(float(mechanism.alpha), _whole(answer), float(bound))

    def blocked(noise: BlockNoise, block: Any, counts: Any, *_: Any) -> Door:
        factors = block.factors
        return Noised(noise.law, _whole(block.measure(counts)), () if factors is None else _whole(factors))

    def scored(end: ScoredEnd, tally: Any, domain: Any, *_: Any) -> Door:
        segments = end.segments(tally.condensed(*end.window(tally.rows)), domain)
        return Drawn(Weights(float(end.mechanism.rate), *map(np.asarray, segments)))

    def one_of(chooser: LargestError, scores: Any, *_: Any) -> Door:
        places, each = np.arange(len(scores)), np.ones(len(scores), dtype=np.int64)
        return Drawn(Weights(float(chooser.epsilon) / (2 * chooser.sensitivity), places, each, -np.asarray(scores)))

    def netted(own: Net, counts: Any, *_: Any) -> Door:
        errors = own.errors(counts)
        return Drawn(Weights(float(own.mechanism.rate), np.arange(len(errors)), np.ones_like(errors), errors))

    def streamed(mechanism: SparseVector, streams: Any, *_: Any) -> Door:
        scales = float(mechanism.threshold_scale), float(mechanism.query_scale), mechanism.tops
        own = streams if isinstance(streams, Sequence) else [streams]
        return Streamed(tuple(Walk(*scales, stream.margins, stream.lengths) for stream in own))

    split, cover, settle = partition_price.split_codes, EvenParts.edges, question_call.StepwiseCall._last

    def splitting(mechanism: Any, counts: Any, codes: Any, halvings: int, randomness: Any) -> Any:
        other = taken(Split)
        edges = split(mechanism, counts, codes, halvings, randomness) if other is None else other.edges
        doors.append(Split(Tree(mechanism, counts, codes, halvings), edges))
        return edges

    def covering(mechanism: Any, counts: Any, randomness: Any) -> Any:
        other = taken(Covered)
        edges = cover(mechanism, counts, randomness) if other is None else other.edges
        doors.append(Covered(mechanism, counts, edges))
        return edges

    planned = False

    def settling(call: Any, numbers: Any) -> Any:
        nonlocal planned
        if not planned:  # the first is that of a plan, for what is expected
            planned = True
            return settle(call, numbers)
        other = taken(Settled)
        settled = Settled(tuple(numbers)) if other is None else other
        doors.append(settled)
        return settle(call, settled.numbers)

    with ExitStack() as stack:
        enter = stack.enter_context
        enter(watch(Additive, "measure", lambda self, exact, *_: Noised(self.law, _whole(exact))))
        enter(watch(BlockNoise, "measure", blocked))
        for kind, method in ((Smooth, "measure"), (SmoothVector, "measure"), (SmoothGaussian, "release")):
            enter(watch(kind, method, smoothed))
        enter(watch(SmoothLog, "measure", lambda self, exact, *_: Logged(float(self.alpha), float(exact))))
        enter(watch(Ladder, "measure", lambda _, count, rungs, *__: Climbed(int(count), _whole(rungs))))
        enter(watch(Levels, "enough", lambda self, totals, *_: Walked(self, tuple(self.gains(totals)))))
        enter(watch(ScoredEnd, "_one", scored))
        enter(watch(LargestError, "choose", one_of))
        enter(watch(Net, "choose", netted))
        for method in ("places", "first", "first_of_each"):
            enter(watch(SparseVector, method, streamed))
        enter(watch(LedgerCurator, "_once", lambda *_: Stepped()))
        for decider in _DECIDERS:
            enter(watch(decider, "decide", lambda self, seen, *_: Decided(self.chance(seen))))
        enter(patch.object(partition_price, "split_codes", splitting))
        enter(patch.object(EvenParts, "edges", covering))
        enter(patch.object(question_call.StepwiseCall, "_last", settling))
        yield doors


def violations(  # noqa: PLR0915  a case for each door
    first: Sequence[Door], second: Sequence[Door], charged: PrivacyLoss
) -> list[str]:
    """Where two records of neighbouring data are further apart than their charge allows."""
    first, second = _first_step(first), _first_step(second)
    if [type(door) for door in first] != [type(door) for door in second]:
        return [f"{len(first)} doors were passed, and {len(second)} by the neighbour"]
    found: list[str] = []
    epsilon = rho = 0.0
    learnt = False  # whether a level was learnt from numbers that differ: then it may differ too, and noise with it
    for one, two in zip(first, second, strict=True):
        match one, two:
            case Noised(law, exact, factors), Noised(other, there, others):
                if law != other or factors != others:
                    return found if learnt else [*found, f"the noise differs: {law} and {other}"]
                if len(exact) != len(there):
                    return [*found, "the shapes of what is noised differ"]
                changes = [abs(a - b) for a, b in zip(exact, there, strict=True)]
                if isinstance(law, DiscreteLaplace):
                    own = float(sum(changes) / law.scale)
                    epsilon, rho = epsilon + own, rho + own**2 / 2
                elif isinstance(law, DiscreteGaussian):
                    squares = [change**2 for change in changes]
                    if factors:
                        squares = [square / factor for square, factor in zip(squares, factors, strict=True)]
                    rho += float(sum(squares)) / (2 * float(law.variance))
                    epsilon = math.inf if any(changes) else epsilon
                elif any(changes):
                    found.append("numbers without noise differ")
            case Smoothed(alpha, exact, bound), Smoothed(_, there, near):
                moved = sum(abs(a - b) for a, b in zip(exact, there, strict=True))
                if moved > min(bound, near) * (1 + SLACK):
                    found.append(f"{moved} is beyond the smooth bounds {bound} and {near}")
                if (
                    abs(math.log(max(bound, 1e-300)) - math.log(max(near, 1e-300))) > alpha + SLACK
                    and max(bound, near) > 1
                ):
                    found.append(f"bounds {bound} and {near} are not {alpha}-smooth")
            case Climbed(count, rungs), Climbed(there, others):
                if abs(count - there) > min(rungs[0], others[0]):
                    found.append(f"a count moves by {abs(count - there)} on first rungs {rungs[0]} and {others[0]}")
                pairs = [*zip(rungs[:-1], others[1:], strict=True), *zip(others[:-1], rungs[1:], strict=True)]
                if any(here > beyond for here, beyond in pairs):
                    found.append("the rungs are no ladder")
            case Walked(levels, gains), Walked(_, others):
                most = 1 if levels.owners == 1 and levels.change is None else 2
                moved = [a - b for a, b in zip(gains, others, strict=True)]
                if moved and not (
                    (min(moved) >= -(most - 1) and max(moved) <= most)
                    or (min(moved) >= -most and max(moved) <= most - 1)
                ):
                    found.append(f"gains move by {min(moved)} to {max(moved)}")
                learnt = learnt or any(moved)
            case Logged(alpha, exact), Logged(_, there):
                if abs(exact - there) > alpha + SLACK:
                    found.append(f"a logarithm moves by {abs(exact - there)}, more than {alpha}")
            case Drawn(weights), Drawn(others):
                own, spread = drawn_loss(weights, others)
                epsilon, rho = epsilon + own, rho + spread**2 / 8
            case Streamed(walks), Streamed(others):
                if len(walks) != len(others):
                    return [*found, "the shapes of what is walked differ"]
                for walk, near in zip(walks, others, strict=True):
                    own = walked_loss(walk, near)
                    epsilon, rho, learnt = epsilon + own, rho + own**2 / 2, learnt or own > 0
            case Split(tree), Split(near):
                own = split_loss(tree, near)
                epsilon, rho = epsilon + own, rho + own**2 / 2
            case Covered(mechanism, counts), Covered(_, there):
                own = covered_loss(mechanism, counts, there)
                epsilon, rho = epsilon + own, rho + own**2 / 2
            case Decided(chance), Decided(there):
                epsilon += _log_ratio(chance, there)
                rho += max(_concentrated(chance, there), _concentrated(there, chance))
    match charged:
        case PureDP(paid) if epsilon > float(paid) * (1 + SLACK) + SLACK:
            found.append(f"a loss of {epsilon} where ε = {float(paid)} was paid")
        case ZCDP(paid) if rho > float(paid) * (1 + SLACK) + SLACK**2:
            found.append(f"a loss of ρ = {rho} where {float(paid)} was paid")
    return found


def _first_step(doors: Sequence[Door]) -> Sequence[Door]:
    """What is measured later hangs on what was released before, which differs between neighbours."""
    begins = [place for place, door in enumerate(doors) if isinstance(door, Stepped)]
    return doors[begins[0] + 1 : begins[1]] if len(begins) > 1 else [door for door in doors if door != Stepped()]


def _log_ratio(chance: float, other: float) -> float:
    """The loss of one bit; probabilities that doubles do not tell from 0 or 1 are taken for equal."""
    a, b = _inside(chance), _inside(other)
    return max(abs(math.log(a / b)), abs(math.log((1 - a) / (1 - b))))


def _concentrated(chance: float, other: float) -> float:
    """The ρ of one bit: the largest Rényi divergence over its order, on a grid of orders."""
    a, b = _inside(chance), _inside(other)
    orders = 1 + np.geomspace(1e-3, 1e4, 200)
    yes, no = (orders * math.log(x) + (1 - orders) * math.log(y) for x, y in ((a, b), (1 - a, 1 - b)))
    return float(np.max(np.logaddexp(yes, no) / (orders - 1) / orders))


def _inside(chance: float) -> float:
    tiny = 1e-12
    return min(max(chance, tiny), 1 - tiny)
