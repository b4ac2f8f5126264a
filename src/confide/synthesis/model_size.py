"""How large a model of cliques may be: in megabytes, and refused where it would not fit, before anything is paid."""

import math
from typing import Final

from confide.errors import ParameterError
from confide.host.machine_memory import machine_bytes
from confide.privacy.amount import shown_value, whole_number
from confide.synthesis.junction import BYTES_OF_A_CELL
from confide.workload import BoundWorkload

MEGABYTES: Final = 80
TABLES_AT_ONCE: Final = 6
"""So many arrays of a model's size are there at once while it is fitted."""
_KEPT: Final = 4
"""Bytes of a cell, as a model is kept."""


def megabytes_from(value: object, workload: BoundWorkload) -> int:
    """What a caller sets, or as much as is usual; the whole table of all columns may need less."""
    megabytes = whole_from("megabytes", value, MEGABYTES, 1, 100_000)
    needed, there = TABLES_AT_ONCE * model_bytes(megabytes, workload), machine_bytes()
    if there is not None and needed > there:
        raise ParameterError(
            f"a model of {megabytes:,} MB is fitted in {needed / 2**20:,.0f} MiB, and this machine has "
            f"{there / 2**20:,.0f} MiB of memory; write a smaller megabytes, or use wider bins"
        )
    return megabytes


def model_bytes(megabytes: int, workload: BoundWorkload, least_cells: int = 0) -> int:
    """Of a model in doubles, at most."""
    whole = BYTES_OF_A_CELL * math.prod(workload.domain.sizes)
    return min(max(megabytes * 2**20, BYTES_OF_A_CELL * least_cells), whole)


def kept_bytes(megabytes: int, workload: BoundWorkload, least_cells: int = 0) -> int:
    """The same as it is kept."""
    return model_bytes(megabytes, workload, least_cells) * _KEPT // BYTES_OF_A_CELL


def whole_from(name: str, value: object, default: int, least: int, most: int) -> int:
    """What a caller sets, a whole number."""
    number = default if value is None else whole_number(value)
    if number is None or not least <= number <= most:
        raise ParameterError(f"{name} = {shown_value(value)} must be a whole number from {least:,} to {most:,}")
    return number
