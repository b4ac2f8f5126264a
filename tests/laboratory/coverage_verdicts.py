"""Cells for verdicts: how often deciders err, against what a plan says, and wrong yeses against their bound."""

import math
from collections.abc import Iterator
from typing import Any, Final

import polars as pl

import confide
import confide.testing
from confide.release import Session
from confide.trust.choice import MAKERS
from tests.laboratory.coverage import Again, Cell, Seen

POLICY: Final[dict[str, Any]] = {
    "budget": {"epsilon": 1e6},
    "unit": "row",
    "tables": {"t": {"columns": {"x": {"range": [0, 1_000]}}}},
}
SQL: Final = {
    "count": "SELECT COUNT(*) FROM t WHERE x > 0",
    "sum": "SELECT SUM(x) FROM t",
    "mean": "SELECT AVG(x) FROM t",
    "quantile": "SELECT MEDIAN(x) FROM t",
}
SHAPES: Final = {
    "one value": [500] * 120,
    "two points": [100] * 60 + [900] * 61,
    "even": [200 + 5 * place for place in range(120)],
    "rare and large": [10] * 117 + [1_000] * 3,
}
"""Of the synthetic values. The private ones are the same, moved by the gap."""


GAPS: Final = (0.0, 0.8, 1.0, 2.0)
WITHIN: Final = {"count": 15, "sum": 12_000, "mean": 60, "quantile": 50}
BOUNDED: Final = {
    "count": ("optimal", "laplace", "exponential-naive"),
    "sum": ("optimal", "laplace", "clip"),
    "mean": ("optimal",),
    "quantile": ("optimal",),
}
"""Deciders that take `prefer="cautious"`."""


def verdict_cells() -> Iterator[Cell]:
    for kind, makers in MAKERS.items():
        for shape, values in SHAPES.items():
            for gap in GAPS:
                private = moved(kind, values, gap * WITHIN[kind])
                if private is None:
                    continue
                looks = [
                    Decided(kind, values, private, name, epsilon, prefer)
                    for name in (*makers, *(("clip",) if kind == "sum" else ()))
                    for epsilon in (0.1, 1.0)
                    for prefer in ("balanced", *(("cautious",) if name in BOUNDED[kind] else ()))
                ]
                said = f"{shape}, gap {gap:g} τ"
                yield Cell(f"verdict {kind} {said}", said, _opened(private), _all(looks), 1.0)


def _all(looks: list[Any]) -> Any:
    return lambda session: (seen for look in looks for seen in look(session))


def moved(kind: str, values: list[int], gap: float) -> list[int] | None:
    """Values whose answer is the given ones' and the gap; None if there are none of that shape."""
    if kind == "count":
        return values + [values[0]] * round(gap)
    if kind == "sum":
        # More of the smallest values: a tail that is not the synthetic one is what `clip` says that it assumes away.
        whole, rest = divmod(round(gap), values[0])
        return values + [values[0]] * whole + ([rest] if rest else [])
    found = [round(value + gap) for value in values]
    return found if max(found) <= 1_000 else None


def _opened(private: list[int]) -> Any:
    return lambda: confide.testing.open(POLICY, {"t": pl.DataFrame({"x": private})}, seed=len(private))


def answer(kind: str, values: list[int]) -> float:
    if kind == "count":
        return len(values)
    if kind == "sum":
        return sum(values)
    return sum(values) / len(values) if kind == "mean" else sorted(values)[math.ceil(len(values) / 2) - 1]


class Decided:
    """What one decider says, and what was said of it."""

    def __init__(
        self, kind: str, values: list[int], private: list[int], name: str, epsilon: float, prefer: str
    ) -> None:
        self._kind, self._name, self._epsilon, self._prefer = kind, name, epsilon, prefer
        self._gap, self._within = answer(kind, private) - answer(kind, values), WITHIN[kind]
        self._frame, self._again, self._planned = pl.DataFrame({"x": values}), Again(self._call), -1.0

    def _call(self, session: Session) -> Any:
        asked = (
            SQL[self._kind],
            session.open_copy({"t": self._frame}),
            self._within,
            self._epsilon,
            self._name,
            self._prefer,
        )
        plan: Any = session.plan_trust(*asked)
        self._planned = plan.error(self._gap)
        return session.trust(*asked)

    def __call__(self, session: Session) -> Iterator[Seen]:
        verdict = self._again(session)[0]
        right = abs(self._gap) < self._within
        wrong, key = float(verdict.trusted != right), f"{self._prefer} {self._epsilon}"
        kind = f"verdict, {self._kind} by {self._name}"
        # Of these a plan says that it imagines the synthetic shape.
        shaped = self._kind == "sum" and self._name in ("r2t", "svt") and self._gap != 0
        planned = f"{kind}: errs as planned{', of another shape' if shaped else ''}"
        yield Seen(planned, key, wrong, allowed=self._planned, assumed=shaped)
        if not right and verdict.wrong_yes is not None:
            yield Seen(f"{kind}: wrong yes", key, wrong, allowed=verdict.wrong_yes)
        if verdict.effective and (self._gap == 0 or abs(self._gap) >= 2 * self._within):
            yield Seen(f"{kind}: effective", key, wrong, allowed=0.05)
