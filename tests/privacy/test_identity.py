"""Names: no two lists of parts share one, and a sealed one cannot be made without the secret."""

from itertools import product

import pytest

from confide.privacy.identity import joined, plain_name, sealed_name

AWKWARD = ("", "a", "b", "ab", "\x1f", "a\x1fb", "\x1e", "\0", "\x00\x00\x00\x00\x00\x00\x00\x01a", "é", "\ud800")


def test_no_two_lists_of_parts_are_written_alike() -> None:
    lists = [parts for size in range(4) for parts in product(AWKWARD, repeat=size)]
    assert len({joined(*parts) for parts in lists}) == len(lists)
    assert len({plain_name(*parts) for parts in lists}) == len(lists)


@pytest.mark.parametrize("control", ["\x1f", "\x1e", "", "\0"])
def test_joining_by_a_character_is_not_enough(control: str) -> None:
    """The control: a name that holds the character shares its hash with another list."""
    lists = [parts for size in range(4) for parts in product(AWKWARD, repeat=size)]
    assert len({control.join(parts) for parts in lists}) < len(lists)


def test_a_sealed_name_hangs_on_its_secret() -> None:
    one, other = bytes(32), bytes(31) + b"\1"
    assert sealed_name(one, "a", "b") == sealed_name(one, "a", "b")
    names = {sealed_name(one, "a", "b"), sealed_name(other, "a", "b"), sealed_name(one, "ab"), plain_name("a", "b")}
    assert len(names) == 4
    assert all(len(name) == 64 for name in names)
