"""Audits of what joins and graphs release, on neighbours that differ as much as may be; each catches a mutant.

`finding` gives the sampled outputs on both sides and the stated loss; a false alarm has a chance of 10^-6.
"""

import math
from fractions import Fraction
from itertools import combinations
from unittest.mock import patch

import numpy as np
import pytest

from confide.engine.read.network import network_of, triangle_facts
from confide.engine.read.rectangle import rectangle_facts
from confide.engine.read.triangle import alike, triangle_sets
from confide.mechanism import TestRandomness
from confide.mechanism.graph.ladder import Ladder
from confide.mechanism.graph.pattern import RectangleRungs, TriangleRungs, smooth_bound
from confide.mechanism.join.packing import Packing
from confide.mechanism.join.truncation import Levels, Race, Truncation, clipped_totals
from confide.mechanism.noise.additive import Additive
from confide.mechanism.smooth.gaussian import SmoothGaussian, Tuning
from confide.mechanism.smooth.smooth import Smooth
from confide.mechanism.smooth.vector import SmoothVector
from tests.conformance.audit import audit

ONE, RUNS = Fraction(1), 8_000
TIGHT = Tuning(Fraction(1, 10), Fraction(1, 20))  # nearly all of ρ is for the integers, and S is raised little


def sampled(release, here, there):
    """Runs on two neighbours, one after the other, of a release that gives a tuple of integers."""
    source = TestRandomness(21)
    return tuple(np.array([release(data, source) for _ in range(RUNS)]) for data in (here, there))


def smooth(mechanism, noise=None):
    """All of S away, and S larger by all of α, in two groups; `noise` is what S is taken for, if not for itself."""
    bound = 40.0
    far = bound * math.exp(float(mechanism.alpha))

    def release(data, source):
        answers, scale = data
        noised, half = mechanism.measure(answers, scale if noise is None else noise, 0.1, source)
        return (*noised, half)

    return (*sampled(release, ([100, 100], bound), ([100 + int(bound), 100], far)), mechanism.loss)


def cut(kind, owners, levels=None):
    """One unit that has 64 rows, or none. With three owners four hundred others have the same, so that a level is
    learnt that holds it.
    """
    mechanism = kind(levels or Levels(64, owners), ONE, 0.1)
    edges = mechanism.levels.edges
    if owners == 1:
        worlds = [clipped_totals(values, (40, 1), edges) for values in ((3, 0), (3, 64))]
    else:
        hubs = [
            np.array([[hub, 1000 + 128 * hub + 2 * n, 1001 + 128 * hub + 2 * n] for n in range(64)])
            for hub in range(401)
        ]
        few, hub = np.vstack(hubs[:-1]), hubs[-1]
        worlds = [
            Packing(sets, np.ones(len(sets), dtype=np.int64)).totals(edges) for sets in (few, np.vstack([few, hub]))
        ]

    def release(totals, source):
        result = mechanism.measure(totals, source)
        return result.estimate, result.low, result.high

    return (*sampled(release, *worlds), mechanism.loss)


def nodes(kind):
    """A node that closes all triangles of a graph comes or goes."""
    wheel = (
        [(0, n) for n in range(1, 13)] + [(n, n % 12 + 1) for n in range(1, 13)] + list(combinations(range(20, 26), 2))
    )
    mechanism = kind(Levels(16, 3), ONE, 0.1)
    worlds = []
    for pairs in (wheel, [pair for pair in wheel if 0 not in pair]):
        ends = {"a": np.array([a for a, _ in pairs]), "b": np.array([b for _, b in pairs])}
        network = network_of(ends, directed=False)
        worlds.append(Packing(*triangle_sets(network), alike(network)).totals(mechanism.levels.edges))

    def release(totals, source):
        result = mechanism.measure(totals, source)
        return result.estimate, result.low, result.high

    return (*sampled(release, *worlds), mechanism.loss)


def triangles(growing=True):
    """A book of twenty triangles on one edge, which comes or goes. Without growth a mutant: all rungs are the first."""
    pages = [(0, n) for n in range(2, 22)] + [(1, n) for n in range(2, 22)]
    worlds, ladder = [], None
    for pairs in ([*pages, (0, 1)], pages):
        ends = {"a": np.array([a for a, _ in pairs]), "b": np.array([b for _, b in pairs])}
        facts = triangle_facts(network_of(ends, directed=False))
        rungs = TriangleRungs(facts.shared, facts.reach, 1)
        ladder = Ladder(ONE, 0.1, rungs.growth)
        steps = rungs.rungs(ladder.length)
        worlds.append((facts.count, steps if growing else np.full_like(steps, 1)))
    assert ladder is not None

    def release(data, source):
        return ladder.measure(*data, source)

    return (*sampled(release, *worlds), ladder.loss)


def rectangles(growing=True):
    """An edge of three hubs that share eight nodes comes or goes. Without growth a mutant: an edge changes one."""
    pairs = [(hub, node) for hub in range(3) for node in range(3, 11)]
    mechanism, worlds = Smooth(ONE), []
    for own in (pairs, pairs[1:]):
        ends = {"a": np.array([a for a, _ in own]), "b": np.array([b for _, b in own])}
        facts = rectangle_facts(network_of(ends, directed=False))
        bound = smooth_bound(RectangleRungs(facts.paths, facts.shared), float(mechanism.alpha))
        worlds.append((facts.count, bound if growing else 1.0))

    def release(data, source):
        return mechanism.measure(*data, 0.1, source)

    return (*sampled(release, *worlds), mechanism.loss)


