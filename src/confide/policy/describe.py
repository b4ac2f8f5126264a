"""A policy in plain facts: what is public, who is protected, what one unit may have, what is worth a second look."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import assert_never

from confide.host.address import without_password
from confide.policy.caution import cautions
from confide.policy.column import Category, Column, Date, Identifier, Number, Text, Unbounded, show
from confide.policy.policy import Policy
from confide.policy.table import KeyUnit, Table
from confide.privacy.amount import show as show_short
from confide.privacy.loss import ZCDP

_SHOWN_VALUES = 8


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """One column: its kind, what is public about it, and what it may be used for."""

    name: str
    kind: str
    public: str
    use: str


@dataclass(frozen=True, slots=True)
class TableFacts:
    """One table: what is public about it, what one unit may have in it, and how its rows lead to the unit."""

    name: str
    private: bool
    rows: str
    at_most_rows: int | None
    at_most_groups: int | None
    belongs: str
    columns: tuple[ColumnFacts, ...]


@dataclass(frozen=True, slots=True)
class BudgetFacts:
    """The budget: its numbers, how it is held, and the caps of analysts."""

    epsilon: Fraction
    delta: Fraction
    held: str
    analysts: tuple[tuple[str, Fraction], ...]


@dataclass(frozen=True, slots=True)
class Description:
    """Everything that `confide check` prints."""

    title: str
    protected: str
    neighbours: str
    budget: BudgetFacts
    tables: tuple[TableFacts, ...]
    source: str
    cautions: tuple[str, ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(_render(self)) + "\n"

    def _repr_html_(self) -> str:
        from confide.policy.policy_html import description_html  # noqa: PLC0415  loaded when shown

        return description_html(self)

    def for_analysts(self) -> "Description":
        """What whoever asks needs: without where the data and the policy are, and what its custodian might change."""
        return replace(self, title="", source="", cautions=(), notes=())


def describe(policy: Policy) -> Description:
    """The facts of a policy."""
    return Description(
        title=str(policy.path) if policy.path is not None else "the policy",
        protected=_protected(policy),
        neighbours=_neighbours(policy),
        budget=BudgetFacts(
            policy.budget.epsilon, policy.budget.delta, _held(policy), tuple(sorted(policy.analysts.items()))
        ),
        tables=tuple(_table_facts(policy, table) for table in policy.tables.values()),
        source=_source(policy),
        cautions=tuple(cautions(policy)),
        notes=policy.notes,
    )


def _protected(policy: Policy) -> str:
    if not isinstance(policy.unit, KeyUnit):
        return "one row of any private table; whoever has several rows is protected row by row only, not as a whole"
    others = [table.name for table in policy.private_tables if table.name != policy.unit.table]
    more = f", and the rows that refer to them in {', '.join(others)}" if others else ""
    return f"whoever a value of {policy.unit} stands for: all rows in {policy.unit.table}{more}"


def _neighbours(policy: Policy) -> str:
    known = [table.name for table in policy.private_tables if table.rows == "public"]
    if not known:
        return "answers hardly change when one unit is added or removed; how many there are is not public"
    names = ", ".join(known)
    return f"answers hardly change when one unit is replaced by another; the number of rows is public in {names}"


def _held(policy: Policy) -> str:
    cap = policy.budget.cap
    if not isinstance(cap, ZCDP):
        return "a pure budget: every ε that is spent is added up"
    either = "held in either of two accounts: the sum of ε as long as every answer is pure, or else " * (
        cap.pure is not None
    )
    return either + (
        f"held as ρ = {show_short(cap.rho)} of zero-concentrated privacy, added up over all answers; δ pays"
        f" for the conversion to ε and, up to {show_short(cap.delta)}, for thresholds on group keys that are not listed"
    )


def _source(policy: Policy) -> str:
    if policy.source is None:
        return "frames that are given when the data is opened"
    if isinstance(policy.source, Mapping):
        return ", ".join(f"{name} from {without_password(file)}" for name, file in policy.source.items())
    return without_password(policy.source)


def _table_facts(policy: Policy, table: Table) -> TableFacts:
    columns = tuple(_column_facts(column, table.public) for column in table.columns.values())
    if table.public:
        return TableFacts(table.name, False, "everything in it is public", None, None, "nobody", columns)
    rows = "the number of rows is public" if table.rows == "public" else "the number of rows is private"
    if table.size is not None:
        rows += f"; roughly {table.size:,} for forecasts"
    belongs = "each row is a unit of its own"
    if isinstance(policy.unit, KeyUnit):
        steps = policy.unit_path(table.name)
        ways = [f"{step.table}.{step.column} → {step.to_table}.{step.to_column}" for step in steps]
        belongs = " then ".join(ways) or f"by its own column {policy.unit.column}"
    return TableFacts(table.name, True, rows, table.at_most.rows, table.at_most.groups, belongs, columns)


def _column_facts(column: Column, public: bool) -> ColumnFacts:
    kind, known, use = _known_and_use(column)
    return ColumnFacts(column.name, kind, known, "anything" if public else use)


def _known_and_use(column: Column) -> tuple[str, str, str]:
    match column:
        case Identifier():
            return "id", "only that it exists", "joins, and counting who is there"
        case Text(_, nulls):
            known = "only that it exists" + (", or NULL" if nulls else "")
            return "text", known, "filters, counts, and groups above a threshold (needs δ)"
        case Category(_, values, nulls):
            shown = ", ".join(_value(value) for value in values[:_SHOWN_VALUES])
            more = f", … ({len(values):,} in all)" if len(values) > _SHOWN_VALUES else ""
            return "values", shown + more + (", or NULL" if nulls else ""), "filters, counts, groups"
        case Number(_, low, high, grain, nulls=nulls):
            known = f"{show(low)} to {show(high)}, rounded to {show(grain)}{_believed(column)}" + (
                ", or NULL" if nulls else ""
            )
            return "number", known, "filters, counts, sums, averages, groups by bins"
        case Date(_, first, last, nulls=nulls):
            return "date", f"{first} to {last}" + (", or NULL" if nulls else ""), "filters, counts, groups by bins"
        case Unbounded(_, grain):
            return "number", f"no bounds, rounded to {show(grain)}{_believed(column)}", "filters and counts; no sums"
        case _:
            assert_never(column)


def _believed(column: Number | Unbounded) -> str:
    return (
        ""
        if column.typical is None
        else f"; mostly {show(column.typical[0])} to {show(column.typical[1])} for forecasts"
    )


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _render(facts: Description) -> Iterator[str]:
    if facts.title:
        yield f"Policy      {facts.title}"
    yield f"Protected   {facts.protected}"
    yield f"            {facts.neighbours}"
    delta = f", δ = {show_short(facts.budget.delta)}" if facts.budget.delta else ""
    yield f"Budget      ε = {show_short(facts.budget.epsilon)}{delta} in all"
    yield f"            {facts.budget.held}"
    for name, cap in facts.budget.analysts:
        yield f"            {'anybody else' if name == '*' else name}: at most ε = {show_short(cap)}"
    if facts.source:
        yield f"Data        {facts.source}"
    for table in facts.tables:
        yield ""
        yield f"Table {table.name} ({'private' if table.private else 'public'}: {table.rows})"
        if table.private:
            yield f"  {_at_most(table)}"
        width = max((len(column.name) for column in table.columns), default=0)
        for column in table.columns:
            yield f"  {column.name:<{width}}  {column.kind:<6}  {column.public}  [{column.use}]"
    if facts.cautions:
        yield ""
        yield "Worth a second look"
        yield from (f"  - {caution}" for caution in facts.cautions)
    if facts.notes:
        yield ""
        yield "Chosen on reading"
        yield from (f"  - {note}" for note in facts.notes)


def _at_most(table: TableFacts) -> str:
    rows = "1 row" if table.at_most_rows == 1 else f"{table.at_most_rows:,} rows"
    groups = "1 group" if table.at_most_groups == 1 else f"{table.at_most_groups:,} groups"
    return f"one unit may have at most {rows} in {groups} of an answer; {by_whom(table)}"


def by_whom(table: TableFacts) -> str:
    if table.belongs.startswith("each "):
        return table.belongs
    return f"rows belong to a unit {table.belongs if table.belongs.startswith('by ') else f'by {table.belongs}'}"
