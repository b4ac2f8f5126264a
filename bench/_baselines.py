"""What a synthesizer has to beat: answering 0 to everything, and noise on every count by itself."""

from collections.abc import Iterator

import numpy as np

from confide.mechanism import Randomness, gaussian, laplace
from confide.privacy.loss import ZCDP, PureDP
from confide.workload import BoundWorkload, CellRun, Tables, workload_blocks


def zero_answers(workload: BoundWorkload, exact: Tables) -> Iterator[tuple[CellRun, CellRun]]:
    """0 for every count, which is right for most of a large sparse workload; beside each block, the exact one."""
    for block in workload_blocks(exact, workload):
        yield CellRun(block.threshold, block.start, np.zeros_like(block.answers)), block


def noisy_answers(
    workload: BoundWorkload, exact: Tables, loss: PureDP | ZCDP, rows: int, randomness: Randomness
) -> Iterator[tuple[CellRun, CellRun]]:
    """Releases every count of a workload with noise of its own, the loss divided evenly among all of them.

    Neighbours: those of which one unit changes each count by at most `rows`. Loss: `loss`, by composition over the
    m counts: ρ/m each of discrete Gaussian noise, or ε/m each of discrete Laplace noise.
    """
    count = workload.size
    if isinstance(loss, PureDP):
        mechanism = laplace(rows, loss.epsilon / count)
    else:
        mechanism = gaussian(rows**2, loss.rho / count)
    for block in workload_blocks(exact, workload):
        noisy = mechanism.measure(block.answers.astype(np.int64), randomness).values
        yield CellRun(block.threshold, block.start, noisy), block
