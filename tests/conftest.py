"""What every test has in common."""

import signal
import threading
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _ctrl_c_as_it_was() -> Iterator[None]:
    """A command that ends stops listening to Ctrl-C; the tests that run after it in the same process do not."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)
