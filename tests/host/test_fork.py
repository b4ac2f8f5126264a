"""A fork leaves no lock behind that nobody will ever release."""

import gc
import os
import sys
import threading
from pathlib import Path

import pytest

import confide.host.fork  # noqa: F401  what waits


def test_a_fork_waits_for_modules_that_other_threads_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python locks each module while it is loaded; a child that needs one that was being loaded would wait for ever."""
    (tmp_path / "slowly_loaded.py").write_text("import time\nimport begun\nbegun.event.set()\ntime.sleep(0.3)\nx = 7\n")
    (tmp_path / "begun.py").write_text("import threading\nevent = threading.Event()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    begun = __import__("begun")
    thread = threading.Thread(target=__import__, args=("slowly_loaded",))
    thread.start()
    assert begun.event.wait(10)
    gc.collect()  # what loading has left is not for the child to find
    child = os.fork()
    if child == 0:
        code = 1
        try:
            import signal  # noqa: PLC0415

            signal.alarm(20)
            code = 0 if __import__("slowly_loaded").x == 7 else 2
        finally:
            os._exit(code)
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for name in ("slowly_loaded", "begun"):
        sys.modules.pop(name)
