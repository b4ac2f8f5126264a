"""What PostgreSQL stores is told apart as the policy means it, whatever somebody has set or named there."""

from contextlib import closing
from dataclasses import replace

import pytest

from confide.engine.postgres.engine import PostgresEngine
from confide.engine.postgres.types import stored_type
from confide.errors import EngineError, SourceError
from confide.policy import Policy
from tests.conformance.engine import ask, integers, policy_of
from tests.servers import PostgresServer

PEOPLE = policy_of({"t": {"columns": {"k": {"type": "id"}, "x": {"range": [0, 100]}}}}, unit="t.k")
NUMBERS, DECIMAL = 1700, 4


def opened(server: PostgresServer, database: str, policy: Policy = PEOPLE) -> PostgresEngine:
    return PostgresEngine(replace(policy, source=server.url(database)))


def count(server: PostgresServer, database: str, question: str, policy: Policy = PEOPLE) -> list[list[int]]:
    with closing(opened(server, database, policy)) as engine:
        return integers(ask(engine, policy, question))


def test_digits_of_a_decimal() -> None:
    def digits(width: int, scale: int) -> tuple[int, int] | None:
        return stored_type("numeric", NUMBERS, DECIMAL + (width << 16 | scale & 0x7FF), False).digits

    assert digits(10, 2) == (10, 2)
    assert digits(38, 38) == (38, 38)
    assert digits(39, 2) is digits(3, -2) is digits(2, 5) is None  # too many, or others than it says
    assert stored_type("numeric", NUMBERS, -1, False).digits is None
    assert stored_type("timestamp_like", 999_999, -1, False).family == "other"


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("numeric", ("9007199254740992", "9007199254740993", "9007199254740993.0000000001", "1e40", "1e40 + 1")),
        ("timestamp", ("'2024-01-31 08:00'", "'2024-01-31 08:00:00.000001'", "'2024-01-31'")),
        ("timestamptz", ("'2024-01-31 08:00+00'", "'2024-01-31 09:00+00'", "'2024-01-31 09:00+01'")),
    ],
)
def test_ids_are_told_apart(
    kind: str, values: tuple[str, ...], postgres_server: PostgresServer, postgres_database: str
) -> None:
    rows = ", ".join(f"(CAST({value} AS {kind}), 5)" for value in values)
    postgres_server.run(f"CREATE TABLE t (k {kind}, x integer); INSERT INTO t VALUES {rows}", postgres_database)
    people = 2 if kind == "timestamptz" else len(values)  # the same moment in two places is one
    found = count(postgres_server, postgres_database, "SELECT COUNT(DISTINCT k) AS n FROM t")
    assert found == [[people]]


def test_a_key_of_a_parent_is_none_of_its_children(postgres_server: PostgresServer, postgres_database: str) -> None:
    """One that was taken for unique would let a unit bring any number of rows."""
    postgres_server.run(
        "CREATE TABLE t (k bigint UNIQUE, x integer); CREATE TABLE child () INHERITS (t);"
        "INSERT INTO t VALUES (1, 5); INSERT INTO child SELECT 1, 5 FROM generate_series(1, 50)",
        postgres_database,
    )
    assert count(postgres_server, postgres_database, "SELECT COUNT(*) AS n FROM t") == [[1]]


def test_a_key_that_is_dropped_ends_the_questions(postgres_server: PostgresServer, postgres_database: str) -> None:
    postgres_server.run(
        "CREATE TABLE t (k bigint CONSTRAINT once UNIQUE, x integer); INSERT INTO t VALUES (1, 5)", postgres_database
    )
    with closing(opened(postgres_server, postgres_database)) as engine:
        assert integers(ask(engine, PEOPLE, "SELECT COUNT(*) AS n FROM t")) == [[1]]
        postgres_server.run(
            "ALTER TABLE t DROP CONSTRAINT once; INSERT INTO t SELECT 1, 5 FROM generate_series(1, 50)",
            postgres_database,
        )
        with pytest.raises(EngineError):
            ask(engine, PEOPLE, "SELECT COUNT(*) AS n FROM t")


