"""Methods of synthesis by name. A new one is a module that says how it goes about it, and a line in `METHODS`.

A method chooses a strategy from public facts, runs it on a curator, step by paid step, and knows how its tables are
kept. Nothing outside of it knows what its tables are made of.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Protocol, cast

from confide.errors import ParameterError
from confide.host.apart import apart
from confide.privacy.amount import shown_value
from confide.privacy.identity import Spelling
from confide.privacy.loss import ZCDP, PureDP
from confide.synthesis.aim import AIM_SPELLING, aim_strategy
from confide.synthesis.curator import Curator, ShareTable, SynthesisStep, Synthesized
from confide.synthesis.extra import require
from confide.synthesis.listed_tables import NET_SPELLING, net_strategy
from confide.synthesis.markov import MarkovTable
from confide.synthesis.mst import MST_SPELLING, mst_strategy
from confide.synthesis.mwem import MWEM_SPELLING, mwem_strategy
from confide.synthesis.planned_strategy import PLANNED_SPELLING, choose_planned
from confide.synthesis.planned_strategy import load as load_planned
from confide.synthesis.privbayes import PRIVBAYES_SPELLING, model_strategy, privbayes_strategy
from confide.synthesis.relaxed import RelaxedTable
from confide.synthesis.reweight import REWEIGHT_SPELLING, reweight_strategy
from confide.synthesis.strategy import STRATEGY_SPELLING, choose_strategy
from confide.synthesis.weighted_rows import WeightedRows
from confide.workload import BoundWorkload


class SynthesisStrategy(Protocol):
    """What a method is going to do for one workload. Equal strategies are spelled alike in an identity."""

    @property
    def words(self) -> str:
        """In one line, as people read it."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What a plan shows of it: how it selects, rounds, picks, rows."""

    def reads(self, workload: BoundWorkload) -> tuple[tuple[int, ...], ...]:
        """The sets of columns whose counts it may look at, those within them included."""

    def steps(self, workload: BoundWorkload) -> tuple[SynthesisStep, ...]:
        """What will be asked of the curator."""

    def room(self, workload: BoundWorkload) -> int:
        """Bytes that the table needs."""


Run = Callable[[Curator, BoundWorkload, Any], Synthesized]


@dataclass(frozen=True, slots=True)
class SynthesisMethod:
    """One method: how it plans, where it runs, how its tables are read again."""

    name: str
    strategy: Callable[..., SynthesisStrategy]
    """From workload, cost, expected rows, rows of a unit, and by name what the caller sets of what it `takes`."""
    spelling: Spelling
    module: str
    """Has the function `run`; loaded when used, for what it needs may be heavy."""
    load: Callable[[bytes, tuple[int, ...]], ShareTable]
    needs: str = ""
    """A package that is an extra."""
    takes: tuple[str, ...] = ()
    """What a caller may set."""

    def run(self, curator: Curator, workload: BoundWorkload, strategy: SynthesisStrategy) -> Synthesized:
        # What it needs may be heavy, and is broken for good if it is stopped in the middle of loading.
        method = apart(lambda: import_module(self.module))
        return cast(Run, method.run)(curator, workload, strategy)

    def planned(
        self, workload: BoundWorkload, cost: PureDP | ZCDP, expected: int | None, rows: int, given: Mapping[str, Any]
    ) -> SynthesisStrategy:
        """Its strategy; what it does not take is refused."""
        for name in given:
            if name not in self.takes:
                known = f"takes {', '.join(self.takes)}" if self.takes else "has nothing to set"
                raise ParameterError(f"method = {self.name!r} has no {name}: it {known}; leave it out")
        return self.strategy(workload, cost, expected, rows, **given)

    def require(self) -> None:
        """Refuse, in words, where what it needs is not installed, or cannot be used after a fork."""
        if self.needs:
            require(self.needs)


METHODS: Final[Mapping[str, SynthesisMethod]] = {
    "rap": SynthesisMethod(
        "rap",
        choose_strategy,
        STRATEGY_SPELLING,
        "confide.synthesis.rap",
        RelaxedTable.from_bytes,
        "jax",
        ("select", "rounds", "picks", "rows"),
    ),
    "mst": SynthesisMethod("mst", mst_strategy, MST_SPELLING, "confide.synthesis.mst", MarkovTable.from_bytes),
    "aim": SynthesisMethod(
        "aim",
        aim_strategy,
        AIM_SPELLING,
        "confide.synthesis.aim",
        MarkovTable.from_bytes,
        takes=("rounds", "megabytes"),
    ),
    "mwem": SynthesisMethod(
        "mwem",
        mwem_strategy,
        MWEM_SPELLING,
        "confide.synthesis.mwem",
        MarkovTable.from_bytes,
        takes=("rounds", "megabytes"),
    ),
    "privbayes": SynthesisMethod(
        "privbayes",
        privbayes_strategy,
        PRIVBAYES_SPELLING,
        "confide.synthesis.privbayes",
        MarkovTable.from_bytes,
        takes=("degree", "megabytes"),
    ),
    "privbayes+model": SynthesisMethod(
        "privbayes+model",
        model_strategy,
        PRIVBAYES_SPELLING,
        "confide.synthesis.privbayes",
        MarkovTable.from_bytes,
        takes=("degree", "megabytes"),
    ),
    "net": SynthesisMethod(
        "net",
        net_strategy,
        NET_SPELLING,
        "confide.synthesis.listed_tables",
        MarkovTable.from_bytes,
        takes=("rows",),
    ),
    "planned": SynthesisMethod(
        "planned",
        choose_planned,
        PLANNED_SPELLING,
        "confide.synthesis.planned",
        load_planned,
        takes=("select", "rows"),
    ),
    "reweight": SynthesisMethod(
        "reweight",
        reweight_strategy,
        REWEIGHT_SPELLING,
        "confide.synthesis.reweight",
        WeightedRows.from_bytes,
        takes=("select", "rounds", "start"),
    ),
}


def method_named(name: object) -> SynthesisMethod:
    if not isinstance(name, str) or name not in METHODS:
        raise ParameterError(f"method = {shown_value(name)} is not known; write auto, {', '.join(METHODS)}")
    return METHODS[name]
