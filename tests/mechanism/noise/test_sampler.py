import os
import random
import tracemalloc
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from confide.mechanism import DiscreteGaussian, DiscreteLaplace, KernelRandomness, NoNoise, TestRandomness, draw
from confide.mechanism.noise.law import Law
from confide.mechanism.noise.sampler import BLOCK, FAST_BITS, FEW, _sampler, vectorised

LAWS: list[Law] = [
    DiscreteLaplace(Fraction(1, 100)),
    DiscreteLaplace(Fraction(7, 3)),
    DiscreteLaplace(Fraction(100, 3)),
    DiscreteLaplace(Fraction(10**9)),
    DiscreteLaplace(Fraction(10**25)),
    DiscreteGaussian(Fraction(1, 10_000)),
    DiscreteGaussian(Fraction(7, 3)),
    DiscreteGaussian(Fraction(10**7, 3)),
    DiscreteGaussian(Fraction(10**20)),
    DiscreteGaussian(Fraction(10**50)),
]


@pytest.mark.parametrize("source", [TestRandomness(1), KernelRandomness()], ids=["test", "kernel"])
@pytest.mark.parametrize("size", [0, 1, 5, (2, 3), (0, 4), 1000, BLOCK + 3])
@pytest.mark.parametrize("law", [*LAWS, NoNoise()], ids=str)
def test_shape_and_kind(law, size, source):
    if law.variance > 10**40 and size == BLOCK + 3:
        size = 2000
    drawn = draw(law, size, source)
    assert drawn.shape == ((size,) if isinstance(size, int) else size)
    wide = law.variance > 10**40
    assert drawn.dtype == (object if wide else np.int64)
    if wide:
        assert all(type(value) is int for value in drawn.flat)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_same_bits_same_draws(law):
    assert vectorised(law, 300, TestRandomness(4)).tolist() == vectorised(law, 300, TestRandomness(4)).tolist()


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_mean_and_variance(law):
    count = 20_000
    drawn = vectorised(law, count, TestRandomness(7)).astype(float)
    deviation = float(law.variance) ** 0.5
    assert abs(drawn.mean()) <= 5 * deviation / count**0.5  # false alarm 6e-7
    kurtosis = 6 if isinstance(law, DiscreteLaplace) else 3
    if law.variance > 1:
        assert drawn.var() == pytest.approx(float(law.variance), rel=5 * ((kurtosis - 1) / count) ** 0.5)
    else:
        assert not drawn.any()  # a standard deviation of 0.01 or a scale of 0.01


