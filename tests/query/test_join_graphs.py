"""Questions over many tables with commas between, as the join order benchmark asks them: bound without delay."""

from collections.abc import Mapping
from itertools import pairwise
from random import Random
from time import process_time

import pytest

from confide.errors import QueryError
from confide.policy import Category, Column, Identifier, Policy, Text, load
from confide.query import bind

CHILDREN = ["cast_info", "movie_companies", "movie_info", "movie_keyword", "movie_link", "complete_cast", "aka_title"]
PUBLIC = ["company_name", "company_type", "info_type", "keyword", "role_type", "kind_type", "link_type", "char_name"]
POLICY: Policy = load(
    {
        "confide": 1,
        "budget": {"epsilon": 1, "delta": 1e-9},
        "unit": "title.id",
        "tables": {
            "title": {
                "columns": {
                    "id": {"type": "id"},
                    "title": {"type": "text"},
                    "production_year": {"range": [1880, 2020]},
                    "kind_id": {"type": "id"},
                }
            },
            **{
                child: {
                    "references": {"movie_id": "title.id"},
                    "at_most": {"rows": 3, "groups": 3},
                    "columns": {"id": {"type": "id"}, "note": {"type": "text"}, "other_id": {"type": "id"}},
                }
                for child in CHILDREN
            },
            **{name: {"public": True} for name in PUBLIC},
        },
    }
)


class Names:
    """Public tables of ids and names, each id once."""

    def columns(self, table: str) -> Mapping[str, Column]:
        return {"id": Identifier("id"), "name": Category("name", ("a", "b", "c")), "info": Text("info")}

    def multiplicity(self, table: str, columns: tuple[str, ...]) -> int:
        return 1 if "id" in columns else 100

    def distinct(self, table: str, columns: tuple[str, ...], most: int) -> None:
        return None


def join_graph(tables: int, rng: Random) -> tuple[str, str]:
    """FROM and WHERE of a connected graph: children of titles, what they name, and more equalities than needed."""
    children = rng.sample(CHILDREN, min(len(CHILDREN), max(1, (tables - 1) // 2)))
    named = rng.sample(PUBLIC, tables - 1 - len(children))
    listed = ["title AS t", *(f"{name} AS {name[:4]}{place}" for place, name in enumerate([*children, *named]))]
    aliases = [entry.split(" AS ")[1] for entry in listed[1:]]
    own, other = aliases[: len(children)], aliases[len(children) :]
    conditions = [f"{alias}.movie_id = t.id" for alias in own]
    conditions += [f"{one}.movie_id = {two}.movie_id" for one, two in pairwise(own)]
    conditions += [f"{alias}.id = {rng.choice(own)}.other_id" for alias in other]
    conditions += [f"{alias}.name IN ('a', 'b')" for alias in other]
    conditions += ["t.production_year BETWEEN 1990 AND 2005", f"{own[0]}.note LIKE '%(presents)%'"]
    rng.shuffle(listed)
    rng.shuffle(conditions)
    return ", ".join(listed), " AND ".join(conditions)


@pytest.mark.parametrize("tables", [3, 6, 9, 12, 14, 15, 16])
@pytest.mark.parametrize("seed", range(4))
def test_a_count_over_many_tables_is_bound_in_less_than_a_second(tables: int, seed: int) -> None:
    tables_from, where = join_graph(tables, Random(100 * tables + seed))
    begun = process_time()
    question = bind(f"SELECT COUNT(*) AS n FROM {tables_from} WHERE {where}", POLICY, Names())
    assert process_time() - begun < 1
    children = min(len(CHILDREN), max(1, (tables - 1) // 2))
    assert question.measures[0].l1 == 3**children


def test_the_least_of_texts_says_what_to_ask_instead() -> None:
    tables_from, where = join_graph(8, Random(1))
    with pytest.raises(QueryError) as caught:
        bind(f"SELECT MIN(t.title) AS movie FROM {tables_from} WHERE {where}", POLICY, Names())
    assert "title is text: its least or greatest value would show a row" in str(caught.value)
