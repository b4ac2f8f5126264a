"""The columns of a table as finite lists of places, from the policy alone.

A place is a declared value, or a bin of a ranged column; what the policy calls NULL has a place where it says
`nulls: true`. Rows in which a column holds nothing of its list are outside of every table that is made from it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from functools import cached_property
from math import floor
from typing import Any, Final

from confide.errors import ParameterError
from confide.policy import Category, Column, Date, Number, Table
from confide.policy.column import EPOCH, show
from confide.policy.findings import nearest
from confide.privacy.amount import exact_number, shown_value

MOST_PLACES: Final = 4_096
"""A column with more places than this is binned, or left out."""

Value = str | int | float | bool | date | None


@dataclass(frozen=True, slots=True)
class Listed:
    """A column of declared values."""

    column: Category

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def values(self) -> tuple[str | int | bool | None, ...]:
        return (*self.column.values, None) if self.column.nulls else self.column.values

    @property
    def size(self) -> int:
        return len(self.values)

    def label(self, place: int) -> str:
        return str(self.values[place])


@dataclass(frozen=True, slots=True)
class Binned:
    """A ranged column in bins of `width` steps of its grain; the first begins at index `first`."""

    column: Number | Date
    first: int
    width: int

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def size(self) -> int:
        return (self.column.high_index - self.first) // self.width + 1

    def ends(self, place: int) -> tuple[int, int]:
        """The indices of the first and the last value of a bin that lie in the column's range."""
        low = self.first + place * self.width
        return max(low, self.column.low_index), min(low + self.width - 1, self.column.high_index)

    def value(self, index: int) -> int | float | date:
        """An index as it is written in the data."""
        if isinstance(self.column, Date):
            return EPOCH + timedelta(days=index)
        exact = index * self.column.grain
        return int(exact) if self.column.integer else float(exact)

    def label(self, place: int) -> str:
        low, high = self.ends(place)
        return str(self.value(low)) if low == high else f"{self.value(low)} to {self.value(high)}"


Attribute = Listed | Binned


@dataclass(frozen=True)
class Domain:
    """The columns of one table that a workload may speak of."""

    table: str
    attributes: tuple[Attribute, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.attributes)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(attribute.size for attribute in self.attributes)

    def __len__(self) -> int:
        return len(self.attributes)

    def place_of(self, name: str) -> int:
        """Where a column stands, by its name."""
        if name not in self.names:
            raise ParameterError(
                f"there is no column {name!r} with declared values in {self.table}; {_instead(name, self.names)}"
            )
        return self.names.index(name)

    def kept(self, columns: Sequence[str]) -> "Domain":
        """Only these columns, in the order of the table."""
        wanted = {self.place_of(name) for name in columns}
        return Domain(self.table, tuple(self.attributes[place] for place in sorted(wanted)))


def domain_of(
    table: Table,
    columns: Sequence[str] | None = None,
    bins: Mapping[str, object] | None = None,
    most: int = MOST_PLACES,
) -> Domain:
    """The domain of a table's columns: those named, or all that have declared values, each of at most `most` places.

    `bins` gives widths of bins, in the units of each column; otherwise the policy's `bins` hold, and ranged columns of
    few values are taken value by value.
    """
    if bins is not None and not isinstance(bins, Mapping):
        raise ParameterError(f"bins={shown_value(bins)} is not by column; write for example bins={{'age': 10}}")
    if columns is not None and (isinstance(columns, str) or not isinstance(columns, Sequence)):
        raise ParameterError(f"columns={shown_value(columns)} is not a list of columns, such as ['age', 'sex']")
    widths = dict(bins or {})
    wanted = list(table.columns) if columns is None else list(columns)
    for name in (*wanted, *widths):
        if not isinstance(name, str) or name not in table.columns:
            said = name if isinstance(name, str) else shown_value(name)
            raise ParameterError(f"there is no column {said!r} in {table.name}; {_instead(said, table.columns)}")
    if len(set(wanted)) < len(wanted):
        raise ParameterError(f"columns names one twice: {', '.join(wanted)}")
    unused = [name for name in widths if name not in wanted]
    if unused:
        raise ParameterError(f"bins are given for {unused[0]}, which is not among the columns")
    found = list(_attributes(table, wanted, columns is not None, widths, most))
    if not found:
        raise ParameterError(
            f"no column of {table.name} has declared values; declare `values`, or a `range` with `bins`, in the policy"
        )
    return Domain(table.name, tuple(found))


def _attributes(
    table: Table, wanted: Sequence[str], named: bool, widths: Mapping[str, object], most: int
) -> Iterator[Attribute]:
    for name in wanted:
        column = table.columns[name]
        if isinstance(column, Category):
            if name in widths:
                raise ParameterError(f"bins are given for {name}, whose values are listed; bins are for ranged columns")
            yield Listed(column)
        elif isinstance(column, Number | Date):
            attribute = _binned(column, widths.get(name), most)
            if attribute is None and (named or name in widths):
                raise ParameterError(
                    f"{name} has {column.steps:,} possible values, at most {most:,} are taken one by one; "
                    f"give the width of its bins: bins={{{name!r}: {_advised(column)}}}, or `bins` in the policy"
                )
            if attribute is not None:
                yield attribute
        elif named:
            raise ParameterError(
                f"{name} has no declared values; declare `values` or a `range` for it in the policy, or leave it out"
            )


def _binned(column: Number | Date, width: object, most: int) -> Binned | None:
    """None if the column has too many places."""
    chosen = column.bins if width is None else _width(column, width)
    steps = 1 if chosen is None else int(chosen / column.grain)
    first = column.low_index if steps == 1 else floor(Fraction(column.low_index, steps)) * steps
    attribute = Binned(column, first, steps)
    return attribute if attribute.size <= most else None


def _width(column: Column, width: object) -> Fraction:
    assert isinstance(column, Number | Date)
    try:
        exact = exact_number(width, "bins")
    except ParameterError:
        exact = Fraction(0)
    if exact <= 0 or (exact / column.grain).denominator != 1:
        raise ParameterError(
            f"bins[{column.name!r}] = {shown_value(width)} is not a positive multiple of the grain {show(column.grain)}"
        )
    return exact


def _instead(name: str, known: Iterable[str]) -> str:
    names = list(known)
    close = nearest(name, names)
    return f"did you mean {close}?" if close else f"there are {', '.join(names[:12])}{', ...' * (len(names) > 12)}"


def _advised(column: Number | Date) -> Any:
    """A round width that makes at most a hundred bins."""
    width = 1
    while column.steps > 100 * width:
        width *= 10
    exact = width * column.grain
    return int(exact) if exact.denominator == 1 else float(exact)
