"""A source of randomness that first gives what a test prescribes."""

from collections import deque

import numpy as np
from numpy.typing import NDArray

from confide.mechanism import TestRandomness


class Scripted:
    """Each call takes the next prescribed bytes, which must have the asked length; after the last, seeded noise."""

    kernel = False

    def __init__(self, *pieces: bytes, seed: int = 0) -> None:
        self._pieces = deque(pieces)
        self._after = TestRandomness(seed)
        self.calls_after = 0

    def bytes(self, count: int) -> bytes:
        if self._pieces:
            piece = self._pieces.popleft()
            assert len(piece) == count, f"prescribed {len(piece)} bytes, asked for {count}"
            return piece
        self.calls_after += 1
        return self._after.bytes(count)

    def uint64(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(self.bytes(8 * count), dtype="<u8")

    @property
    def used_up(self) -> bool:
        return not self._pieces
