"""What a question would give and cost, as an analyst sees it before anything is spent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final, Literal

from confide.release.answer import rendering
from confide.release.cost import BudgetState, Cost

Within = float | int | str | Mapping[str, "float | int | str"]


Depends = Literal["rows", "values", "changes"]
FEWER: Final = (0.1, 0.01)
"""Of the rows that a forecast takes: for which shares of them it is told as well."""


@dataclass(frozen=True, slots=True)
class PlannedColumn:
    """One aggregate: how wide its interval is expected to be, and from what.

    `depends`: on how many `rows` count, on where `values` lie, or on how many joined rows one unit `changes`; where it
    is empty the noise alone says the width. `fewer` are the half-widths if a tenth or a hundredth of the rows count.
    `ranks`, of a quantile: how many rows its ends are off.
    """

    name: str
    half_width: float
    estimate: float
    mechanism: str
    assumes: str = "always"
    depends: tuple[Depends, ...] = ()
    fewer: tuple[float, ...] = ()
    ranks: float | None = None


@dataclass(frozen=True, slots=True)
class Alternative:
    """What another ε would give: the expected half-width of each aggregate, and how many such calls fit."""

    epsilon: float
    half_width: Mapping[str, float]
    fitting: int


@dataclass(frozen=True)
class Plan:
    """The forecast of one question. Nothing was read and nothing was charged."""

    columns: tuple[PlannedColumn, ...]
    epsilon: float
    cost: Cost
    confidence: float
    groups: int | None
    unit: str
    neighbours: str
    affordable: bool
    budget: BudgetState
    notes: tuple[str, ...] = ()
    threshold: int | None = None
    """About how many units a key of undeclared domain needs to be shown."""
    account: str = ""
    """The account of the budget that the call would be made under."""
    rooms: Mapping[str, int] = field(default_factory=dict)
    """Where either account may hold: how many more calls at this ε there is room for under each."""
    fitting: int = 0
    """How many calls like this one fit what is left."""
    alternatives: tuple[Alternative, ...] = ()
    """What several ε would give, where none was given."""

    @property
    def half_width(self) -> dict[str, float]:
        """Expected half-width of each aggregate's interval."""
        return {column.name: column.half_width for column in self.columns}

    @property
    def mechanism(self) -> dict[str, str]:
        return {column.name: column.mechanism for column in self.columns}

    def to_dict(self) -> dict[str, object]:
        return {
            "epsilon": self.epsilon,
            "cost": self.cost.to_dict(),
            "confidence": self.confidence,
            "groups": self.groups,
            "unit": self.unit,
            "neighbours": self.neighbours,
            "affordable": self.affordable,
            **({"account": self.account, "rooms": dict(self.rooms)} if self.rooms else {}),
            "columns": [
                {
                    "name": c.name,
                    "half_width": _finite(c.half_width),
                    "mechanism": c.mechanism,
                    "assumes": c.assumes,
                    "depends": list(c.depends),
                    "fewer": {f"{share:g}": _finite(half) for share, half in zip(FEWER, c.fewer, strict=False)},
                    "ranks": c.ranks,
                }
                for c in self.columns
            ],
            "notes": list(self.notes),
            "threshold": self.threshold,
            "fitting": self.fitting,
            **({"alternatives": [_alternative(own) for own in self.alternatives]} if self.alternatives else {}),
        }

    def __str__(self) -> str:
        return rendering.plan_text(self)

    def _repr_html_(self) -> str:
        return rendering.plan_html(self)


def _alternative(own: Alternative) -> dict[str, object]:
    widths = {name: _finite(width) for name, width in own.half_width.items()}
    return {"epsilon": own.epsilon, "half_width": widths, "fitting": own.fitting}


def _finite(width: float) -> float | None:
    return None if width == inf else width
