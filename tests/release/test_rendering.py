"""How answers look: texts are texts, wherever they come from."""

import confide

POLICY = {
    "budget": {"epsilon": 10, "delta": 1e-6},
    "unit": "row",
    "tables": {"t": {"columns": {"k": {"type": "text"}}}},
}


def test_a_key_from_the_data_neither_styles_nor_steers() -> None:
    keys = ["[red]one[/red]", ":smile:", "\x1b[2Jtwo\x07", "<b>three</b>"]
    data = {"t": {"k": keys * 2_000}}
    with confide.testing.open(POLICY, data, seed=1) as session:
        answer = session.sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k", epsilon=5)
    shown = str(answer)
    assert {row["k"] for row in answer.to_dicts()} == set(keys)
    for text in ("[red]one[/red]", ":smile:", "\\x1b[2Jtwo\\x07", "<b>three</b>"):
        assert text in shown
    assert "\x1b" not in shown
    assert "&lt;b&gt;three" in answer._repr_html_()
