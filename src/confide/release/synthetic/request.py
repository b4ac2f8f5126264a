"""Synthetic data for a workload: the path of `Session.synthesize`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from confide.errors import BudgetError, LedgerError, ParameterError
from confide.host.progress import Tell
from confide.ledger.record.terms import Standing
from confide.policy import Table
from confide.privacy.amount import show
from confide.privacy.budget import Budget, Currency, add
from confide.privacy.charge import Charge
from confide.privacy.identity import digest_of, written
from confide.query.sensitivity import Sensitivity
from confide.query.tabulation import Tabulation
from confide.release.account import AUTO
from confide.release.answer.size import require_room
from confide.release.arguments import exact_epsilon, plain_text, private_table
from confide.release.cost import Cost, budget_state
from confide.release.count_questions import read_parts
from confide.release.expected import expected_rows
from confide.release.guard import callers, listening, settled, was_charged
from confide.release.holdings import Holdings
from confide.release.synthetic.start import starting_rows
from confide.release.synthetic.values import (
    MEASURED,
    ValuesStep,
    left_for_the_model,
    shares_of_values,
    value_sets,
    values_step,
    with_values,
)
from confide.release.whole_table import TabulatedTable, tabulated
from confide.synthesis.auto import UNNAMED, ChosenMethod, chosen_method
from confide.synthesis.curator import Synthesized
from confide.synthesis.inside import ValueShares
from confide.synthesis.method import SynthesisMethod, SynthesisStrategy, method_named
from confide.workload import BoundWorkload, Domain, Workload, domain_of
from confide.workload.identity import WORKLOAD_SPELLING

if TYPE_CHECKING:
    from confide.release.synthetic.curator import LedgerCurator
    from confide.release.synthetic.plan import SynthesisPlan
    from confide.release.synthetic.synthetic import Synthetic

DEFAULT_METHOD: Final = UNNAMED
REWEIGHT: Final = "reweight"


@dataclass(frozen=True, slots=True)
class SynthesisOptions:
    """What a caller sets; everything else follows from public facts."""

    workload: Workload
    epsilon: object
    table: str | None = None
    columns: Sequence[str] | None = None
    bins: Mapping[str, object] | None = None
    method: str = DEFAULT_METHOD
    select: str = "auto"
    rounds: int | None = None
    picks: int | None = None
    rows: int | None = None
    account: object = AUTO
    inside: object = MEASURED
    megabytes: int | None = None
    start: Any = None
    degree: int | None = None

    @property
    def method_name(self) -> object:
        """What there was before can only be made to fit by new weights."""
        return REWEIGHT if self.start is not None and self.method == DEFAULT_METHOD else self.method

    def given(self) -> dict[str, Any]:
        """What is set of what a method may take; the rest follows."""
        select = plain_text(self.select)
        names = ("rounds", "picks", "rows", "megabytes", "degree")
        listed = {name: getattr(self, name) for name in names}
        return ({} if select == "auto" else {"select": select}) | {
            name: value for name, value in listed.items() if value is not None
        }


@dataclass(frozen=True, slots=True)
class SynthesisRequest:
    """A request bound to a policy, with public facts only."""

    table: Table
    workload: BoundWorkload
    tabulation: Tabulation
    method: SynthesisMethod
    strategy: SynthesisStrategy
    epsilon: Fraction
    cost: Currency
    tables: Sensitivity
    rows: int
    unit: str
    neighbours: Any
    expected: int | None
    account: str
    values: ValuesStep | None = None
    part: tuple[str, ...] = ()
    """Of several tables that one call makes, which this is."""
    earlier: tuple[Currency, ...] = ()
    """What the parts before it cost."""
    why: str = ""
    """Why the method was taken, where none was named."""

    @property
    def modelled(self) -> Currency:
        """What the method has of the call's cost."""
        return left_for_the_model(self.cost, self.values)

    def identity(self) -> str:
        parts: tuple[object, ...] = (self.table.name, self.method.name, self.workload, self.strategy, self.epsilon)
        if self.values is not None:
            parts = (*parts, self.values.identity())
        if self.part:
            parts = (*parts, self.part)
        return written("synthesis", *parts, spelling={**WORKLOAD_SPELLING, **self.method.spelling})


