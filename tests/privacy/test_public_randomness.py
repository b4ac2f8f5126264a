import os

import numpy as np

from confide.privacy.public_randomness import fresh_public_generator, public_generator


def test_a_public_seed_gives_the_numbers_of_numpy() -> None:
    assert np.array_equal(public_generator(7).random(5), np.random.default_rng(7).random(5))


def test_a_fresh_generator_repeats_nothing_even_in_a_child() -> None:
    drawn = {fresh_public_generator().bytes(16) for _ in range(100)}
    assert len(drawn) == 100
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, fresh_public_generator().bytes(16))
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 16) not in drawn | {fresh_public_generator().bytes(16)}
    os.close(read)
    os.close(write)
