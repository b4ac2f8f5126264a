"""How the records of synthetic data come to their values, column by column, in words; and which columns have none."""

from collections.abc import Container

from confide.policy import Category, Date, Identifier, Number, Table, Text
from confide.policy.column import show
from confide.workload import Binned, Domain
from confide.workload.domain import MOST_PLACES


def drawn_words(table: Table, domain: Domain, measured: Container[int]) -> dict[str, str]:
    """For each column of the records, in their order; `measured` are the places of those whose values were counted."""
    words: dict[str, str] = {}
    for name, column in table.columns.items():
        if isinstance(column, Identifier):
            words[name] = "numbers from 1"
        elif name in domain.names:
            place = domain.place_of(name)
            words[name] = _words(domain.attributes[place], place in measured)
    return words


def _words(attribute: object, measured: bool) -> str:
    if not isinstance(attribute, Binned):
        return "listed values, by the model"
    if attribute.width == 1:
        return "value by value, by the model"
    width = f"bins of {show(attribute.width * attribute.column.grain)}"
    days = " days" if isinstance(attribute.column, Date) else ""
    how = "the values inside by their own noisy counts" if measured else "all values inside as likely"
    return f"{width}{days}, by the model; {how}"


def left_out(table: Table, domain: Domain) -> dict[str, str]:
    """The columns of the table that no record has, and why."""
    found: dict[str, str] = {}
    for name, column in table.columns.items():
        if name in domain.names or isinstance(column, Identifier):
            continue
        match column:
            case Category():
                found[name] = "the workload does not speak of it"
            case Number() | Date():
                many = column.steps > MOST_PLACES and column.bins is None
                found[name] = f"{column.steps:,} values; give bins" if many else "the workload does not speak of it"
            case Text():
                found[name] = "texts"
            case _:
                found[name] = "no declared range"
    return found


def left_out_line(left: dict[str, str]) -> list[str]:
    return [f"left out: {', '.join(f'{name} ({why})' for name, why in left.items())}"] if left else []


def drawn_line(words: dict[str, str]) -> list[str]:
    """Of columns in bins alone: the others are as one would expect."""
    binned = [f"{name} ({how})" for name, how in words.items() if how.startswith("bins of")]
    return [f"in bins: {', '.join(binned)}"] if binned else []
