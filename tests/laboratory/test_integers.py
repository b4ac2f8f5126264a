"""Every place where integers are added up in numpy after a read, and why it cannot wrap.

numpy wraps in silence, so a sum that is new, or moved, fails here until its bound is stated. `rows`: counts of rows,
which are at most 2^44 together (`limits.MOST_ROWS`). `doubles`: what is added up are doubles, whose error the module
states. `places`: numbers of places in an array.
"""

import ast
from pathlib import Path

import pytest

import confide

SOURCES = Path(confide.__file__).parent
ADDING = {"sum", "cumsum", "prod", "cumprod", "dot", "matmul", "einsum", "tensordot", "bincount", "reduceat"}
BOUNDS = {
    "engine/read/network.py": (9, "degrees and paths of two edges: fewer than 2^31 edges, so at most 2^62"),
    "engine/read/multipass.py": (3, "rows"),
    "engine/read/summary_reader.py": (
        5,
        "rows; a weighted sum is in 64 bits only where largest × rows is small",
    ),
    "engine/read/occupied_rows.py": (1, "rows"),
    "engine/read/clique.py": (3, "places; triangles among fewer than 2^16 nodes, below 2^48"),
    "engine/read/rectangle.py": (10, "places; four times the rectangles, below 2^63; paths of three edges, below 2^33"),
    "engine/read/triangle.py": (3, "places; and a hash, which may wrap and is compared after"),
    "mechanism/graph/bounded_degree.py": (4, "degrees up to a level of at most 2^20"),
    "mechanism/join/curved.py": (6, "doubles, and how many sets"),
    "mechanism/join/set_block.py": (9, "doubles"),
    "mechanism/selection/exponential.py": (2, "doubles; proposals sum to about 2^50, one more for each segment"),
    "mechanism/graph/ladder.py": (5, "doubles, and Python's integers"),
    "mechanism/noise/law.py": (1, "doubles"),
    "mechanism/noise/limbs.py": (4, "parts of 31 bits"),
    "mechanism/interval/linear.py": (5, "doubles"),
    "mechanism/join/packing.py": (10, "doubles, and how many sets; integers are added by `limbs`"),
    "mechanism/quantile/pair.py": (1, "sizes of parts of a domain of fewer than 2^63 values"),
    "mechanism/quantile/smooth_noise.py": (4, "places and doubles"),
    "mechanism/interval/ratio.py": (1, "doubles"),
    "mechanism/join/residual.py": (3, "doubles, and places"),
    "mechanism/selection/even_parts.py": (2, "rows; times lengths of at most 4,096, so below 2^58"),
    "mechanism/selection/net.py": (2, "rows; and at most six rows of a table of the net"),
    "mechanism/selection/privtree.py": (1, "rows"),
    "mechanism/selection/sparse_vector.py": (6, "lengths of a stream over fewer than 2^63 values, and places"),
    "mechanism/tally.py": (11, "rows; a weighted sum is in 64 bits only where largest × rows is below 2^62"),
    "mechanism/join/truncation.py": (1, "Python's integers"),
    "trust/clip.py": (3, "doubles; rows of public data"),
    "trust/median.py": (3, "doubles"),
    "trust/plug_in.py": (1, "doubles"),
    "trust/seen.py": (5, "rows, and Python's integers"),
    "trust/sparse_decider.py": (6, "doubles, and Python's integers"),
    "synthesis/marginal_rounds.py": (1, "doubles: released counts"),
    "synthesis/reweight.py": (2, "doubles: a fit to released counts"),
    "synthesis/weighted_rows.py": (9, "doubles: shares of public rows; and places"),
    "release/synthetic/start.py": (1, "public rows, fewer than 2^44"),
    "synthesis/inside.py": (7, "doubles, and rows"),
    "synthesis/markov.py": (7, "doubles, and places"),
    "synthesis/markov_fit.py": (8, "doubles, and places of 2^22 entries at most"),
    "synthesis/listed_tables.py": (1, "at most six rows"),
    "synthesis/information.py": (5, "rows below 2^41, each of at most 2^22 steps; and a table of 2^22 such numbers"),
    "synthesis/privbayes.py": (2, "doubles: released counts"),
    "synthesis/mst.py": (5, "doubles"),
    "synthesis/scores.py": (1, "2^24 distances at most, each capped so that their sum fits"),
    "release/synthetic/records.py": (2, "numbers of records up to 10^9"),
    "synthesis/merging.py": (4, "doubles"),
    "synthesis/goal.py": (1, "sizes of columns: at most 4,096 places each"),
    "synthesis/curator.py": (4, "doubles: released counts"),
    "synthesis/projection.py": (13, "doubles: a fit to released counts"),
    "synthesis/relaxed.py": (3, "doubles, and numbers of records up to 10^9"),
    "synthesis/contrasts.py": (3, "doubles: released counts"),
    "synthesis/descent.py": (9, "doubles: a fit to released counts"),
    "synthesis/entropy.py": (4, "doubles: a fit to released counts"),
    "synthesis/full.py": (2, "doubles, and numbers of records up to 10^9"),
    "release/synthetic/design_step.py": (2, "places"),
    "synthesis/selection.py": (3, "numbers of queries, at most 10^11, and places"),
    "workload/counting.py": (1, "doubles"),
    "workload/future.py": (1, "doubles"),
    "workload/strategy/asked_parts.py": (3, "doubles; sums over the cells of a column, below 2^62 (`_corner`)"),
    "workload/strategy/centred.py": (2, "entries of 13 bits, at most 4,096 in a row"),
    "workload/strategy/dense.py": (15, "doubles; K·x is in 64 bits where `ProductBlock.measure` says that it fits"),
    "workload/strategy/design.py": (2, "doubles"),
    "workload/strategy/helmert.py": (3, "rows; times at most the number of cells, which `ProductBlock.measure` bounds"),
    "workload/strategy/hierarchy.py": (14, "doubles; rows, whose multiples `ProductBlock.measure` bounds"),
    "workload/strategy/hierarchy_spread.py": (1, "doubles"),
    "workload/strategy/line.py": (9, "doubles"),
    "workload/strategy/partition.py": (5, "doubles, and the ends of places"),
    "workload/strategy/optimum.py": (7, "doubles"),
    "workload/strategy/p_identity.py": (11, "doubles"),
    "workload/strategy/toeplitz.py": (7, "doubles; entries of 18 bits, at most 2^20, and their squares"),
    "workload/strategy/wavelet.py": (3, "rows, and doubles"),
    "release/workload/chosen_table.py": (2, "doubles"),
    "release/workload/net_price.py": (1, "rows"),
    "workload/strategy/worst.py": (6, "doubles, and places"),
    "workload/overlapping.py": (11, "doubles; whole numbers only where they stay below 2^40"),
    "release/workload/compact_design.py": (1, "places"),
    "release/workload/compact_measure.py": (2, "rows, and places"),
    "release/workload/noise.py": (2, "doubles"),
    "release/workload/plan.py": (4, "doubles, and places"),
    "release/workload/rolled_numbers.py": (1, "Python's integers"),
    "release/workload/partition_price.py": (1, "rows"),
    "release/workload/partitioned.py": (3, "doubles"),
    "release/workload/measured_design.py": (10, "doubles"),
    "workload/tables.py": (4, "rows; in doubles only where they are below 2^53"),
    "release/synthetic/curator.py": (4, "rows, and places"),
    "release/synthetic/implied.py": (3, "released counts, in Python's integers where they could wrap; places"),
    "release/synthetic/kept_effects.py": (3, "doubles, and places"),
    "release/synthetic/kept.py": (2, "doubles, and places"),
    "release/synthetic/predictions.py": (2, "places of made-up records"),
    "mechanism/interval/histogram.py": (1, "doubles"),
    "mechanism/interval/many_terms.py": (2, "doubles"),
    "workload/strategy/cache.py": (1, "doubles"),
    "release/microdata/card.py": (1, "places"),
    "release/microdata/stated.py": (1, "doubles"),
    "release/microdata/arrow.py": (1, "released records, which are few"),
    "release/microdata/rendering.py": (3, "released counts"),
    "release/microdata/store.py": (1, "places"),
    "release/graph/nodes.py": (1, "kept degrees: at most twice the edges"),
    "release/count_questions.py": (2, "doubles"),
}


