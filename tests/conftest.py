"""What every test has in common."""

import signal
import threading
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.servers import own_postgres_server, postgres_database, postgres_server
from tests.spark import spark

__all__ = ["own_postgres_server", "postgres_database", "postgres_server", "spark"]


def pytest_configure(config: pytest.Config) -> None:
    """Ordinary runs try the same examples every time, so that none fails by chance; audits try new ones."""
    settings.register_profile("steady", derandomize=True)
    if config.getoption("markexpr") != "audit":
        settings.load_profile("steady")


@pytest.fixture(autouse=True)
def _ctrl_c_as_in_a_terminal() -> Iterator[None]:
    """Ctrl-C interrupts, as it does in a terminal, for each test and for the processes it starts.

    A shell starts what runs in the background with Ctrl-C ignored, and a command of ours that has ended ignores it too.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
