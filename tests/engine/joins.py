"""Tables whose joins multiply the rows of a unit, questions about them, and what a plain reading counts."""

from functools import cache
from random import Random
from typing import Any

import duckdb
import pyarrow as pa

from confide.policy import Policy, load

UNITS = 5
MOST = {"buy": 3, "line": 4, "claim": 2}
POLICY: Policy = load(
    {
        "confide": 1,
        "budget": {"epsilon": 1},
        "unit": "customer.id",
        "tables": {
            "customer": {"columns": {"id": {"type": "id"}, "land": {"values": ["A", "B"]}}},
            "buy": {
                "references": {"who": "customer.id"},
                "at_most": {"rows": MOST["buy"]},
                "columns": {"code": {"type": "id"}, "item": {"values": [1, 2, 3]}},
            },
            "line": {
                "references": {"code": "buy.code"},
                "at_most": {"rows": MOST["line"]},
                "columns": {"kind": {"values": ["x", "y"]}},
            },
            "claim": {
                "references": {"who": "customer.id"},
                "at_most": {"rows": MOST["claim"]},
                "columns": {"item": {"values": [1, 2, 3]}},
            },
            "tag": {"public": True, "columns": {"item": {"values": [1, 2, 3]}, "label": {"values": ["l", "m", "n"]}}},
        },
    }
)
QUESTIONS = (
    "SELECT COUNT(*) AS n FROM buy",
    "SELECT COUNT(*) AS n FROM buy AS a JOIN buy AS b ON a.who = b.who",
    "SELECT COUNT(*) AS n FROM buy AS a JOIN buy AS b ON a.who = b.who JOIN claim AS c ON c.who = a.who",
    "SELECT COUNT(*) AS n FROM customer JOIN buy ON customer.id = buy.who JOIN tag ON tag.item = buy.item",
    "SELECT COUNT(*) AS n FROM tag JOIN buy ON tag.item = buy.item JOIN tag AS t ON t.label = tag.label",
    "SELECT COUNT(*) AS n FROM line JOIN buy ON line.code = buy.code",
    "SELECT COUNT(*) AS n FROM line AS l JOIN buy ON l.code = buy.code JOIN line AS m ON m.code = buy.code",
    "SELECT COUNT(*) AS n FROM buy LEFT JOIN line ON line.code = buy.code",
    "SELECT COUNT(*) AS n FROM buy LEFT JOIN line ON line.code = buy.code LEFT JOIN line AS m ON m.code = buy.code",
    "SELECT COUNT(*) AS n FROM buy LEFT JOIN claim ON claim.who = buy.who",
    "SELECT COUNT(*) AS n FROM customer LEFT JOIN buy ON buy.who = customer.id LEFT JOIN tag ON tag.item = buy.item",
    "SELECT COUNT(*) AS n FROM buy AS a JOIN buy AS b ON a.who = b.who AND a.code = b.code",
    "SELECT a.item AS i, b.item AS j, COUNT(*) AS n FROM buy AS a JOIN buy AS b ON a.who = b.who GROUP BY 1, 2",
    "SELECT label, COUNT(*) AS n FROM buy JOIN tag ON tag.item = buy.item GROUP BY label",
    "SELECT kind, item, COUNT(*) AS n FROM line JOIN buy ON line.code = buy.code GROUP BY kind, item",
    "SELECT land, label, COUNT(*) AS n FROM customer JOIN buy ON id = who JOIN tag USING (item) GROUP BY 1, 2",
)


def tables_of(rows: dict[str, list[tuple[Any, ...]]]) -> dict[str, pa.Table]:
    """Tables of rows."""
    whole, text = pa.int64(), pa.string()
    shapes = {
        "customer": (("id", whole), ("land", text)),
        "buy": (("who", whole), ("code", whole), ("item", whole)),
        "line": (("code", whole), ("kind", text)),
        "claim": (("who", whole), ("item", whole)),
        "tag": (("item", whole), ("label", text)),
    }
    return {
        name: pa.table(
            {column: pa.array([row[place] for row in rows[name]], kind) for place, (column, kind) in enumerate(shape)}
        )
        for name, shape in shapes.items()
    }


def drawn(seed: int, most: dict[str, int], least: int = 0, units: int = UNITS) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of some units, each with at most so many of each table; public tags repeat each item up to three times."""
    draw = Random(seed)
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in ("customer", "buy", "line", "claim", "tag")}
    codes = iter(range(10_000))
    for unit in range(units):
        rows["customer"].append((unit, draw.choice("AB")))
        own = [next(codes) for _ in range(draw.randint(least or 0, most["buy"]))]
        rows["buy"] += [(unit, code, draw.choice((1, 2, 3))) for code in own]
        if own:
            rows["line"] += [
                (draw.choice(own if draw.random() < 0.5 else own[:1]), draw.choice("xy"))
                for _ in range(draw.randint(least, most["line"]))
            ]
        rows["claim"] += [(unit, draw.choice((1, 2, 3))) for _ in range(draw.randint(least, most["claim"]))]
    rows["tag"] = [(1, "l"), (1, "m"), (1, "n"), (2, "l"), (2, "m"), (3, "n")]
    return rows


def data_within(seed: int) -> dict[str, pa.Table]:
    """Data in which every unit has what the policy allows, or less."""
    return tables_of(drawn(seed, MOST, least=seed % 2))


def data_beyond(seed: int) -> dict[str, pa.Table]:
    """Data in which units have more than the policy allows."""
    return tables_of(drawn(seed, {name: 3 * most for name, most in MOST.items()}))


def plain_counts(text: str, data: dict[str, pa.Table]) -> list[int]:
    """The counts of a plain reading, without any bound, in the order of the keys' domains."""
    connection = _database()
    for name, table in data.items():
        connection.register(name, table)
    keys = text.removeprefix("SELECT ").split("COUNT(*)")[0].count(",")
    order = f" ORDER BY {', '.join(str(place + 1) for place in range(keys))}" if keys else ""
    return [row[-1] for row in connection.execute(text + order).fetchall() if row[-1]]


@cache
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:")
