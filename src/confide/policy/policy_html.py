"""How a policy looks in a notebook."""

from confide.host.notebook import facts, framed, grid, lines, title
from confide.policy.describe import Description, TableFacts, describe
from confide.policy.policy import Policy
from confide.privacy.amount import show


def policy_html(policy: Policy) -> str:
    """All that is public about the data, who is protected, and how much may be spent."""
    return description_html(describe(policy))


def description_html(description: Description) -> str:
    """What is said of a policy."""
    return framed(*description_parts(description))


def description_parts(description: Description) -> list[str]:
    """The same, for a frame with more in it."""
    parts = [title(description.title)] if description.title else []
    parts.append(facts(_said(description)))
    for table in description.tables:
        parts.append(title(f"{table.name} ({'private' if table.private else 'public'}): {table.rows}{_most(table)}"))
        if table.columns:
            rows = [(column.name, column.kind, column.public, column.use) for column in table.columns]
            parts.append(grid(("column", "kind", "public", "for"), rows, words=range(4)))
    return [*parts, lines(f"worth a second look: {caution}" for caution in description.cautions)]


def _said(description: Description) -> list[tuple[str, str]]:
    budget = description.budget
    delta = f", δ = {show(budget.delta)}" if budget.delta else ""
    return [
        ("protected", description.protected),
        ("neighbours", description.neighbours),
        ("budget", f"ε = {show(budget.epsilon)}{delta} in all; {budget.held}"),
        *(("anybody else" if name == "*" else name, f"at most ε = {show(cap)}") for name, cap in budget.analysts),
        *((("data", description.source),) if description.source else ()),
    ]


def _most(table: TableFacts) -> str:
    if not table.private:
        return ""
    return f"; one unit has at most {table.at_most_rows:,} rows in {table.at_most_groups:,} groups of an answer"
