"""Every bridge between dialects, as text; what the databases make of it is for the conformance suite."""

import pytest

from confide.engine.sql.translation import Translator, UnknownNodeError

POSTGRES = Translator("postgres", {"t": 'SELECT "x" AS "x" FROM public.t'})
SPARK = Translator("spark", {"t": "SELECT `x` AS `x` FROM v"})


@pytest.mark.parametrize(
    ("written", "postgres", "spark"),
    [
        ("(5)::HUGEINT", "CAST((5) AS DECIMAL)", "CAST((5) AS DECIMAL(38, 0))"),
        ("'0.5'::DOUBLE", "CAST('0.5' AS DOUBLE PRECISION)", "CAST('0.5' AS DOUBLE)"),
        ("CAST(x AS VARCHAR)", "CAST(x AS TEXT)", "CAST(x AS STRING)"),
        ("ISNAN(x)", "x = CAST('NaN' AS DOUBLE PRECISION)", "ISNAN(x)"),
        ("x // 10", "DIV(x, 10)", "x DIV 10"),
        ("CAST(x AS BIGINT) // 10", "CAST(x AS BIGINT) / 10", "CAST(x AS BIGINT) DIV 10"),
        (
            "CAST(x - DATE '1970-01-01' AS BIGINT)",
            "CAST(x - CAST('1970-01-01' AS DATE) AS BIGINT)",
            "CAST(DATEDIFF(x, CAST('1970-01-01' AS DATE)) AS BIGINT)",
        ),
        ("x LIKE 'a\\%'", "x LIKE 'a\\%' ESCAPE ''", "x LIKE 'a\\\\\\\\%'"),
        ("x NOT LIKE 'b'", "x NOT LIKE 'b' ESCAPE ''", "x NOT LIKE 'b'"),
        (
            "x NOT ILIKE 'B%'",
            "LOWER(TRANSLATE(CASE WHEN OCTET_LENGTH(x) <= 67108864 THEN x END, 'Σİ', 'σi') COLLATE \"und-x-icu\")"
            " COLLATE \"C\" NOT LIKE 'b%' ESCAPE ''",
            "COLLATE(LOWER(COLLATE(TRANSLATE(x, 'Σİ', 'σi'), 'UNICODE')), 'UTF8_BINARY') NOT LIKE 'b%'",
        ),
        (
            "SUM(x // 2)",
            "SUM(DIV(x, 2))",
            "((CAST(SUM(SHIFTRIGHT(x DIV 2, 31)) AS DECIMAL(38, 0)) * 2147483648)"
            " + CAST(SUM((x DIV 2) & 2147483647) AS DECIMAL(38, 0)))",
        ),
        ("SUM(x::HUGEINT)", "SUM(CAST(x AS DECIMAL))", "SUM(CAST(x AS DECIMAL(38, 0)))"),
        (
            "SHA256(CONCAT_WS(',', 'k', CAST(x AS VARCHAR)))",
            "ENCODE(SHA256(CONVERT_TO(CONCAT_WS(',', 'k', CAST(x AS TEXT)), 'UTF8')), 'hex') COLLATE \"C\"",
            "SHA2(CONCAT_WS(',', 'k', CAST(x AS STRING)), 256)",
        ),
        (
            "TRY_CAST(FLOOR(x // 1) AS BIGINT)",
            "CASE WHEN FLOOR(DIV(x, 1)) BETWEEN CAST('-9.2e18' AS DOUBLE PRECISION)"
            " AND CAST('9.2e18' AS DOUBLE PRECISION) THEN CAST(FLOOR(DIV(x, 1)) AS BIGINT) END",
            "TRY_CAST(FLOOR(CASE WHEN x DIV 1 > CAST('9.2e18' AS DOUBLE) THEN CAST('9.2e18' AS DOUBLE)"
            " WHEN x DIV 1 < CAST('-9.2e18' AS DOUBLE) THEN CAST('-9.2e18' AS DOUBLE) ELSE x DIV 1 END) AS BIGINT)",
        ),
        (
            "TRY_CAST(TRY_CAST(TRIM(x) AS HUGEINT) AS BIGINT)",
            "CASE WHEN CAST(TRIM(x) AS DECIMAL) BETWEEN -9223372036854775808 AND 9223372036854775807"
            " THEN CAST(CAST(TRIM(x) AS DECIMAL) AS BIGINT) END",
            "TRY_CAST(TRY_CAST(TRIM(x) AS DECIMAL(38, 0)) AS BIGINT)",
        ),
        (
            "x / '3.0'::DOUBLE",
            "CASE WHEN ABS(x) < CAST('1e-290' AS DOUBLE PRECISION) THEN CAST('0' AS DOUBLE PRECISION)"
            " ELSE x / CAST('3.0' AS DOUBLE PRECISION) END",
            "x / CAST('3.0' AS DOUBLE)",
        ),
        (
            "CAST(x AS HUGEINT) // (5)::BIGINT",
            "DIV(CAST(x AS DECIMAL), CAST((5) AS BIGINT))",
            "CASE WHEN CAST(x AS DECIMAL(38, 0)) > CAST(23058430092136939520 AS DECIMAL(38, 0))"
            " THEN CAST(23058430092136939520 AS DECIMAL(38, 0))"
            " WHEN CAST(x AS DECIMAL(38, 0)) < CAST(-23058430092136939520 AS DECIMAL(38, 0))"
            " THEN CAST(-23058430092136939520 AS DECIMAL(38, 0))"
            " ELSE CAST(x AS DECIMAL(38, 0)) END DIV CAST((5) AS BIGINT)",
        ),
        (
            "REGEXP_FULL_MATCH(x, '[ ]*[0-9]{1,18}')",
            "CASE WHEN OCTET_LENGTH(x) <= 67108864 THEN x END ~ '(?p)^(?:[ ]*[0-9]{1,18})$'",
            "x RLIKE '(?d)\\\\A(?:[ ]*[0-9]{1,18})\\\\z'",
        ),
        ("'it''s \\ é'", "'it''s \\ é'", "'it\\'s \\\\ é'"),
    ],
)
def test_expressions(written: str, postgres: str, spark: str) -> None:
    assert POSTGRES(f"SELECT {written} AS y FROM main.t AS s") == (
        f'SELECT {postgres} AS y FROM (SELECT "x" AS "x" FROM public.t) AS s'
    )
    assert SPARK(f"SELECT {written} AS y FROM main.t AS s") == (
        f"SELECT {spark} AS y FROM (SELECT `x` AS `x` FROM v) AS s"
    )


