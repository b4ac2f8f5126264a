"""What microdata cannot give, said of one release: from its noisy numbers and from theorems, so for free.

Sums of many small counts cannot all be right in a table without negative counts ([Abowd2021], Theorem 3). The
report names the sums where that shows, what the chosen fit does about it, and what another would.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from confide.errors import ParameterError
from confide.fit import METHODS, Method, Price, Risk, Sacrifice, fit, price, report
from confide.release.microdata.marginals import Marginal

if TYPE_CHECKING:
    from confide.release.microdata.microdata import Microdata

LARGE: Final = 100_000  # cells: beyond, other methods are only fitted for comparison where they are asked for
COMPARED: Final[tuple[Method, ...]] = ("ols", "nnls", "pinned", "reweighted", "adaptive")
HIDDEN: Final = 3.0  # deviations
MOST_PARTS: Final = 10**12

_WORDS: Final = {
    "ols": "keeps every sum unbiased, and leaves negative counts in the table",
    "nnls": "keeps single counts, and lets sums of many small counts grow",
    "maxfit": "keeps the worst count as near as can be, and lets sums grow",
    "sequential": "keeps what has priority, and lets single counts pay for it",
    "pinned": "keeps the total, and lets single counts pay for it",
    "reweighted": "keeps sums of small counts, and lets small counts move",
    "adaptive": "keeps the total, and shrinks small counts as far as nothing seems hidden in them",
}


@dataclass(frozen=True, slots=True)
class SumAtRisk:
    """A sum whose parts could be noise: where it is, and what cutting these parts at zero would add to it."""

    marginal: Marginal
    values: tuple[object, ...]
    over: Marginal
    noisy: float
    parts: int
    low: int
    excess: float
    deviation: float

    @property
    def name(self) -> str:
        pairs = zip(self.marginal, self.values, strict=True)
        return ", ".join(f"{name} = {'NULL' if value is None else value}" for name, value in pairs) or "total"


@dataclass(frozen=True)
class MicrodataReport:
    """Sums at risk, the worst first; how far each fit moves sums and parts; and what no method can do."""

    method: Method
    risks: tuple[SumAtRisk, ...]
    at_risk: int
    judged: int
    hidden: float | None
    sacrifices: tuple[Sacrifice, ...]
    price: Price | None
    least: float | None

    @property
    def chosen(self) -> Sacrifice:
        return next(each for each in self.sacrifices if each.method == self.method)

    def words(self, method: str) -> str:
        return _WORDS[method]

    def lines(self) -> list[str]:
        """The findings as sentences."""
        found = [f"{self.method}: {_WORDS[self.method]}"]
        if self.judged == 0:
            found.append("no measured count is a sum of other measured counts, so no sum is at risk here")
        else:
            found.append(
                f"{self.at_risk:,} of {self.judged:,} sums are at risk: more of their parts could be noise than their "
                "own noise hides"
            )
        if self.least is not None and self.price is not None and self.risks:
            worst = self.risks[0]
            found.append(
                f"with {worst.parts:,} parts under {worst.name}, microdata that keep the sum within "
                f"{worst.deviation:,.1f} on average have, for some data, a part off by at least {self.least:,.1f}, "
                "whatever the method (Theorem 3)"
            )
        if self.hidden is not None:
            found.append(
                f"counts that look empty hold more than noise (z = {self.hidden:.1f}): small counts are real, and a "
                "fit that shrinks them hides people"
                if self.hidden > HIDDEN
                else f"what looks empty may be empty (z = {self.hidden:.1f})"
            )
        return found

    def to_dict(self) -> dict[str, object]:
        return {
            "method": self.method,
            "at_risk": self.at_risk,
            "judged": self.judged,
            "hidden_z": self.hidden,
            "least_part_error": self.least,
            "risks": [
                {
                    "columns": list(risk.marginal),
                    "values": [None if value is None else str(value) for value in risk.values],
                    "over": list(risk.over),
                    "noisy": risk.noisy,
                    "parts": risk.parts,
                    "could_be_noise": risk.low,
                    "excess": risk.excess,
                    "deviation": risk.deviation,
                }
                for risk in self.risks
            ],
            "moved": [
                {"method": each.method, "total": each.total, "sums": each.sums, "parts": each.parts, "cut": each.cut}
                for each in self.sacrifices
            ],
        }

    def __str__(self) -> str:
        from confide.release.microdata.rendering import report_text  # noqa: PLC0415  loaded when printed

        return report_text(self)

    def _repr_html_(self) -> str:
        from confide.release.microdata.rendering import report_html  # noqa: PLC0415  loaded when printed

        return report_html(self)


def report_on(made: "Microdata", compare: Sequence[str] | None = None) -> MicrodataReport:
    unknown = sorted(set(compare or ()) - set(METHODS))
    if unknown:
        raise ParameterError(f"there is no fit {', '.join(unknown)} to compare with; there are {', '.join(METHODS)}")
    others = [name for name in METHODS if name in compare] if compare is not None else list(COMPARED)
    if compare is None and made.problem.domain.cells > LARGE:
        others = ["ols"]
    chosen: list[Method] = [name for name in METHODS if name in others and name != made.method]  # type: ignore[misc]
    fits = [made.fitted, *(fit(made.problem, name) for name in chosen)]
    found = report(made.problem, fits)
    risks = tuple(_named(made, risk) for risk in found.risks)
    curve, least = (None, None) if not risks else _priced(made, risks[0])
    return MicrodataReport(
        made.method, risks, found.at_risk, found.judged, found.hidden, found.sacrifices, curve, least
    )


def _named(made: "Microdata", risk: Risk) -> SumAtRisk:
    attributes = [made.measured.attribute(name) for name in risk.marginal]
    values = tuple(attribute.values[place] for attribute, place in zip(attributes, risk.place, strict=True))
    return SumAtRisk(risk.marginal, values, risk.over, risk.answer, risk.parts, risk.low, risk.excess, risk.deviation)


def _priced(made: "Microdata", risk: SumAtRisk) -> tuple[Price | None, float | None]:
    """The price of microdata for the parts of one sum, at what the whole release cost. The theorem is for data sets
    that differ in one record more or less; a unit of a single record is such a record.
    """
    if not 2 <= risk.parts <= MOST_PARTS or made.measured.neighbours != "add-remove":
        return None, None
    cost = made.cost
    amount = float(cost.epsilon if cost.rho is None else cost.rho)
    if not 1e-6 <= amount <= 1e3:
        return None, None
    curve = price(risk.parts, epsilon=amount) if cost.rho is None else price(risk.parts, rho=amount)
    least = curve.least_point_error(max(risk.deviation, 1e-9))
    return curve, least if math.isfinite(least) and least > 0 else None
