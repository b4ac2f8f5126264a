"""The published cells of COUNT and LM_sum that depend on (q(D), q(Ds), τ, ε) alone, from closed forms and by sampling.

q(D) and q(Ds) are those of Table 2 of the deciders paper; its figures show 100 runs a cell, and its text names some.
Beside the paper's formulas (continuous noise) stand ours (discrete noise, drawn exactly). Each cell of the grid is
sampled as well. Bars: sampling within 3 standard errors of the formula, but for the 1 cell in 370 that chance puts
beyond; q₁₂ at ε = 1 errs about never, where the published 0.57 is an overflow of exp.
"""

from fractions import Fraction
from math import exp

import numpy as np

from confide.mechanism import KernelRandomness
from confide.trust.choice import Chooser
from confide.trust.seen import imagined_whole
from confide.trust.target import Facts, Target

COUNTS = {"q1": (34, 34), "q3": (87, 91), "q5": (1_560, 1_606), "q12": (471_994, 470_483)}
SUMS = {
    "q13": (6_915_340, 6_942_866),
    "q16": (123_543_040, 128_497_757),
    "q20": (685_635_003, 690_711_885),
    "q21": (23_542_765_109, 23_434_676_868),
}
LARGEST = 500_000
TAUS = tuple(Fraction(part, 1000) for part in (2, 8, 32, 128, 512))
EPSILONS = tuple(Fraction(1, power) for power in (16, 8, 4, 2, 1))
TAU, EPSILON = Fraction(32, 1000), Fraction(1, 4)
RUNS = 20_000
SAID = {
    ("q3", "exponential", "τ"): "0.39 to 0.45 for τ up to 3.2 %",
    ("q5", "exponential", "τ"): "0.27 at τ = 0.2 %",
    ("q12", "exponential", "ε"): "0.57 at ε = 1, an overflow",
    ("q12", "laplace", "τ"): "0 everywhere",
    ("q21", "laplace", "τ"): "0 everywhere",
}


def published(name: str, private: int, synthetic: int, tau: float, epsilon: float, largest: int) -> float:
    """The error by the formulas of the paper: Proposition 4.2, and the score u′ in log space."""
    low, high, rate = synthetic - tau, synthetic + tau, epsilon / largest
    inside = low < private < high
    if name == "exponential":
        depth = max(-tau, tau - abs(private - synthetic)) * rate
        chance = 1 / (1 + exp(-depth)) if depth > -700 else 0.0
        return 1 - chance if inside else chance
    below, above = abs(private - low) * rate, abs(private - high) * rate
    if inside:
        return (exp(-below) + exp(-above)) / 2
    return abs(exp(-below) - exp(-above)) / 2


def decided(query: tuple[int, int], name: str, whole: int, share: Fraction, epsilon: Fraction) -> tuple[float, float]:
    """The error by our formula, and how many standard errors sampling is from it."""
    private, synthetic = query
    target = Target(Fraction(synthetic), synthetic * share)
    decider = Chooser(Facts("count", whole), target, imagined_whole(synthetic)).make(name, epsilon)
    chance = decider.chance(private)
    sampled = float(decider.decide(private, KernelRandomness(), RUNS).mean())
    spread = (chance * (1 - chance) / RUNS) ** 0.5
    error = 1 - chance if target.low < private < target.high else chance
    return error, (sampled - chance) / spread if spread > 1e-6 else 0.0


def show(
    title: str, label: str, query: tuple[int, int], whole: int, names: tuple[str, ...]
) -> tuple[float, list[float]]:
    """The cells of one query; the largest distance of the formulas, and all scores of sampling."""
    farthest, grid = 0.0, {}
    for name in names:
        grid |= {(name, t, e): decided(query, name, whole, t, e) for t in TAUS for e in EPSILONS}
    print(f"\n{title}: {label}, private {query[0]:,}, synthetic {query[1]:,}")
    for varied, cells in (("τ", [(tau, EPSILON) for tau in TAUS]), ("ε", [(TAU, e) for e in EPSILONS])):
        heads = [f"{float(tau) * 100:g} %" if varied == "τ" else f"{float(e):g}" for tau, e in cells]
        print(f"  error by {varied:<22}" + "".join(f"{head:>18}" for head in heads))
        for name in names:
            shown = []
            for tau, epsilon in cells:
                error, theirs = grid[name, tau, epsilon][0], None
                if name != "optimal":
                    theirs = published(name, *query, float(query[1] * tau), float(epsilon), whole)
                    farthest = max(farthest, abs(theirs - error))
                shown.append(f"{error:.4f}" if theirs is None else f"{theirs:.4f} / {error:.4f}")
            said = SAID.get((label, name, varied), "")
            print(f"    {name:<28}" + "".join(f"{part:>18}" for part in shown) + (f"   paper: {said}" if said else ""))
    return farthest, [score for _, score in grid.values()]


def main() -> None:
    parts = [show("COUNT", label, query, 1, ("laplace", "exponential", "optimal")) for label, query in COUNTS.items()]
    parts += [show("SUM up to 500,000", label, q, LARGEST, ("laplace", "optimal")) for label, q in SUMS.items()]
    scores = np.concatenate([scores for _, scores in parts])
    print("\neach cell: the paper's formula / ours")
    print(f"farthest apart: {max(part for part, _ in parts):.4f} (discrete against continuous noise, on integers)")
    within = int((np.abs(scores) <= 3).sum())
    print(
        f"sampling, {RUNS:,} runs a cell: {within} of {len(scores)} cells within 3 standard errors "
        f"(chance alone puts {len(scores) * 0.0027:.1f} beyond), farthest {np.abs(scores).max():.2f}"
    )
    for name in ("laplace", "exponential", "optimal"):
        error, _ = decided(COUNTS["q12"], name, 1, TAU, Fraction(1))
        verdict = "met" if error < 1e-6 else "MISSED"
        print(f"q12 at ε = 1, {name:<12} error {error:.3g}   published (exponential) 0.57   bar about 0: {verdict}")


if __name__ == "__main__":
    main()
