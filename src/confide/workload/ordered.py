"""Stretches of ordered columns as a part of a workload."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from confide.errors import ParameterError
from confide.privacy.amount import shown_value

StretchKind = Literal["range", "prefix"]


@dataclass(frozen=True, slots=True)
class Ordered:
    """All stretches of these columns, or those from their lower ends; of several columns all boxes of such stretches.

    Each is counted for every choice of a place in the columns `by`. `bins` are widths, in the units of each column.
    """

    columns: tuple[str, ...]
    kind: StretchKind
    by: tuple[str, ...] = ()
    bins: tuple[tuple[str, object], ...] = ()

    def __post_init__(self) -> None:
        named = (*self.columns, *self.by)
        if not self.columns:
            raise ParameterError(f"{self.kind} counts name at least one column")
        for name in named:
            if not isinstance(name, str):
                raise ParameterError(f"{shown_value(name)} is not the name of a column")
        if len(set(named)) < len(named):
            raise ParameterError(f"a column is named twice: {', '.join(named)}")


def widths_of(columns: tuple[str, ...], bins: object) -> tuple[tuple[str, object], ...]:
    """One width for the only column, or widths by name."""
    if bins is None:
        return ()
    if isinstance(bins, Mapping):
        return tuple(sorted(bins.items()))
    if len(columns) > 1:
        raise ParameterError(
            f"bins={shown_value(bins)} is one width for {len(columns)} columns; write bins={{{columns[0]!r}: ...}}"
        )
    return ((columns[0], bins),)


def names_of(by: object) -> tuple[str, ...]:
    if by is None:
        return ()
    if isinstance(by, str):
        return (by,)
    if not isinstance(by, list | tuple):
        raise ParameterError(f"by={shown_value(by)} is not a column or a list of columns, such as by=['sex']")
    return tuple(by)
