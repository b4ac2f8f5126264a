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


def test_a_name_of_a_column_does_not_steer_either() -> None:
    policy = {"budget": {"epsilon": 9}, "unit": "row", "tables": {"t": {"columns": {"r": {"values": ["x"]}}}}}
    session = confide.testing.open(policy, {"t": {"r": ["x"]}}, seed=1)
    sql = 'SELECT r AS "k\x1b[3m", COUNT(*) AS "\x1b[31mn\u202e" FROM t GROUP BY r'
    for shown in (str(session.sql(sql, epsilon=1)), str(session.plan(sql, epsilon=1))):
        assert "\\x1b[31mn\\x202e" in shown
        assert all(character.isprintable() or character == "\n" for character in shown)