def test_settings_change_nothing(postgres_server: PostgresServer, postgres_database: str) -> None:
    policy = policy_of(
        {
            "t": {
                "columns": {
                    "free": {"type": "text"},
                    "day": {"range": ["2020-01-01", "2030-01-01"]},
                    "x": {"range": [0, 100], "grain": 0.01},
                }
            }
        }
    )
    postgres_server.run(
        "CREATE TABLE public.t (free timestamptz, day text, x double precision);"
        "INSERT INTO t VALUES ('2024-02-01 23:30:00.5+00', '2024-02-01', 12.345), (NULL, '01.02.2024', 1e300);"
        "CREATE FUNCTION public.floor(float8) RETURNS float8 IMMUTABLE LANGUAGE sql AS 'SELECT 7.0::float8';"
        "CREATE FUNCTION public.abs(float8) RETURNS float8 IMMUTABLE LANGUAGE sql AS 'SELECT 7.0::float8'",
        postgres_database,
    )
    questions = (
        "SELECT free, COUNT(*) AS n FROM t GROUP BY free",
        "SELECT SUM(x) AS s, COUNT(day) AS n, SUM(day - DATE '2020-01-01') AS d FROM t",
    )

    def found() -> list[object]:
        with closing(opened(postgres_server, postgres_database, policy)) as engine:
            exact = [ask(engine, policy, question) for question in questions]
            return [(integers(one), one.keys) for one in exact]

    before = found()
    assert before[0] == ([[1]], (("2024-02-01 23:30:00.5",),))
    for setting in (
        "DateStyle = 'German'", "TimeZone = 'Asia/Tokyo'", "extra_float_digits = -10", "IntervalStyle = 'iso_8601'",
        "bytea_output = 'escape'", "standard_conforming_strings = off", "transform_null_equals = on",
        "search_path = public, pg_catalog", "default_transaction_isolation = 'read committed'", "row_security = off",
        "client_encoding = 'SQL_ASCII'",
    ):  # fmt: skip
        postgres_server.run(f'ALTER DATABASE "{postgres_database}" SET {setting}')
    assert found() == before


@pytest.mark.parametrize(
    "shadow",
    [
        "FUNCTION div(bigint, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 7777::bigint'",
        "FUNCTION convert_to(text, text) RETURNS bytea LANGUAGE sql AS 'SELECT CAST(NULL AS bytea)'",
        "FUNCTION concat(VARIADIC text[]) RETURNS text LANGUAGE sql AS 'SELECT $1[1]'",
        "FUNCTION sum_of(numeric, bigint) RETURNS numeric LANGUAGE sql AS 'SELECT CAST(7777 AS numeric)';"
        "CREATE OPERATOR + (LEFTARG = numeric, RIGHTARG = bigint, FUNCTION = sum_of)",
    ],
)
def test_functions_of_others_are_not_called(
    shadow: str, postgres_server: PostgresServer, postgres_database: str
) -> None:
    """One whose arguments fit better than those of the database's own is taken, wherever its schema is on the path."""
    columns = {"k": {"type": "id"}, "x": {"range": [0, 100], "grain": 0.5}, "y": {"range": [0, 9]}}
    policy = policy_of({"t": {"at_most": {"rows": 3}, "columns": columns}}, unit="t.k")
    question = "SELECT SUM(x) AS x, SUM(y) AS y FROM t"
    postgres_server.run(
        "CREATE TABLE t (k integer, x numeric(10, 2), y numeric);"
        "INSERT INTO t SELECT i % 5, i, i FROM generate_series(1, 50) AS i",
        postgres_database,
    )
    before = count(postgres_server, postgres_database, question, policy)
    postgres_server.run(f"CREATE {shadow}", postgres_database)
    assert count(postgres_server, postgres_database, question, policy) == before


