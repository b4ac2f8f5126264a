"""Which marginals of which table are measured, with which noise: a request bound from its text and the policy alone.

All marginals must be marginals of one table, or no table fits them and no interval of a combination holds. So every
marginal counts the same rows: those in which all columns of the release are known (a NULL is a class of its own where
the policy says so), and of each unit the same rows, whatever groups they fall into.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

from confide.errors import ParameterError
from confide.fit import Domain
from confide.mechanism import Additive, exact, laplace
from confide.policy import Category, Column, Date, Number, Policy, Table, Text
from confide.privacy.amount import parse_amount
from confide.privacy.budget import Budget
from confide.privacy.loss import ZCDP, PureDP
from confide.privacy.naming import plain_name
from confide.query import Question, bind
from confide.query.grouping import MOST_PLAIN, key_size
from confide.query.scope import Catalog
from confide.query.tree import BinnedKey
from confide.release.allocation import narrower
from confide.release.answer import KeyType
from confide.release.room import require_room_for_counts
from confide.release.table import key_type, spelled

Marginal = tuple[str, ...]

MOST_MARGINALS: Final = 500
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
class Design:
    """Marginals of one table, each with the question that measures it. Columns and marginals are in the policy's order,
    so the same request has the same design however it is written.
    """

    table: str
    attributes: tuple[Attribute, ...]
    marginals: tuple[Marginal, ...]
    questions: tuple[Question, ...]

    @property
    def domain(self) -> Domain:
        names = tuple(attribute.name for attribute in self.attributes)
        return Domain(names, tuple(len(attribute.values) for attribute in self.attributes))

    @property
    def fingerprint(self) -> str:
        parts = [repr((self.table, self.attributes, self.marginals)), *(each.fingerprint for each in self.questions)]
        return plain_name(*parts)

    def place(self, marginal: object) -> int:
        """Where a marginal stands, however its columns are ordered."""
        names = tuple(attribute.name for attribute in self.attributes)
        wanted = marginal_of(marginal, names)
        if wanted not in self.marginals:
            raise ParameterError(f"{show_marginal(wanted)} is not measured; what is: {show_marginals(self.marginals)}")
        return self.marginals.index(wanted)


@dataclass(frozen=True, slots=True)
class Noise:
    """The mechanism of each marginal and what all of them cost."""

    mechanisms: tuple[Additive, ...]
    loss: PureDP | ZCDP


def design_microdata(marginals: object, policy: Policy, catalog: Catalog, table: str | None = None) -> Design:
    """The design of some marginals, or a refusal that says what to write instead. Nothing private is read."""
    requested = _requested(marginals)
    terms = _terms(requested)
    chosen = _table(policy, terms, table)
    columns = {name: _column(chosen, name) for name in terms}
    widths: dict[str, str] = {}
    for name, width in terms.items():
        widths[columns[name].name] = width
    order = [name for name in chosen.columns if name in widths]
    expressions = {name: _expression(chosen.columns[name], widths[name]) for name in order}
    known = [name for name in order if not _counts_nulls(chosen.columns[name])]

    def question(names: Sequence[str]) -> Question:
        return _bound(_sql(chosen.name, [expressions[name] for name in names], known), policy, catalog)

    attributes = tuple(_attribute(name, chosen.columns[name], question([name])) for name in order)
    Domain(tuple(order), tuple(len(attribute.values) for attribute in attributes))  # refuses what is too large
    places: dict[Marginal, None] = {}
    for each in requested:
        own = [columns[_split(name)[0].casefold()].name for name in each]
        wanted = tuple(name for name in order if name in own)
        if len(set(own)) < len(own):
            raise ParameterError(f"a column is named twice in the marginal {show_marginal(tuple(each))}")
        if wanted in places:
            raise ParameterError(f"the marginal {show_marginal(wanted)} is named twice; it would be paid for twice")
        places[wanted] = None
    ordered = tuple(sorted(places, key=lambda each: (len(each), [order.index(name) for name in each])))
    design = Design(chosen.name, attributes, ordered, tuple(question(each) for each in ordered))
    require_room_for_counts([design.domain.size(each) for each in ordered], "use wider bins, or fewer marginals")
    return design


def noise_for(design: Design, budget: Budget, epsilon: Fraction, weights: Sequence[Fraction] | None = None) -> Noise:
    """Noise for all marginals at ε in all: Laplace under a pure budget, else the narrower of Laplace and Gaussian.

    Neighbours: the policy's. Loss: the marginals' losses add up to the cost of the call (sequential composition; a
    marginal that no unit can change is exact and free). Without weights every count of every marginal has the same
    noise, for sensitivities are bounds of each question.
    """
    cost = budget.cost(epsilon)
    measures = [question.measures[0] for question in design.questions]
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
            mechanisms.append(narrower(measure, amount * part / whole, FORECAST_CONFIDENCE))
    widest = max(mechanism.law.half_width(1 - Fraction(1, 10**12)) for mechanism in mechanisms)
    if widest > WIDEST:
        raise ParameterError(
            f"epsilon = {float(epsilon):.3g} is too small for {len(measures)} marginals: counts could be off by "
            f"{widest:.2g}; give more, or ask for fewer marginals"
        )
    return Noise(tuple(mechanisms), cost)


def weights_of(
    design: Design, shares: Mapping[Any, object] | None, priority: Sequence[Sequence[int]] | None
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


def stages_of(design: Design, priority: object) -> tuple[tuple[int, ...], ...] | None:
    """The places of marginals in each stage of a priority; refuses what is not a partition of the marginals."""
    if priority is None:
        return None
    if isinstance(priority, str) or not isinstance(priority, Sequence) or not priority:
        raise ParameterError('priority is a list of stages, such as [["sex"], [("age", "sex")]], most important first')
    stages = []
    for stage in priority:
        members = stage if isinstance(stage, list) else [stage]
        stages.append(tuple(design.place(marginal) for marginal in members))
    named = [place for stage in stages for place in stage]
    missing = [design.marginals[place] for place in range(len(design.marginals)) if place not in named]
    twice = sorted({design.marginals[place] for place in named if named.count(place) > 1})
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


def _expression(column: Column, width: str) -> str:
    name = _quoted(column.name)
    if isinstance(column, Number | Date):
        if width:
            return f"BIN({name}, {width})"
        if column.bins is not None:
            return f"BIN({name})"
        if column.steps > MOST_PLAIN:
            raise ParameterError(
                f"{column.name} has {column.steps:,} possible values, too many to count one by one; "
                f"write BIN({column.name}, width), or declare its `bins` in the policy"
            )
    elif width:
        raise ParameterError(f"{column.name} has declared values, which are no numbers to put into bins")
    return name


def _counts_nulls(column: Column) -> bool:
    return isinstance(column, Category) and column.nulls


def _sql(table: str, expressions: Sequence[str], known: Sequence[str]) -> str:
    where = " AND ".join(f"{_quoted(name)} IS NOT NULL" for name in known)
    keys = ", ".join(str(place) for place in range(1, len(expressions) + 1))
    columns = ", ".join([*expressions, "COUNT(*) AS confide_rows"])
    return (
        f"SELECT {columns} FROM {_quoted(table)}"
        + (f" WHERE {where}" if where else "")
        + (f" GROUP BY {keys}" if keys else "")
    )


def _bound(sql: str, policy: Policy, catalog: Catalog) -> Question:
    """A question that keeps, of each unit, the same rows as all others of the release.

    A limit of groups would keep other rows for other keys. A count's sensitivity is the limit of rows, with or
    without it (`query.sensitivity.of_total`), so it is lifted.
    """
    question = bind(sql, policy, catalog)
    bound = question.summary.bound
    if bound is None:
        return question
    return replace(question, summary=replace(question.summary, bound=replace(bound, groups=bound.rows)))


def _attribute(name: str, column: Column, question: Question) -> Attribute:
    (key,) = question.keys
    count = key_size(key)
    assert count is not None, "a declared column has a size"
    width = ""
    if isinstance(column, Number | Date) and isinstance(key, BinnedKey):
        step = key.width * column.grain
        width = str(step) if step.denominator == 1 else str(float(step))
    return Attribute(name, key_type(key), tuple(spelled(key, place) for place in range(count)), width)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
