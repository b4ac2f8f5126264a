"""What synthetic records are good for, said from what was released with them: so for free.

Of each marginal that was measured: how far the table is from the noisy counts, in units of their noise. A table that
keeps a marginal is about one deviation off, as the truth itself is. Of each pair of columns: whether anything that was
measured tells how they go together. Of what was not measured nothing is known beyond the model's assumptions.
"""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from confide.errors import ParameterError
from confide.release.answer.digits import half_width
from confide.release.synthetic.kept import KeptMarginal
from confide.release.synthetic.predictions import Prediction, predictions

if TYPE_CHECKING:
    from confide.release.synthetic.synthetic import Synthetic

_DOUBT: Final = 4.0
"""Deviations by which the mean square of a marginal of pure noise rarely passes 1."""
CONFIDENCE: Final = 0.95

Backing = Literal["together", "apart", "not measured"]


@dataclass(frozen=True, slots=True)
class MarginalKept:
    """A marginal that was measured, and how well the table keeps it."""

    columns: tuple[str, ...]
    counts: int
    half_width: int
    """Of the interval of one of its counts."""
    loss: float
    """The mean square of table less noisy count, in units of the noise: about 1 where only noise lies between."""
    worst: float
    """The largest deviation, in deviations of the noise."""

    @property
    def kept(self) -> bool:
        """Whether the table is no further from the noisy counts than noise explains."""
        return self.loss <= 1 + _DOUBT * math.sqrt(2 / self.counts)


