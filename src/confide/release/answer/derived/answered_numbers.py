"""What one question of a derivation released: keys, values with their laws, and how each value is made of noise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from confide.mechanism import Measurement
from confide.mechanism.noise.law import Confidence
from confide.query.grouping import group_places
from confide.query.key_value import spelled
from confide.query.question import Question, ShownKey, ShownValue, Value, statistics_of
from confide.release.answer.derived.cell import as_number
from confide.release.answer.estimate import Estimate
from confide.release.answer.evaluation import Evaluator, linear_form


@dataclass(slots=True, eq=False)
class AnsweredNumbers:
    """`confidence`: at which statistics that have mechanisms of their own were made. `names` of the mechanisms, of
    measures and then of statistics; `conditions` are what intervals of statistics assume.
    """

    question: Question
    keys: Sequence[tuple[Any, ...]] | None
    measurements: Sequence[Measurement]
    statistics: Sequence[Estimate]
    confidence: Confidence
    names: Sequence[str]
    conditions: Sequence[str] = ()
    values: list[Value] = field(init=False)
    linears: list[tuple[Mapping[int, Fraction], Fraction] | None] = field(init=False)
    evaluator: Evaluator = field(init=False)
    places: Sequence[tuple[Any, ...]] = field(init=False)
    _estimates: dict[tuple[int, Confidence], Estimate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.values = [column.value for column in self.question.columns if isinstance(column, ShownValue)]
        self.evaluator = Evaluator(self.question.measures, self.measurements, self.statistics)
        self.places = self.keys if self.keys is not None else group_places(self.question)
        self.linears = [self._linear(value) for value in self.values]

    def _linear(self, value: Value) -> tuple[Mapping[int, Fraction], Fraction] | None:
        """Of a sum of noised integers their coefficients. The number that showed a key has another law."""
        found = linear_form(value, self.question.measures)
        if found is None or any(self.measurements[measure].least is not None for measure in found[0]):
            return None
        return {measure: factor for measure, factor in found[0].items() if factor}, found[1]

    def key_values(self, row: int) -> list[Any]:
        """The keys of a group in the order in which the question shows them."""
        shown = [column.key for column in self.question.columns if isinstance(column, ShownKey)]
        return [as_number(spelled(self.question.keys[key], self.places[row][key])) for key in shown]

    def estimate(self, column: int, confidence: Confidence) -> Estimate:
        """A value in all groups."""
        if (column, confidence) not in self._estimates:
            self._estimates[column, confidence] = self.evaluator.estimate(self.values[column], confidence)
        return self._estimates[column, confidence]

    def promised(self, column: int, confidence: Confidence) -> bool:
        """Whether intervals of a value hold with so high a confidence: what was made beforehand may not."""
        return confidence <= self.confidence or not statistics_of(self.values[column])
