"""What is asked of parts: their Gram matrix against the definition, and the strategies that are made for it."""

import numpy as np
import pytest

from confide.workload.asked import AskedTable
from confide.workload.strategy.asked_parts import (
    MOST_OPTIMISED,
    AskedParts,
    asked_of_parts,
    line_for_parts,
    tree_of_parts,
)
from confide.workload.strategy.dense import DenseLine
from confide.workload.strategy.hierarchy import TreeLine
from confide.workload.strategy.line import KINDS, Kind, LineStrategy, NoiseKind, noise_norm, stretches
from confide.workload.strategy.partition import CellGrid, Partition


def spread(partition: Partition, sizes: tuple[int, ...]) -> np.ndarray:
    """Parts on cells, each evenly."""
    made = np.zeros((partition.size, partition.parts))
    for part, (begin, end) in enumerate(zip(partition.edges, partition.edges[1:], strict=False)):
        made[CellGrid(sizes).order[begin:end], part] = 1 / (end - begin)
    return made


def answers(kind: Kind, size: int) -> np.ndarray:
    starts, stops = stretches(kind, size)
    places = np.arange(size)
    return ((places >= starts[:, None]) & (places < stops[:, None])).astype(float)


@pytest.mark.parametrize("kind", KINDS)
def test_the_gram_matrix_of_parts_of_a_line(kind: Kind) -> None:
    partition = Partition((0, 2, 3, 7, 9))
    own = answers(kind, 9) @ spread(partition, (9,))
    found = asked_of_parts(partition, (9,), (AskedTable((0,), (kind,)),)).matrix
    assert found == pytest.approx(own.T @ own / len(own))


def test_the_gram_matrix_of_boxes_and_of_several_tables() -> None:
    sizes, partition = (4, 8), Partition((0, 8, 16, 18, 20, 24, 32))
    tables = (AskedTable((0, 1), ("range", "prefix")), AskedTable((1,), ("each",)))
    total = np.zeros((6, 6))
    for one, other in ((answers("range", 4), answers("prefix", 8)), (answers("total", 4), answers("each", 8))):
        own = np.kron(one, other) @ spread(partition, sizes)
        total += own.T @ own / len(own)
    assert asked_of_parts(partition, sizes, tables).matrix == pytest.approx(total)


def error(line: LineStrategy, asked: AskedParts, noise: NoiseKind) -> float:
    own = line.coefficients(np.eye(asked.size))
    return float(((own @ asked.matrix) * own).sum()) * noise_norm([line.norms], noise)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_wide_parts_count_for_the_answers_that_end_in_them(noise: NoiseKind) -> None:
    """Where few parts hold nearly all answers, a tree that counts all parts alike has a tenth more error and above."""
    partition = Partition((*range(20), 500, *range(1_000, 1_020), 2_048))
    tables = (AskedTable((0,), ("prefix",)),)
    asked = asked_of_parts(partition, (2_048,), tables)
    line = line_for_parts(partition, (2_048,), tables, noise)
    assert isinstance(line, DenseLine)
    assert error(line, asked, noise) < 0.83 * error(tree_of_parts(asked.size, noise), asked, noise)
    counts = np.arange(asked.size)
    assert line.estimate(line.measure(counts).astype(float)) == pytest.approx(counts, abs=1e-6)


def test_very_many_parts_and_one_have_a_tree() -> None:
    for parts in (1, MOST_OPTIMISED + 1):
        partition = Partition((*range(parts), 2_048))
        assert isinstance(line_for_parts(partition, (2_048,), (AskedTable((0,), ("prefix",)),), "gaussian"), TreeLine)


def test_a_sum_that_nobody_asks_for_is_known_too() -> None:
    """Prefixes of two columns apart say nothing of the single boxes: their Gram matrix has no inverse."""
    partition = Partition(tuple(range(17)))
    tables = (AskedTable((0,), ("prefix",)), AskedTable((1,), ("prefix",)))
    asked = asked_of_parts(partition, (4, 4), tables)
    assert np.linalg.matrix_rank(asked.matrix) < 16
    for noise in ("laplace", "gaussian"):
        line = line_for_parts(partition, (4, 4), tables, noise)  # type: ignore[arg-type]
        counts = np.arange(16)
        assert line.estimate(line.measure(counts).astype(float)) == pytest.approx(counts, abs=1e-4)
