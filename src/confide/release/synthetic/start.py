"""Rows to begin with: a public table of the policy, an earlier release, or a frame. Nothing is charged for them.

They are looked at as the policy reads them. Files are opened by whoever keeps them, as for a verdict: a path would tell
who asks which files there are.
"""

import os
from collections.abc import Callable
from fractions import Fraction
from hashlib import sha256
from math import floor
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import ParameterError
from confide.policy import Column, Date, Number
from confide.privacy.amount import shown_value
from confide.privacy.identity import sealed_name
from confide.privacy.public_randomness import public_generator
from confide.release.frame_check import checked
from confide.release.holdings import Holdings
from confide.synthesis.reweight import MOST_ROWS, StartingRows
from confide.workload import Binned, Domain
from confide.workload.domain import Attribute
from confide.workload.places import known_places

MOST_DIFFERENT: Final = 2**20
"""Of a public table in the policy at most so many different rows are looked at."""

Places = NDArray[np.int64]


def starting_rows(holdings: Holdings, start: Any, domain: Domain) -> StartingRows:
    """What a caller begins with, as places of a domain."""
    if isinstance(start, bytes | os.PathLike) or (isinstance(start, str) and not _is_public(holdings, start)):
        public = [name for name, table in holdings.policy.tables.items() if table.public]
        known = f"public in the policy are {', '.join(public)}" if public else "the policy has none"
        raise ParameterError(
            f"start={shown_value(start)} is not the name of a public table ({known}), and files are opened by whoever "
            "keeps them: start=confide.load_synthetic(path), or a frame"
        )
    if isinstance(start, str):
        places, weights = _of_public_table(holdings, start, domain)
        words = f"the public table {start}"
    else:
        places, words = _of_frame(holdings, start, domain)
        weights = np.ones(len(places))
    if not len(places) or np.all(places < 0):
        raise ParameterError(f"start has no row with a declared value in {', '.join(domain.names[:12])}")
    content = places.astype("<i8").tobytes() + weights.astype("<f8").tobytes()
    name = sealed_name(holdings.ledger.secret, "start", sha256(content).hexdigest())
    return StartingRows(name, f"{len(places):,} rows of {words}", places, weights)


def _is_public(holdings: Holdings, name: str) -> bool:
    return name in holdings.policy.tables and holdings.policy.tables[name].public


def _of_frame(holdings: Holdings, start: Any, domain: Domain) -> tuple[Places, str]:
    from confide.engine.duckdb.frame import to_arrow  # noqa: PLC0415  pyarrow is heavy

    words = "a frame"
    if getattr(start, "cost", None) is not None and hasattr(start, "model"):
        words = "an earlier release"
        if start.test_noise and holdings.randomness.kernel:
            raise ParameterError("start was made with test noise, which protects nobody; begin with a real release")
    if hasattr(start, "to_arrow") and not hasattr(start, "__arrow_c_stream__"):
        start = start.to_arrow()
    frame = to_arrow(start, "start")
    columns = {own.name: own.column for own in domain.attributes}
    if not columns.keys() & set(frame.column_names):
        raise ParameterError(f"start has none of the columns {', '.join(columns)}")
    frame = checked(frame.select([name for name in columns if name in frame.column_names]), columns, None, "start")
    if frame.num_rows > MOST_ROWS:
        some = public_generator(frame.num_rows).choice(frame.num_rows, MOST_ROWS, replace=False)
        frame = frame.take(np.sort(some))
    return known_places(frame, domain), words


def _of_public_table(holdings: Holdings, name: str, domain: Domain) -> tuple[Places, NDArray[np.float64]]:
    """The different rows of a public table, weighted by how many there are of each."""
    described = holdings.engine.columns(name)
    common = tuple(own.name for own in domain.attributes if own.name in described)
    if not common:
        raise ParameterError(f"the public table {name} has none of the columns {', '.join(domain.names)}")
    found = holdings.engine.counted(name, common, MOST_DIFFERENT)
    if found is None:
        raise ParameterError(
            f"the public table {name} has more than {MOST_DIFFERENT:,} different rows in these columns; begin with a "
            "frame of some of them"
        )
    counts = np.array([row[-1] for row in found], dtype=np.float64)
    places = np.full((len(found), len(domain)), -1, dtype=np.int64)
    for at, column in enumerate(common):
        place = domain.place_of(column)
        one = _placing(described[column], domain.attributes[place])
        places[:, place] = [one(row[at]) for row in found]
    if len(found) > MOST_ROWS:
        some = public_generator(len(found)).choice(len(found), MOST_ROWS, replace=False, p=counts / counts.sum())
        return places[np.sort(some)], np.ones(MOST_ROWS)
    return places, counts


def _placing(described: Column, own: Attribute) -> Callable[[Any], int]:
    """From a value, as the engine tells it of a public table, to a place of the private column; −1 if it has none.

    A column of numbers or days is told in steps of its own grain.
    """
    if isinstance(own, Binned):
        column = own.column
        if isinstance(column, Date) != isinstance(described, Date) or not isinstance(described, Number | Date):
            raise ParameterError(f"start has {own.name} as another kind of column than the private table")

        def ranged(index: Any) -> int:
            if index is None:
                return -1
            exact = floor(index * described.grain / column.grain + Fraction(1, 2))
            return int((min(max(exact, column.low_index), column.high_index) - own.first) // own.width)

        return ranged
    known: dict[Any, int] = {value: place for place, value in enumerate(own.values)}
    if isinstance(described, Number):
        return lambda index: -1 if index is None else known.get(_plain(index * described.grain), -1)
    return lambda value: known.get(value, -1)


def _plain(exact: Fraction) -> int | float:
    return int(exact) if exact.denominator == 1 else float(exact)
