"""What the command `init` does: the draft of a policy."""

import os
from pathlib import Path
from shlex import quote

from confide.cli.console import say, show_json
from confide.cli.output import new_file
from confide.policy.draft import BLANK, draft
from confide.release.custody.inspection import stored_table


def init(file: str, output: str | None, table: str | None, as_json: bool) -> None:
    data = Path(file)
    found = stored_table(data, table)
    target = Path(output) if output is not None else data.with_name(f"{data.name.split('.', maxsplit=1)[0]}.yaml")
    source = os.path.relpath(data.resolve(), target.resolve().parent)
    text = draft(found.name, found.columns, source)
    with new_file(target, "choose another name with --output") as stream:
        stream.write(text)
    blanks = sum(line.split("#", maxsplit=1)[0].count(BLANK) for line in text.splitlines())
    if as_json:
        columns = [{"name": name, "type": kind or None} for name, kind in found.columns]
        show_json({"policy": str(target), "table": found.name, "columns": columns, "blanks": blanks})
        return
    known = "names and types" if any(kind for _, kind in found.columns) else "names"
    say(f"wrote {target}: a draft from the {known} of {len(found.columns)} columns of {data.name}")
    say(
        f"It has {blanks} blanks ({BLANK}) and is refused until each is filled in. Take bounds and lists of values from"
        " what is known about the subject, never from the data. Then run:"
    )
    say(f"  confide check {quote(str(target))}", style="bold")
