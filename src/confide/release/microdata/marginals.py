"""Which marginals of which table are measured, with which noise: a request bound from its text and the policy alone.

All marginals must be marginals of one table, or no table fits them and no interval of a combination holds. So every
marginal counts the same rows: those in which all columns of the release are known (a NULL is a class of its own where
the policy says so), and of each unit the same rows, whatever groups they fall into.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from confide.errors import ParameterError
from confide.fit import CellDomain
from confide.mechanism import Additive, exact, laplace
from confide.mechanism.noise.additive import narrower
from confide.policy import Category, Column, Date, Number, Policy, Table, Text
from confide.privacy.amount import parse_amount
from confide.privacy.budget import Budget
from confide.privacy.identity import digest_of, written
from confide.privacy.limits import MOST_KEYS, MOST_MARGINALS
from confide.privacy.loss import ZCDP, PureDP
from confide.query.computed_key import MOST_PLAIN
from confide.query.grouping import bin_key, check_groups
from confide.query.identity import SPELLING
from confide.query.key_value import key_kind, spelled
from confide.query.scope import Catalog, reading
from confide.query.sensitivity import Sensitivity
from confide.query.tabulation import Tabulation
from confide.query.tree import Field, Reading
from confide.release.answer.answer import KeyType
from confide.release.answer.size import require_room_for_counts
from confide.release.whole_table import key_of, tabulated
from confide.workload import Binned
from confide.workload import Domain as WorkloadDomain
from confide.workload.domain import Attribute as WorkloadAttribute
from confide.workload.domain import Listed

Marginal = tuple[str, ...]

FORECAST_CONFIDENCE: Final = 0.95  # at which two laws are compared: the choice must not depend on what is shown later
WIDEST: Final = 10**13  # half-width of a count, beyond which doubles would no longer hold noisy counts exactly

_BIN = re.compile(r"\s*BIN\s*\(\s*(?P<name>[^,()]+?)\s*(?:,\s*(?P<width>[0-9.]{1,40})\s*)?\)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column of the release: its classes in order. A bin is named by its lower end, and `width` says how wide it
    is.
    """

    name: str
    type: KeyType
    values: tuple[Any, ...]
    width: str = ""


@dataclass(frozen=True, slots=True)
class Marginals:
    """Marginals of one table, and what counts them. Columns and marginals are in the policy's order, so the same
    request has the same design however it is written.
    """

    table: str
    attributes: tuple[Attribute, ...]
    marginals: tuple[Marginal, ...]
    tabulation: Tabulation
    sensitivities: tuple[Sensitivity, ...]
    """Of each marginal, over all its counts together."""
    unit: str
    neighbours: str

    @property
    def domain(self) -> CellDomain:
        names = tuple(attribute.name for attribute in self.attributes)
        return CellDomain(names, tuple(len(attribute.values) for attribute in self.attributes))

    def columns(self, place: int) -> tuple[int, ...]:
        """The columns of a marginal, as the tabulation counts them."""
        names = [attribute.name for attribute in self.attributes]
        return tuple(names.index(name) for name in self.marginals[place])

    def form(self) -> tuple[object, ...]:
        """What tells one design from another; the classes of columns follow from the policy and the bins."""
        return self.table, self.marginals, self.tabulation

    @property
    def name(self) -> str:
        return digest_of(written("marginals", *self.form(), spelling=SPELLING))

    def place(self, marginal: object) -> int:
        """Where a marginal stands, however its columns are ordered."""
        return place_of(self.domain.attributes, self.marginals, marginal)


def place_of(names: Sequence[str], marginals: Sequence[Marginal], marginal: object) -> int:
    """Where a marginal stands among some, however its columns are ordered."""
    wanted = marginal_of(marginal, names)
    if wanted not in marginals:
        raise ParameterError(f"{show_marginal(wanted)} is not measured; what is: {show_marginals(marginals)}")
    return list(marginals).index(wanted)


