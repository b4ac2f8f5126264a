"""The tables of TPC-H under two policies, tiny, and its 22 questions."""

import re
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from confide.policy import Policy, load

FLAGS = {
    "c_mktsegment": ["AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD"],
    "o_orderpriority": ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"],
    "o_orderstatus": ["F", "O", "P"],
    "l_returnflag": ["A", "N", "R"],
    "l_linestatus": ["F", "O"],
    "l_shipmode": ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"],
    "l_shipinstruct": ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"],
}
KINDS = ["CASE", "BOX", "PACK", "PKG", "BAG"]
NATIONS = ["FRANCE", "GERMANY", "BRAZIL", "SAUDI ARABIA", "CANADA", "INDIA"]
DAYS = {"range": ["1992-01-01", "1998-12-31"]}
ID, TEXT = {"type": "id"}, {"type": "text"}
LINEITEM: dict[str, Any] = {
    "l_partkey": {"range": [1, 20]}, "l_suppkey": {"range": [1, 10]}, "l_linenumber": {"range": [1, 7]},
    "l_quantity": {"range": [1, 50]}, "l_extendedprice": {"range": [0, 105000], "grain": 0.01},
    "l_discount": {"range": [0, 0.1], "grain": 0.01}, "l_tax": {"range": [0, 0.08], "grain": 0.01},
    "l_returnflag": {"values": FLAGS["l_returnflag"]}, "l_linestatus": {"values": FLAGS["l_linestatus"]},
    "l_shipdate": DAYS, "l_commitdate": DAYS, "l_receiptdate": DAYS, "l_shipmode": {"values": FLAGS["l_shipmode"]},
    "l_shipinstruct": {"values": FLAGS["l_shipinstruct"]}, "l_comment": TEXT,
}  # fmt: skip
CUSTOMER: dict[str, Any] = {
    "customer": {
        "columns": {
            "c_custkey": ID, "c_name": TEXT, "c_address": TEXT, "c_nationkey": {"range": [0, 24]}, "c_phone": TEXT,
            "c_acctbal": {"range": [-1000, 10000], "grain": 0.01}, "c_comment": TEXT,
            "c_mktsegment": {"values": FLAGS["c_mktsegment"]},
        }
    },
    "orders": {
        "references": {"o_custkey": "customer.c_custkey"},
        "at_most": {"rows": 40, "groups": 40},
        "columns": {
            "o_orderkey": ID, "o_orderstatus": {"values": FLAGS["o_orderstatus"]}, "o_orderdate": DAYS,
            "o_totalprice": {"range": [0, 600000], "grain": 0.01}, "o_shippriority": {"values": [0]},
            "o_orderpriority": {"values": FLAGS["o_orderpriority"]}, "o_comment": TEXT,
        },
    },
    "lineitem": {
        "references": {"l_orderkey": "orders.o_orderkey"},
        "at_most": {"rows": 280, "groups": 280},
        "columns": LINEITEM,
    },
}  # fmt: skip
SUPPLIER: dict[str, Any] = {
    "supplier": {
        "columns": {
            "s_suppkey": ID, "s_name": TEXT, "s_address": TEXT, "s_nationkey": {"range": [0, 24]}, "s_phone": TEXT,
            "s_acctbal": {"range": [-1000, 10000], "grain": 0.01}, "s_comment": TEXT,
        }
    },
    "partsupp": {
        "references": {"ps_suppkey": "supplier.s_suppkey"},
        "at_most": {"rows": 80, "groups": 80},
        "columns": {
            "ps_partkey": {"range": [1, 20]}, "ps_availqty": {"range": [1, 9999]},
            "ps_supplycost": {"range": [1, 1000], "grain": 0.01}, "ps_comment": TEXT,
        },
    },
}  # fmt: skip


def _policy(unit: str, private: dict[str, Any]) -> Policy:
    public = {name: {"public": True} for name in PUBLIC if name not in private}
    budget = {"epsilon": 1, "delta": 1e-9}
    return load({"confide": 1, "budget": budget, "unit": unit, "tables": {**private, **public}})


PUBLIC: dict[str, dict[str, list[Any]]] = {
    "region": {"r_regionkey": [0, 1, 2], "r_name": ["AMERICA", "ASIA", "EUROPE"]},
    "nation": {"n_nationkey": list(range(6)), "n_name": NATIONS, "n_regionkey": [2, 2, 0, 1, 0, 1]},
    "part": {
        "p_partkey": list(range(1, 21)), "p_name": [f"green {place}" for place in range(20)], "p_mfgr": ["m"] * 20,
        "p_brand": ["Brand#12", "Brand#23", "Brand#34", "Brand#45"] * 5,
        "p_size": [49, 14, 23, 45, 19, 3, 36, 9, 5, 1] * 2,
        "p_type": ["PROMO BRASS", "ECONOMY ANODIZED STEEL", "MEDIUM POLISHED TIN", "SMALL BRASS"] * 5,
        "p_container": [f"{size} {kind}" for size in ("SM", "MED", "LG", "WRAP") for kind in KINDS],
    },
    "supplier": {
        "s_suppkey": list(range(1, 11)), "s_name": [f"Supplier {place}" for place in range(10)],
        "s_address": ["a"] * 10, "s_nationkey": [0, 1, 2, 3, 4, 5, 0, 1, 2, 3], "s_phone": ["1"] * 10,
        "s_acctbal": [1.5] * 10, "s_comment": ["quick"] * 10,
    },
    "partsupp": {
        "ps_partkey": [part for part in range(1, 21) for _ in range(2)], "ps_suppkey": [*range(1, 11)] * 4,
        "ps_availqty": [5] * 40, "ps_supplycost": [1.25] * 40, "ps_comment": ["c"] * 40,
    },
}  # fmt: skip
POLICIES = {
    "customer": _policy("customer.c_custkey", CUSTOMER),
    "supplier": _policy("supplier.s_suppkey", SUPPLIER),
}


class TpchQuestion(NamedTuple):
    number: int
    unit: str
    refused: str
    text: str


def questions() -> list[TpchQuestion]:
    found = []
    for part in re.split(r"^-- (?=\d)", (Path(__file__).parent / "tpch.sql").read_text(), flags=re.MULTILINE)[1:]:
        head, _, text = part.partition("\n")
        label, _, refused = head.partition(" refused: ")
        number, unit = label.split()
        found.append(TpchQuestion(int(number), unit, refused, text.strip().removesuffix(";")))
    return found


def tables(unit: str) -> dict[str, pa.Table]:
    """One row in each private table, and the public ones."""
    policy = POLICIES[unit]
    found = {name: pa.table(columns) for name, columns in PUBLIC.items() if policy.tables[name].public}
    for table in policy.private_tables:
        found[table.name] = pa.table({name: [_value(name)] for name in table.columns})
    return found


def _value(name: str) -> Any:
    if name in FLAGS:
        return FLAGS[name][0]
    if name.endswith("date"):
        return date(1994, 5, 17)
    return (
        1
        if name.endswith(("key", "qty", "cost", "bal", "price", "priority", "tity", "count", "tax", "number"))
        else "x"
    )
