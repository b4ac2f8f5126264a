"""Threads that are kept: used again, few, forgetful, and none in a child process."""

import subprocess
import sys
import threading
import time
import weakref

from confide.host.workers import MOST_IDLE, Worker, dismissed, hired


def ident_of(worker: Worker) -> int:
    found, done = [], threading.Event()

    def work() -> None:
        found.append(threading.get_ident())
        done.set()

    worker.do(work)
    assert done.wait(10)
    return found[0]


def test_a_worker_is_used_again() -> None:
    first = hired()
    ident = ident_of(first)
    dismissed(first)
    second = hired()
    assert ident_of(second) == ident
    dismissed(second)


def test_two_at_once_are_two() -> None:
    first, second = hired(), hired()
    assert ident_of(first) != ident_of(second)
    dismissed(first)
    dismissed(second)


def test_few_are_kept() -> None:
    workers = [hired() for _ in range(3 * MOST_IDLE)]
    assert len({ident_of(worker) for worker in workers}) == len(workers)
    for worker in workers:
        dismissed(worker)
    until = time.monotonic() + 10
    while sum(thread.name == "confide-apart" for thread in threading.enumerate()) > MOST_IDLE:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_what_was_found_is_forgotten() -> None:
    class Found:
        pass

    worker, done = hired(), threading.Event()
    found = Found()
    seen = weakref.ref(found)
    worker.do(lambda kept=found: done.set())  # type: ignore[misc]
    assert done.wait(10)
    del found
    until = time.monotonic() + 10
    while seen() is not None:
        assert time.monotonic() < until
        time.sleep(0.01)
    dismissed(worker)


FORKING = """
import os, threading
from confide.host.workers import dismissed, hired

dismissed(hired())
child = os.fork()
if child == 0:
    done = threading.Event()
    hired().do(done.set)
    os._exit(0 if done.wait(20) else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_child_process_has_workers_of_its_own() -> None:
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", FORKING], timeout=60, check=False).returncode == 0
