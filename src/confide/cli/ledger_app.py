"""The commands of the ledger, as they are typed."""

from typing import Annotated

import typer

from confide.cli import options

ledger_app = typer.Typer(help="The record of everything that was spent.", no_args_is_help=True)


@ledger_app.command()
def create(policy: options.PolicyPath, ledger: options.LedgerFile = None, as_json: options.Json = False) -> None:
    """Make the ledger of a policy, with its whole budget unspent. Refused where there is, or was, one."""
    from confide.cli import ledger as bookkeeping  # noqa: PLC0415  loaded when used

    bookkeeping.create(policy, ledger, as_json)


@ledger_app.command()
def show(
    policy: options.PolicyPath,
    last: Annotated[str, typer.Option("--last", "-n", metavar="N", help="How many entries, the newest.")] = "20",
    ledger: options.LedgerFile = None,
    as_json: options.Json = False,
) -> None:
    """Show the newest entries: who asked what, and what it cost."""
    from confide.cli import ledger as bookkeeping  # noqa: PLC0415  loaded when used

    bookkeeping.show(policy, last, ledger, as_json)


@ledger_app.command()
def verify(policy: options.PolicyPath, ledger: options.LedgerFile = None, as_json: options.Json = False) -> None:
    """Walk the whole chain and add everything up again."""
    from confide.cli import ledger as bookkeeping  # noqa: PLC0415  loaded when used

    bookkeeping.verify(policy, ledger, as_json)


@ledger_app.command()
def export(
    policy: options.PolicyPath,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file that is not there yet.")
    ] = None,
    ledger: options.LedgerFile = None,
    as_json: options.Json = False,
) -> None:
    """Write every entry as a line of JSON that anybody can add up again."""
    from confide.cli import ledger as bookkeeping  # noqa: PLC0415  loaded when used

    bookkeeping.export(policy, output, ledger, as_json)


@ledger_app.command()
def amend(policy: options.PolicyPath, ledger: options.LedgerFile = None, as_json: options.Json = False) -> None:
    """Put a changed budget, or changed caps, of the policy on the ledger's record."""
    from confide.cli import ledger as bookkeeping  # noqa: PLC0415  loaded when used

    bookkeeping.amend(policy, ledger, as_json)


@ledger_app.command()
def restore_anchor(
    policy: options.PolicyPath, ledger: options.LedgerFile = None, as_json: options.Json = False
) -> None:
    """Make a lost anchor again. You vouch that the ledger is the newest there is."""
    from confide.cli import ledger as bookkeeping  # noqa: PLC0415  loaded when used

    bookkeeping.restore_anchor(policy, ledger, as_json)
