"""What a question would give and cost, as an analyst sees it before anything is spent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from confide.release.answer import rendering
from confide.release.cost import BudgetState, Cost

Within = float | int | str | Mapping[str, "float | int | str"]


@dataclass(frozen=True, slots=True)
class PlannedColumn:
    """One aggregate: how wide its interval is expected to be, and from what."""

    name: str
    half_width: float
    estimate: float
    mechanism: str
    assumes: str = "always"


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
                    "half_width": None if c.half_width == inf else c.half_width,
                    "mechanism": c.mechanism,
                    "assumes": c.assumes,
                }
                for c in self.columns
            ],
            "notes": list(self.notes),
            "threshold": self.threshold,
        }

    def __str__(self) -> str:
        return rendering.plan_text(self)

    def _repr_html_(self) -> str:
        return rendering.plan_html(self)