def test_memory_is_bounded_by_blocks():
    law = DiscreteGaussian(Fraction(10**6))
    vectorised(law, 10, TestRandomness(1))
    tracemalloc.start()
    drawn = vectorised(law, 3_000_000, TestRandomness(1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < drawn.nbytes + 120 * BLOCK


class _Blockwise:
    """Feeds the block sampler one proposal: block, position in it, and the 32 bits of the acceptance coin."""

    kernel = False

    def __init__(self, cell: int, position: int, word: int, more: list[bytes]) -> None:
        self.queue = [cell.to_bytes(2, "little"), position.to_bytes(4, "little"), word.to_bytes(4, "little"), *more]

    def bytes(self, count: int) -> bytes:
        piece = self.queue.pop(0)
        assert len(piece) == count
        return piece

    def uint64(self, count: int) -> np.ndarray:
        return np.frombuffer(self.bytes(8 * count), dtype="<u8")


@pytest.mark.parametrize("variance", [Fraction(10**5), Fraction(10**9, 7), Fraction(10**28)])
def test_the_acceptance_coin_is_decided_exactly_where_32_bits_do_not_tell(variance):
    sampler = _sampler(DiscreteGaussian(variance))
    generator = random.Random(3)
    high_bits = min(sampler.bits, FAST_BITS)
    seen = {True: 0, False: 0}
    for _ in range(300):
        cell = generator.choice(np.flatnonzero(sampler.block.cells > 0).tolist())
        block = int(sampler.block.cells[cell])
        position = generator.getrandbits(32)
        inside = position >> (32 - high_bits) << (sampler.bits - high_bits)
        if inside == 0:
            continue  # accepted for certain
        low_bits, lower = sampler.bits - high_bits, []
        if low_bits > 0:
            word = generator.getrandbits(64)
            inside += word >> (64 - low_bits)
            lower = [word.to_bytes(8, "little")]
        rate = inside * (2 * (block << sampler.bits) + inside) / (2 * variance)
        with localcontext(prec=60):
            chance = (Decimal(-rate.numerator) / rate.denominator).exp()
            coin = min(int(chance * 2**32), 2**32 - 1)
            tail = generator.getrandbits(64)
            expected = Decimal((coin << 64) + tail) / 2**96 < chance
        source = _Blockwise(cell, position, coin, [*lower, tail.to_bytes(8), b"\x00" * expected])
        drawn = sampler.draw(1, source)
        assert source.queue in ([], [b""]), "the 64 further bits of the coin were not asked for"
        seen[expected] += 1
        assert drawn.tolist() == ([(block << sampler.bits) + inside] if expected else [])
    assert min(seen.values()) > 50


@pytest.mark.parametrize("variance", [Fraction(10**5), Fraction(10**28)])
def test_the_fast_comparison_never_contradicts_the_exact_one(variance):
    sampler = _sampler(DiscreteGaussian(variance))
    generator = random.Random(4)
    high_bits = min(sampler.bits, FAST_BITS)
    blocks = np.array([generator.randrange(900) for _ in range(3000)])
    highs = np.array([generator.getrandbits(high_bits) for _ in range(3000)], dtype=np.uint64)
    words = np.zeros(3000, dtype=np.uint32)
    chances = []
    for place in range(3000):
        inside = (int(highs[place]) << (sampler.bits - high_bits)) + generator.getrandbits(sampler.bits - high_bits)
        rate = inside * (2 * (int(blocks[place]) << sampler.bits) + inside) / (2 * variance)
        with localcontext(prec=60):
            chances.append((Decimal(-rate.numerator) / rate.denominator).exp())
        near = int(chances[-1] * 2**32) + generator.choice([-3, -2, -1, 0, 1, 2, 3])
        words[place] = min(max(near, 0), 2**32 - 1)
    accepted, unsure = sampler._compare(blocks, highs.astype(float) * 2.0**-high_bits, words)
    for place, chance in enumerate(chances):
        if accepted[place]:
            assert Decimal(int(words[place]) + 1) / 2**32 <= chance
        elif not unsure[place]:
            assert Decimal(int(words[place])) / 2**32 >= chance
    assert 0.1 < unsure.mean() < 0.9


def test_a_block_far_beyond_the_table_is_left_to_exact_arithmetic():
    sampler = _sampler(DiscreteGaussian(Fraction(10**9)))
    far = np.array([sampler.fast_blocks, 10 * sampler.fast_blocks])
    accepted, unsure = sampler._compare(far, np.zeros(2), np.zeros(2, dtype=np.uint32))
    assert not accepted.any()
    assert unsure.all()
    assert sampler.fast_blocks > len(sampler.block.lows)


@pytest.mark.parametrize("source", [TestRandomness(1), KernelRandomness()], ids=["test", "kernel"])
def test_a_few_draws_need_no_table(source, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "confide.mechanism.noise.sampler.vectorised", lambda law, count, _: asked.append(count) or np.zeros(count)
    )
    law = DiscreteLaplace(Fraction(2))
    assert draw(law, (2, 5), source).any()
    draw(law, FEW, source)
    assert asked == []
    draw(law, FEW + 1, source)
    draw(DiscreteLaplace(Fraction(2**60)), 5, source)  # a scale too large for a handful
    assert asked == [FEW + 1, 5]


def test_forked_processes_never_share_a_stream():
    law = DiscreteLaplace(Fraction(2**40))
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, draw(law, 8, KernelRandomness()).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = np.frombuffer(os.read(read, 64), dtype=np.int64)
    os.close(read)
    os.close(write)
    assert not set(theirs.tolist()) & set(draw(law, 8, KernelRandomness()).tolist())  # false alarm 1e-10
