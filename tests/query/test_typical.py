"""Where numbers of a row are believed to lie, through every kind of arithmetic: by brute force over the corners."""

from fractions import Fraction

import pytest

from confide.policy import load
from confide.query import bind
from tests.query.samples import CATALOG

POLICY = load(
    {
        "confide": 1,
        "budget": {"epsilon": 1},
        "unit": "row",
        "tables": {
            "t": {
                "columns": {
                    "x": {"range": [-10, 90], "typical": [-2, 4]},
                    "y": {"range": [0, 50], "grain": 0.5, "typical": [1, 3.5]},
                    "z": {"range": [0, 9]},
                }
            }
        },
    }
)


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("x", (-2, 4)),
        ("-x", (-4, 2)),
        ("2 * x + 1", (-3, 9)),
        ("x + y", (-1, Fraction(15, 2))),
        ("x + z", (-2, 13)),
        ("x * y", (-7, 14)),
        ("x * x", (0, 16)),
        ("ABS(x)", (0, 4)),
        ("LEAST(x, 3)", (-2, 3)),
        ("GREATEST(x, 3)", (3, 4)),
        ("COALESCE(x, 3)", (-2, 4)),
        ("CASE WHEN z > 3 THEN x ELSE y END", (-2, 4)),
        ("z", None),
        ("z + 1", None),
    ],
)
def test_what_is_believed_of_an_expression(text, ends):
    question = bind(f"SELECT MEDIAN({text}) AS m FROM t", POLICY, CATALOG)
    (statistic,) = question.statistics
    found = statistic.typical
    assert ends == (None if found is None else tuple(end * statistic.grain for end in found))
