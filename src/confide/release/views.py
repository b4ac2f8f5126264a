"""Views of a session: joins declared once, with how many of their rows one unit can change."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from confide.errors import ParameterError
from confide.policy import Contribution, Policy
from confide.privacy.amount import shown_value, whole_number
from confide.query.conjunction import Conjunction
from confide.query.derivation.derivation import Derivation
from confide.query.question import Question
from confide.query.view import View, declare_view
from confide.release.arguments import by_name


@dataclass(frozen=True, slots=True)
class DeclaredView:
    """What a view is asked by. `stability`: the most of its rows that one unit can change; None where that is found
    privately, anew for each question.
    """

    name: str
    columns: tuple[str, ...]
    stability: int | None
    unit: str

    def __str__(self) -> str:
        changed = "a number of rows that is found privately" if self.stability is None else f"{self.stability:,} rows"
        return f"{self.name}({', '.join(self.columns)}): one {self.unit} changes at most {changed}"


def open_view(
    policy: Policy,
    views: dict[str, View],
    name: object,
    sql: object,
    at_most: Mapping[str, int] | None,
    dialect: str,
    binder: Callable[[str], Question | Conjunction | Derivation],
) -> DeclaredView:
    """Declare a view; it stays declared only if a count over it could be asked."""
    if not isinstance(name, str) or not isinstance(sql, str):
        raise ParameterError("a view has a name and a SELECT, both texts")
    view = declare_view(name, sql, _bounds(at_most), policy, dialect)
    before = views.get(name.casefold())
    if before is not None and before != view:
        raise ParameterError(f"{name} is declared already, as another view; give this one another name")
    views[name.casefold()] = view
    try:
        question = binder(f"SELECT COUNT(*) AS n FROM {name}")
    except BaseException:
        if before is None:
            del views[name.casefold()]
        raise
    stability = question.measures[0].l1 if isinstance(question, Question) else None
    return DeclaredView(name, view.columns, stability, question.unit)


def _bounds(at_most: object) -> Contribution | None:
    if at_most is None:
        return None
    given = {"groups": 1} | by_name(at_most, "at_most", "{'rows': 20, 'groups': 5}")
    rows, groups = whole_number(given.pop("rows", None)), whole_number(given.pop("groups"))
    if given or rows is None or groups is None or not 1 <= rows <= 10**9 or not 1 <= groups <= 10**9:
        raise ParameterError(f"at_most={shown_value(at_most)} is not like {{'rows': 20, 'groups': 5}}")
    if groups > rows:
        raise ParameterError(f"at_most={shown_value(at_most)}: {rows} rows cannot fall into {groups} groups")
    return Contribution(rows, groups)