def shared(levels):
    """A unit comes that has a hundred times more rows than any level, each shared with two others who have no more."""
    rows = 100 * levels.edges[-1]
    members = np.array([[0, 1 + 2 * n, 2 + 2 * n] for n in range(rows)])
    return [0] * len(levels.edges), Packing(members, np.ones(rows, dtype=np.int64)).totals(levels.edges)


def alone(levels):
    """The same with rows of its own."""
    return [clipped_totals(values, (1,), levels.edges) for values in ((0,), (levels.edges[-1],))]


def rim(levels):
    """The hub of a wheel: with it go all triangles, far more than the level."""
    spokes = 40 * levels.edges[-1]
    wheel = [(0, n) for n in range(1, spokes + 1)] + [(n, n % spokes + 1) for n in range(1, spokes + 1)]
    ends = {"a": np.array([a for a, _ in wheel]), "b": np.array([b for _, b in wheel])}
    network = network_of(ends, directed=False)
    return [0] * len(levels.edges), Packing(*triangle_sets(network), alike(network)).totals(levels.edges)


def transcript(kind, levels, worlds):
    """All that is noised on the way, of which an answer shows the best: the numbers that ε is shared among.

    Each in thousandths of its scale, so that all count alike when they are added up.
    """
    mechanism, noised = kind(levels, ONE, 0.1), Additive.noised

    def release(totals, source):
        seen = []

        def noting(additive, total, randomness):
            value = noised(additive, total, randomness)
            seen.append(round(1000 * value / additive.law.scale))
            return value

        with patch.object(Additive, "noised", noting):
            mechanism.measure(totals, source)
        return seen

    return (*sampled(release, *worlds(levels)), mechanism.loss)


class Halved(Levels):
    """Half of the noise."""

    def sensitivity(self, level):
        return -(-super().sensitivity(level) // 2)


SUBSTANTIAL = {
    "r2t, one owner": (Race, Levels, 64, 1, alone),
    "r2t, three owners": (Race, Levels, 64, 3, shared),
    "r2t, triangles of nodes": (Race, Levels, 16, 3, rim),
    "truncate, three owners": (Truncation, Levels, 64, 3, shared),
}


def audited(kind, made, level, owners, worlds):
    return audit(*transcript(kind, made(level, owners, smallest=level), worlds))


AUDITS = {
    "residual: noise from a smooth bound": lambda: smooth(SmoothVector(ONE, 2)),
    "joins with a δ": lambda: smooth(SmoothGaussian(ONE / 2, Fraction(1, 10**4))),
    "joins with a δ, S raised little": lambda: smooth(SmoothGaussian(ONE / 2, Fraction(1, 10**4), 1, TIGHT)),
    "truncate, one owner": lambda: cut(Truncation, 1),
    "r2t, one owner": lambda: cut(Race, 1),
    "truncate, three owners": lambda: cut(Truncation, 3),
    "r2t, three owners": lambda: cut(Race, 3),
    "truncate, triangles of nodes": lambda: nodes(Truncation),
    "r2t, triangles of nodes": lambda: nodes(Race),
    "ladder, triangles": triangles,
    "smooth, rectangles": rectangles,
}


class Forgetful(Levels):
    """Noise as if one unit had 1 of everything."""

    def sensitivity(self, level):
        return 1


MUTANTS = {
    "a bound taken for an eighth": lambda: smooth(SmoothVector(ONE, 2), 5.0),
    "half the noise with a δ": lambda: smooth(SmoothGaussian(ONE / 2, Fraction(1, 10**4), 1, TIGHT), 20.0),
    "a bound with a δ taken for an eighth": lambda: smooth(SmoothGaussian(ONE / 2, Fraction(1, 10**4)), 5.0),
    "levels forgotten, one owner": lambda: cut(Race, 1, Forgetful(64)),
    "levels forgotten, three owners": lambda: cut(Truncation, 3, Forgetful(64, 3)),
    "a ladder without growth": lambda: triangles(growing=False),
    "rectangles for which an edge changes one": lambda: rectangles(growing=False),
}


@pytest.mark.audit
@pytest.mark.parametrize("name", AUDITS)
def test_an_audit_finds_nothing(name):
    first, second, loss = AUDITS[name]()
    assert not audit(first, second, loss).violated


@pytest.mark.audit
@pytest.mark.parametrize("name", MUTANTS)
def test_an_audit_catches_mutants(name):
    first, second, loss = MUTANTS[name]()
    assert audit(first, second, loss).violated


@pytest.mark.audit
@pytest.mark.parametrize("name", SUBSTANTIAL)
def test_an_audit_of_all_that_is_noised_sees_much_of_epsilon_and_catches_half_of_the_noise(name):
    """One declared level, a unit that changes it by nearly all it may, and no noise left unseen."""
    kind, made, *rest = SUBSTANTIAL[name]
    finding = audited(kind, made, *rest)
    assert not finding.violated
    assert finding.epsilon > 0.4
    assert audited(kind, Halved, *rest).violated
