"""The commands, as they are typed. What they do is loaded when they run, so that help is quick."""

from typing import Annotated

import typer

from confide import __version__
from confide.cli import options
from confide.cli.boundary import Boundary
from confide.cli.ledger_app import ledger_app

app = typer.Typer(
    name="confide",
    cls=Boundary,
    help="Ask questions about private data, and learn how far to trust each answer.",
    epilog="Exit codes: 0 done, 1 refused, 2 wrong usage. Start with: confide demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(ledger_app, name="ledger")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"confide {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Ask questions about private data, and learn how far to trust each answer."""


@app.command()
def demo(
    folder: Annotated[
        str | None, typer.Option("--dir", metavar="DIR", help="Keep the data, the policy and the ledger here.")
    ] = None,
    people: Annotated[str, typer.Option("--people", metavar="N", help="How many people to make up.")] = "100000",
    as_json: options.Json = False,
) -> None:
    """Make up a small country, ask about it, and compare each answer with the truth."""
    from confide.cli import demo as story  # noqa: PLC0415  loaded when used

    story.run(folder, people, as_json)


@app.command()
def init(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="CSV, Parquet or DuckDB files, a folder of them, postgresql://..., or spark.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="POLICY", help="The policy to write, if not beside the data."),
    ] = None,
    table: Annotated[
        str | None, typer.Option("--table", metavar="NAME", help="One table of several, or what to call the only one.")
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option("--epsilon", "-e", metavar="ε", help="Pay so much to have bounds and lists proposed privately."),
    ] = None,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="ε", help="With --epsilon: the whole budget of the policy.")
    ] = None,
    delta: Annotated[
        str | None, typer.Option("--delta", metavar="δ", help="With --epsilon: its δ; lists of values need one.")
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option("--unit", metavar="WHO", help="With --epsilon: who is protected: row, or table.column."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Draft a policy from the names and types of columns. No value is read, unless you pay for it."""
    from confide.cli import drafting  # noqa: PLC0415  loaded when used

    drafting.init(drafting.InitCommand(sources, output, table, epsilon, budget, delta, unit), as_json)


@app.command()
def check(
    policy: options.PolicyPath,
    ledger: options.LedgerFile = None,
    values: Annotated[
        bool,
        typer.Option("--values/--no-values", help="Also count how the values fit: for the custodian only."),
    ] = True,
    as_json: options.Json = False,
) -> None:
    """Say what a policy makes public, and how it fits its data: for the custodian's eyes only."""
    from confide.cli import check as checking  # noqa: PLC0415  loaded when used

    checking.check(policy, ledger, values, as_json)


@app.command()
def plan(
    policy: options.PolicyPath,
    sql: options.Sql,
    epsilon: options.Epsilon = None,
    within: options.Within = None,
    confidence: options.Confidence = "0.95",
    rows: options.Rows = None,
    split: options.Split = None,
    bounds: options.Bounds = None,
    mechanism: options.Mechanism = "auto",
    account: options.Account = "auto",
    dialect: options.Dialect = "duckdb",
    analyst: options.Analyst = "",
    ledger: options.LedgerFile = None,
    population: options.Population = False,
    as_json: options.Json = False,
) -> None:
    """Forecast the cost and the width of an answer. Free: nothing private is read."""
    from confide.cli import sql as asking  # noqa: PLC0415  loaded when used

    asking.plan(
        asking.SqlCommand(
            policy,
            sql,
            epsilon,
            within,
            confidence,
            rows,
            split,
            bounds,
            mechanism,
            account,
            dialect,
            analyst,
            ledger,
            population,
        ),
        as_json,
    )


@app.command()
def shell(
    policy: options.PolicyPath,
    epsilon: options.Epsilon = None,
    within: options.Within = None,
    confidence: options.Confidence = "0.95",
    analyst: options.Analyst = "",
    ledger: options.LedgerFile = None,
) -> None:
    """Ask one question after the other at a prompt, or those of a script on standard input."""
    from confide.cli import shell as asking  # noqa: PLC0415  loaded when used

    asking.run(asking.ShellOptions(policy, epsilon, within, confidence, analyst, ledger))


@app.command()
def sql(
    policy: options.PolicyPath,
    sql: options.Sql,
    epsilon: options.Epsilon = None,
    within: options.Within = None,
    confidence: options.Confidence = "0.95",
    rows: options.Rows = None,
    split: options.Split = None,
    bounds: options.Bounds = None,
    mechanism: options.Mechanism = "auto",
    account: options.Account = "auto",
    dialect: options.Dialect = "duckdb",
    analyst: options.Analyst = "",
    ledger: options.LedgerFile = None,
    population: options.Population = False,
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE", help="Also draw a chart: FILE.html, .png or .svg.")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FILE", help="Also write it: FILE.csv, .parquet, .json or .arrow."),
    ] = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Of several questions, ask those after a refusal too.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Answer a question, or several from a file, with an interval on every number. The same again is free."""
    from confide.cli import sql as asking  # noqa: PLC0415  loaded when used

    asking.sql(
        asking.SqlCommand(
            policy,
            sql,
            epsilon,
            within,
            confidence,
            rows,
            split,
            bounds,
            mechanism,
            account,
            dialect,
            analyst,
            ledger,
            population,
        ),
        plot,
        out,
        keep_going,
        as_json,
    )


@app.command()
def summary(
    policy: options.PolicyPath,
    table: Annotated[str | None, typer.Argument(metavar="TABLE", help="The table, if there are several.")] = None,
    epsilon: options.Epsilon = None,
    confidence: options.Confidence = "0.95",
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FILE", help="Also write a page or picture: .html, .png, .svg."),
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only forecast. Free: nothing private is read.")] = False,
    rows: options.Rows = None,
    account: options.Account = "auto",
    analyst: options.Analyst = "",
    ledger: options.LedgerFile = None,
    as_json: options.Json = False,
) -> None:
    """The first look at a table, for one charge: rows, missing values, quantiles, commonest values."""
    from confide.cli import summary as looking  # noqa: PLC0415  loaded when used

    request = looking.SummaryCommand(policy, table, epsilon, confidence, rows, account, analyst, ledger)
    if plan:
        looking.plan(request, as_json)
    else:
        looking.summary(request, out, as_json)


@app.command()
def microdata(
    policy: options.PolicyPath,
    marginal: Annotated[
        list[str] | None,
        typer.Option("--marginal", "-m", metavar="COLUMNS", help="What to count: sex, or age,sex; * is the total."),
    ] = None,
    epsilon: options.Epsilon = None,
    fit: Annotated[
        str, typer.Option("--fit", metavar="NAME", help="auto, nnls, reweighted, sequential, pinned, maxfit or ols.")
    ] = "auto",
    priority: Annotated[
        str | None, typer.Option("--priority", metavar="STAGES", help="What matters most first: '* > sex > age,sex'.")
    ] = None,
    confidence: options.Confidence = "0.95",
    out: Annotated[str | None, typer.Option("--out", "-o", metavar="DIR", help="The new folder to write.")] = None,
    table: Annotated[str | None, typer.Option("--table", metavar="NAME", help="The table, if several fit.")] = None,
    public: Annotated[
        str | None, typer.Option("--public", metavar="FILE", help="JSON with impossible cells and public totals.")
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only forecast. Free: nothing private is read.")] = False,
    report: Annotated[
        bool, typer.Option("--report", help="Also say which sums are at risk, and what fits do.")
    ] = False,
    rows: options.Rows = None,
    analyst: options.Analyst = "",
    ledger: options.LedgerFile = None,
    as_json: options.Json = False,
) -> None:
    """Noisy tables with intervals, and records fitted to them. The same tables again are free."""
    from confide.cli import microdata as making  # noqa: PLC0415  loaded when used

    request = making.MicrodataCommand(
        policy, marginal or [], epsilon, fit, priority, confidence, table, public, rows, analyst, ledger
    )
    if plan:
        making.plan(request, as_json)
    else:
        making.microdata(request, out, report, as_json)


@app.command()
def answer(
    policy: options.PolicyPath,
    ranges: Annotated[
        list[str] | None, typer.Option("--ranges", metavar="COLUMNS", help="Ranges of a column; boxes of age,height.")
    ] = None,
    prefixes: Annotated[
        list[str] | None, typer.Option("--prefixes", metavar="COLUMNS", help="All stretches from a column's lower end.")
    ] = None,
    marginals: Annotated[
        str | None, typer.Option("--marginals", metavar="K", help="All K-way marginals, of --columns if given.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="NAMES", help="The columns of --marginals: age,sex.")
    ] = None,
    by: Annotated[str | None, typer.Option("--by", metavar="NAMES", help="Ranges and prefixes by these.")] = None,
    bins: Annotated[
        str | None, typer.Option("--bins", metavar="WIDTHS", help="Widths of bins: income=1000,age=5.")
    ] = None,
    epsilon: options.Epsilon = None,
    within: Annotated[
        str | None, typer.Option("--within", "-w", metavar="WIDTH", help="With --plan: the ε for ±WIDTH at worst.")
    ] = None,
    strategy: Annotated[
        str,
        typer.Option("--strategy", metavar="NAME",
                     help="auto, exact, direct, identity, hierarchy, wavelet, prefix, optimised, residual, privtree, "
                          "dawa or net."),
    ] = "auto",
    goal: Annotated[
        str, typer.Option("--goal", metavar="NAME", help="What is made least: typical or worst widths.")
    ] = "typical",
    confidence: options.Confidence = "0.95",
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Write all answers to a .parquet or .csv file.")
    ] = None,
    table: Annotated[str | None, typer.Option("--table", metavar="NAME", help="The table, if several fit.")] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only forecast. Free: nothing private is read.")] = False,
    analyst: options.Analyst = "",
    ledger: options.LedgerFile = None,
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """Ranges, prefixes and marginals from one measurement, each with an interval. The same again is free."""
    from confide.cli import answer as answering  # noqa: PLC0415  loaded when used

    request = answering.AnswerCommand(
        policy, ranges or [], prefixes or [], marginals, columns, by, bins, epsilon, within, strategy, confidence,
        table, analyst, ledger, goal,
    )  # fmt: skip
    if plan:
        answering.plan(request, as_json)
    else:
        answering.answer(request, out, as_json)


@app.command()
def trust(
    policy: options.PolicyPath,
    sql: Annotated[
        list[str],
        typer.Argument(metavar="SQL...", help="The query, or several; - and @FILE as elsewhere.", show_default=False),
    ],
    synthetic: Annotated[
        list[str] | None,
        typer.Option("--synthetic", "-s", metavar="FILE", help="Synthetic data: a CSV or Parquet file, or table=FILE."),
    ] = None,
    within: Annotated[
        str, typer.Option("--within", "-w", metavar="DISTANCE", help="How near the private answer must be: 50, or 5%.")
    ] = "5%",
    epsilon: options.Epsilon = None,
    mechanism: Annotated[
        str, typer.Option("--mechanism", metavar="NAME", help="The decider, such as optimal, laplace or clip.")
    ] = "auto",
    prefer: Annotated[
        str, typer.Option("--prefer", metavar="WHAT", help="balanced, or cautious to bound a wrong yes.")
    ] = "balanced",
    plan: Annotated[bool, typer.Option("--plan", help="Only forecast errors. Free: nothing private is read.")] = False,
    gap: Annotated[
        str | None,
        typer.Option("--gap", metavar="N", help="With --plan: find the ε for answers that are so far apart."),
    ] = None,
    error: Annotated[
        str, typer.Option("--error", metavar="SHARE", help="With --gap: how often the verdict may be wrong there.")
    ] = "0.05",
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE", help="With --plan: draw the errors in .html, .png or .svg.")
    ] = None,
    analyst: options.Analyst = "",
    ledger: options.LedgerFile = None,
    as_json: options.Json = False,
) -> None:
    """Say whether a synthetic answer may be used for a query: one private bit. The same again is free."""
    from confide.cli import trust as trusting  # noqa: PLC0415  loaded when used

    request = trusting.TrustOptions(
        policy, sql, synthetic or [], within, epsilon, mechanism, prefer, gap, error, analyst, ledger
    )
    if plan:
        trusting.plan(request, plot, as_json)
    else:
        trusting.trust(request, as_json)


@app.command()
def synthesize(
    policy: options.PolicyPath,
    epsilon: options.Epsilon = None,
    marginals: Annotated[
        str | None, typer.Option("--marginals", "-k", metavar="K", help="Get every K-way marginal right.")
    ] = None,
    thresholds: Annotated[
        str | None, typer.Option("--thresholds", metavar="R-of-K", help="Get every R-of-K threshold right.")
    ] = None,
    sql: Annotated[
        list[str] | None,
        typer.Option("--sql", metavar="SQL", help="Get this COUNT query right; may be given often; @FILE reads it."),
    ] = None,
    history: Annotated[bool, typer.Option("--history", help="Get the kind of past questions right.")] = False,
    table: Annotated[
        str | None, typer.Option("--table", metavar="NAME", help="The table, if not the only one.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="NAMES", help="Only these columns: age,sex,region.")
    ] = None,
    bins: Annotated[str | None, typer.Option("--bins", metavar="WIDTHS", help="Widths of bins: age=10.")] = None,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="NAME",
            help="auto, planned, rap, mst, aim, mwem, privbayes, ...; see the documentation.",
        ),
    ] = "auto",
    select: Annotated[
        str, typer.Option("--select", metavar="HOW", help="closure, marginals, queries or all; see the documentation.")
    ] = "auto",
    rounds: Annotated[str | None, typer.Option("--rounds", metavar="T", help="Rounds of selection.")] = None,
    picks: Annotated[str | None, typer.Option("--picks", metavar="K", help="Queries chosen in a round.")] = None,
    rows: Annotated[str | None, typer.Option("--table-rows", metavar="N", help="Rows of the relaxed table.")] = None,
    megabytes: Annotated[str | None, typer.Option("--megabytes", metavar="N", help="Of a model, at most.")] = None,
    degree: Annotated[str | None, typer.Option("--degree", metavar="N", help="Parents in a network, at most.")] = None,
    inside: Annotated[
        str, typer.Option("--inside", metavar="HOW", help="Values in bins: measured, or even at no cost.")
    ] = "measured",
    start: Annotated[
        str | None,
        typer.Option("--start", metavar="WHAT", help="Begin with these rows, at no cost: a FILE, or a public table."),
    ] = None,
    children: Annotated[
        str | None,
        typer.Option("--children", metavar="TABLES", help="Also these, which refer to the table: visit,letter."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write records: FILE.parquet, or a FOLDER with --children."),
    ] = None,
    records: Annotated[str | None, typer.Option("--records", metavar="N", help="How many records to write.")] = None,
    save: Annotated[str | None, typer.Option("--save", metavar="FILE", help="Keep it, for load_synthetic.")] = None,
    report: Annotated[
        str | None,
        typer.Option("--report", metavar="FILE", help="Write what the records are good for: FILE.html, .png, .yaml."),
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only forecast. Free: nothing private is read.")] = False,
    analyst: options.Analyst = "",
    ledger: options.LedgerFile = None,
    as_json: options.Json = False,
) -> None:
    """Make synthetic data for a workload of counts. A command that was stopped goes on where it stopped."""
    from confide.cli import synthesize as synthesizing  # noqa: PLC0415  loaded when used

    request = synthesizing.SynthesisCommand(
        policy, epsilon, marginals, thresholds, sql or [], history, table, columns, bins, method, select, rounds, picks,
        rows, inside, start, megabytes, degree, analyst, ledger,
    )  # fmt: skip
    if children is not None:
        from confide.cli import synthesize_tables as together  # noqa: PLC0415

        if plan:
            together.plan(request, children, as_json)
        else:
            together.synthesize(request, children, out, records, save, report, as_json)
    elif plan:
        synthesizing.plan(request, as_json)
    else:
        synthesizing.synthesize(request, out, records, save, report, as_json)


@app.command()
def budget(
    policy: options.PolicyPath,
    epsilon: options.Epsilon = None,
    analyst: options.Analyst = "",
    ledger: options.LedgerFile = None,
    as_json: options.Json = False,
) -> None:
    """Say what is spent, what is left, and how many answers at ε that is."""
    from confide.cli import ledger as bookkeeping  # noqa: PLC0415  loaded when used

    bookkeeping.budget(policy, epsilon, analyst, ledger, as_json)
