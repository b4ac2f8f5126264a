"""Microdata from noisy marginals: measured once against one charge, fitted as often as wanted for free.

A release holds both products. The noisy counts are unbiased, each with an interval that always holds, and may be
negative: for statistics. The fitted table has no negative count and all its sums agree: for everything that wants
records. What the second gives up for that is in its report.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from confide.errors import ParameterError
from confide.fit import METHODS, Fit, FitProblem, MeasuredGroup, Method, error, fit, round_controlled
from confide.fit import Marginal as MarginalGroup
from confide.mechanism import DiscreteGaussian, DiscreteLaplace
from confide.privacy.amount import shown_value
from confide.release.answer.answer import Answer
from confide.release.answer.frames import as_pandas, as_polars
from confide.release.cost import Cost
from confide.release.microdata.arrow import Records, fitted_table
from confide.release.microdata.marginals import (
    Marginal,
    marginal_of,
    show_marginals,
    stages_of,
)
from confide.release.microdata.stated import known_answer, public_of, query_of
from confide.release.microdata.store import Measurements, NoisyMarginal

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from confide.release.microdata.report import MicrodataReport


@dataclass(frozen=True, slots=True)
class CountEstimate:
    """A linear query: its unbiased estimate, the interval of the true answer, and what the fitted table answers."""

    value: float
    low: float
    high: float
    confidence: float
    fitted: float

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2

    def __str__(self) -> str:
        return (
            f"{self.value:,.1f}, between {self.low:,.1f} and {self.high:,.1f} with confidence {self.confidence:.4g}; "
            f"{self.fitted:,.1f} in the fitted table"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Microdata:
    """Noisy marginals with their intervals, and a table fitted to them. Nothing here can read data or spend budget."""

    measured: Measurements
    problem: FitProblem
    fitted: Fit
    confidence: float
    priority: tuple[tuple[Marginal, ...], ...] | None = None
    notes: tuple[str, ...] = ()
    stored: bool = False
    """Whether the noisy counts were kept before this call, which cost nothing then."""

    @property
    def method(self) -> Method:
        return self.fitted.method

    @property
    def marginals(self) -> tuple[Marginal, ...]:
        return self.measured.names

    @property
    def cost(self) -> Cost:
        return self.measured.cost

    # --- the noisy counts ---------------------------------------------------------------------------------------------

    def noisy(self, marginal: object = (), confidence: float | None = None) -> Answer:
        """The noisy counts of a measured marginal, each with its interval; of the total if none is named."""
        return self.measured.answer(marginal, self.confidence if confidence is None else confidence)

    def error(self, query: object, confidence: float | None = None) -> CountEstimate:
        """What the measurements say about a linear query of their span, with an interval that always holds.

        A query is a selection of values ({"sex": "F", "age": [60, 70]}; {} is the total), or a list of weighted
        ones ([(1, {"sex": "F"}), (-1, {"sex": "M"})]). The interval is for the true answer.
        """
        group = query_of(self.measured, query)
        level = self.confidence if confidence is None else confidence
        exact = known_answer(self.problem, group)
        if exact is not None:
            return CountEstimate(exact, exact, exact, level, float(self.fitted.answer(group)[0]))
        try:
            found = error(self.problem, group, level)
        except ParameterError as refusal:
            raise ParameterError(f"{refusal}; measured are {show_marginals(self.marginals)}") from None
        inside = found.interval
        return CountEstimate(found.value, inside.low, inside.high, level, float(self.fitted.answer(group)[0]))

    # --- the fitted table ---------------------------------------------------------------------------------------------

    def to_arrow(self) -> "pyarrow.Table":
        """The fitted table: combinations of values that hold something, with how much (`weight`)."""
        return fitted_table(self.measured, self.fitted)

    def to_polars(self) -> "polars.DataFrame":
        return as_polars(self.to_arrow())

    def to_pandas(self) -> "pandas.DataFrame":
        return as_pandas(self.to_arrow())

    def records(self, keep: Sequence[object] | None = None) -> Records:
        """Whole records near the fitted table, which keep the totals of some marginals, the first before the later.

        By default the total and then the measured marginals, by priority; what could not be kept is in the result.
        """
        names = self.measured.domain.attributes
        if keep is not None:
            wanted = [marginal_of(marginal, names) for marginal in keep]
        else:
            stages = self.priority or (self.marginals,)
            wanted = [(), *(each for stage in stages for each in stage if each and len(each) < len(names))]
        unique = tuple(dict.fromkeys(wanted))
        rounded = round_controlled(self.fitted, [MarginalGroup(marginal) for marginal in unique])
        return Records(self.measured, rounded, unique)

    def refit(
        self,
        fit: str = "auto",
        priority: object = None,
        *,
        zeros: object = None,
        totals: object = None,
    ) -> "Microdata":
        """Another table for the same measurements. Free."""
        stages = stages_of(self.measured.domain.attributes, self.marginals, priority)
        made = fitted_to(self.measured, method_of(fit, stages), stages, zeros, totals, self.confidence)
        return replace(made, stored=True)

    # --- what to think of it ------------------------------------------------------------------------------------------

    def report(self, compare: Sequence[str] | None = None) -> "MicrodataReport":
        """Which sums are at risk in microdata, what the fit gives up, and what the methods in `compare` would."""
        from confide.release.microdata.report import report_on  # noqa: PLC0415  it looks at what this module makes

        return report_on(self, compare)

    def plot(self, marginal: object = (), path: object = None) -> Any:
        """An Altair chart of a measured marginal: bars for the fitted counts, points and whiskers for the noisy
        ones. It is kept in a file too if a path is given: .html, .png or .svg.
        """
        from confide.release.microdata.chart import noisy_and_fitted  # noqa: PLC0415  heavy, and loaded when used

        return noisy_and_fitted(self, marginal, path)

    def to_parquet(self, folder: str | Path, *, records: bool = True, about: Mapping[str, str] | None = None) -> Path:
        """Writes noisy counts, fitted table, records and a data card (HTML and YAML) into a new folder.

        `about` fills what only the publisher knows: name, curator, intended_use, region, sector, collection, contact.
        """
        from confide.release.microdata.folder import write_folder  # noqa: PLC0415  it writes what this module makes

        return write_folder(self, Path(folder), records, about or {})

    @classmethod
    def load(cls, folder: str | Path) -> "Microdata":
        """What `to_parquet` wrote."""
        from confide.release.microdata.folder import read_folder  # noqa: PLC0415  it makes what this module has

        return read_folder(Path(folder))

    def __repr__(self) -> str:
        return f"<Microdata of {self.measured.table}: {len(self.marginals)} marginals, {self.method}; cost {self.cost}>"

    def __str__(self) -> str:
        from confide.release.microdata.rendering import microdata_text  # noqa: PLC0415  loaded when printed

        return microdata_text(self)

    def _repr_html_(self) -> str:
        from confide.release.microdata.rendering import microdata_html  # noqa: PLC0415  loaded when printed

        return microdata_html(self)


def fitted_to(
    measured: Measurements,
    method: Method,
    stages: Sequence[Sequence[int]] | None,
    zeros: object,
    totals: object,
    confidence: float,
) -> Microdata:
    """Measurements with a table fitted to them."""
    problem = problem_of(measured, zeros, totals)
    # Marginals that were measured without noise are public totals, not measurements.
    noisy = [place for place, each in enumerate(measured.marginals) if _is_noisy(each)]
    kept = [[noisy.index(place) for place in stage if place in noisy] for stage in stages or ()]
    kept = [stage for stage in kept if stage]
    if method == "sequential" and kept:
        found = fit(problem, method, priority=kept)
    elif method == "pinned" and kept:
        found = fit(problem, method, pins=[problem.measured[place].group for place in kept[0]])
    else:
        found = fit(problem, method)
    names = None if stages is None else tuple(tuple(measured.names[place] for place in stage) for stage in stages)
    return Microdata(measured, problem, found, confidence, names)


def problem_of(measured: Measurements, zeros: object = None, totals: object = None) -> FitProblem:
    """What is fitted: noisy marginals, and what is known exactly."""
    noisy = [
        MeasuredGroup(measured.group(each.marginal), each.counts.astype(np.float64), each.law)
        for each in measured.marginals
        if isinstance(each.law, DiscreteLaplace | DiscreteGaussian)
    ]
    return FitProblem(measured.domain, tuple(noisy), public_of(measured, zeros, totals))


def method_of(name: object, stages: object) -> Method:
    """The method of a name; `auto` is adaptive, or sequential if there is a priority."""
    if name == "auto":
        return "sequential" if stages is not None else "adaptive"
    if name not in METHODS:
        raise ParameterError(f"there is no fit {shown_value(name)}; there are auto, {', '.join(METHODS)}")
    return cast(Method, name)


def _is_noisy(noisy: NoisyMarginal) -> bool:
    return isinstance(noisy.law, DiscreteLaplace | DiscreteGaussian)
