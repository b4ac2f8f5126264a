"""Who hears how far a call is, and what of."""

import threading

from confide.host import progress
from confide.host.progress import heard_by, part_of, tell
from confide.host.side_by_side import side_by_side


def test_nobody_need_listen():
    tell("working", 1, 2)


def test_whoever_asked_last_hears_it_and_nobody_else():
    outer, inner = [], []
    with heard_by(lambda *step: outer.append(step)):
        tell("one", 0, 2)
        with heard_by(lambda *step: inner.append(step)):
            tell("two", 1, 2)
        with heard_by(None):
            tell("three", 1, 2)
        tell("four", 2, 2)
    tell("five", 2, 2)
    assert outer == [("one", 0, 2), ("four", 2, 2)]
    assert inner == [("two", 1, 2)]


def test_another_thread_hears_nothing_but_for_work_side_by_side():
    heard = []
    with heard_by(lambda *step: heard.append(step)):
        thread = threading.Thread(target=tell, args=("elsewhere", 0, 1))
        thread.start()
        thread.join()
        side_by_side([lambda: tell("here", 0, 1), lambda: tell("beside", 0, 1)])
    assert sorted(heard) == [("beside", 0, 1), ("here", 0, 1)]


def test_parts_are_told_as_one_step_and_not_more_often_than_can_be_read(monkeypatch):
    heard, now = [], [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with heard_by(lambda *step: heard.append(step)):
        with part_of("fitting", 3, 4):
            for number in range(10):
                now[0] += 0.2
                tell(f"step {number}", number, 10)
        tell("done", 4, 4)
    assert heard == [
        ("fitting", 3, 4), ("fitting: step 2", 3.2, 4), ("fitting: step 5", 3.5, 4), ("fitting: step 8", 3.8, 4),
        ("done", 4, 4),
    ]  # fmt: skip


def test_parts_of_what_nobody_hears_are_not_heard():
    with part_of("fitting", 0, 1):
        tell("step", 0, 1)
