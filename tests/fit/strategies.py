"""Small problems of every kind."""

from fractions import Fraction
from functools import reduce
from itertools import chain, combinations

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from confide.fit.group import CellDomain, Group, Marginal, SparseGroup
from confide.fit.problem import FitProblem, MeasuredGroup, Public
from confide.mechanism.noise.law import DiscreteGaussian, DiscreteLaplace

NAMES = ("a", "b", "c")


@st.composite
def domains(draw: st.DrawFn) -> CellDomain:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    return CellDomain(NAMES[: len(sizes)], tuple(sizes))


def laws() -> st.SearchStrategy[DiscreteLaplace | DiscreteGaussian]:
    scales = st.fractions(Fraction(1, 2), 50, max_denominator=4)
    return st.one_of(scales.map(DiscreteLaplace), scales.map(lambda scale: DiscreteGaussian(scale * scale)))


def marginals_of(domain: CellDomain) -> list[Marginal]:
    names = domain.attributes
    return [Marginal(part) for part in chain.from_iterable(combinations(names, k) for k in range(len(names) + 1))]


@st.composite
def groups(draw: st.DrawFn, domain: CellDomain, *, only_marginals: bool = False) -> Group:
    kind = "marginal" if only_marginals else draw(st.sampled_from(["marginal", "marginal", "product", "sparse"]))
    if kind == "marginal":
        return draw(st.sampled_from(marginals_of(domain)))
    bits = st.integers(0, 1)
    if kind == "product":
        factors = []
        for size in domain.sizes:
            rows = draw(st.integers(1, 3))
            factors.append(np.array(draw(st.lists(bits, min_size=rows * size, max_size=rows * size)), dtype=float))
            factors[-1] = factors[-1].reshape(rows, size)
        return SparseGroup(sparse.csr_array(reduce(np.kron, factors)))
    rows = draw(st.integers(1, 4))
    entries = draw(st.lists(st.integers(-1, 2), min_size=rows * domain.cells, max_size=rows * domain.cells))
    return SparseGroup(sparse.csr_array(np.array(entries, dtype=float).reshape(rows, domain.cells)))


@st.composite
def problems(draw: st.DrawFn, *, only_marginals: bool = False, public: bool = True) -> FitProblem:
    domain = draw(domains())
    top = draw(st.sampled_from([5, 60, 3000]))
    truth = np.array(
        draw(st.lists(st.one_of(st.just(0), st.integers(0, top)), min_size=domain.cells, max_size=domain.cells)),
        dtype=float,
    )
    zeros, totals = None, ()
    if public:
        if draw(st.booleans()):
            zeros = (
                (truth == 0)
                & (np.arange(domain.cells) > 0)
                & np.array(draw(st.lists(st.booleans(), min_size=domain.cells, max_size=domain.cells)))
            )
        if draw(st.booleans()):
            group = draw(st.sampled_from(marginals_of(domain)))
            totals = ((group, group.answer(domain, truth)),)
    measured = []
    for _ in range(draw(st.integers(1, 4))):
        group = draw(groups(domain, only_marginals=only_marginals))
        law = draw(laws())
        noise = draw(
            st.lists(st.integers(-40, 40), min_size=group.count(domain), max_size=group.count(domain)).map(np.array)
        )
        measured.append(MeasuredGroup(group, group.answer(domain, truth) + noise, law))
    return FitProblem(domain, tuple(measured), Public(zeros, totals))