def test_a_missing_unit_is_looked_up_by_a_join() -> None:
    written = "SELECT 1 AS a FROM main.t AS s WHERE s.x NOT IN (SELECT u FROM many) AND s.x NOT IN (1, 2)"
    for translate in (POSTGRES, SPARK):
        found = translate(written)
        assert "NOT EXISTS(SELECT 1 FROM many WHERE many.u = s.x)" in found
        assert "NOT s.x IN (1, 2)" in found


def test_what_stands_for_a_table_is_left_as_it_is_written() -> None:
    """It is of the dialect already: to be read and written once more could only change it."""
    for dialect in ("postgres", "spark"):
        native = "SELECT  weird( 'a\\\\b' ) AS x FROM   v"
        assert Translator(dialect, {"t": native})("SELECT x FROM main.t AS s") == f"SELECT x FROM ({native}) AS s"


def test_ties_are_ordered_alike() -> None:
    written = "SELECT ROW_NUMBER() OVER (PARTITION BY u ORDER BY a NULLS LAST) AS rn FROM main.t AS s"
    assert "ORDER BY a NULLS LAST" in SPARK(written)
    assert "ORDER BY a)" in POSTGRES(written)  # last by default


def test_numbers_of_rows_have_an_order() -> None:
    written = "SELECT v, ROW_NUMBER() OVER () - 1 AS n FROM (SELECT DISTINCT x AS v FROM main.t AS s) AS e"
    assert "ROW_NUMBER() OVER (ORDER BY v NULLS LAST) - 1" in SPARK(written)
    assert "ROW_NUMBER() OVER () - 1" in POSTGRES(written)


def test_a_part_that_is_computed_once_is_a_part_elsewhere() -> None:
    written = "SELECT 1 AS a FROM (WITH many AS MATERIALIZED (SELECT 1 AS u) SELECT u FROM many) AS r"
    assert "MATERIALIZED" in POSTGRES(written)
    assert "MATERIALIZED" not in SPARK(written)


@pytest.mark.parametrize(
    "written",
    ["SELECT HASH(x) FROM main.t", "SELECT REGEXP_MATCHES(x, 'a') FROM main.t", "SELECT x::UBIGINT FROM main.t"],
)
def test_what_no_rule_knows_is_refused(written: str) -> None:
    with pytest.raises(UnknownNodeError):
        POSTGRES(written)


def test_a_subquery_that_is_computed_once_is_fenced_off() -> None:
    written = "SELECT y + y AS z FROM (SELECT x AS y FROM main.t AS s) AS apart"
    assert POSTGRES(written).endswith("AS s OFFSET 0) AS apart")
    assert "OFFSET" not in POSTGRES(written.replace("apart", "together"))
    assert "OFFSET" not in SPARK(written)
