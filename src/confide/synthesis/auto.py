"""Which method a call takes where none is named, and why: from public facts alone.

A design that does not look at the data has an exact forecast; for the others there is a rule, which was found on
generated populations (`bench/synthesis_rules.py`), never on the data at hand.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from confide.errors import ParameterError
from confide.privacy.loss import ZCDP, PureDP
from confide.synthesis.method import METHODS, SynthesisMethod, SynthesisStrategy
from confide.synthesis.planned_strategy import MOST_CELLS, best_of_order, forecast
from confide.synthesis.strategy import noise
from confide.workload import BoundWorkload
from confide.workload.strategy.line import NoiseKind

UNNAMED: Final = "auto"
SETTINGS: Final = "rap"
"""Settings are of this method, where it takes them and none is named."""


CLEAR: Final = 0.05
LOST: Final = 1.0
"""Where pairs by themselves would be off by at most so much of the rows, measuring all of them once is best; up to the
other it is to choose a few, and beyond it nothing but single columns is left to measure."""
MANY: Final = 0.02
"""The same for a cell of a pair where there are too many cells to hold: beyond, a tree of pairs is what is left."""


@dataclass(frozen=True, slots=True)
class ChosenMethod:
    """A method with its strategy, and why it was taken; of one that was named nothing is said."""

    method: SynthesisMethod
    strategy: SynthesisStrategy
    why: str = ""


def chosen_method(
    workload: BoundWorkload, cost: PureDP | ZCDP, expected: int | None, unit_rows: int, given: Mapping[str, Any]
) -> ChosenMethod:
    """What is best for the workload; what the caller sets is taken as given, and says which method is meant."""
    if given:
        return _taking(workload, cost, expected, unit_rows, given)
    pairs = [columns for columns in workload.closure(2) if len(columns) == 2]
    rows = expected or 10_000
    if math.prod(workload.domain.sizes) <= MOST_CELLS:
        off = _pairs_off(workload, cost, rows, unit_rows)
        name = "aim" if CLEAR < off <= LOST else "planned"
        why = f"all cells can be held together, and pairs by themselves would be off by {off:.2%} of the rows"
    else:
        off = noise(cost, Fraction(1), max(1, len(pairs)), unit_rows) / rows
        name = "planned" if off <= MANY else "mst"
        why = f"the cells are too many to hold together, and noise on a pair's would be {off:.2%} of the rows"
    method = METHODS[name]
    strategy = method.planned(workload, cost, expected, unit_rows, given)
    return ChosenMethod(method, strategy, f"auto takes {name}: {why}")


def _pairs_off(workload: BoundWorkload, cost: PureDP | ZCDP, rows: int, unit_rows: int) -> float:
    """The exact forecast of all pairs, measured by the best design; the sum of all cells of one, on the average."""
    kind: NoiseKind = "laplace" if isinstance(cost, PureDP) else "gaussian"
    order = min(2, max(map(len, workload.sets)))
    return forecast(best_of_order(workload, order, kind), workload, order, cost, rows, unit_rows)


def _taking(
    workload: BoundWorkload, cost: PureDP | ZCDP, expected: int | None, unit_rows: int, given: Mapping[str, Any]
) -> ChosenMethod:
    """The first method that takes all that is set."""
    for method in (METHODS[SETTINGS], *METHODS.values()):
        if set(given) <= set(method.takes):
            strategy = method.planned(workload, cost, expected, unit_rows, given)
            return ChosenMethod(method, strategy, f"auto takes {method.name}: {', '.join(given)} is set")
    raise ParameterError(f"no method takes {', '.join(given)} together; leave one out, or name a method")