@dataclass(frozen=True)
class SyntheticReport:
    """What was measured and how well the records keep it, which pairs of columns are backed, what is free to trust."""

    made: "Synthetic"

    @cached_property
    def marginals(self) -> tuple[MarginalKept, ...]:
        """One for each marginal that was measured, in the order in which they were."""
        made = self.made
        whole = [_judged(made, own) for own in made.measured.of_bins(len(made.domain))]
        return (*whole, *(_judged_parts(made, columns) for columns in made.measured.effects.largest))

    @cached_property
    def pairs(self) -> Mapping[tuple[str, str], Backing]:
        """For each pair of columns whether they were measured together, each by itself, or not both."""
        names = self.made.domain.names
        sets = [set(own.columns) for own in self.marginals]
        alone: set[str] = set().union(*sets)
        found: dict[tuple[str, str], Backing] = {}
        for pair in combinations(names, 2):
            together = any(set(pair) <= own for own in sets)
            found[pair] = "together" if together else "apart" if set(pair) <= alone else "not measured"
        return found

    @cached_property
    def predictions(self) -> tuple[Prediction, ...]:
        """How well each column is told from the others, by a model of the twin's records, on records held out."""
        return predictions(self.made)

    @property
    def trusted(self) -> tuple[tuple[str, ...], ...]:
        """The largest sets of columns whose counts have intervals for free."""
        sets = [own.columns for own in self.marginals]
        return tuple(own for own in dict.fromkeys(sets) if not any(set(own) < set(other) for other in sets))

    def lines(self) -> list[str]:
        """The findings as sentences."""
        kept = sum(own.kept for own in self.marginals)
        found = []
        if self.marginals:
            found.append(
                f"{kept:,} of {len(self.marginals):,} measured marginals are kept as well as their noise tells"
            )
            lost = sorted((own for own in self.marginals if not own.kept), key=lambda own: -own.loss)
            found += [
                f"{_words(own.columns)} is off by {math.sqrt(own.loss):.1f} deviations of the noise in the mean, "
                f"{own.worst:.0f} at most: ask the noisy counts, not the records"
                for own in lost[:3]
            ]
        else:
            found.append("single counts were measured, and no whole marginal: nothing of it has an interval")
        together = sum(own == "together" for own in self.pairs.values())
        if self.pairs:
            found.append(
                f"{together:,} of {len(self.pairs):,} pairs of columns were measured together; how others go together "
                "is the model's assumption"
            )
        if self.marginals:
            widths = {own.columns: own.half_width for own in self.marginals}
            shown = [f"{_words(own)} (±{half_width(widths[own])} a count)" for own in self.trusted[:3]]
            more = len(self.trusted) - len(shown)
            found.append(
                f"counts over {'; '.join(shown)}{f' and {more:,} more' if more else ''} have intervals for free, by "
                "answer(sql); for any other question ask session.trust"
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.made.table.name,
            "method": self.made.method,
            "cost": self.made.cost.to_dict(),
            "loss": self.made.loss,
            "marginals": [
                {
                    "columns": list(own.columns),
                    "counts": own.counts,
                    "half_width": own.half_width,
                    "loss": own.loss,
                    "worst": own.worst,
                    "kept": own.kept,
                }
                for own in self.marginals
            ],
            "pairs": [{"columns": list(pair), "measured": own} for pair, own in self.pairs.items()],
            "predictions": [
                {"column": own.column, "right": own.right, "commonest": own.commonest} for own in self.predictions
            ],
            "drawn": self.made.drawn,
            "left_out": self.made.left_out,
            "lines": self.lines(),
            "test_noise": self.made.test_noise,
        }

    # --- pictures and pages -------------------------------------------------------------------------------------------

    def plot(self, path: object = None) -> Any:
        """A map of the pairs of columns: which were measured together, and how well the table keeps them."""
        from confide.release.synthetic.chart import backed_pairs  # noqa: PLC0415  heavy

        return backed_pairs(self, path)

    def plot_marginal(self, *columns: str, path: object = None) -> Any:
        """Counts of the table beside the noisy counts and their intervals, of a marginal that was measured."""
        from confide.release.synthetic.chart import noisy_beside_table  # noqa: PLC0415  heavy

        return noisy_beside_table(self.made, self.found(columns), path)

    def found(self, columns: tuple[str, ...]) -> "NoisyCells":
        """A marginal by its columns, in any order."""
        made = self.made
        names = made.domain.names
        for own in made.measured.of_bins(len(made.domain)):
            if sorted(names[column] for column in own.columns) == sorted(columns):
                return _cells(made, own)
        for one in made.measured.effects.largest:
            if sorted(names[column] for column in one) == sorted(columns):
                return _cells_of_parts(made, one)
        known = "; ".join(dict.fromkeys(_words(own.columns) for own in self.marginals)) or "none"
        raise ParameterError(f"{_words(columns)} was not measured as a marginal; these were: {known}")

    def card(self, about: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The data card, in the shape of a registry entry."""
        from confide.release.synthetic.card import card_facts  # noqa: PLC0415  loaded when used

        return card_facts(self, about or {})

    def to_html(self, path: str | os.PathLike[str], about: Mapping[str, str] | None = None) -> Path:
        """The report and the card as a page of its own, without scripts and without anything fetched."""
        place = Path(path)
        place.write_text(self.page(about), encoding="utf-8")
        return place

    def page(self, about: Mapping[str, str] | None = None) -> str:
        from confide.release.synthetic.card import card_page  # noqa: PLC0415  loaded when used

        return card_page(self, about or {})

    def to_yaml(self, path: str | os.PathLike[str], about: Mapping[str, str] | None = None) -> Path:
        """The data card for machines."""
        place = Path(path)
        place.write_text(self.card_text(about), encoding="utf-8")
        return place

    def card_text(self, about: Mapping[str, str] | None = None) -> str:
        import yaml  # noqa: PLC0415  loaded when used

        return str(yaml.safe_dump(self.card(about), sort_keys=False, allow_unicode=True))

    def __str__(self) -> str:
        from confide.release.synthetic.rendering import report_text  # noqa: PLC0415  loaded when printed

        return report_text(self)

    def _repr_html_(self) -> str:
        from confide.release.synthetic.rendering import report_html  # noqa: PLC0415  loaded when printed

        return report_html(self)


def report_on(made: "Synthetic") -> SyntheticReport:
    return SyntheticReport(made)


@dataclass(frozen=True, slots=True, eq=False)
class NoisyCells:
    """A marginal as it was measured: noisy counts and the half-width of their intervals, and what the table says."""

    columns: tuple[int, ...]
    noisy: NDArray[np.float64]
    half_width: int
    deviation: float
    fitted: NDArray[np.float64]
    places: tuple[NDArray[np.int64], ...]
    """For each column, the measured place of each of its places."""


def _cells(made: "Synthetic", own: KeptMarginal) -> NoisyCells:
    shares = made.model.marginal(own.columns, 0, made.domain.sizes[own.columns[0]])
    deviation = math.sqrt(max(own.variance, 1 / 12))
    fitted = own.counts_of(shares) * made.total
    return NoisyCells(
        own.columns, own.noisy, own.half_width(CONFIDENCE), deviation, fitted, own.spread(made.domain.sizes)
    )


def _cells_of_parts(made: "Synthetic", columns: tuple[int, ...]) -> NoisyCells:
    effects, sizes = made.measured.effects, made.domain.sizes
    noisy, variance = effects.marginal(columns, sizes)
    half = math.ceil(float(effects.half_widths(np.array([variance]), CONFIDENCE)[0]))
    shares = made.model.marginal(columns, 0, sizes[columns[0]]).astype(np.float64)
    places = tuple(np.arange(sizes[column]) for column in columns)
    return NoisyCells(columns, noisy, half, math.sqrt(max(variance, 1 / 12)), shares * made.total, places)


def _judged(made: "Synthetic", own: KeptMarginal) -> MarginalKept:
    return _told(made, _cells(made, own))


def _judged_parts(made: "Synthetic", columns: tuple[int, ...]) -> MarginalKept:
    return _told(made, _cells_of_parts(made, columns))


def _told(made: "Synthetic", cells: NoisyCells) -> MarginalKept:
    apart = (cells.fitted - cells.noisy) / cells.deviation
    return MarginalKept(
        tuple(made.domain.names[column] for column in cells.columns),
        cells.noisy.size,
        cells.half_width,
        float(np.mean(apart**2)),
        float(np.abs(apart).max()),
    )


def _words(columns: tuple[str, ...]) -> str:
    return " × ".join(columns)
