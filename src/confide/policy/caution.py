"""What is allowed in a policy and is still worth a second look."""

import unicodedata
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import assert_never

from confide.host.address import has_password
from confide.policy.column import Category, Column, Date, Identifier, Number, Text, Unbounded, show
from confide.policy.policy import Policy
from confide.policy.table import Table

LARGE_EPSILON = Fraction(10)
LARGE_DELTA = Fraction(1, 10**5)
WIDE_RANGE = 10**8
WIDE_DAYS = 73_050  # two centuries
FINE_GRAIN = 10**8
MANY_VALUES = 1_000
MANY_ROWS = 1_000


def cautions(policy: Policy) -> Iterator[str]:
    """Each caution as a sentence that says what to do."""
    yield from _budget_cautions(policy)
    sources = policy.source.values() if isinstance(policy.source, Mapping) else (policy.source or "",)
    if any(map(has_password, (*sources, policy.ledger or ""))):
        yield "a password stands in the policy; keep it in the environment of the database's client instead"
    for table in policy.tables.values():
        if isinstance(policy.source, Mapping) and table.name not in policy.source:
            yield f"{table.name}: no source is named, so its frame must be given when the data is opened"
        if not table.public:
            yield from _table_cautions(policy, table)


def _budget_cautions(policy: Policy) -> Iterator[str]:
    epsilon, delta = policy.budget.epsilon, policy.budget.delta
    if epsilon > LARGE_EPSILON:
        yield f"ε = {show(epsilon)} is large: above {show(LARGE_EPSILON)} the promise to each person becomes weak"
    if delta > LARGE_DELTA:
        yield f"δ = {show(delta)} is large: use 1e-9 or less, and far less than one in the number of units"
    for table in policy.private_tables:
        if table.size is not None and delta * table.size >= 1:
            yield f"δ = {show(delta)} is one in {table.name}'s rows or more: a whole row might be released within it"
    for name, cap in policy.analysts.items():
        if cap > epsilon:
            yield f"the cap of {name!r} is above the whole budget, so it limits nothing"


def _table_cautions(policy: Policy, table: Table) -> Iterator[str]:
    if table.size is None:
        yield f"{table.name}: without a size, errors are forecast in absolute numbers only; add a rough number of rows"
    if table.at_most.rows > MANY_ROWS:
        yield f"{table.name}: one unit may have {table.at_most.rows:,} rows, and noise grows with that number"
    for column in table.columns.values():
        for caution in _column_cautions(policy, column):
            yield f"{table.name}.{column.name}: {caution}"


def _column_cautions(policy: Policy, column: Column) -> Iterator[str]:
    match column:
        case Number(_, low, high, grain):
            reach = max(abs(low), abs(high))
            if reach >= WIDE_RANGE:
                yield f"the range up to {show(reach)} is very wide, and the noise of a sum grows with it; clamp closer"
            elif reach / grain / policy.budget.epsilon > FINE_GRAIN:
                yield f"the grain {show(grain)} is far finer than any noise; a coarser one loses nothing"
        case Date(_, first, last) if (last - first).days > WIDE_DAYS:
            yield "the range is longer than two centuries; narrow it to the days that can occur"
        case Category(_, values):
            if len(values) > MANY_VALUES:
                yield f"{len(values):,} values make {len(values):,} groups, most of them noise; group more coarsely"
            yield from _look_alikes(values)
        case Text() if policy.budget.pure:
            yield "text groups need a threshold, and a threshold needs a δ in the budget"
        case Date() | Text() | Identifier() | Unbounded():
            return
        case _:
            assert_never(column)


def _look_alikes(values: tuple[object, ...]) -> Iterator[str]:
    seen: dict[str, str] = {}
    for value in values:
        if not isinstance(value, str):
            return
        other = seen.setdefault(unicodedata.normalize("NFKC", value).casefold().strip(), value)
        if other != value:
            yield f"the values {other!r} and {value!r} look alike but are two groups"
