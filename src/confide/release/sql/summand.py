"""What a row adds to counts, or to sums of one column, whose conditions differ: one, or a number of its own."""

from dataclasses import dataclass
from fractions import Fraction

from confide.query.comparison import joined
from confide.query.question import Question
from confide.query.sensitivity import Stability, of_total
from confide.query.tree import Always, Cell, Choice, Constant, Field, Number, Predicate


@dataclass(frozen=True, slots=True)
class Summand:
    """A number of every row, which measures add up over the rows that pass their conditions. None stands for one."""

    subject: Number | None = None
    grain: Fraction = Fraction(1)

    @property
    def ends(self) -> tuple[int, int]:
        """Between which indices it lies in every row that has it."""
        return (1, 1) if self.subject is None else (self.subject.span.low, self.subject.span.high)

    def cell(self, condition: Predicate) -> Cell:
        return Cell("rows" if self.subject is None else "total", self.subject, condition)


ONE = Summand()


def summand_of(question: Question, place: int) -> tuple[Summand, Cell] | None:
    """What rows add to a measure, and a count of the rows that do; None if it is nothing of this kind."""
    measure = question.measures[place]
    if len(measure.terms) != 1 or measure.terms[0][0] != 1 or measure.l1 <= 0:
        return None
    cell = question.summary.cells[measure.terms[0][1]]
    if cell.kind in ("rows", "known"):
        return (ONE, cell) if measure.grain == 1 else None
    if cell.kind != "total" or cell.subject is None or isinstance(cell.subject, Field | Constant):
        return None
    subject: Number = cell.subject
    where = cell.where
    if isinstance(subject, Choice):
        otherwise = subject.otherwise
        constant = otherwise is None or isinstance(otherwise, Constant)
        if constant and all(isinstance(value, Constant) for _, value in subject.branches):
            return (ONE, cell) if measure.grain == 1 else None
        nothing = otherwise is None or (isinstance(otherwise, Constant) and otherwise.index == 0)
        if len(subject.branches) != 1 or not nothing:
            return None
        ((condition, subject),) = subject.branches
        where = joined((where, condition), every=True)
    if isinstance(subject, Constant) or subject.span.grain != measure.grain:
        return None
    return Summand(subject, measure.grain), Cell("rows", None, where)


def rows_of(question: Question, places: tuple[int, ...], summand: Summand) -> int:
    """How many rows of one unit change at most, by what measures of them change at most: never fewer than that."""
    replaced, grouped = question.neighbours == "replace-one", bool(question.keys)
    if summand.subject is None:
        return min(question.measures[place].l1 for place in places) // (2 if replaced and grouped else 1)
    one, found = Stability(1, 1, question.neighbours, grouped), []
    for place in places:
        measure = question.measures[place]
        cell = question.summary.cells[measure.terms[0][1]]
        assert cell.subject is not None
        assert not isinstance(cell.subject, Field)
        span = cell.subject.span
        each = of_total(span.low, span.high, span.nullable or cell.where != Always(True), one).l1
        each = each or of_total(span.low, span.high, True, one).l1  # rows that joins leave out
        found.append(-(-measure.l1 // each))
    return min(found)