@dataclass(frozen=True, slots=True)
class Noise:
    """The mechanism of each marginal and what all of them cost."""

    mechanisms: tuple[Additive, ...]
    loss: PureDP | ZCDP


def bind_marginals(marginals: object, policy: Policy, catalog: Catalog, table: str | None = None) -> Marginals:
    """The design of some marginals, or a refusal that says what to write instead. Nothing private is read."""
    requested = _requested(marginals)
    terms = _terms(requested)
    chosen = _table(policy, terms, table)
    columns = {name: _column(chosen, name) for name in terms}
    widths: dict[str, str] = {}
    for name, width in terms.items():
        widths[columns[name].name] = width
    order = [name for name in chosen.columns if name in widths]
    counted = WorkloadDomain(chosen.name, tuple(_attribute(chosen.columns[name], widths[name]) for name in order))
    attributes = tuple(_classes(each) for each in counted.attributes)
    CellDomain(counted.names, counted.sizes)  # refuses what is too large
    places: dict[Marginal, None] = {}
    for each in requested:
        said = [columns[_split(name)[0].casefold()].name for name in each]
        wanted = tuple(name for name in order if name in said)
        if len(set(said)) < len(said):
            raise ParameterError(f"a column is named twice in the marginal {show_marginal(tuple(each))}")
        if wanted in places:
            raise ParameterError(f"the marginal {show_marginal(wanted)} is named twice; it would be paid for twice")
        places[wanted] = None
    ordered = tuple(sorted(places, key=lambda each: (len(each), [order.index(name) for name in each])))
    sets = [tuple(order.index(name) for name in each) for each in ordered]
    for own in sets:
        if len(own) > MOST_KEYS:
            raise ParameterError(f"a marginal of {len(own):,} columns is too wide, the most is {MOST_KEYS}")
        check_groups([counted.sizes[column] for column in own])
    whole = tabulated(policy, catalog, chosen, counted, [own for own in sets if own])
    changes = tuple(whole.sensitivity(grouped=bool(own)) for own in sets)
    design = Marginals(chosen.name, attributes, ordered, whole.tabulation, changes, whole.unit, whole.neighbours)
    require_room_for_counts([design.domain.size(each) for each in ordered], "use wider bins, or fewer marginals")
    return design


def noise_for(design: Marginals, budget: Budget, epsilon: Fraction, weights: Sequence[Fraction] | None = None) -> Noise:
    """Noise for all marginals at ε in all: Laplace under a pure budget, else the narrower of Laplace and Gaussian.

    Neighbours: the policy's. Loss: the marginals' losses add up to the cost of the call (sequential composition; a
    marginal that no unit can change is exact and free). Without weights every count of every marginal has the same
    noise, for sensitivities are bounds of each question.
    """
    cost = budget.cost(epsilon)
    measures = design.sensitivities
    pure = isinstance(cost, PureDP)
    even = [Fraction(measure.l1 if pure else measure.l2_squared) for measure in measures]
    given = weights if weights is not None else [Fraction(1)] * len(measures)
    parts = [base * (weight if pure else weight**2) for base, weight in zip(even, given, strict=True)]
    whole = sum(parts)
    amount = cost.epsilon if isinstance(cost, PureDP) else cost.rho
    mechanisms = []
    for measure, part in zip(measures, parts, strict=True):
        if not part:
            mechanisms.append(exact())
        elif pure:
            mechanisms.append(laplace(measure.l1, amount * part / whole))
        else:
            mechanisms.append(narrower(measure.l1, measure.l2_squared, amount * part / whole, FORECAST_CONFIDENCE))
    widest = max(mechanism.law.half_width(1 - Fraction(1, 10**12)) for mechanism in mechanisms)
    if widest > WIDEST:
        raise ParameterError(
            f"epsilon = {float(epsilon):.3g} is too small for {len(measures)} marginals: counts could be off by "
            f"{widest:.2g}; give more, or ask for fewer marginals"
        )
    return Noise(tuple(mechanisms), cost)


