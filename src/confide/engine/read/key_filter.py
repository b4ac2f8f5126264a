"""Keys of undeclared domain, of which there may be any number: read some at a time, and forgotten unless chosen."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from confide.engine.protocol import Exact, Keep
from confide.engine.read.arrays import in_order
from confide.query.tree import Summary, UnknownKey

MOST_LISTED: Final = 10_000
"""Up to so many chosen values of a key are named in the statements that follow."""


def chosen(exact: Exact, keep: Keep) -> Exact:
    """The groups that are kept of some."""
    assert exact.keys is not None
    empty = np.empty(0, dtype=np.int64)
    places, noised = keep(exact.cells) if exact.keys else (empty, empty)
    return Exact(
        tuple(cell[places] for cell in exact.cells), tuple(exact.keys[place] for place in places), noised=noised
    )


def merged(parts: Sequence[Exact], summary: Summary) -> Exact:
    """All of them, in an order that depends on the keys alone: not on how many others were read between them."""
    keys = [key for part in parts for key in part.keys or ()]
    order = sorted(range(len(keys)), key=lambda place: in_order(keys[place]))
    empty = np.empty(0, dtype=np.int64)
    cells = tuple(
        np.concatenate([part.cells[cell] for part in parts])[order] if keys else empty
        for cell in range(len(summary.cells))
    )
    noised = np.concatenate([part.noised for part in parts if part.noised is not None])[order] if keys else empty
    return Exact(cells, tuple(keys[place] for place in order), noised=noised)


def listed(exact: Exact, summary: Summary) -> Mapping[int, Sequence[str]]:
    """What each key of undeclared domain may be from now on, where that is no long list."""
    found: dict[int, Sequence[str]] = {}
    for place, key in enumerate(summary.keys):
        if isinstance(key, UnknownKey):
            values = {own[place] for own in exact.keys or ()}
            texts = sorted(value for value in values if isinstance(value, str))
            if len(texts) == len(values) <= MOST_LISTED:
                found[place] = texts
    return found
