"""What the rule of `auto` for parts was chosen by: finding parts first beside the exact strategies, on generated data.

Run as `python -m bench workload_auto`. Shown is the geometric mean over seven populations of the error of `privtree`,
relative to the best exact strategy, by rows · ε for each cell of the column, and the worst of the seven.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bench._parts import found_parts, line_error
from confide.privacy.amount import root
from confide.privacy.budget import Currency
from confide.privacy.loss import ZCDP, PureDP
from confide.release.workload.noise import best_design
from confide.workload.asked import AskedTable
from confide.workload.strategy.block import UnitChange
from confide.workload.strategy.line import Kind

EPSILON = Fraction(1, 10)
RUNS = 1
PER_CELL = (0.1, 1, 4, 8, 16, 64)
LINES: tuple[tuple[Kind, int], ...] = (
    ("prefix", 4_096), ("prefix", 64), ("prefix", 256), ("prefix", 1_024),
    ("range", 256), ("range", 1_024),
)  # fmt: skip
COSTS: dict[str, Currency] = {"pure": PureDP(EPSILON), "rho": ZCDP(EPSILON**2 / 2, Fraction(1, 10**9))}


def populations(size: int, random: np.random.Generator) -> dict[str, NDArray[np.float64]]:
    """Shares of the cells of a column."""
    x = (np.arange(size) + 0.5) / size
    sparse, clustered = np.zeros(size), np.zeros(size)
    sparse[random.choice(size, max(4, size // 64), replace=False)] = np.arange(1, max(4, size // 64) + 1.0) ** -1.2
    for centre in random.uniform(0, 1, 8):
        clustered += random.exponential() * np.exp(-0.5 * ((x - centre) / random.uniform(0.001, 0.006)) ** 2)
    rounded = np.exp(-7 * x)
    rounded[:: max(2, size // 40)] *= 40
    made = {
        "heavy-tailed": (1 + x * 500) ** -1.5,
        "sparse": sparse,
        "clustered": clustered + 1e-12,
        "uniform": np.ones(size),
        "bimodal": np.exp(-0.5 * ((x - 0.27) / 0.06) ** 2) + 0.5 * np.exp(-0.5 * ((x - 0.71) / 0.1) ** 2),
        "rounded": rounded,
        "steps": np.repeat(random.pareto(1.0, 32) + 0.01, size // 32),
    }
    return {name: own / own.sum() for name, own in made.items()}


def main() -> None:
    for label, cost in COSTS.items():
        for kind, size in LINES:
            _line(label, cost, kind, size)


def _line(label: str, cost: Currency, kind: Kind, size: int) -> None:
    random = np.random.default_rng(5)
    table = AskedTable((0,), (kind,))
    total, _, _ = best_design((size,), (table,), "exact", UnitChange(1, False), cost)
    told = []
    for per_cell in PER_CELL:
        rows = round(per_cell * size / float(cost.epsilon if isinstance(cost, PureDP) else root(2 * cost.rho)))
        relative = []
        for shares in populations(size, random).values():
            squares = []
            for _ in range(RUNS):
                counts = random.multinomial(rows, shares)
                squares.append(line_error(found_parts("privtree", counts, (size,), table, cost), counts, kind) ** 2)
            relative.append((np.mean(squares) / total) ** 0.5)
        told.append(f"{per_cell:g}: {np.exp(np.mean(np.log(relative))):.2f} (worst {max(relative):.2f})")
    print(f"{label:<5} {kind:<7} {size:>6,} cells   {'   '.join(told)}", flush=True)


if __name__ == "__main__":
    main()
