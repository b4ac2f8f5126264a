"""Chance that protects nobody: for what is made of public or released facts alone.

Records drawn from a released table, where a fit begins, columns drawn for a workload, the country of the demo. Noise is
never drawn here: its bits come from `mechanism.randomness`, and the contracts between modules keep the two apart.
"""

import os

import numpy as np


def public_generator(seed: int) -> np.random.Generator:
    """The same numbers for the same seed, which anybody may know."""
    return np.random.default_rng(seed)


def fresh_public_generator() -> np.random.Generator:
    """Other numbers each time, in every process: its seed is the kernel's."""
    return np.random.default_rng(int.from_bytes(os.urandom(16)))
