"""How cells are put together: what is public is computed at once, and sums of noise stay sums of noise.

Exact numbers stay short: a product of products has twice the digits each time. Where a result, a coefficient or a
constant would be longer than doubles reach, it is left to doubles, and is NULL or without bounds where these end.
Texts that functions make are bounded in the same way.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

from confide.privacy.limits import LONGEST_MADE, MOST_MADE
from confide.query.magnitude import LONGEST
from confide.release.answer.derived.cell import (
    NOTHING,
    TRUE,
    DerivedCell,
    LeafCell,
    MadeCell,
    PublicCell,
    SumCell,
    as_number,
)
from confide.release.answer.derived.cell_evaluation import CellEvaluation, Linear
from confide.release.answer.derived.cell_function import FUNCTIONS
from confide.release.answer.derived.cell_range import point
from confide.release.answer.derived.ranking import RankCell, RunningCell

MOST_TERMS: Final = 250_000
"""Of sums of noise in all rows: beyond, each part has an interval of its own, which is wider and quick."""
_FEW_TERMS: Final = 16
_ARITHMETIC = ("+", "-", "*", "/", "neg")
_COMPARED = ("<", "<=", "=", "<>", ">=", ">")
_ZERO = PublicCell(Fraction(0))


class Building:
    def __init__(self, evaluation: CellEvaluation) -> None:
        self.evaluation = evaluation
        self.too_long = False
        """Whether a text was left out because it, or all of them together, would be too long."""
        self._letters = self._terms = 0

    def has_room(self, columns: Sequence[Sequence[DerivedCell]]) -> bool:
        """Whether what is made of columns may be sums of noise again. A sum over all rows that stands in each of them,
        as in `n - AVG(n) OVER ()`, would be written out as often as there are rows.
        """
        sums = (cell for own in columns for cell in own if isinstance(cell, SumCell) and len(cell.terms) > _FEW_TERMS)
        terms = sum(len(cell.terms) for cell in sums)
        if self._terms + terms > MOST_TERMS:
            return False
        self._terms += terms
        return True

    def called(self, function: str, parts: Sequence[DerivedCell], joint: bool = True) -> DerivedCell:
        """A function of cells; `joint`: as a sum of noise, if it is one."""
        if all(isinstance(part, PublicCell) for part in parts):
            return PublicCell(self._public(function, [part.value for part in parts]))  # type: ignore[attr-defined]
        if not joint and function in (*_ARITHMETIC, *_COMPARED):
            return MadeCell(function, parts)
        if function in _ARITHMETIC:
            found = self._linear(function, [self.evaluation.linear(part) for part in parts])
            if found is not None:
                return found
        elif function in _COMPARED:
            one, two = (self.evaluation.linear(part) for part in parts)
            difference = None if one is None or two is None else _added(one, two, -1)
            if difference is not None:
                if not difference.terms:  # places in an order of keys, and noise that cancels, leave a constant
                    return self.called(function, (PublicCell(difference.constant), _ZERO))
                return MadeCell(function, (difference, _ZERO))
        elif function in ("and", "or"):
            return self._joined(function, parts)
        elif function == "case":
            return self._case(parts)
        elif function == "coalesce":
            return self._coalesce(parts)
        elif function == "is null" and never_null(parts[0]):
            return PublicCell(False)
        elif function == "round" and isinstance(parts[0], LeafCell | SumCell):
            return self._rounded(parts)
        return MadeCell(function, parts)

    def _public(self, function: str, values: Sequence[Any]) -> Any:
        exact = _exact(function, values)
        if exact is not None:
            return exact
        found = as_number(FUNCTIONS[function]([point(value) for value in values]).value)
        return self._text(function, found) if isinstance(found, str) else found

    def _text(self, function: str, made: str) -> str | None:
        self._letters += len(made)
        if self._letters > MOST_MADE or (function == "||" and len(made) > LONGEST_MADE):
            self.too_long = True
            return None
        return made

    def _linear(self, function: str, parts: Sequence[Linear | None]) -> SumCell | None:
        """A sum of noise; None if it is none, or one of longer numbers than are kept."""
        if any(part is None for part in parts):
            return None
        one: Any = parts[0]
        if function == "neg":
            return _scaled(one, Fraction(-1))
        two: Any = parts[1]
        if function in ("+", "-"):
            return _added(one, two, 1 if function == "+" else -1)
        if function == "/":
            return _scaled(one, 1 / two[1]) if not two[0] and two[1] else None
        if not two[0]:
            return _scaled(one, two[1])
        return _scaled(two, one[1]) if not one[0] else None

    def _joined(self, function: str, parts: Sequence[DerivedCell]) -> DerivedCell:
        decisive = function == "or"
        rest = []
        for part in parts:
            if isinstance(part, PublicCell):
                if part.value is decisive:
                    return part
                if part.value is not None:
                    continue
            rest.append(part)
        if len(rest) == 1:
            return rest[0]
        return MadeCell(function, rest) if rest else PublicCell(not decisive)

    def _case(self, parts: Sequence[DerivedCell]) -> DerivedCell:
        kept: list[DerivedCell] = []
        last = parts[-1]
        for condition, value in zip(parts[:-1:2], parts[1::2], strict=True):
            if isinstance(condition, PublicCell):
                if condition.value is True:
                    last = value
                    break
                continue
            kept += [condition, value]
        return MadeCell("case", (*kept, last)) if kept else last

    def _coalesce(self, parts: Sequence[DerivedCell]) -> DerivedCell:
        kept: list[DerivedCell] = []
        for part in parts:
            if isinstance(part, PublicCell) and part.value is None:
                continue
            kept.append(part)
            if never_null(part):
                break
        return kept[0] if len(kept) == 1 else MadeCell("coalesce", kept) if kept else NOTHING

    def _rounded(self, parts: Sequence[DerivedCell]) -> DerivedCell:
        """Whole numbers are rounded to whole numbers already."""
        linear = self.evaluation.linear(parts[0])
        digits = parts[1].value if isinstance(parts[1], PublicCell) else Fraction(0)
        if linear is not None and digits >= 0:
            numbers = (*linear[0].values(), linear[1])
            if all(own.denominator == 1 for own in numbers):
                return parts[0]
        return MadeCell("round", parts)

    def gathered(self, function: str, parts: Sequence[tuple[DerivedCell, DerivedCell]]) -> DerivedCell:
        """An aggregate of rows that are there under conditions: a sum of noise where all surely are."""
        sure = all(isinstance(there, PublicCell) for there, _ in parts)
        known = [own for _, own in parts if not (isinstance(own, PublicCell) and own.value is None)]
        if sure and function == "count" and all(map(never_null, known)):
            return SumCell({}, Fraction(len(known)))
        if sure and function in ("sum", "avg") and known:
            linears = [self.evaluation.linear(own) for own in known]
            if all(own is not None for own in linears):
                total = total_of([own for own in linears if own is not None])
                if total is not None and function == "avg":
                    total = _scaled((dict(total.terms), total.constant), Fraction(1, len(known)))
                if total is not None:
                    return total
        if sure and known and function in ("min", "max") and all(isinstance(own, PublicCell) for own in known):
            pick = min if function == "min" else max
            return PublicCell(pick(own.value for own in known))  # type: ignore[attr-defined]
        if not known and function != "count":
            return NOTHING
        return MadeCell(f"gather {function}", [cell for pair in parts for cell in pair])


def total_of(parts: Sequence[Linear]) -> SumCell | None:
    """The sum of some; None if its numbers become too long. The first is copied as it is: a running sum adds little to
    many terms.
    """
    if not parts:
        return SumCell({}, Fraction(0))
    terms, constant = dict(parts[0][0]), parts[0][1]
    for own, more in parts[1:]:
        for atom, factor in own.items():
            before = terms.pop(atom, None)
            total = factor if before is None else before + factor
            if not _is_short(total):
                return None
            if before is None or total:
                terms[atom] = total
        constant = constant + more if more else constant
        if not _is_short(constant):
            return None
    return SumCell(terms, constant)


def _added(one: Linear, two: Linear, sign: int) -> SumCell | None:
    return total_of([one, ({atom: sign * factor for atom, factor in two[0].items()}, sign * two[1])])


def _scaled(own: Linear, factor: Fraction) -> SumCell | None:
    terms = {atom: part * factor for atom, part in own[0].items()} if factor else {}
    constant = own[1] * factor
    return SumCell(terms, constant) if all(map(_is_short, (*terms.values(), constant))) else None


def _is_short(value: Fraction) -> bool:
    """Whether a double holds a number, and exact arithmetic with it is short."""
    return max(abs(value.numerator), value.denominator).bit_length() <= LONGEST


def _exact(function: str, values: Sequence[Any]) -> Any:
    """Arithmetic on public numbers, exactly; None where it is left to doubles."""
    if not all(isinstance(value, Fraction) for value in values):
        return None
    if function == "neg":
        return -values[0]
    if len(values) != 2 or function not in ("+", "-", "*", "/"):
        return None
    one, two = values
    if function == "/":
        result = one / two if two else None
    else:
        result = one + two if function == "+" else one - two if function == "-" else one * two
    return result if result is not None and _is_short(result) else None


def never_null(cell: DerivedCell) -> bool:
    if isinstance(cell, PublicCell):
        return cell.value is not None
    if isinstance(cell, MadeCell):
        return cell.function in _COMPARED and all(map(never_null, cell.parts))
    return isinstance(cell, LeafCell | SumCell | RankCell | RunningCell)


__all__ = ["TRUE", "Building", "never_null", "total_of"]
