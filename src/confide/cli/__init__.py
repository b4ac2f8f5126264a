"""The terminal. This module is all that runs before the command line is read, so it stays small."""

import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

INTERRUPTED = "stopped: nothing is lost, and the same question asked again costs nothing more"
STOPPED = 130

_seen = False


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


def _prepare() -> None:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _note)
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if "--json" in sys.argv:
        print(json.dumps({"error": {"kind": "interrupted", "message": INTERRUPTED}}))
    else:
        print(INTERRUPTED, file=sys.stderr)
    sys.exit(STOPPED)


def _note(number: int, frame: FrameType | None) -> None:
    global _seen  # noqa: PLW0603  a signal handler has nowhere else to write
    _seen = True
    raise KeyboardInterrupt