def test_a_table_may_have_many_columns(postgres_server: PostgresServer, postgres_database: str) -> None:
    """The order of a unit's rows is by all of them, and a function takes 100 arguments."""
    labels = [f"c{place}" for place in range(230)]
    columns = {"k": {"type": "id"}, **{label: {"range": [0, 100]} for label in labels}}
    policy = policy_of({"t": {"at_most": {"rows": 3}, "columns": columns}}, unit="t.k")
    postgres_server.run(
        f"CREATE TABLE t (k integer, {', '.join(f'{label} integer' for label in labels)});"
        f"INSERT INTO t SELECT i % 5, {', '.join('i' for _ in labels)} FROM generate_series(1, 50) AS i",
        postgres_database,
    )
    assert count(postgres_server, postgres_database, "SELECT COUNT(*) AS n FROM t", policy) == [[15]]


def test_labels_with_a_cast_of_their_own_are_refused(postgres_server: PostgresServer, postgres_database: str) -> None:
    """A function of its owner's would say what they mean, and could fail for one of them."""
    policy = policy_of({"t": {"columns": {"x": {"values": ["a", "b"]}}}})
    postgres_server.run(
        "CREATE TYPE label AS ENUM ('a', 'b'); CREATE TABLE t (x label); INSERT INTO t VALUES ('a');"
        "CREATE CAST (label AS varchar) WITH INOUT AS IMPLICIT",
        postgres_database,
    )
    assert count(postgres_server, postgres_database, "SELECT x, COUNT(*) AS n FROM t GROUP BY x", policy) == [[1, 0]]
    postgres_server.run(
        "CREATE FUNCTION told(label) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT CAST(1 / 0 AS text)';"
        "CREATE CAST (label AS text) WITH FUNCTION told(label)",
        postgres_database,
    )
    with pytest.raises(SourceError, match=r"stored as the type public\.label"):
        opened(postgres_server, postgres_database, policy)


@pytest.mark.audit
def test_no_length_of_a_text_fails_a_question(postgres_server: PostgresServer, postgres_database: str) -> None:
    policy = policy_of({"t": {"columns": {"x": {"range": [0, 100]}, "free": {"type": "text"}}}})
    question = "SELECT SUM(x) AS x, COUNT(*) FILTER (WHERE free ILIKE 'A%') AS n FROM t"
    postgres_server.run("CREATE TABLE t (x text, free text); INSERT INTO t VALUES ('12', 'a')", postgres_database)
    assert count(postgres_server, postgres_database, question, policy) == [[12], [1]]
    postgres_server.run("INSERT INTO t SELECT s, s FROM repeat('1', 300000000) AS s", postgres_database)
    assert count(postgres_server, postgres_database, question, policy) == [[12], [1]]


def test_tables_are_found_on_the_search_path(postgres_server: PostgresServer, postgres_database: str) -> None:
    postgres_server.run(
        "CREATE SCHEMA first; CREATE SCHEMA second; CREATE TABLE public.t (k integer, x integer);"
        "CREATE TABLE second.t (k integer, x integer); INSERT INTO second.t VALUES (1, 1);"
        f'ALTER DATABASE "{postgres_database}" SET search_path = first, second, public',
        postgres_database,
    )
    assert count(postgres_server, postgres_database, "SELECT COUNT(*) AS n FROM t") == [[1]]


def test_other_encodings_are_refused(postgres_server: PostgresServer) -> None:
    """In those one row may hold a text that no answer could tell, and every question over it would fail."""
    postgres_server.run("CREATE DATABASE odd TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'")
    try:
        postgres_server.run("CREATE TABLE t (k text, x integer)", "odd")
        with pytest.raises(SourceError, match="encoded in SQL_ASCII"):
            opened(postgres_server, "odd")
    finally:
        postgres_server.drop_database("odd")
