"""An answer read for the population of which the rows are a random sample: arithmetic on what was released.

Beside an answer stands what was measured for it: noised totals and counts, with their laws. So the same answer, paid
for once, is read either way.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from confide.errors import QueryError
from confide.mechanism import Law, Measurement
from confide.mechanism.interval.population import population_intervals
from confide.mechanism.noise.law import Confidence
from confide.query.question import Question, ShownValue
from confide.query.sample_means import SampleMeans, population_refusal, sample_means
from confide.release.answer.estimate import Array
from confide.release.law_facts import law_facts, law_of

if TYPE_CHECKING:
    from confide.release.answer.answer import Answer, ValueColumn

ASSUMES: Final = "random sample"
_NOTE = "intervals are for the population of which the rows are a random sample: noise and sampling together"


@dataclass(frozen=True, slots=True)
class SampledMean:
    """A mean of rows: its weight in a column, and what was measured of it in each row that is shown."""

    weight: Fraction
    totals: tuple[int, ...]
    counts: tuple[int, ...]
    total_law: Law
    count_law: Law
    ends: tuple[int, int]
    """Least and largest value, in indices from the centre."""
    centre: int
    grain: Fraction

    def population(self, confidence: Confidence) -> tuple[Array, Array]:
        """Ends of the intervals of the mean of the population."""
        totals, counts = (np.array(numbers, dtype=object) for numbers in (self.totals, self.counts))
        low, high = self.ends
        found = population_intervals(totals, counts, self.total_law, self.count_law, confidence, low=low, high=high)
        grain, shift = float(self.grain), float(self.centre * self.grain)
        return found.low * grain + shift, found.high * grain + shift


@dataclass(frozen=True, slots=True)
class SampledColumn:
    """A column that is a sum of multiples of means, plus a constant."""

    means: tuple[SampledMean, ...]
    constant: Fraction
    digits: int | None

    def population(self, confidence: Confidence) -> tuple[Array, Array]:
        """Ends that hold together for all means: each has its part of the miss rate."""
        each = 1 - (1 - Fraction(confidence)) / len(self.means)
        low = high = np.full(len(self.means[0].totals), float(self.constant))
        for mean in self.means:
            first, last = mean.population(each)
            weight = float(mean.weight)
            low, high = low + weight * (first if weight > 0 else last), high + weight * (last if weight > 0 else first)
        if self.digits is not None:
            scale = 10.0**self.digits
            low, high = np.floor(low * scale) / scale, np.ceil(high * scale) / scale
        return low, high


def sampled_columns(
    question: Question, measurements: Sequence[Measurement], rows: Sequence[int]
) -> tuple[SampledColumn, ...]:
    """What was measured for each column, in the rows that are shown; nothing where a column is of no population."""
    if population_refusal(question) is not None:
        return ()
    columns = []
    for column in question.columns:
        if isinstance(column, ShownValue):
            found = sample_means(column.value)
            assert found is not None
            columns.append(_sampled(found, measurements, rows))
    return tuple(columns)


def _sampled(found: SampleMeans, measurements: Sequence[Measurement], rows: Sequence[int]) -> SampledColumn:
    means = []
    for weight, mean in found.means:
        total, count = measurements[mean.total], measurements[mean.count]
        totals, counts = (tuple(int(part.values[row]) for row in rows) for part in (total, count))
        ends = mean.low - mean.centre, mean.high - mean.centre
        means.append(SampledMean(weight, totals, counts, total.law, count.law, ends, mean.centre, mean.grain))
    return SampledColumn(tuple(means), found.constant, found.digits)


def for_population(answer: "Answer") -> "Answer":
    """The same answer with intervals for the population, and a line that says so."""
    if not answer.sampled:
        raise QueryError(
            "what was measured for this answer is not kept beside it, as an older version left it; ask again at "
            "another epsilon for population=True"
        )
    from confide.release.answer.answer import ValueColumn  # noqa: PLC0415  it holds what is here

    confidence, sampled = answer.each_confidence, iter(answer.sampled)
    columns = tuple(
        _read(column, next(sampled), confidence) if isinstance(column, ValueColumn) else column
        for column in answer.columns
    )
    return replace(answer, columns=columns, notes=(*answer.notes, _NOTE))


def _read(column: "ValueColumn", sampled: SampledColumn, confidence: float) -> "ValueColumn":
    low, high = sampled.population(confidence)
    values = np.array(column.values, dtype=np.float64)
    ends = np.minimum(low, values), np.maximum(high, values)
    return replace(column, low=tuple(map(float, ends[0])), high=tuple(map(float, ends[1])), assumes=ASSUMES)


# --- keeping it -------------------------------------------------------------------------------------------------------


def sampled_facts(columns: Sequence[SampledColumn]) -> list[dict[str, Any]]:
    """As plain values."""
    return [
        {
            "constant": str(column.constant),
            "digits": column.digits,
            "means": [
                {
                    "weight": str(mean.weight),
                    "totals": list(mean.totals),
                    "counts": list(mean.counts),
                    "total_law": law_facts(mean.total_law),
                    "count_law": law_facts(mean.count_law),
                    "ends": list(mean.ends),
                    "centre": mean.centre,
                    "grain": str(mean.grain),
                }
                for mean in column.means
            ],
        }
        for column in columns
    ]


def sampled_from(facts: Sequence[dict[str, Any]]) -> tuple[SampledColumn, ...]:
    return tuple(
        SampledColumn(
            tuple(
                SampledMean(
                    Fraction(mean["weight"]),
                    tuple(mean["totals"]),
                    tuple(mean["counts"]),
                    law_of(mean["total_law"]),
                    law_of(mean["count_law"]),
                    (mean["ends"][0], mean["ends"][1]),
                    mean["centre"],
                    Fraction(mean["grain"]),
                )
                for mean in column["means"]
            ),
            Fraction(column["constant"]),
            column["digits"],
        )
        for column in facts
    )
