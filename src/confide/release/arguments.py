"""Arguments that many calls take, read exactly: ε, confidence, shares and bounds."""

import math
from collections.abc import Mapping
from fractions import Fraction
from numbers import Real
from typing import Any

from confide.errors import ParameterError
from confide.policy import Policy, Table
from confide.policy.column import ROWS_LIMIT
from confide.privacy.amount import exact_number, parse_amount, root, shown_value, whole_number
from confide.privacy.budget import Budget
from confide.privacy.loss import ZCDP, PureDP

Mechanism = Mapping[str, str] | str


def exact_epsilon(value: object) -> Fraction:
    return parse_amount(value, "epsilon")


def confidence_level(value: object) -> float:
    try:
        level = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    except Exception:  # an integer beyond the doubles, or a class of the caller's
        level = math.nan
    if not 0 < level < 1:
        raise ParameterError(f"confidence={shown_value(value)} is not between 0 and 1; write for example 0.95")
    if level > 1 - 1e-9:
        raise ParameterError(f"confidence={level!r} is too near 1; at most 0.999999999 is answered")
    return level


def pure_share(budget: Budget, epsilon: Fraction) -> tuple[PureDP | ZCDP, Fraction]:
    """What a call of ε costs, and the ε of a pure mechanism that costs no more: √(2ρ) where ρ is added up."""
    loss = budget.cost(epsilon)
    return loss, loss.epsilon if isinstance(loss, PureDP) else root(2 * loss.rho)


def by_name(given: object, what: str, example: str) -> dict[str, Any]:
    """What is given by name, as it is now: it is the caller's, and may change while we work."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ParameterError(f"{what}={shown_value(given)} is not by name; write for example {what}={example}")
    try:
        own = dict(given)
    except Exception:
        raise ParameterError(f"{what} cannot be read; write for example {what}={example}") from None
    odd = [name for name in own if not isinstance(name, str)]
    if odd:
        raise ParameterError(f"{what} has the name {shown_value(odd[0])}; names are texts, as in {what}={example}")
    return {str.__str__(name): value for name, value in own.items()}


def exact_rows(rows: object) -> int | None:
    """How many rows there are thought to be, if that is said."""
    if rows is None:
        return None
    known = whole_number(rows)
    if known is None or not 1 <= known <= ROWS_LIMIT:
        raise ParameterError(
            f"rows={shown_value(rows)} is not a number of rows; write a whole number from 1 to {ROWS_LIMIT:,}"
        )
    return known


def exact_split(split: object) -> dict[str, Fraction]:
    """How a call's ε is shared among its columns."""
    shares = by_name(split, "split", "{'n': 1, 'avg': 3}")
    return {name: parse_amount(share, f"split[{name}]") for name, share in shares.items()}


def exact_bounds(bounds: object) -> dict[str, tuple[Fraction, Fraction]]:
    """The ends that a caller gives to columns of an inner query."""
    result = {}
    for name, ends in by_name(bounds, "bounds", "{'total': [0, 500]}").items():
        try:
            low, high = (exact_number(end, "bound") for end in ends)
        except Exception:
            raise ParameterError(
                f"bounds[{name!r}] must be two numbers, [low, high]; got {shown_value(ends)}"
            ) from None
        if low >= high or max(abs(low), abs(high)) > 2**62:
            raise ParameterError(f"bounds[{name!r}] must be [low, high] with low below high; got {shown_value(ends)}")
        result[name] = (low, high)
    return result


def mechanism_names(mechanism: object) -> Mechanism:
    """The mechanism of all columns, or of each that is named."""
    if isinstance(mechanism, str):
        return str.__str__(mechanism)
    if not isinstance(mechanism, Mapping):
        raise ParameterError(f"mechanism={shown_value(mechanism)} is not a name or a mapping of columns to names")
    names = by_name(mechanism, "mechanism", "{'median': 'pair'}")
    for column, name in names.items():
        if not isinstance(name, str):
            raise ParameterError(f"mechanism[{column!r}]={shown_value(name)} is not the name of a mechanism")
    return {column: str.__str__(name) for column, name in names.items()}


def plain_text(text: object) -> Any:
    """A text of a caller's own class as one of Python's; anything else as it is, for others to refuse."""
    return str.__str__(text) if isinstance(text, str) else text


def private_table(policy: Policy, name: str | None, purpose: str = "synthesize") -> Table:
    """The private table that is meant: the one named, or the only one."""
    private = {table.name: table for table in policy.private_tables}
    if name is not None:
        if not isinstance(name, str) or name not in private:
            raise ParameterError(f"there is no private table {shown_value(name)}; there are {', '.join(private)}")
        return private[name]
    if len(private) != 1:
        options = " or table=".join(map(repr, private))
        raise ParameterError(
            f"say which table to {purpose}: table={options} (at the terminal --table {next(iter(private))})"
        )
    return next(iter(private.values()))