def found() -> dict[str, int]:
    counts = {}
    for package in ("engine", "mechanism", "trust", "synthesis", "workload", "release"):
        for path in sorted((SOURCES / package).rglob("*.py")):
            number = sum(_adds(node) for node in ast.walk(ast.parse(path.read_text())))
            if number:
                counts[str(path.relative_to(SOURCES))] = number
    return counts


def _adds(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.MatMult)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    owner = node.func.value
    if node.func.attr == "at":  # np.add.at
        return isinstance(owner, ast.Attribute) and owner.attr == "add"
    return node.func.attr in ADDING and not (isinstance(owner, ast.Name) and owner.id in ("math", "pc"))


def test_every_sum_in_numpy_has_a_bound() -> None:
    listed = {module: number for module, (number, _) in BOUNDS.items()}
    assert found() == listed, "state why the new sum cannot wrap, or add it up with `mechanism.limbs`"


@pytest.mark.parametrize(
    ("line", "adds"),
    [
        ("a.sum()", True),
        ("np.add.at(a, b, c)", True),
        ("a @ b", True),
        ("sum(a)", False),
        ("np.maximum.at(a, b)", False),
    ],
)
def test_what_is_taken_for_a_sum(line: str, adds: bool) -> None:
    assert any(_adds(node) for node in ast.walk(ast.parse(line))) is adds