def weights_of(
    design: Marginals, shares: Mapping[Any, object] | None, priority: Sequence[Sequence[int]] | None
) -> tuple[Fraction, ...] | None:
    """How exact each marginal is to be beside the others; None for all alike.

    Given as `shares` (of precision: twice the share halves the noise's deviation), or by stages of priority: each
    stage twice as exact as the next.
    """
    if shares is not None:
        if not isinstance(shares, Mapping):
            raise ParameterError('shares is a mapping, such as {"sex": 2, ("age", "sex"): 1}')
        weights = dict.fromkeys(range(len(design.marginals)), Fraction(1))
        for name, share in shares.items():
            weights[design.place(name)] = parse_amount(share, f"shares[{show_marginal(_names(name))}]")
        return tuple(weights[place] for place in range(len(design.marginals)))
    if priority is None:
        return None
    last = len(priority) - 1
    stage = {place: number for number, places in enumerate(priority) for place in places}
    return tuple(Fraction(2) ** (last - stage[place]) for place in range(len(design.marginals)))


def stages_of(
    names: Sequence[str], marginals: Sequence[Marginal], priority: object
) -> tuple[tuple[int, ...], ...] | None:
    """The places of marginals in each stage of a priority; refuses what is not a partition of the marginals."""
    if priority is None:
        return None
    if isinstance(priority, str) or not isinstance(priority, Sequence) or not priority:
        raise ParameterError('priority is a list of stages, such as [["sex"], [("age", "sex")]], most important first')
    stages = []
    for stage in priority:
        members = stage if isinstance(stage, list) else [stage]
        stages.append(tuple(place_of(names, marginals, marginal) for marginal in members))
    named = [place for stage in stages for place in stage]
    missing = [marginals[place] for place in range(len(marginals)) if place not in named]
    twice = sorted({marginals[place] for place in named if named.count(place) > 1})
    if missing or twice or not all(stages):
        said = [
            f"not named: {show_marginals(missing)}" if missing else "",
            f"named more than once: {show_marginals(twice)}" if twice else "",
            "" if all(stages) else "a stage is empty",
        ]
        raise ParameterError(
            f"the stages of a priority hold every marginal once; {'; '.join(part for part in said if part)}"
        )
    return tuple(stages)


def marginal_of(marginal: object, names: Sequence[str]) -> Marginal:
    """A marginal as it stands in a design: its columns in the policy's order, bins by the name of their column."""
    wanted = [_split(name)[0].casefold() for name in _names(marginal)]
    unknown = [name for name in wanted if name not in [each.casefold() for each in names]]
    if unknown:
        raise ParameterError(f"{', '.join(unknown)} is no column of this release, which has {', '.join(names)}")
    return tuple(name for name in names if name.casefold() in wanted)


def show_marginal(marginal: Sequence[str]) -> str:
    return " × ".join(marginal) if marginal else "total"


def show_marginals(marginals: Sequence[Sequence[str]]) -> str:
    return ", ".join(show_marginal(marginal) for marginal in marginals)


def _requested(marginals: object) -> list[list[str]]:
    example = 'write for example ["sex", ("age", "sex")], with () for the total'
    if isinstance(marginals, str) or not isinstance(marginals, Sequence) or not marginals:
        raise ParameterError(f"marginals is a list of columns and of tuples of columns; {example}")
    if len(marginals) > MOST_MARGINALS:
        raise ParameterError(f"{len(marginals):,} marginals are too many at once, the most is {MOST_MARGINALS}")
    requested = [list(_names(marginal)) for marginal in marginals]
    if not any(requested):
        raise ParameterError(f"microdata need at least one column, the total alone has none; {example}")
    return requested


