import multiprocessing
import os

import numpy as np

from confide.mechanism import KernelRandomness, TestRandomness


def _words(_: int) -> bytes:
    return KernelRandomness().uint64(4).tobytes()


def test_kernel_words_have_the_asked_size_and_type():
    words = KernelRandomness().uint64(5)
    assert words.shape == (5,)
    assert words.dtype == np.uint64
    assert len(KernelRandomness().bytes(7)) == 7


def test_kernel_never_repeats_within_a_process():
    source = KernelRandomness()
    assert len({source.bytes(16) for _ in range(1000)}) == 1000
    assert len({int(source.uint64(1)[0]) for _ in range(1000)}) == 1000


def test_forked_processes_never_share_a_stream():
    source = KernelRandomness()
    source.bytes(16)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, source.bytes(32))
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 32) != source.bytes(32)
    os.close(read)
    os.close(write)


def test_spawned_processes_never_share_a_stream():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        drawn = pool.map(_words, range(8))
    assert len(set(drawn)) == 8


def test_kernel_keeps_no_state():
    assert not hasattr(KernelRandomness(), "__dict__")
    assert KernelRandomness.__slots__ == ()


def test_test_noise_repeats_by_seed_and_says_that_it_is_not_the_kernel():
    first, again, other = TestRandomness(1), TestRandomness(1), TestRandomness(2)
    drawn = [first.bytes(9), first.uint64(3).tobytes()]
    assert drawn == [again.bytes(9), again.uint64(3).tobytes()]
    assert drawn[0] != other.bytes(9)
    assert first.bytes(9) != drawn[0]
    assert not first.kernel
    assert KernelRandomness().kernel


def test_test_noise_is_uniform_by_bit():
    bits = np.unpackbits(np.frombuffer(TestRandomness(3).bytes(125_000), dtype=np.uint8))
    assert abs(bits.mean() - 0.5) < 5 * 0.5 / 1000  # false alarm 6e-7
