"""How an examination looks in print and in a notebook."""

from collections.abc import Iterator

from confide.host.notebook import framed, lines, title
from confide.release.answer.rendering import html_of, print_table, printable, table_of
from confide.release.custody.examination import FOR_WHOM, Examination, ExaminedTable
from confide.release.custody.judgement import share

HEAD = ("column", "kind", "values", "missing", "unreadable", "outside", "rounded")


def examined_rows(table: ExaminedTable) -> list[tuple[str, ...]]:
    """One row of texts for each column."""
    return [
        (
            column.name,
            column.kind,
            f"{column.values:,}",
            _part(column.missing, table.rows),
            _part(column.unreadable, table.rows),
            _part(column.outside, table.rows),
            "" if column.rounded is None else _part(column.rounded, table.rows),
        )
        for column in table.columns
    ]


def title_of(table: ExaminedTable) -> str:
    units = "" if table.units is None else f", {table.units:,} units"
    return f"{table.name}: {table.rows:,} rows{units}"


def examined_text(examination: Examination) -> str:
    return "\n".join(_lines(examination))


def examined_html(examination: Examination) -> str:
    parts = [title(FOR_WHOM)]
    for table in examination.tables:
        parts += [title(title_of(table)), html_of(HEAD, examined_rows(table))]
    parts += [title(f"WARNING: {remark}") if remark.loud else lines([str(remark)]) for remark in examination.remarks]
    return framed(*parts)


def _lines(examination: Examination) -> Iterator[str]:
    yield FOR_WHOM
    for table in examination.tables:
        yield ""
        yield printable(title_of(table))
        yield print_table(table_of(HEAD, examined_rows(table))).rstrip("\n")
    yield ""
    for remark in examination.remarks:
        yield printable(f"{'WARNING: ' if remark.loud else 'note: '}{remark}")


def _part(part: int, whole: int) -> str:
    return "0" if not part else f"{part:,} ({share(part, whole)})"
