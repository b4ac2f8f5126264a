"""Work that is done at the same time gives what it gives one after the other, and nothing of it is left behind."""

import threading
from contextvars import ContextVar

import numpy as np
import pytest

from confide.host.side_by_side import side_by_side

SAID: ContextVar[str] = ContextVar("said", default="nothing")


def test_pieces_come_back_in_their_order():
    assert side_by_side([lambda place=place: place * place for place in range(5)]) == [0, 1, 4, 9, 16]


def test_one_piece_needs_no_thread():
    assert side_by_side([threading.current_thread]) == [threading.current_thread()]


def test_pieces_really_are_at_work_together():
    """Each waits for the other: one after the other they would not end."""
    meeting = threading.Barrier(2, timeout=10)
    assert sorted(side_by_side([meeting.wait, meeting.wait])) == [0, 1]


def test_every_piece_sees_the_context_of_the_caller():
    token = SAID.set("quiet")
    try:
        with np.errstate(divide="raise"):
            assert side_by_side([SAID.get, SAID.get]) == ["quiet", "quiet"]
            assert side_by_side([lambda: np.geterr()["divide"]] * 2) == ["raise", "raise"]
    finally:
        SAID.reset(token)


@pytest.mark.parametrize("place", [0, 1])
def test_an_error_is_raised_when_all_have_ended(place):
    ended = []

    def fails():
        raise MemoryError

    def works():
        ended.append(True)

    before = threading.active_count()
    with pytest.raises(MemoryError):
        side_by_side([fails, works] if place == 0 else [works, fails])
    assert ended == [True]
    assert threading.active_count() == before
