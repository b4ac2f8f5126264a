"""What is measured of counts that overlap: whole numbers made of their atoms, from which every count follows exactly.

together   the counts themselves; a row changes only those that it is in
atoms      every atom by itself; a count is a sum of them
optimised  Gaussian noise: the least error there is ([Li2015]), written as a triangle of whole numbers. Laplace noise:
           p-Identity ([McKenna2018])

A strategy measures K·x, whole numbers of the atoms' counts x, with noise as wide as `scales` says beside one another.
Sums of one number of each row are measured alike: x are then the sums over atoms.
An answer is a sum C·K·x of measured numbers with C·K = W exactly, in fractions: so an estimate has the law of its
noise, and nothing else in it. Public facts only.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal

import numpy as np

from confide.privacy.limits import MOST_OPTIMISED_ATOMS
from confide.workload.strategy.line import Floats, NoiseKind
from confide.workload.strategy.optimum import optimum_of
from confide.workload.strategy.p_identity import laplace_descent

BITS: Final = 12
"""Of what an optimised strategy has of an atom."""
ROUNDING: Final = 1e-9
"""More than doubles lose in a sum of some hundred squares."""
FEW: Final = 3
"""Atoms up to which nothing is better than measuring them, or the counts, themselves."""

Weights = tuple[tuple[int, ...], ...]
Told = tuple[tuple[tuple[int, Fraction], ...], ...]


@dataclass(frozen=True, slots=True)
class Overlap:
    """A strategy for some counts."""

    name: Literal["together", "atoms", "optimised"]
    rows: Weights
    """K: for every measured number what it has of each atom."""
    scales: tuple[Fraction, ...]
    told: Told
    """C: of every count the measured numbers that it is a sum of, with their coefficients."""
    agree: bool
    """Whether counts follow from one another, and do so in the answer."""

    def norm(self, kind: NoiseKind, replaced: bool, low: int = 1, high: int = 1) -> Fraction:
        """What one row that adds a number v in [low, high] to an atom moves by at most, in scales: in L1, or squared in
        L2. It is M = max(|low|, |high|) times what it is for counts, or M² times; v = 1 there.

        A row that is replaced leaves one atom, or none, and comes to another one, maybe in another group. In L1 that is
        twice as much; in L2 it is ‖va‖² + ‖wb‖², or in one group ‖va − wb‖², which is more where vw·(a·b) < 0. Where v
        and w have one sign, it is at most M² times what it is for counts, for it is convex in both, and so largest at
        their ends; where they have two, |v| + |w| ≤ high − low, and the norm is at most that times the largest.
        """
        if (low, high) != (1, 1):
            largest, spread = max(abs(low), abs(high)), max(high, 0) - min(low, 0)
            if kind == "laplace":
                return largest * self.norm(kind, replaced)
            crossing = spread**2 * self.norm(kind, replaced=False) if replaced else Fraction(0)
            return max(largest**2 * self.norm(kind, replaced), crossing)
        sums = [Fraction(0)] * len(self.rows[0])
        for row, scale in zip(self.rows, self.scales, strict=True):
            for atom, entry in enumerate(row):
                if entry:
                    part = abs(entry) / scale
                    sums[atom] += part if kind == "laplace" else part * part
        if not replaced:
            return max(sums)
        if kind == "laplace" or all(entry >= 0 for row in self.rows for entry in row):
            return 2 * max(sums)
        columns = np.array(self.rows, dtype=np.float64) / np.array([float(own) for own in self.scales])[:, None]
        inner = columns.T @ columns
        apart = inner.diagonal()[:, None] + inner.diagonal() - 2 * inner
        return max(2 * max(sums), Fraction(float(apart.max()) * (1 + ROUNDING)))

    def variances(self, kind: NoiseKind, replaced: bool) -> Floats:
        """Of every count, where noise has unit variance for what moves by 1."""
        norm = float(self.norm(kind, replaced))
        scales = np.array([float(own) for own in self.scales])
        own = [sum(float(c) ** 2 * scales[k] ** 2 for k, c in terms) for terms in self.told]
        return np.array(own) * (norm**2 if kind == "laplace" else norm)


@lru_cache(maxsize=64)
def overlaps(weights: Weights, kind: NoiseKind) -> tuple[Overlap, ...]:
    """The strategies that suit some counts, given by what each has of every atom."""
    matrix = np.array(weights, dtype=np.float64)
    count, atoms = matrix.shape
    rank = int(np.linalg.matrix_rank(matrix))
    one = Fraction(1)
    found = []
    told: Told
    if rank == count:
        told = tuple(((place, one),) for place in range(count))
        found.append(Overlap("together", weights, (one,) * count, told, agree=False))
    each = tuple(tuple(int(row == atom) for atom in range(atoms)) for row in range(atoms))
    told = tuple(tuple((atom, Fraction(own)) for atom, own in enumerate(row) if own) for row in weights)
    found.append(Overlap("atoms", each, (one,) * atoms, told, rank < count))
    if FEW < atoms <= MOST_OPTIMISED_ATOMS or (kind == "gaussian" and 1 < atoms <= FEW):
        made = _triangle(weights, matrix, rank) if kind == "gaussian" else _descended(weights, matrix, rank < count)
        found += [] if made is None else [made]
    return tuple(found)


# --- Gaussian noise ---------------------------------------------------------------------------------------------------


def _triangle(weights: Weights, matrix: Floats, rank: int) -> Overlap | None:
    """The optimum X = KᵀK as D·U of a basis of the counts: U a triangle with a diagonal of 1, D the widths of noise.

    U is rounded to a grid and then inverted exactly, so rounding costs some width and moves no answer.
    """
    atoms = matrix.shape[1]
    gram = matrix.T @ matrix
    with np.errstate(all="ignore"):
        found = optimum_of(gram, np.sqrt(gram.diagonal()))
    if not np.isfinite(found.matrix).all():
        return None
    if rank == atoms:
        basis, shares = np.eye(atoms, dtype=np.int64), [[Fraction(own) for own in row] for row in weights]
    else:
        chosen = _independent(matrix, rank)
        basis = np.array([weights[place] for place in chosen], dtype=np.int64)
        known = _shares(weights, basis)
        if known is None:
            return None
        shares = known
    inner = np.linalg.pinv(basis.astype(np.float64))
    seen = inner.T @ (found.matrix.T @ found.matrix) @ inner
    try:
        upper = np.linalg.cholesky(seen + np.eye(rank) * seen.diagonal().max() * 1e-9).T
    except np.linalg.LinAlgError:
        return None
    diagonal = upper.diagonal()
    whole = np.rint(upper / diagonal[:, None] * 2**BITS)
    if np.abs(whole).max() * np.abs(basis).sum(axis=0).max() >= 2**40:
        return None
    triangle = np.triu(whole).astype(np.int64)
    np.fill_diagonal(triangle, 2**BITS)
    rows = triangle @ basis
    widest = float((1 / diagonal).max())
    scales = tuple(Fraction(2**BITS * max(1, round(2**20 / (own * widest))), 2**20) for own in diagonal.tolist())
    told = tuple(_solved(row, triangle.tolist()) for row in shares)
    return Overlap("optimised", _tuples(rows), scales, told, rank < len(weights))


def _independent(matrix: Floats, rank: int) -> list[int]:
    """Places of counts that all others follow from."""
    chosen: list[int] = []
    for place in range(len(matrix)):
        if len(chosen) < rank and np.linalg.matrix_rank(matrix[[*chosen, place]]) == len(chosen) + 1:
            chosen.append(place)
    return chosen


def _shares(weights: Weights, basis: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> list[list[Fraction]] | None:
    """Every count as a sum of the basis, exactly; None if fractions with small denominators are not enough."""
    found = np.linalg.lstsq(basis.T.astype(np.float64), np.array(weights, dtype=np.float64).T, rcond=None)[0].T
    shares = [[Fraction(own).limit_denominator(1_000) for own in row] for row in found.tolist()]
    columns = basis.tolist()
    for row, own in zip(weights, shares, strict=True):
        made = [sum(share * columns[k][atom] for k, share in enumerate(own)) for atom in range(len(row))]
        if made != list(row):
            return None
    return shares


def _solved(row: list[Fraction], triangle: list[list[int]]) -> tuple[tuple[int, Fraction], ...]:
    """c with c·T = row for an upper triangle T whose diagonal is 2^BITS, by substitution."""
    found: list[Fraction] = []
    for k, wanted in enumerate(row):
        left = wanted - sum(
            (own * triangle[j][k] for j, own in enumerate(found) if own and triangle[j][k]), Fraction(0)
        )
        found.append(left / 2**BITS)
    return tuple((k, own) for k, own in enumerate(found) if own)


# --- Laplace noise ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """The counts as descent sees them."""

    gram: Floats

    @property
    def size(self) -> int:
        return len(self.gram)

    def apply_gram(self, vectors: Floats) -> Floats:
        found: Floats = vectors @ self.gram
        return found

    def diagonal(self) -> Floats:
        found: Floats = self.gram.diagonal()
        return found


def _descended(weights: Weights, matrix: Floats, agree: bool) -> Overlap | None:
    """Every atom and some sums of atoms, A = [I; Θ]/s. What a count takes of the sums is rounded, and what it takes of
    the atoms is then all that is left: so it adds up exactly.
    """
    atoms = matrix.shape[1]
    theta = laplace_descent(_Asked(matrix.T @ matrix))
    theta[theta < 2.0**-6] = 0.0
    theta = theta[theta.any(axis=1)]
    if not len(theta):
        return None
    sums = 1 + theta.sum(axis=0)
    whole = np.rint(theta / sums * 2**BITS).astype(np.int64)
    rounded = [Fraction(max(1, round(own * 2**10)), 2**10) for own in sums.tolist()]
    measured = np.concatenate([np.diag(1 / np.array([float(own) for own in rounded])), whole / 2**BITS])
    taken = matrix @ np.linalg.pinv(measured)
    told = []
    for row, own in zip(weights, taken[:, atoms:].tolist(), strict=True):
        shares = [Fraction(round(share * 2**BITS), 2**BITS) for share in own]
        rest = [
            wanted - sum((share * int(whole[p, atom]) / 2**BITS for p, share in enumerate(shares)), Fraction(0))
            for atom, wanted in enumerate(row)
        ]
        told.append(tuple((k, own / 2**BITS) for k, own in enumerate([*rest, *shares]) if own))
    rows = np.concatenate([np.eye(atoms, dtype=np.int64) * 2**BITS, whole])
    scales = (*(own * 2**BITS for own in rounded), *(Fraction(2**BITS),) * len(whole))
    return Overlap("optimised", _tuples(rows), scales, tuple(told), agree)


def _tuples(rows: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Weights:
    return tuple(tuple(row) for row in rows.tolist())
