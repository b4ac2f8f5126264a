"""Privacy losses as plain data. They outlive every accountant; what is done with them are functions elsewhere."""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class PureDP:
    """ε-differential privacy."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        _require_exact(epsilon=self.epsilon)


@dataclass(frozen=True, slots=True)
class ZCDP:
    """δ-approximate ρ-zero-concentrated DP ([BunSteinke2016], Definition 8.1); plain ρ-zCDP when δ is 0.

    It also stands for what has the law of something ρ-zCDP on all outputs but some of probability δ: totals of both
    mean the same (`mechanism.smooth.gaussian` has the proof).

    `pure` is the ε of what is also ε-DP, where both are added up; None where it is not ε-DP, or nobody knows.
    """

    rho: Fraction
    delta: Fraction = Fraction(0)
    pure: Fraction | None = None

    def __post_init__(self) -> None:
        _require_exact(rho=self.rho, delta=self.delta, pure=Fraction(0) if self.pure is None else self.pure)


@dataclass(frozen=True, slots=True)
class ApproxDP:
    """(ε, δ)-differential privacy."""

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        _require_exact(epsilon=self.epsilon, delta=self.delta)


PrivacyLoss = PureDP | ZCDP | ApproxDP


def _require_exact(**amounts: Fraction) -> None:
    for name, amount in amounts.items():
        if not isinstance(amount, Fraction):
            raise TypeError(f"{name} must be a Fraction, not {type(amount).__name__}: losses are exact")
        if amount < 0:
            raise ValueError(f"{name} must not be negative")
