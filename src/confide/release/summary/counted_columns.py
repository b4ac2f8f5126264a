"""What a summary counts of a table: bound from the policy alone.

Every row of the table is in one cell of every column: one of its values or bins, or the cell of what is missing. So one
unit changes the counts of a column by no more than it has rows, however many cells there are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from confide.errors import ParameterError
from confide.policy import Category, Column, Date, Identifier, Number, Policy, Table, Text
from confide.privacy.amount import shown_value
from confide.query import Question, bind
from confide.query.question import Neighbours
from confide.query.scope import Catalog
from confide.query.sensitivity import Sensitivity
from confide.query.tabulation import Tabulation
from confide.release.answer.size import require_room_for_counts
from confide.release.whole_table import tabulated
from confide.workload import Binned, Domain
from confide.workload.domain import Attribute, Listed

MOST_BINS: Final = 96
"""Of a ranged column: fine enough to tell quantiles by, few enough to add up."""
MOST_VALUES: Final = 100_000
_NICE: Final = (1, 2, 5)

Kind = Literal["values", "range", "text", "other"]


@dataclass(frozen=True, slots=True)
class SummaryColumn:
    """A column, how it is counted, and which cells of the tabulation are its own."""

    name: str
    kind: Kind
    attribute: Attribute | None = None
    place: int | None = None
    keys: Question | None = None
    """Of a text column: how many units hold each key."""


@dataclass(frozen=True, slots=True)
class SummaryDesign:
    """A table and what is counted of it."""

    table: str
    columns: tuple[SummaryColumn, ...]
    tabulation: Tabulation | None
    sensitivity: Sensitivity
    """Of the counts of one column."""
    known: Question
    """The number of rows, and of known values of the columns that are in no table of counts."""
    unit: str
    neighbours: Neighbours
    skipped: tuple[str, ...]

    def form(self) -> tuple[object, ...]:
        """What tells one design from another, beside the policy's facts."""
        bins = tuple(
            (column.name, column.attribute.first, column.attribute.width) if isinstance(column.attribute, Binned)
            else (column.name, column.kind)
            for column in self.columns
        )  # fmt: skip
        return self.table, bins, self.unit, self.neighbours

    @property
    def counted(self) -> str:
        """Of each unit how many rows count."""
        return self.known.counted


def bind_summary(policy: Policy, catalog: Catalog, table: object) -> SummaryDesign:
    """The design of a table's summary, or a refusal. Nothing private is read."""
    chosen = _table(policy, table)
    attributes, texts, others, skipped = _columns(chosen)
    sets = [(place,) for place in range(len(attributes))]
    domain = Domain(chosen.name, tuple(attributes))
    whole = tabulated(policy, catalog, chosen, domain, sets, missing=True)
    require_room_for_counts([own.size + 1 for own in attributes], "ask about its columns in SQL")
    columns = [
        SummaryColumn(own.name, "values" if isinstance(own, Listed) else "range", own, place)
        for place, own in enumerate(attributes)
    ]
    pure = policy.budget.pure  # and then no key of undeclared domain can be found
    found = [None if pure else _keys(chosen, own, policy, catalog) for own in texts]
    columns += [SummaryColumn(own.name, "text", keys=keys) for own, keys in zip(texts, found, strict=True)]
    columns += [SummaryColumn(own.name, "other") for own in others]
    order = list(chosen.columns)
    columns.sort(key=lambda column: order.index(column.name))
    known = _known(chosen, [own.name for own in (*texts, *others)], policy, catalog)
    return SummaryDesign(
        chosen.name,
        tuple(columns),
        whole.tabulation if attributes else None,
        whole.sensitivity(grouped=True),
        known,
        whole.unit,
        whole.neighbours,
        tuple(skipped),
    )


def _table(policy: Policy, table: object) -> Table:
    private = {own.name.casefold(): own for own in policy.private_tables}
    names = ", ".join(own.name for own in private.values())
    if table is None:
        if len(private) == 1:
            return next(iter(private.values()))
        raise ParameterError(f"a summary is of one table, and the policy has {names}; say which by table=...")
    if not isinstance(table, str) or table.casefold() not in private:
        raise ParameterError(f"table={shown_value(table)} is not a private table of the policy, which has {names}")
    return private[table.casefold()]


def _columns(table: Table) -> tuple[list[Attribute], list[Column], list[Column], list[str]]:
    """Those that are counted by values or bins, by keys, or only as known; and what is said of the rest."""
    attributes: list[Attribute] = []
    texts: list[Column] = []
    others: list[Column] = []
    skipped: list[str] = []
    for column in table.columns.values():
        match column:
            case Category() if len(column.values) <= MOST_VALUES:
                attributes.append(Listed(column))
            case Number() | Date():
                attributes.append(_binned(column))
            case Text():
                texts.append(column)
            case Identifier():
                skipped.append(f"{column.name} is an id: nothing is said of it")
            case _:
                others.append(column)
    return attributes, texts, others, skipped


def _binned(column: Number | Date) -> Binned:
    """Bins of a round width, or single values if they are few."""
    width = 1
    for step in range(3 * 19):
        width = _NICE[step % 3] * 10 ** (step // 3)
        first = column.low_index // width * width
        if (column.high_index - first) // width + 1 <= MOST_BINS:
            break
    return Binned(column, column.low_index // width * width, width)


def _known(table: Table, names: Sequence[str], policy: Policy, catalog: Catalog) -> Question:
    counts = ", ".join(["COUNT(*) AS rows_counted", *(f"COUNT({_quoted(name)})" for name in names)])
    return bind(f"SELECT {counts} FROM {_quoted(table.name)}", policy, catalog)


def _keys(table: Table, column: Column, policy: Policy, catalog: Catalog) -> Question:
    name = _quoted(column.name)
    return bind(f"SELECT {name} AS k, COUNT(*) AS n FROM {_quoted(table.name)} GROUP BY {name}", policy, catalog)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def shares_of(design: SummaryDesign, pure: bool) -> tuple[dict[str, Fraction], Fraction]:
    """Which part of the cost each column has, and which the number of rows: quantiles add up many counts, so ranged
    columns have most. Under ρ parts go with the square, as noise falls with the root.
    """
    weights: dict[Kind, Fraction] = {
        "range": Fraction(2),
        "values": Fraction(1),
        "text": Fraction(3, 2),
        "other": Fraction(0),
    }
    raw = {column.name: weights[column.kind] for column in design.columns if not (pure and column.kind == "text")}
    rows = Fraction(1, 2)
    squared = {name: weight if pure else weight**2 for name, weight in raw.items()}
    rows = rows if pure else rows**2
    known = rows * sum(measure.l1 > 0 for measure in design.known.measures)
    whole = sum(squared.values(), known)
    return {name: weight / whole for name, weight in squared.items()}, rows / whole
