"""The terminal. This module is all that runs before the command line is read, so it stays small."""

import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

INTERRUPTED = "stopped: nothing is lost, and the same question asked again costs nothing more"
STOPPED = 130

_AGAIN = 0.02

_seen = False
_ending = False
_words = INTERRUPTED


def main() -> None:
    """The command `confide`."""
    try:
        _prepare()
        from confide.cli.app import app  # noqa: PLC0415  a Ctrl-C while it loads is a Ctrl-C like any other

        app(prog_name="confide")
    except KeyboardInterrupt:
        _stop()
    except SystemExit as end:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done: there is nothing left to stop
        if end.code == STOPPED:
            _stop()
        raise
    except Exception:
        if interrupted():
            _stop()
        raise


def interrupted() -> bool:
    """Whether Ctrl-C was pressed: a library in the middle of loading may turn it into an error of its own."""
    return _seen


def stopping(error: BaseException) -> None:
    """Hear of a Ctrl-C no more, and keep what is to be said of it: what was charged, where the error says that."""
    global _ending, _words  # noqa: PLW0603  there is one end
    _ending = True
    notes = getattr(error, "__notes__", ())
    _words = f"stopped: {notes[-1]}" if notes else INTERRUPTED


def heard() -> None:
    """A Ctrl-C was answered, and ends nothing else: the next one is a new one."""
    global _seen, _ending, _words
    _seen, _ending, _words = False, False, INTERRUPTED


def stop_line() -> str:
    """What is said of a command that was stopped."""
    return _words


def _prepare() -> None:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _note)
        sys.unraisablehook = _unraised
    # Whoever starts us with a stream closed does not want what goes there, and must not lose the rest.
    sys.stdin, sys.stdout, sys.stderr = (
        Path(os.devnull).open(mode) if stream is None else stream  # noqa: SIM115  for as long as we run
        for stream, mode in ((sys.stdin, "r"), (sys.stdout, "w"), (sys.stderr, "w"))
    )
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show ε gets a question mark, not a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _stop() -> NoReturn:
    """Say one line and end, without taking the interpreter apart.

    All that is ours is closed by now. Threads of libraries may still be in the middle of something, and crash when
    what they stand on is taken from under them.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError, ValueError):
        if "--json" in sys.argv:
            print(json.dumps({"error": {"kind": "interrupted", "message": _words}}, ensure_ascii=False))
        else:
            print(_words, file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(STOPPED)


def _note(number: int, frame: FrameType | None) -> None:
    global _seen  # noqa: PLW0603  a signal handler has nowhere else to write
    _seen = True
    if not _ending:
        raise KeyboardInterrupt


def _unraised(lost: Any) -> None:
    """A Ctrl-C that came where Python raises nothing, as in a callback of the garbage collector, comes once more."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
    elif not _ending:
        signal.signal(signal.SIGALRM, _note)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)
