"""Where random bits come from: the kernel in every release, a seeded stream in tests.

The two are separate classes on purpose. No signature of a mechanism has a seed; whoever holds a `Randomness` can ask it
whether it is the kernel's, and a session that keeps a durable ledger refuses any other.
"""

import hashlib
import os
from typing import Final, Protocol, final

import numpy as np
from numpy.typing import NDArray


class Randomness(Protocol):
    """A source of independent, uniform bits."""

    @property
    def kernel(self) -> bool:
        """Whether the bits come from the operating system and so may protect people."""

    def bytes(self, count: int) -> bytes:
        """`count` fresh bytes."""

    def uint64(self, count: int) -> NDArray[np.uint64]:
        """`count` fresh words of 64 bits."""


@final
class KernelRandomness:
    """The kernel's generator, asked anew each time.

    Nothing is kept between calls, so a forked process, a thread or a restored snapshot never repeats a stream.
    """

    __slots__ = ()
    kernel: Final = True

    def bytes(self, count: int) -> bytes:
        return os.urandom(count)

    def uint64(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(os.urandom(8 * count), dtype="<u8").astype(np.uint64, copy=False)


@final
class TestRandomness:
    """TEST NOISE, which protects nobody: the same bits for the same seed.

    Call number i returns a prefix of SHAKE-128(seed, i), so two sources with one seed agree call by call.
    """

    __slots__ = ("_calls", "_seed")
    __test__ = False  # its name would make pytest collect it
    kernel: Final = False

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._calls = 0

    def bytes(self, count: int) -> bytes:
        self._calls += 1
        return hashlib.shake_128(f"confide test noise {self._seed} {self._calls}".encode()).digest(count)

    def uint64(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(self.bytes(8 * count), dtype="<u8").astype(np.uint64, copy=False)
