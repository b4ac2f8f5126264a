"""Groups by number: the place of a key's value in its domain, and of a group in the product of the domains."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Final, assert_never

import numpy as np
from numpy.typing import NDArray

from confide.engine.protocol import KeyValue
from confide.engine.result import Columns
from confide.engine.sql.syntax import case, cast, constant, integer
from confide.query.grouping import key_size
from confide.query.tree import BinnedKey, DeclaredKey, Key, UnknownKey

MOST_PLACED: Final = 256
"""Up to so many values a statement tells their places; a longer list is looked up here."""


def placed(key: Key) -> bool:
    """Whether a statement tells the places of a key's values, in place of them."""
    return len(key.values) <= MOST_PLACED if isinstance(key, DeclaredKey) else isinstance(key, BinnedKey) and key.nulls


def place_sql(key: Key, alias: str) -> str:
    """The place of a key's value in its domain, as a 64-bit integer; NULL outside of it."""
    if isinstance(key, BinnedKey) and key.nulls:
        return f"COALESCE({cast(alias, 'BIGINT')}, {integer(key.count)})"
    if not isinstance(key, DeclaredKey):
        return cast(alias, "BIGINT")
    places = enumerate(key.values)
    return cast(
        case((f"{alias} IS NULL" if v is None else f"{alias} = {constant(v)}", f"{p}") for p, v in places), "BIGINT"
    )


def number_sql(keys: Sequence[Key], aliases: Sequence[str]) -> str:
    """The number of a group, as `groups_of` counts them, of keys whose values are all known; NULL outside of them."""
    number = "0"
    for key, alias in zip(keys, aliases, strict=True):
        number = f"({number}) * {key_size(key) or 0} + ({place_sql(key, alias)})"
    return cast(number, "BIGINT")


def places(key: Key) -> Mapping[KeyValue, int] | None:
    """From a key's value to its place; None if nobody declared the values."""
    match key:
        case DeclaredKey(values=values):
            return {value: place for place, value in enumerate(values)}
        case BinnedKey(count=count):
            found: dict[KeyValue, int] = {place: place for place in range(count)}
            return found | {None: count} if key.nulls else found
        case UnknownKey():
            return None
        case _:
            assert_never(key)


def groups_of(
    columns: Columns, keys: Sequence[Key], known: Sequence[tuple[KeyValue, ...]] | None
) -> tuple[NDArray[np.int64], int]:
    """The number of each row's group, and how many groups there are; -1 for a group that is not among the known."""
    named = [columns[f"k{place}"] for place in range(len(keys))]
    if known is None:
        group = np.zeros(len(columns["n"]), dtype=np.int64)
        for key, column in zip(keys, named, strict=True):
            group = group * (key_size(key) or 0) + _codes(key, column)
        return group, prod(key_size(key) or 0 for key in keys)
    listed = [
        column.tolist() if places(key) is None else _codes(key, column).tolist()
        for key, column in zip(keys, named, strict=True)
    ]
    numbers = {key: place for place, key in enumerate(known)}
    found = (numbers.get(key, -1) for key in zip(*listed, strict=True))
    return np.fromiter(found, dtype=np.int64, count=len(columns["n"])), len(known)


def _codes(key: Key, column: Any) -> NDArray[np.int64]:
    if placed(key) or isinstance(key, BinnedKey):
        return np.asarray(column).astype(np.int64, copy=False)
    known = places(key)
    assert known is not None
    return np.fromiter((known[value] for value in column.tolist()), dtype=np.int64, count=len(column))
