"""Policies and public tables that the tests of queries speak of."""

from collections.abc import Mapping
from fractions import Fraction

from confide.policy import Category, Column, Identifier, Number, Policy, Text, load

PERSON = {
    "region": {"values": ["N", "E", "S", "W"]},
    "sex": {"values": ["F", "M"], "nulls": True},
    "kids": {"values": [0, 1, 2, 3]},
    "member": {"values": [True, False]},
    "age": {"range": [0, 115], "bins": 20},
    "income": {"range": [0, 500000]},
    "height": {"range": [0, 2.5], "grain": 0.01},
    "balance": {"range": [-100, 1000]},
    "born": {"range": ["1900-01-01", "2024-12-31"], "bins": 365},
    "left": {"range": ["1900-01-01", "2024-12-31"]},
    "job": {"type": "text"},
    "note": {"type": "text"},
    "wealth": {"range": "unbounded", "grain": 1},
}
PUBLIC = {"region_name": {"public": True}, "tag": {"public": True}}
PURE, APPROXIMATE = {"epsilon": 3}, {"epsilon": 3, "delta": 1e-9}
KEYED = {
    "person": {"columns": {"person_id": {"type": "id"}, **PERSON}},
    "visit": {
        "references": {"person_id": "person.person_id"},
        "at_most": {"rows": 20, "groups": 5},
        "columns": {
            "visit_id": {"type": "id"},
            "cost": {"range": [0, 10000], "grain": 0.01},
            "day": {"range": ["2024-01-01", "2024-12-31"]},
            "kind": {"values": ["check", "acute"]},
            "ward": {"type": "text"},
        },
    },
    "claim": {
        "references": {"who": "person.person_id"},
        "at_most": {"rows": 3, "groups": 1},
        "columns": {"amount": {"range": [0, 900]}, "kind": {"values": ["a", "b"]}},
    },
    "item": {
        "references": {"visit_id": "visit.visit_id"},
        "at_most": {"rows": 8, "groups": 2},
        "columns": {"item_id": {"type": "id"}, "units": {"range": [1, 9]}, "kind": {"values": ["x", "y"]}},
    },
    "part": {
        "references": {"item_id": "item.item_id"},
        "at_most": {"rows": 4, "groups": 4},
        "columns": {"size": {"range": [-3, 3]}},
    },
    **PUBLIC,
}


def _load(unit: str, tables: Mapping[str, object], budget: Mapping[str, object]) -> Policy:
    return load({"confide": 1, "budget": dict(budget), "unit": unit, "tables": dict(tables)})


POLICIES: dict[str, Policy] = {
    "row": _load("row", {"person": {"columns": PERSON}, "other": {"columns": PERSON}, **PUBLIC}, APPROXIMATE),
    "pure": _load("row", {"person": {"columns": PERSON}, **PUBLIC}, PURE),
    "counted": _load("row", {"person": {"rows": "public", "columns": PERSON}, **PUBLIC}, APPROXIMATE),
    "key": _load("person.person_id", KEYED, APPROXIMATE),
    "counted-key": _load("person.person_id", {**KEYED, "person": {**KEYED["person"], "rows": "public"}}, APPROXIMATE),
}


_TABLES: Mapping[str, Mapping[str, Column]] = {
    "region_name": {
        "region": Category("region", ("N", "E", "S", "W")),
        "name": Category("name", ("north", "east", "south", "west")),
        "people": Number("people", Fraction(0), Fraction(1000)),
    },
    "tag": {
        "region": Category("region", ("N", "E")),
        "label": Category("label", ("l1", "l2", "l3")),
        "code": Identifier("code"),
        "kids": Category("kids", (0, 1, 9)),
        "words": Text("words"),
    },
}


class SampleCatalog:
    """Two public tables: one row per region, and three tags for some of them."""

    def columns(self, table: str) -> Mapping[str, Column]:
        return _TABLES[table]

    def multiplicity(self, table: str, columns: tuple[str, ...]) -> int:
        assert set(columns) <= set(_TABLES[table])
        return 1 if table == "region_name" else 3

    def distinct(self, table: str, columns: tuple[str, ...], most: int) -> None:
        assert set(columns) <= set(_TABLES[table])


CATALOG = SampleCatalog()
