"""Noisy marginals as a request: what is asked, what it costs, how it is measured, and the table that is fitted then."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import ParameterError
from confide.fit import TOTAL, FitProblem, MeasuredGroup, Method
from confide.fit.fitted import require_consistent
from confide.host.progress import Tell, part_of, tell
from confide.mechanism import DiscreteLaplace
from confide.policy import Policy
from confide.privacy.budget import Budget
from confide.privacy.charge import Charge
from confide.privacy.identity import written
from confide.privacy.loss import PrivacyLoss
from confide.query.identity import SPELLING
from confide.release.account import AUTO
from confide.release.arguments import exact_rows
from confide.release.cost import Cost
from confide.release.guard import listening, settled
from confide.release.holdings import Holdings
from confide.release.microdata.marginals import (
    Marginals,
    Noise,
    bind_marginals,
    noise_for,
    show_marginal,
    show_marginals,
    stages_of,
    weights_of,
)
from confide.release.microdata.microdata import Microdata, fitted_to, method_of
from confide.release.microdata.plan import MicrodataPlan, plan_design, warn_if_useless
from confide.release.microdata.stated import stated_of
from confide.release.microdata.store import Measurements, NoisyMarginal
from confide.release.request import listed
from confide.workload import ExactTables

_UNIT: Final = DiscreteLaplace(Fraction(1))


@dataclass(frozen=True, slots=True)
class MicrodataOptions:
    """What is asked for, as it was given."""

    marginals: object
    fit: str = "auto"
    priority: object = None
    shares: Mapping[Any, object] | None = None
    zeros: object = None
    totals: object = None
    table: str | None = None
    confidence: float = 0.95
    account: object = AUTO


@dataclass(frozen=True, slots=True)
class MicrodataRequest:
    """Marginals at ε. How they are fitted is no part of it: fits are free."""

    design: Marginals
    policy: Policy
    epsilon: Fraction
    weights: tuple[Fraction, ...] | None
    confidence: float

    @property
    def purpose(self) -> str:
        return f"microdata: {self.design.table}: {listed([show_marginal(own) for own in self.design.marginals])}"

    def identity(self) -> str:
        return written("microdata", *self.design.form(), self.epsilon, self.weights, spelling=SPELLING)

    def price(self, budget: Budget) -> "PricedMarginals":
        noise = noise_for(self.design, budget, self.epsilon, self.weights)
        warn_if_useless(self.policy, self.design, noise, self.epsilon, self.confidence)
        return PricedMarginals(self, noise, budget.delta)

    def decode(self, stored: bytes) -> Measurements:
        return Measurements.from_bytes(stored)


@dataclass(frozen=True, slots=True)
class PricedMarginals:
    """Marginals with the noise that each of them gets."""

    request: MicrodataRequest
    noise: Noise
    delta: Fraction

    @property
    def loss(self) -> PrivacyLoss:
        return self.noise.loss

    @property
    def widths(self) -> tuple[float, ...]:
        return tuple(float(mechanism.law.half_width(self.request.confidence)) for mechanism in self.noise.mechanisms)

    def measure(self, holdings: Holdings, charge: Charge) -> bytes:
        design, steps = self.request.design, len(self.request.design.marginals) + 1
        tell("reading", 0, steps)
        exact = holdings.engine.tabulate(design.tabulation, charge, holdings.ledger.secret)
        noisy = []
        for place, (marginal, mechanism) in enumerate(zip(design.marginals, self.noise.mechanisms, strict=True)):
            tell(f"measuring {show_marginals([marginal])}", place, steps)
            measurement = mechanism.measure(_counts(exact, design.columns(place)), holdings.randomness)
            counts = np.asarray(measurement.values, dtype=np.int64)
            noisy.append(NoisyMarginal(marginal, counts, mechanism.law, mechanism.name))
        return Measurements(
            design.table,
            design.attributes,
            tuple(noisy),
            Cost.of(self.request.epsilon, self.noise.loss),
            design.unit,
            design.neighbours,
            design.name,
            not holdings.randomness.kernel,
            self.delta,
        ).to_bytes()


def _counts(exact: ExactTables, columns: tuple[int, ...]) -> NDArray[np.int64]:
    """The exact counts of a marginal, the last column fastest; of the total if it has no columns."""
    if not columns:
        return np.array([exact.rows], dtype=np.int64)
    return exact.marginal(columns, 0, exact.sizes[columns[0]]).reshape(-1)


def plan_microdata(holdings: Holdings, options: MicrodataOptions, epsilon: Fraction, rows: int | None) -> MicrodataPlan:
    """The forecast of a release. Free: nothing private is read."""
    known = exact_rows(rows)
    design, _, _, weights = _checked(holdings, options)
    standing, accounts = holdings.standing(), holdings.accounts(options.account)
    request = MicrodataRequest(design, holdings.policy, epsilon, weights, options.confidence)
    chosen = accounts[0] if len(accounts) == 1 else holdings.preferred(standing, request.price, accounts)
    noise = noise_for(design, standing.budget.under(chosen), epsilon, weights)
    return plan_design(holdings.policy, standing, design, noise, epsilon, options.confidence, known)


def make_microdata(
    holdings: Holdings, options: MicrodataOptions, epsilon: Fraction, progress: Tell | None = None
) -> Microdata:
    """Measures, or finds what was measured before, and fits. Everything that can be refused is, before the charge."""
    with listening(progress):
        design, stages, method, weights = _checked(holdings, options)
        request = MicrodataRequest(design, holdings.policy, epsilon, weights, options.confidence)
        asked = holdings.ask(request, options.account)
        steps = len(design.marginals) + 1

        def fit_to_it() -> Microdata:
            with part_of(f"fitting by {method}", steps - 1, steps):
                made = fitted_to(asked.result, method, stages, options.zeros, options.totals, options.confidence)
            tell("done", steps, steps)
            return replace(made, stored=asked.stored)

        return settled(fit_to_it)


def _checked(
    holdings: Holdings, options: MicrodataOptions
) -> tuple[Marginals, tuple[tuple[int, ...], ...] | None, Method, tuple[Fraction, ...] | None]:
    """Everything that can be wrong with a request, before anything is charged."""
    design = bind_marginals(options.marginals, holdings.policy, holdings.engine, options.table)
    stages = stages_of(design.domain.attributes, design.marginals, options.priority)
    method = method_of(options.fit, stages)
    if options.shares is not None and stages is not None:
        raise ParameterError("give shares or a priority, not both: a priority sets the shares")
    weights = weights_of(design, options.shares, stages)
    stated = stated_of(design.attributes, options.zeros, options.totals)
    probe = FitProblem(design.domain, (MeasuredGroup(TOTAL, np.zeros(1), _UNIT),), stated)
    require_consistent(probe)
    return design, stages, method, weights
