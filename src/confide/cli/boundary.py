"""Where errors become messages and exit codes: 0 done, 1 refused, 2 wrong usage, 130 stopped by Ctrl-C.

Errors of Confide are words on standard error, or {"error": ...} on standard output for --json. After a charge there is
but one. What was not foreseen before it is named by its kind and place only: its own words might hold a value of the
data that are being opened, and CONFIDE_TRACEBACK is for the custodian, who may see those.
"""

import os
import sys
from contextlib import suppress
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from confide import errors
from confide.cli import STOPPED, interrupted, stopping
from confide.cli.console import say, show_json
from confide.errors import ConfideError, ParameterError, PolicyError

REFUSED, WRONG_USAGE, OWN_FAULT, PIPE_CLOSED = 1, 2, 70, 141

_JSON = "confide.json"
_KINDS: dict[type[ConfideError], str] = {
    errors.PolicyError: "policy",
    errors.ParameterError: "usage",
    errors.QueryError: "query",
    errors.SourceError: "source",
    errors.BudgetError: "budget",
    errors.LedgerMissing: "ledger missing",
    errors.LedgerDamaged: "ledger damaged",
    errors.LedgerRolledBack: "ledger rolled back",
    errors.LedgerBusy: "ledger busy",
    errors.LedgerFull: "ledger full",
    errors.LedgerError: "ledger",
    errors.EngineError: "engine",
}


class Boundary(TyperGroup):
    """The outermost group: what a command raises ends here."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[_JSON] = "--json" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        as_json = ctx.meta[_JSON]
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # here, where a closed pipe is still ours to notice
            return result
        except (typer.Exit, typer.Abort):
            raise
        except BrokenPipeError:
            _drop_output()
            raise typer.Exit(PIPE_CLOSED) from None
        except (Exception, KeyboardInterrupt) as error:
            if isinstance(error, KeyboardInterrupt) or interrupted():
                stopping(error)
                raise typer.Exit(STOPPED) from None
            if isinstance(error, typer.TyperException) and not as_json:
                raise
            if not isinstance(error, ConfideError | OSError) and os.environ.get("CONFIDE_TRACEBACK"):
                raise
            _end(*_outcome(error), as_json)


def _outcome(error: Exception) -> tuple[int, str, dict[str, Any]]:
    """The exit code, the label and the facts of an error."""
    match error:
        case ConfideError():
            return WRONG_USAGE if isinstance(error, ParameterError) else REFUSED, error.label, report(error)
        case typer.TyperException():
            return error.exit_code, "", {"kind": "usage", "message": error.format_message()}
        case OSError():
            reason = error.strerror or "a file cannot be read or written"
            what = f"{error.filename}: {reason}" if error.filename else reason
            return REFUSED, "refused", {"kind": "file", "message": what}
    return OWN_FAULT, "a fault of Confide", {"kind": "fault", "message": _place(error)}


def report(error: ConfideError) -> dict[str, Any]:
    """An error as data: its kind, its message, and the problems of a policy one by one."""
    kind = next((_KINDS[base] for base in type(error).__mro__ if base in _KINDS), "error")
    facts: dict[str, Any] = {"kind": kind, "message": str(error)}
    if isinstance(error, PolicyError):
        facts["problems"] = [
            {"line": problem.line, "where": problem.where, "what": problem.what, "advice": problem.advice}
            for problem in error.problems
        ]
    return facts


def exit_code(error: ConfideError) -> int:
    return _outcome(error)[0]


def tell_refusal(error: ConfideError, as_json: bool) -> None:
    """Say a refusal that ends nothing, as the one that ends a command is said."""
    _, label, facts = _outcome(error)
    if as_json:
        show_json({"error": facts})
    else:
        say(facts["message"], label=label, errors=True)


def _end(code: int, label: str, facts: dict[str, Any], as_json: bool) -> NoReturn:
    try:
        if as_json:
            show_json({"error": facts})
            sys.stdout.flush()
        else:
            say(facts["message"], label=label, errors=True)
    except OSError:  # the disk behind the output is full, or nobody reads on
        _drop_output()
        if as_json:
            with suppress(OSError):
                say(facts["message"], label=label, errors=True)
    raise typer.Exit(code) from None


def _place(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" at {trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno}" if trace is not None else ""
    return (
        f"{type(error).__name__}{where}; what was charged stays charged, and nothing more is lost. Please report it; "
        "CONFIDE_TRACEBACK=1 shows the whole trace, which may hold values of the data"
    )


def _drop_output() -> None:
    """Whoever read our output is gone: say no more, not even at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
