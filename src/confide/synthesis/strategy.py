"""How a call's budget is divided: what is measured, in how many rounds, how many rows fit it. From public facts alone.

The rules were found on generated populations (`bench/rap_rules.py`), never on the data at hand.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, assert_never, get_args

from confide.errors import ParameterError
from confide.privacy.amount import show, shown_value, whole_number
from confide.privacy.identity import Spelling
from confide.privacy.loss import ZCDP, PureDP
from confide.synthesis.curator import ChooseAmong, MeasureQueries, MeasureSets, SynthesisStep
from confide.synthesis.relaxed import cell_count
from confide.workload import BoundWorkload

Select = Literal["closure", "marginals", "queries", "all"]
SELECTS: Final[tuple[str, ...]] = get_args(Select)

ROWS: Final = 100
MOST_CELLS: Final = 2**24
"""A marginal with more cells than this is not measured whole."""
MOST_MEASURED: Final = 2**25
"""All that is measured in one call has at most so many cells."""
_TOO_NOISY: Final = 0.15
"""Where one cell of a closure has more Gaussian noise than this share of the rows, fewer tables are chosen instead."""
_CLEAR: Final = 0.02
"""What is measured in rounds has at most noise of this share of the rows in each cell, if that leaves a round. The same
is asked of a closure under a pure budget: Laplace noise grows with the number of tables, Gaussian with its root.
"""
_MOST_ROUNDS: Final = {"marginals": 8, "queries": 16}


@dataclass(frozen=True, slots=True)
class Strategy:
    """`closure`: every one- and two-way marginal within the workload, at once. `marginals`: whole marginals chosen by
    their largest error, one a round. `queries`: `picks` single queries a round (OSAS). `all`: every set whole, at once.
    """

    select: Select
    rounds: int
    picks: int
    rows: int
    ones: Fraction
    """The share of the call that one-way marginals get, before anything else."""
    choosing: Fraction
    """The share of a round that selection gets."""

    @property
    def left(self) -> Fraction:
        """The share of the call that is left for everything else."""
        return 1 - self.ones

    @property
    def choice(self) -> Fraction:
        """The share of the call that one selection gets."""
        return self.left * self.choosing / self.rounds

    @property
    def measurement(self) -> Fraction:
        """The share of the call that what one round measures gets."""
        return self.left * (1 - self.choosing) / self.rounds

    @property
    def words(self) -> str:
        match self.select:
            case "closure":
                return f"rap: all one- and two-way marginals at once, {self.rows} rows"
            case "all":
                return f"rap: all marginals of the workload at once, {self.rows} rows"
            case "marginals":
                return f"rap: {self.rounds} rounds of one marginal, {self.rows} rows"
            case "queries":
                return f"rap: {self.rounds} rounds of {self.picks} queries, {self.rows} rows"
        assert_never(self.select)

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"select": self.select, "rounds": self.rounds, "picks": self.picks, "rows": self.rows}

    def reads(self, workload: BoundWorkload) -> tuple[tuple[int, ...], ...]:
        return workload.sets

    def steps(self, workload: BoundWorkload) -> tuple[SynthesisStep, ...]:
        singles = workload.closure(1)
        first = MeasureSets(f"every count of {_plural(len(singles), 'column')}", singles, self.ones)
        match self.select:
            case "closure" | "all":
                sets = self.at_once(workload)
                if not sets:
                    return (first,)
                return first, MeasureSets(f"every count of {_plural(len(sets), 'table')}", sets, self.left)
            case "marginals":
                candidates = self.candidates(workload)
                turns = min(self.rounds, len(candidates))
                if not turns:
                    return (first,)
                most = max(candidates, key=lambda columns: cell_count(workload.domain.sizes, columns))
                words = f"one of {_plural(len(candidates), 'table')}"
                choice = ChooseAmong(words, 1, len(candidates), self.choice, turns)
                return first, choice, MeasureSets("every count of it", (most,), self.measurement, turns)
            case "queries":
                asked = min(self.picks, workload.size)
                words = f"{_plural(asked, 'count')} of all"
                choice = ChooseAmong(words, asked, workload.size, self.choice, self.rounds)
                return first, choice, MeasureQueries("them", asked, self.measurement, self.rounds)
        assert_never(self.select)

    def room(self, workload: BoundWorkload) -> int:
        return 4 * self.rows * sum(workload.domain.sizes)

    def at_once(self, workload: BoundWorkload) -> tuple[tuple[int, ...], ...]:
        """The sets of several columns that are measured without a choice."""
        if self.select not in ("closure", "all"):
            return ()
        sets = workload.closure(2) if self.select == "closure" else workload.sets
        return tuple(columns for columns in sets if len(columns) > 1)

    def candidates(self, workload: BoundWorkload) -> tuple[tuple[int, ...], ...]:
        """The sets of several columns among which rounds of marginals choose."""
        sets = dict.fromkeys((*workload.closure(2), *workload.sets))
        sizes = workload.domain.sizes
        return tuple(columns for columns in sets if len(columns) > 1 and cell_count(sizes, columns) <= MOST_CELLS)


STRATEGY_SPELLING: Final[Spelling] = {
    Strategy: ("strategy", lambda n: (n.select, n.rounds, n.picks, n.rows, n.ones, n.choosing)),
}


def choose_strategy(
    workload: BoundWorkload,
    cost: PureDP | ZCDP,
    expected: int | None,
    unit_rows: int,
    *,
    select: str = "auto",
    rounds: int | None = None,
    picks: int | None = None,
    rows: int | None = None,
) -> Strategy:
    """The rule, with what the caller sets taken as given. `expected` is roughly how many rows there are, if public."""
    if select != "auto" and select not in SELECTS:
        raise ParameterError(f"select = {select!r} is not known; write auto, {', '.join(SELECTS)}")
    rounds = whole("rounds", rounds, 10_000)
    picks = whole("picks", picks, 100_000)
    rows = whole("rows", rows, 1_000_000, "a relaxed table has at least one row")
    single = select == "queries"
    if (rounds is not None or picks is not None) and select in ("closure", "all"):
        raise ParameterError(
            f"select = {select} has no rounds; leave rounds and picks out, or write marginals, queries"
        )
    if picks is not None and not single:
        raise ParameterError("picks is for select = 'queries'; whole marginals are chosen one a round")
    pairs = [columns for columns in workload.closure(2) if len(columns) == 2]
    n = expected or 10_000
    chosen = select if select != "auto" else _select(len(pairs), cost, n, unit_rows, rounds)
    share = Fraction(1) if chosen == "closure" and not pairs else Fraction(*ONE_SHARES[chosen])
    turns = rounds or (1 if chosen in ("closure", "all") else _rounds(chosen, len(pairs), cost, n, unit_rows))
    each = picks or (_picks(cost, n, unit_rows, turns, workload.size) if chosen == "queries" else 1)
    strategy = Strategy(chosen, turns, each, rows or ROWS, share, Fraction(*CHOOSING[chosen]))  # type: ignore[arg-type]
    if workload.counts and strategy.select == "queries":
        raise ParameterError(
            "select = 'queries' chooses among thresholds, and the workload has single counts; use auto"
        )
    _check_cells(strategy, workload)
    _check_noise(strategy, workload, cost, expected, unit_rows)
    return strategy


ONE_SHARES: Final[Mapping[str, tuple[int, int]]] = {
    "closure": (3, 10), "marginals": (3, 10), "queries": (1, 5), "all": (1, 5),
}  # fmt: skip
CHOOSING: Final[Mapping[str, tuple[int, int]]] = {
    "closure": (0, 1), "marginals": (1, 5), "queries": (1, 2), "all": (0, 1),
}  # fmt: skip


def noise(cost: PureDP | ZCDP, share: Fraction, tables: int, unit_rows: int) -> float:
    """The standard deviation of one cell when `tables` marginals divide a share of a call."""
    if isinstance(cost, PureDP):
        return math.sqrt(2) * unit_rows * tables / float(cost.epsilon * share)
    return unit_rows * math.sqrt(tables / (2 * float(cost.rho * share)))


def _select(pairs: int, cost: PureDP | ZCDP, n: int, unit_rows: int, rounds: int | None) -> str:
    if rounds is not None:
        return "marginals"
    share = 1 - Fraction(*ONE_SHARES["closure"])
    most = _CLEAR if isinstance(cost, PureDP) else _TOO_NOISY
    return "closure" if noise(cost, share, max(1, pairs), unit_rows) <= most * n else "marginals"


def _rounds(select: str, pairs: int, cost: PureDP | ZCDP, n: int, unit_rows: int) -> int:
    """As many rounds as leave each with noise well below what it is to find; at most one for each pair."""
    most = min(_MOST_ROUNDS[select], max(1, pairs))
    share = (1 - Fraction(*ONE_SHARES[select])) * (1 - Fraction(*CHOOSING[select]))
    turns = most
    while turns > 1 and noise(cost, share, turns, unit_rows) > _CLEAR * n:
        turns -= 1
    return turns


def _picks(cost: PureDP | ZCDP, n: int, unit_rows: int, rounds: int, size: int) -> int:
    """The most queries a round whose answers keep the noise of a few of the largest counts in check."""
    share = (1 - Fraction(*ONE_SHARES["queries"])) * (1 - Fraction(*CHOOSING["queries"]))
    picks = 256
    while picks > 1 and noise(cost, share, picks * rounds, unit_rows) > _CLEAR * n:
        picks //= 2
    return max(1, min(picks, size // rounds or 1))


def _check_cells(strategy: Strategy, workload: BoundWorkload) -> None:
    sizes = workload.domain.sizes
    sets = workload.sets if strategy.select == "all" else workload.closure(2)
    largest = max(sets, key=lambda columns: cell_count(sizes, columns))
    total = sum(cell_count(sizes, columns) for columns in sets)
    if cell_count(sizes, largest) > MOST_CELLS or total > MOST_MEASURED:
        names = " and ".join(workload.domain.names[column] for column in largest)
        raise ParameterError(
            f"{total:,} cells would be measured, {cell_count(sizes, largest):,} of them in {names}; at most "
            f"{MOST_MEASURED:,} and {MOST_CELLS:,} in one table are. Use wider bins or fewer columns"
            + ("; select = 'closure' measures pairs only" if strategy.select == "all" else "")
        )


def _check_noise(
    strategy: Strategy, workload: BoundWorkload, cost: PureDP | ZCDP, expected: int | None, unit_rows: int
) -> None:
    """A budget that buys nothing but noise is refused, where the number of rows is public enough to tell."""
    if expected is None:
        return
    tables = len(workload.closure(1))
    deviation = noise(cost, strategy.ones, tables, unit_rows)
    if deviation > expected:
        spent = cost.epsilon if isinstance(cost, PureDP) else cost.rho
        needed = spent * Fraction(deviation / expected) ** (1 if isinstance(cost, PureDP) else 2)
        words = f"ε = {show(needed, 2)}" if isinstance(cost, PureDP) else f"about {math.sqrt(needed / spent):.2g} times"
        raise ParameterError(
            f"this epsilon buys no round: its noise of ±{deviation:,.0f} on each count exceeds the {expected:,} rows "
            f"that the policy expects; give {words}" + ("" if isinstance(cost, PureDP) else " the epsilon")
        )


def whole(name: str, value: object, most: int, why: str = "") -> int | None:
    """A whole number that a caller sets. More than `most` would take too long, or more memory than there is."""
    number = None if value is None else whole_number(value)
    if value is not None and (number is None or not 1 <= number <= most):
        raise ParameterError(
            f"{name} = {shown_value(value)} must be a whole number from 1 to {most:,}" + (f": {why}" if why else "")
        )
    return number


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
