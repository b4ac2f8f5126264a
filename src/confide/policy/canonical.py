"""The canonical text of a policy: names sorted, strings quoted, numbers exact, defaults left out."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, assert_never

from confide.policy.column import Category, CategoryValue, Column, Date, Identifier, Number, Text, Unbounded, show
from confide.policy.table import SUMMARY_ROWS, Contribution, KeyUnit, Table, Unit

if TYPE_CHECKING:
    from confide.policy.policy import Policy


def canonical_text(policy: "Policy") -> str:
    """The whole policy as YAML."""
    lines = ["confide: 1"]
    if isinstance(policy.source, Mapping):
        files = (f"{quote(name)}: {quote(file)}" for name, file in sorted(policy.source.items()))
        lines.append(f"source: {{{', '.join(files)}}}")
    elif policy.source is not None:
        lines.append(f"source: {quote(policy.source)}")
    delta = f", delta: {show(policy.budget.delta)}" if policy.budget.delta else ""
    accounting = f", accounting: {policy.budget.accounting}" if policy.budget.accounting else ""
    lines.append(f"budget: {{epsilon: {show(policy.budget.epsilon)}{delta}{accounting}}}")
    if policy.analysts:
        caps = (f"{quote(name)}: {show(cap)}" for name, cap in sorted(policy.analysts.items()))
        lines.append(f"analysts: {{{', '.join(caps)}}}")
    if policy.ledger is not None:
        lines.append(f"ledger: {quote(policy.ledger)}")
    if policy.summary_rows != SUMMARY_ROWS:
        lines.append(f"summary_rows: {policy.summary_rows}")
    lines += _facts(policy, sizes=True)
    return "\n".join(lines) + "\n"


def canonical_facts(policy: "Policy") -> str:
    """Only what an answer depends on: the version of the data, the unit and the tables."""
    return "\n".join(_facts(policy, sizes=False)) + "\n"


def _facts(policy: "Policy", sizes: bool) -> Iterator[str]:
    if policy.version is not None:
        yield f"version: {quote(policy.version)}"
    yield f"unit: {quote(str(policy.unit))}"
    yield "tables:"
    for _, table in sorted(policy.tables.items()):
        yield f"  {quote(table.name)}:"
        yield from (f"    {line}" for line in _table(table, policy.unit, sizes))


def _table(table: Table, unit: Unit, sizes: bool) -> Iterator[str]:
    if table.public:
        yield "public: true"
    if table.references:
        targets = (f"{quote(column)}: {quote('.'.join(target))}" for column, target in sorted(table.references.items()))
        yield f"references: {{{', '.join(targets)}}}"
    own = isinstance(unit, KeyUnit) and unit.table == table.name
    if isinstance(unit, KeyUnit) and not table.public and not (own and table.at_most == Contribution()):
        yield f"at_most: {{rows: {table.at_most.rows}, groups: {table.at_most.groups}}}"
    if table.rows == "public":
        yield "rows: public"
    if sizes and table.size is not None:
        yield f"size: {table.size}"
    if table.columns:
        yield "columns:"
        for name, column in sorted(table.columns.items()):
            yield f"  {quote(name)}: {{{_column(column)}{_typical(column) if sizes else ''}}}"


def _column(column: Column) -> str:
    match column:
        case Identifier():
            return "type: id"
        case Text():
            return f"type: text{_nulls(column)}"
        case Category(_, values):
            return f"values: [{', '.join(map(_value, values))}]{_nulls(column)}"
        case Number(_, low, high, grain, bins):
            return f"range: [{show(low)}, {show(high)}], grain: {show(grain)}{_bins(bins)}{_nulls(column)}"
        case Date(_, first, last, bins):
            return f"range: [{first.isoformat()}, {last.isoformat()}]{_bins(bins)}{_nulls(column)}"
        case Unbounded(_, grain):
            return f"range: unbounded, grain: {show(grain)}"
        case _:
            assert_never(column)


def _typical(column: Column) -> str:
    """What no answer depends on, like sizes."""
    if not isinstance(column, Number | Unbounded) or column.typical is None:
        return ""
    low, high = column.typical
    return f", typical: [{show(low)}, {show(high)}]"


def _bins(bins: Fraction | None) -> str:
    return "" if bins is None else f", bins: {show(bins)}"


def _nulls(column: Text | Category | Number | Date) -> str:
    return ", nulls: true" if column.nulls else ""


def _value(value: CategoryValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else quote(value)


def quote(text: str) -> str:
    """A double-quoted YAML string; whatever does not print is escaped, so that the eye and the parser agree."""
    return f'"{"".join(map(_character, text))}"'


def _character(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return character if character.isprintable() else f"\\U{ord(character):08x}"
