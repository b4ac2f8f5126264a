"""Cells named by their values: queries about a release, and what is publicly known of it.

A selection is a mapping of columns to a value or to several: {"sex": "F", "age": [60, 70]}. It stands for all cells
that have these values, whatever the other columns are; {} stands for all of them.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from confide.errors import ParameterError
from confide.fit import CellDomain, FitProblem, Group, Public, SparseGroup, Subtotal
from confide.fit import Marginal as MarginalGroup
from confide.mechanism import NoNoise
from confide.release.microdata.marginals import Attribute, marginal_of, show_marginal
from confide.release.microdata.store import Measurements

Selection = Mapping[str, Any]


def group_of(attributes: Sequence[Attribute], selection: object) -> Subtotal:
    """The query that counts a selection."""
    names = tuple(attribute.name for attribute in attributes)
    if not isinstance(selection, Mapping) or not all(isinstance(name, str) for name in selection):
        raise ParameterError(f'a selection maps columns to values, such as {{"sex": "F"}}; got {selection!r}')
    marginal = marginal_of(tuple(selection), names)
    by_name = {name.casefold(): wanted for name, wanted in selection.items()}
    mask = np.ones((), dtype=bool)
    for name in marginal:
        attribute = next(each for each in attributes if each.name == name)
        mask = np.multiply.outer(mask, _chosen(attribute, by_name[name.casefold()]))
    return Subtotal(MarginalGroup(marginal), np.asarray(mask, dtype=bool).ravel())


def query_of(measured: Measurements, query: object) -> Group:
    """A linear query: a selection, or pairs of a weight and a selection that are added up."""
    if isinstance(query, Mapping):
        return group_of(measured.attributes, query)
    pairs = query if isinstance(query, Sequence) and not isinstance(query, str) else None
    if not pairs or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise ParameterError(
            'a query is a selection, such as {"sex": "F"}, or a list of weighted ones, such as '
            '[(1, {"sex": "F"}), (-1, {"sex": "M"})]'
        )
    domain = measured.domain
    weights = np.zeros(domain.cells)
    for weight, selection in pairs:
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not abs(weight) <= 1e9:
            raise ParameterError(f"a weight is a number up to 10⁹; got {weight!r}")
        weights += weight * group_of(measured.attributes, selection).spread(domain, np.ones(1))
    return SparseGroup(sparse.csr_array(weights[None, :]))


def public_of(measured: Measurements, zeros: object, totals: object) -> Public:
    """What holds exactly: stated zeros and totals, and the marginals that were measured without noise."""
    exact: list[tuple[Group, NDArray[np.float64]]] = [
        (measured.group(each.marginal), each.counts.astype(np.float64))
        for each in measured.marginals
        if isinstance(each.law, NoNoise)
    ]
    stated = stated_of(measured.attributes, zeros, totals)
    return Public(stated.zeros, (*exact, *stated.totals))


def known_answer(problem: FitProblem, query: Group) -> float | None:
    """The answer of a selection that a public total gives by itself."""
    if not isinstance(query, Subtotal) or not isinstance(query.group, MarginalGroup):
        return None
    columns = query.group.attributes
    for group, counts in problem.public.totals:
        if isinstance(group, MarginalGroup) and set(columns) <= set(group.attributes):
            own = (
                CellDomain(group.attributes, tuple(problem.domain.size((name,)) for name in group.attributes))
                if group.attributes
                else None
            )
            sums = counts if own is None else MarginalGroup(columns).answer(own, counts)
            return float(sums[query.members].sum())
    return None


def stated_of(attributes: Sequence[Attribute], zeros: object, totals: object) -> Public:
    """Structural zeros and public totals, as a caller states them."""
    flags = None
    if zeros is not None:
        if isinstance(zeros, Mapping | str) or not isinstance(zeros, Sequence):
            raise ParameterError('zeros is a list of selections, such as [{"age": [0, 10], "status": "married"}]')
        flags = np.zeros([len(attribute.values) for attribute in attributes], dtype=bool)
        for selection in zeros:
            group = group_of(attributes, selection)
            assert isinstance(group.group, MarginalGroup)
            named = group.group.attributes
            shape = [len(each.values) if each.name in named else 1 for each in attributes]
            flags |= group.members.reshape(shape)
        flags = flags.ravel()
    known: list[tuple[Group, NDArray[np.float64]]] = []
    if totals is not None:
        if not isinstance(totals, Mapping):
            raise ParameterError('totals maps marginals to counts, such as {(): 1000, "sex": {"F": 510, "M": 490}}')
        known = [_total(attributes, marginal, counts) for marginal, counts in totals.items()]
    return Public(flags, tuple(known))


def _total(
    attributes: Sequence[Attribute], marginal: object, counts: object
) -> tuple[MarginalGroup, NDArray[np.float64]]:
    """A public marginal: a number for the total, else a count for every combination of values."""
    names = marginal_of(marginal, tuple(attribute.name for attribute in attributes))
    own = [next(each for each in attributes if each.name == name) for name in names]
    if not names:
        return MarginalGroup(()), np.array([_count(counts, "the total")])
    label = show_marginal(names)
    if not isinstance(counts, Mapping):
        raise ParameterError(f"totals[{label}] maps values to counts; got {counts!r}")
    sizes = [len(attribute.values) for attribute in own]
    found = np.full(sizes, np.nan)
    for key, count in counts.items():
        parts = key if isinstance(key, tuple) else (key,)
        if len(parts) != len(own):
            raise ParameterError(f"totals[{label}] has the key {key!r}; write one value for each of {label}")
        found[tuple(_place(attribute, part) for attribute, part in zip(own, parts, strict=True))] = _count(count, label)
    missing = np.argwhere(np.isnan(found))
    if len(missing):
        first = ", ".join(str(each.values[place]) for each, place in zip(own, missing[0], strict=True))
        raise ParameterError(
            f"totals[{label}] has {len(missing):,} of {found.size:,} counts missing, such as that of {first}; "
            "a public marginal has all of them"
        )
    return MarginalGroup(names), found.ravel()


def _count(value: object, label: str) -> float:
    good = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not good or not 0 <= value <= 1e15:  # type: ignore[operator]
        raise ParameterError(f"a public count of {label} must be a number from 0 to 10¹⁵; got {value!r}")
    return float(value)  # type: ignore[arg-type]


def _chosen(attribute: Attribute, wanted: Any) -> NDArray[np.bool_]:
    several = isinstance(wanted, Collection) and not isinstance(wanted, str | bytes | Mapping)
    mask = np.zeros(len(attribute.values), dtype=bool)
    for value in wanted if several else (wanted,):
        mask[_place(attribute, value)] = True
    return mask


def _place(attribute: Attribute, value: Any) -> int:
    """Where a value stands; a number or a day inside a bin stands for the bin."""
    for place, own in enumerate(attribute.values):
        if own == value and isinstance(own, bool) == isinstance(value, bool):
            return place
    if attribute.width and not isinstance(value, bool) and isinstance(value, int | float | date | np.number):
        below = [place for place, own in enumerate(attribute.values) if own <= value]
        last = attribute.values[-1]
        reach = (value - last).days if isinstance(value, date) else float(value) - float(last)
        if below and reach < float(attribute.width):
            return below[-1]
    shown = ", ".join("NULL" if own is None else str(own) for own in attribute.values[:12])
    more = f" and {len(attribute.values) - 12:,} more" if len(attribute.values) > 12 else ""
    raise ParameterError(f"{value!r} is no value of {attribute.name}, which has {shown}{more}")