def _names(marginal: object) -> tuple[str, ...]:
    names = (marginal,) if isinstance(marginal, str) else marginal
    if not isinstance(names, tuple | list) or not all(isinstance(name, str) and name.strip() for name in names):
        raise ParameterError(f"a marginal is a column or a tuple of columns, such as ('age', 'sex'); got {marginal!r}")
    return tuple(name.strip() for name in names)


def _terms(requested: Sequence[Sequence[str]]) -> dict[str, str]:
    """Every column that is named, in lower case, with the width of its bins if one is given."""
    terms: dict[str, str] = {}
    for name in (name for marginal in requested for name in marginal):
        column, width = _split(name)
        key = column.casefold()
        if key in terms and terms[key] != width:
            raise ParameterError(
                f"{column} is asked for with two widths of bins; a column has one in a release, so write the same"
            )
        terms[key] = width
    return terms


def _split(name: str) -> tuple[str, str]:
    found = _BIN.fullmatch(name)
    return (found["name"].strip('"'), found["width"] or "") if found else (name, "")


def _table(policy: Policy, terms: Mapping[str, str], table: str | None) -> Table:
    private = {each.name.casefold(): each for each in policy.private_tables}
    names = ", ".join(each.name for each in policy.private_tables)
    if table is not None:
        if not isinstance(table, str) or table.casefold() not in private:
            raise ParameterError(f"table={table!r} is not a private table of the policy, which has {names}")
        return private[table.casefold()]
    held = {each.name: {column.casefold() for column in each.columns} for each in private.values()}
    fitting = [each for each in private.values() if set(terms) <= held[each.name]]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise ParameterError(f"{', '.join(each.name for each in fitting)} have these columns; say which by table=...")
    if len(private) == 1:
        return next(iter(private.values()))  # the message about its columns is better
    raise ParameterError(
        f"no private table has all of {', '.join(terms)}: "
        + "; ".join(f"{name} has {', '.join(each.columns)}" for name, each in policy.tables.items() if not each.public)
    )


def _column(table: Table, name: str) -> Column:
    found = next((column for label, column in table.columns.items() if label.casefold() == name), None)
    if found is None:
        raise ParameterError(f"{table.name} has no column {name}; it has {', '.join(table.columns)}")
    if isinstance(found, Text):
        raise ParameterError(
            f"{found.name} has no declared domain, so a marginal over it has no known size; "
            "declare its `values` in the policy"
        )
    if not isinstance(found, Category | Number | Date):
        raise ParameterError(
            f"{found.name} has no domain to count over: it is an id, or a number without a range; "
            "give it `values`, or a `range` with `bins`, in the policy"
        )
    return found


def _attribute(column: Column, width: str) -> WorkloadAttribute:
    if isinstance(column, Category):
        if width:
            raise ParameterError(f"{column.name} has declared values, which are no numbers to put into bins")
        return Listed(column)
    assert isinstance(column, Number | Date)
    if not width and column.bins is None:
        if column.steps > MOST_PLAIN:
            raise ParameterError(
                f"{column.name} has {column.steps:,} possible values, too many to count one by one; "
                f"write BIN({column.name}, width), or declare its `bins` in the policy"
            )
        return Binned(column, column.low_index, 1)
    subject = reading(Field("", column))
    assert isinstance(subject, Reading)
    try:
        exact_width = Fraction(width) if width else None
    except ValueError:
        raise ParameterError(f"the width {width} of BIN({column.name}, {width}) is no number") from None
    key = bin_key(subject, exact_width)
    return Binned(column, key.first, key.width)


def _classes(own: WorkloadAttribute) -> Attribute:
    """A column as it is shown: the names of its classes, and how wide they are if they are bins."""
    key = key_of(own, "")
    width = ""
    if isinstance(own, Binned):
        step = own.width * own.column.grain
        width = str(step) if step.denominator == 1 else str(float(step))
    return Attribute(own.name, key_kind(key), tuple(spelled(key, place) for place in range(own.size)), width)