def synthesize(holdings: Holdings, options: SynthesisOptions, progress: Tell | None = None) -> "Synthetic":
    """Synthetic data for a workload; the same request again is free and the same."""
    callers(progress)  # refuses what is no function
    standing = holdings.standing()
    requests = _requests(holdings, options, standing)
    for request in requests:
        known = kept(holdings, request)
        if known is not None:
            return known
    request = _chosen(holdings, standing, requests)
    request.method.require()
    planned(standing, request, 0.95)  # refuses what any step would, before the first is charged
    with listening(progress):
        return run_request(holdings, standing, request)


def kept(holdings: Holdings, request: SynthesisRequest) -> "Synthetic | None":
    """What this request gave before."""
    from confide.release.synthetic.synthetic import Synthetic  # noqa: PLC0415

    known = holdings.known(holdings.identified(request.identity(), request.account), Synthetic.from_bytes)
    return None if known is None else replace(known, stored=True)


def plan(holdings: Holdings, options: SynthesisOptions, confidence: object) -> "SynthesisPlan":
    """What `synthesize` would measure, and with what noise. Free."""
    standing = holdings.standing()
    return planned(standing, _chosen(holdings, standing, _requests(holdings, options, standing)), confidence)


def _requests(holdings: Holdings, options: SynthesisOptions, standing: Standing) -> list[SynthesisRequest]:
    """The request under each account it may be made under. Many counts divide ρ better than ε: that comes first."""
    accounts = reversed(holdings.accounts(options.account))
    return [bind_synthesis(holdings, options, standing.budget.under(name), name) for name in accounts]


def _chosen(holdings: Holdings, standing: Standing, requests: Sequence[SynthesisRequest]) -> SynthesisRequest:
    """The request that was begun, or else the first that the budget holds."""
    if len(requests) == 1:
        return requests[0]
    begun = [request for request in requests if curator_of(holdings, request).begun]
    held = [request for request in requests if standing.holds(request.cost)]
    return [*begun, *held, *requests][0]


def curator_of(holdings: Holdings, request: SynthesisRequest) -> "LedgerCurator":
    from confide.release.synthetic.curator import LedgerCurator  # noqa: PLC0415  loaded when used

    call = digest_of(holdings.identified(request.identity(), request.account))
    return LedgerCurator(
        holdings,
        request.tabulation,
        request.workload,
        request.cost,
        request.tables,
        request.rows,
        call,
        request.account,
        request.values,
    )


def planned(standing: Standing, request: SynthesisRequest, confidence: object) -> "SynthesisPlan":
    from confide.release.synthetic.plan import plan_synthesis  # noqa: PLC0415  loaded when used

    return plan_synthesis(standing, request, confidence)


def run_request(holdings: Holdings, standing: Standing, request: SynthesisRequest) -> "Synthetic":
    from confide.release.synthetic.synthetic import Synthetic  # noqa: PLC0415

    curator = curator_of(holdings, request)
    if not curator.begun and not standing.holds(request.cost):
        raise BudgetError(
            f"this would cost ε = {show(request.epsilon)}; {budget_state(standing)}. Nothing was charged."
        )
    budget = standing.budget

    def so_far() -> str:
        spent = reduce(add, request.earlier, curator.spent)
        paid = f"ε = {float(budget.as_epsilon(spent)):.6g} of ε = {show(request.epsilon)} was spent"
        return f"{paid}; the same call goes on where this one stopped"

    def run() -> tuple[Synthesized, Mapping[int, ValueShares]]:
        step = request.values
        noisy = () if step is None else curator.measure_values()
        found = request.method.run(curator, request.workload, request.strategy)
        return found, {} if step is None else shares_of_values(step, noisy, request.workload.domain, found.model)

    try:
        found, values = settled(run, lambda: curator.paid)
    except KeyboardInterrupt as stopped:
        stopped.add_note(so_far())
        raise
    except (BudgetError, LedgerError) as refusal:
        if not curator.paid:
            raise
        rest = "the budget does not hold" if isinstance(refusal, BudgetError) else "the ledger could not be used for"
        raise type(refusal)(f"{rest} the rest of this call; {so_far()}") from None
    made = Synthetic(
        table=request.table,
        domain=request.workload.domain,
        model=found.model.table,
        total=found.model.total,
        cost=Cost.of(request.epsilon, request.cost),
        workload=request.workload.describe(),
        method=request.strategy.words,
        kind=request.method.name,
        loss=found.loss,
        unit=request.unit,
        neighbours=request.neighbours,
        test_noise=not holdings.randomness.kernel,
        values=values,
        measured=curator.kept,
    )

    # The last of the call's cost, what rounding left over: so a finished call costs exactly what was asked.
    try:
        asked = holdings.ask(FittedRequest(request, made, curator.rest), request.account)
    except KeyboardInterrupt as stopped:
        if not was_charged(stopped):
            stopped.add_note(so_far())
        raise
    return replace(asked.result, stored=asked.stored)


