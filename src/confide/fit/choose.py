"""One name for every method."""

from collections.abc import Sequence
from typing import Literal, get_args

from confide.errors import ParameterError
from confide.fit.adaptive import adaptive
from confide.fit.fitted import Fit, Method
from confide.fit.group import TOTAL, Group
from confide.fit.least_squares import nnls, ols
from confide.fit.maxfit import maxfit
from confide.fit.problem import FitProblem
from confide.fit.reweighted import reweighted
from confide.fit.sequential import Priority, pinned, sequential

METHODS: tuple[str, ...] = get_args(Method)


def fit(
    problem: FitProblem,
    method: Method | Literal["auto"] = "auto",
    *,
    priority: Priority | None = None,
    pins: Sequence[Group] = (TOTAL,),
    start: Fit | None = None,
) -> Fit:
    """A table fitted by the method of that name; `auto` is `adaptive`.

    `priority` is for `sequential` (places of measurements, most important first), `pins` for `pinned`; `start` is a
    fit of the same problem to begin at.
    """
    if priority is not None and method != "sequential":
        raise ParameterError(f"priorities are for sequential fitting; the method asked for is {method!r}")
    if tuple(pins) != (TOTAL,) and method != "pinned":
        raise ParameterError(f"pins are for pinned fitting; the method asked for is {method!r}")
    match method:
        case "ols":
            return ols(problem)
        case "nnls":
            return nnls(problem, start)
        case "maxfit":
            return maxfit(problem, start)
        case "sequential":
            return sequential(problem, priority, start)
        case "reweighted":
            return reweighted(problem, start=start)
        case "pinned":
            return pinned(problem, pins, start)
        case "adaptive" | "auto":
            return adaptive(problem, start)
        case _:
            raise ParameterError(f"there is no method {method!r}; there are auto, {', '.join(METHODS)}")
