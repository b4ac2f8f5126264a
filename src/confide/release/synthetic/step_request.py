"""One paid step of a synthesis, as the ledger keeps it: whole numbers, and with the first of them a seed."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from confide.mechanism import Randomness
from confide.privacy.budget import Budget, Currency
from confide.privacy.charge import Charge
from confide.privacy.identity import written
from confide.release.holdings import Holdings

Values = Callable[[Charge], NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class StepRequest:
    """One step of a call: what it pays and what it releases. Its identity is the call's, and its number."""

    text: str
    number: int
    what: str
    loss: Currency
    values: Values
    first: bool

    @property
    def purpose(self) -> str:
        return f"synthesize, step {self.number}: {self.what}"

    def identity(self) -> str:
        return self.text

    def price(self, budget: Budget) -> "StepRequest":
        return self

    @property
    def widths(self) -> tuple[float, ...]:
        return ()

    def measure(self, holdings: Holdings, charge: Charge) -> bytes:
        values = self.values(charge)
        return _packed(np.concatenate([_drawn(holdings.randomness), values]) if self.first else values)

    def decode(self, stored: bytes) -> NDArray[np.int64]:
        return _unpacked(stored)


def step_identity(call: str, step: int) -> str:
    """Of the step of a call, which is named by what was asked in it."""
    return written("synthesis step", call, step)


def _drawn(source: Randomness) -> NDArray[np.int64]:
    """A seed of 63 bits."""
    return (source.uint64(1) >> np.uint64(1)).astype(np.int64)


def _packed(values: NDArray[np.int64]) -> bytes:
    target = BytesIO()
    np.save(target, values, allow_pickle=False)
    return zlib.compress(target.getvalue(), 6)


def _unpacked(stored: bytes) -> NDArray[np.int64]:
    values: NDArray[np.int64] = np.load(BytesIO(zlib.decompress(stored)), allow_pickle=False)
    return values