@dataclass(frozen=True, slots=True)
class FittedRequest:
    """The last step of a call, under the identity of the whole: what was fitted, to be kept."""

    request: SynthesisRequest
    made: "Synthetic"
    loss: Currency

    @property
    def purpose(self) -> str:
        return f"synthesize {self.request.table.name}: {self.request.workload.describe()}"

    def identity(self) -> str:
        return self.request.identity()

    def price(self, budget: Budget) -> "FittedRequest":
        return self

    @property
    def widths(self) -> tuple[float, ...]:
        return ()

    def measure(self, holdings: Holdings, charge: Charge) -> bytes:
        return self.made.to_bytes()

    def decode(self, stored: bytes) -> "Synthetic":
        return type(self.made).from_bytes(stored)


def bind_synthesis(
    holdings: Holdings, options: SynthesisOptions, budget: Budget, account: str = ""
) -> SynthesisRequest:
    policy = holdings.policy
    if not isinstance(options.workload, Workload):
        raise ParameterError(
            f"workload is a {type(options.workload).__name__}; give confide.marginals(k=3), confide.thresholds(...), "
            "confide.workload.from_sql([...]) or session.history()"
        )
    if options.method_name != UNNAMED:
        method_named(options.method_name)  # refused before all else
    table = private_table(policy, options.table)
    whole = domain_of(table, options.columns, options.bins)
    workload = _bound(read_parts(options.workload, policy, holdings.engine, whole), whole, options.columns is not None)
    cost = budget.cost(exact_epsilon(options.epsilon))
    values = values_step(workload.domain, options.inside)
    counted = tabulated(policy, holdings.engine, table, with_values(workload.domain, values), ())
    return request_of(holdings, options, WantedTable(table, workload, counted, values), cost, account or budget.rule)


@dataclass(frozen=True, slots=True)
class WantedTable:
    """A table that is to be made, what it is made for, and what is counted for that."""

    table: Table
    workload: BoundWorkload
    counted: TabulatedTable
    values: ValuesStep | None


def request_of(
    holdings: Holdings,
    options: SynthesisOptions,
    bound: WantedTable,
    cost: Currency,
    account: str,
    part: tuple[str, ...] = (),
    earlier: tuple[Currency, ...] = (),
) -> SynthesisRequest:
    table, workload, counted, values = bound.table, bound.workload, bound.counted, bound.values
    named = None if options.method_name == UNNAMED else method_named(options.method_name)
    rows = counted.rows
    expected = expected_rows(counted.whole, holdings.policy)
    given = options.given()
    if options.start is not None:
        given["start"] = starting_rows(holdings, options.start, workload.domain)
    left = left_for_the_model(cost, values)
    if named is None:
        chosen = chosen_method(workload, left, expected, rows, given)
    else:
        chosen = ChosenMethod(named, named.planned(workload, left, expected, rows, given))
    strategy = chosen.strategy
    require_room(strategy.room(workload), f"the table of {strategy.words}", "use fewer rows or wider bins")
    return SynthesisRequest(
        table,
        workload,
        replace(counted.tabulation, sets=(*strategy.reads(workload), *value_sets(workload.domain, values))),
        chosen.method,
        strategy,
        exact_epsilon(options.epsilon),
        cost,
        counted.sensitivity(grouped=True),
        rows,
        counted.unit,
        counted.neighbours,
        expected,
        account,
        values,
        part,
        earlier,
        chosen.why,
    )


def _bound(workload: Workload, whole: Domain, named: bool) -> BoundWorkload:
    """On the columns that were named; else on those that the workload speaks of: nothing is learnt of others."""
    bound = workload.bound(whole)
    if named:
        return bound
    used = sorted({column for columns in bound.sets for column in columns})
    return workload_on(bound, whole.kept([whole.names[column] for column in used]))


def workload_on(bound: BoundWorkload, domain: Domain) -> BoundWorkload:
    """The same workload on a domain that holds its columns."""
    names = bound.domain.names
    places = {place: domain.place_of(name) for place, name in enumerate(names) if name in domain.names}
    marks = tuple(type(own)(tuple(places[column] for column in own.columns), own.need) for own in bound.thresholds)
    return BoundWorkload(domain, marks, bound.counts)
