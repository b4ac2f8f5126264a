"""A policy whose data are in PostgreSQL: the same calls, and clear words for what is wrong."""

from pathlib import Path
from typing import Any

import pytest

import confide
from confide.errors import EngineError, LedgerError, SourceError
from confide.release.custody.inspection import check_source
from confide.release.opening import read_policy
from tests.servers import PASSWORD_ONLY, PostgresServer

SQL = "SELECT region, COUNT(*) AS n, AVG(age) AS mean, MEDIAN(age) AS middle FROM person GROUP BY region"
NAMED = "SELECT r.name, COUNT(*) AS n FROM person JOIN region_name AS r ON person.region = r.region GROUP BY r.name"
TABLES = {
    "person": {
        "columns": {
            "person_id": {"type": "id"},
            "region": {"values": ["N", "S"]},
            "age": {"range": [0, 115]},
            "income": {"range": [0, 100000], "grain": 1},
        }
    },
    "visit": {
        "references": {"person_id": "person.person_id"},
        "at_most": {"rows": 3, "groups": 2},
        "columns": {"cost": {"range": [0, 1000], "grain": 0.01}},
    },
    "region_name": {"public": True},
}


def rules(source: str, **more: Any) -> dict[str, Any]:
    budget = {"epsilon": 10_000}
    return {"source": source, "budget": budget, "unit": "person.person_id", "tables": TABLES, **more}


@pytest.fixture
def database(postgres_server: PostgresServer, postgres_database: str) -> str:
    for statement in (
        "CREATE TABLE person (person_id bigint PRIMARY KEY, region text, age integer, income numeric)",
        "INSERT INTO person SELECT g, CASE WHEN g % 3 = 0 THEN 'N' ELSE 'S' END, g % 100, g % 1000 + 0.4"
        " FROM generate_series(1, 3000) AS g",
        "CREATE TABLE visit (person_id bigint, cost numeric(8,2))",
        "INSERT INTO visit SELECT 1 + g % 3000, 12.34 FROM generate_series(1, 15000) AS g",
        "CREATE TABLE region_name (region text, name text)",
        "INSERT INTO region_name VALUES ('N', 'North'), ('S', 'South')",
    ):
        postgres_server.run(statement, postgres_database)
    return postgres_database


def test_the_same_calls_answer(postgres_server: PostgresServer, database: str, tmp_path: Path) -> None:
    with confide.open(rules(postgres_server.url(database)), ledger=tmp_path / "l", create=True) as people:
        assert people.plan(SQL, epsilon=30).affordable
        answer = people.sql(SQL, epsilon=3000)
        assert [row["n"] for row in answer.to_dicts()] == pytest.approx([1000, 2000], abs=3)
        assert [row["mean"] for row in answer.to_dicts()] == pytest.approx([49.5, 49.5], abs=1)
        assert people.sql(SQL, epsilon=3000).to_dicts() == answer.to_dicts()
        bounded = people.sql("SELECT COUNT(*) AS n, SUM(cost) AS s FROM visit", epsilon=3000).to_dicts()[0]
        assert bounded["n"] == pytest.approx(9000, abs=5)
        assert bounded["s"] == pytest.approx(9000 * 12.34, rel=0.01)
        named = people.sql(
            NAMED,
            epsilon=1000,
        )
        assert [row["n"] for row in named.to_dicts()] == pytest.approx([1000, 2000], abs=3)


@pytest.mark.parametrize("kind", ["numeric(8,2)", "numeric"])
def test_fractions_of_a_public_table_are_read(
    postgres_server: PostgresServer, database: str, tmp_path: Path, kind: str
) -> None:
    postgres_server.run(f"ALTER TABLE region_name ADD COLUMN weight {kind}", database)
    postgres_server.run("UPDATE region_name SET weight = CASE region WHEN 'N' THEN 1.25 ELSE 2.50 END", database)
    sql = "SELECT SUM(r.weight) AS w FROM person JOIN region_name AS r ON person.region = r.region"
    with confide.open(rules(postgres_server.url(database)), ledger=tmp_path / "l", create=True) as people:
        assert people.sql(sql, epsilon=3000).to_dicts()[0]["w"] == pytest.approx(6250, abs=3)


def test_nothing_is_left_behind_and_nothing_can_be_written(
    postgres_server: PostgresServer, database: str, tmp_path: Path
) -> None:
    objects = "SELECT count(*) FROM pg_class"
    before = postgres_server.run(objects, database)
    with confide.open(rules(postgres_server.url(database)), ledger=tmp_path / "l", create=True) as people:
        people.sql(SQL, epsilon=10)
        engine: Any = people._holdings.engine
        with pytest.raises(Exception, match="read-only"), engine._transaction():
            engine._ask("DELETE FROM public.person")
        busy = "datname = current_database() AND application_name = 'confide' AND state <> 'idle'"
        assert postgres_server.run(f"SELECT count(*) FROM pg_stat_activity WHERE {busy}", database) == [(0,)]
    assert postgres_server.run(objects, database) == before


def test_rights(postgres_server: PostgresServer, database: str, tmp_path: Path) -> None:
    reader = postgres_server.create_role("reader")
    source = rules(postgres_server.url(database, reader))
    with pytest.raises(SourceError, match=r"GRANT SELECT ON public\.person TO"):
        confide.open(source, ledger=tmp_path / "l", create=True)
    postgres_server.run("GRANT SELECT ON person, visit, region_name TO reader", database)
    assert check_source(read_policy(source)) == ("this user can only read them",)
    with confide.open(source, ledger=tmp_path / "l", create=True) as people:
        people.sql(SQL, epsilon=1)
    assert "this user could change person" in check_source(read_policy(rules(postgres_server.url(database))))[0]


def test_columns_that_may_be_read_are_enough(postgres_server: PostgresServer, database: str) -> None:
    postgres_server.create_role("narrow")
    postgres_server.run("ALTER TABLE person ADD COLUMN secret text", database)
    postgres_server.run("GRANT SELECT (person_id, region, age, income) ON person TO narrow", database)
    postgres_server.run("GRANT SELECT ON visit, region_name TO narrow", database)
    assert check_source(read_policy(rules(postgres_server.url(database, "narrow")))) == (
        "this user can only read them",
    )


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DROP TABLE visit", "no table visit"),
        ("ALTER TABLE person DROP COLUMN age", "no column age"),
        ('ALTER TABLE person RENAME COLUMN age TO "AGE"', "it has AGE"),
        ("ALTER TABLE person ALTER COLUMN age TYPE date USING DATE '2024-01-31'", "stored as DATE"),
        ("ALTER TABLE person ALTER COLUMN age TYPE integer[] USING ARRAY[age]", r"stored as the type integer\[\]"),
        ("ALTER TABLE visit RENAME TO elsewhere; CREATE SEQUENCE visit", "not a table or a view"),
    ],
)
def test_what_does_not_fit_is_said(
    postgres_server: PostgresServer, database: str, tmp_path: Path, statement: str, words: str
) -> None:
    postgres_server.run(statement, database)
    with pytest.raises(SourceError, match=words):
        confide.open(rules(postgres_server.url(database)), ledger=tmp_path / "l", create=True)


def test_addresses_that_do_not_work(postgres_server: PostgresServer, database: str, tmp_path: Path) -> None:
    postgres_server.create_role(PASSWORD_ONLY, "s3cret")
    addresses: dict[str, str] = {
        postgres_server.url(database, PASSWORD_ONLY, "wrong-secret"): "refused the user or the password",
        postgres_server.url("nowhere"): "no such database",
        "postgresql://somebody:wrong-secret@127.0.0.1:1/x": "cannot be reached",
        "postgresql://somebody:wrong-secret@127.0.0.1:port/x": "not an address of PostgreSQL",
        "postgresql://somebody:wrong-secret@127.0.0.1/x?colour=red": "not an address of PostgreSQL",
        postgres_server.url(database, schema="nowhere"): "no table person in the schema nowhere",
    }
    for address, words in addresses.items():
        with pytest.raises(SourceError, match=words) as caught:
            confide.open(rules(address), ledger=tmp_path / "l", create=True)
        assert "wrong-secret" not in repr(caught.value)
        assert caught.value.__context__ is None or "wrong-secret" not in repr(caught.value.__context__)


def test_frames_are_refused_beside_a_database(postgres_server: PostgresServer, database: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="leave out data="):
        confide.open(rules(postgres_server.url(database)), {"person": {}}, tmp_path / "l", create=True)


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE person ALTER COLUMN age TYPE text",
        "ALTER TABLE person DROP COLUMN age CASCADE",
        "DROP TABLE visit",
        "ALTER TABLE person ALTER COLUMN age TYPE bigint",
        "REVOKE SELECT ON person FROM guest",
        "ALTER TABLE region_name RENAME TO gone",
    ],
)
def test_a_change_under_us_ends_the_question_and_the_charge_stays(
    postgres_server: PostgresServer, database: str, tmp_path: Path, statement: str
) -> None:
    guest = postgres_server.create_role("guest")
    postgres_server.run("GRANT SELECT ON person, visit, region_name TO guest", database)
    with confide.open(rules(postgres_server.url(database, guest)), ledger=tmp_path / "l", create=True) as people:
        people.sql(NAMED, epsilon=1)
        postgres_server.run(statement, database)
        with pytest.raises(EngineError) as caught:
            people.sql(NAMED, epsilon=2)
        assert str(caught.value) == str(EngineError())
        assert people.budget.spent == 3


def test_how_names_are_quoted_is_no_change(postgres_server: PostgresServer, database: str, tmp_path: Path) -> None:
    with confide.open(rules(postgres_server.url(database)), ledger=tmp_path / "l", create=True) as people:
        postgres_server.run(f'ALTER DATABASE "{database}" SET quote_all_identifiers = on')
        ended = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'confide' AND datname = "
        )
        postgres_server.run(f"{ended}'{database}'")
        people.sql(NAMED, epsilon=1)


def test_a_public_table_that_repeats_more_ends_the_question(
    postgres_server: PostgresServer, database: str, tmp_path: Path
) -> None:
    """How often its keys repeat is in the sensitivity, where rows are the units."""
    policy = rules(postgres_server.url(database), unit="row")
    policy["tables"] = {name: table for name, table in TABLES.items() if name != "visit"}
    with confide.open(policy, ledger=tmp_path / "l", create=True) as people:
        people.sql(NAMED, epsilon=1)
        postgres_server.run("INSERT INTO region_name VALUES ('N', 'Again')", database)
        with pytest.raises(EngineError):
            people.sql(NAMED, epsilon=2)
        assert people.budget.spent == 3


def test_a_view_over_a_function_that_fails_shows_nothing(
    postgres_server: PostgresServer, database: str, tmp_path: Path
) -> None:
    for statement in (
        "ALTER TABLE person RENAME TO hidden",
        "CREATE FUNCTION loud(x int) RETURNS int LANGUAGE plpgsql STABLE AS"
        " $$ BEGIN RAISE EXCEPTION 'secret value %', x; END $$",
        "CREATE VIEW person AS SELECT person_id, region, loud(age) AS age, income FROM hidden",
    ):
        postgres_server.run(statement, database)
    with confide.open(rules(postgres_server.url(database)), ledger=tmp_path / "l", create=True) as people:
        with pytest.raises(EngineError) as caught:
            people.sql(SQL, epsilon=1)
        assert "secret" not in repr(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        assert people.budget.spent == 1
    (caution,) = [c for c in check_source(read_policy(rules(postgres_server.url(database)))) if "view" in c]
    assert caution.startswith("person")


@pytest.mark.parametrize(
    ("view", "called"),
    [
        ("SELECT person_id, region, age, income FROM hidden WHERE random() < 0.5", "random"),
        ("SELECT person_id, region, age, income FROM hidden TABLESAMPLE system (50)", "system"),
        ("SELECT person_id, region, moody(age) AS age, income FROM hidden", "moody"),
        ("SELECT person_id, region, age, income FROM between", "random"),
        ("SELECT person_id, region, age, income FROM hidden WHERE age ~~> 5", "maybe"),
        ("SELECT person_id, region, age, income FROM hidden WHERE CAST(CAST(region AS mood) AS boolean)", "feel"),
        ("SELECT person_id, region, age, income FROM chosen", "random"),
        ("SELECT person_id, region, calm(age) AS age, income FROM hidden WHERE region <> 'random('", None),
    ],
)
def test_a_view_that_may_change_while_it_is_read_is_refused(
    postgres_server: PostgresServer, database: str, tmp_path: Path, view: str, called: str | None
) -> None:
    """Between the two readings of one question a unit could otherwise pass its bound."""
    for statement in (
        "ALTER TABLE person RENAME TO hidden",
        "CREATE FUNCTION moody(x int) RETURNS int LANGUAGE sql AS 'SELECT x'",
        "CREATE FUNCTION calm(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT x'",
        "CREATE VIEW between AS SELECT person_id, region, age, income + random() AS income FROM hidden",
        "CREATE FUNCTION maybe(x int, y int) RETURNS boolean LANGUAGE sql AS 'SELECT random() < 0.5'",
        "CREATE OPERATOR ~~> (LEFTARG = int, RIGHTARG = int, FUNCTION = maybe)",
        "CREATE TYPE mood AS ENUM ('N', 'S')",
        "CREATE FUNCTION feel(x mood) RETURNS boolean LANGUAGE sql AS 'SELECT random() < 0.5'",
        "CREATE CAST (mood AS boolean) WITH FUNCTION feel(mood)",
        "CREATE TABLE chosen AS SELECT * FROM hidden",
        "ALTER TABLE chosen ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY ours ON chosen USING (random() < 0.5)",
        f"CREATE VIEW person AS {view}",
    ):
        postgres_server.run(statement, database)
    if called is None:
        assert "view" in "".join(check_source(read_policy(rules(postgres_server.url(database)))))
        return
    with pytest.raises(SourceError, match=f"person is a view that calls {called}, .* IMMUTABLE"):
        confide.open(rules(postgres_server.url(database)), ledger=tmp_path / "l", create=True)


@pytest.mark.parametrize(
    ("view", "word"),
    [
        ("SELECT * FROM hidden LIMIT 100", "LIMIT"),
        ("SELECT * FROM hidden FETCH FIRST 100 ROWS ONLY", "LIMIT"),
        ("SELECT * FROM hidden ORDER BY age OFFSET 100", "OFFSET"),
        ("SELECT DISTINCT ON (region) * FROM hidden ORDER BY region, age", "DISTINCT ON"),
        ("SELECT * FROM (SELECT *, row_number() OVER (ORDER BY age) AS n FROM hidden) AS h WHERE n < 9", "row_number"),
        ("SELECT *, SUM(age) OVER (ROWS UNBOUNDED PRECEDING) AS n FROM hidden", "ROWS"),
        ("SELECT * FROM hidden WHERE person_id = ANY ((SELECT array_agg(age) FROM hidden)::int[])", "array_agg"),
        ("SELECT * FROM between", "LIMIT"),
        ("SELECT * FROM stored", None),
        ("SELECT person_id, region, age, income, 'LIMIT 5' AS \"OFFSET\", 1 AS row_number FROM hidden", None),
        ("SELECT *, rank() OVER (PARTITION BY region ORDER BY age) AS n FROM hidden", None),
        ("SELECT * FROM hidden ORDER BY age FETCH FIRST 100 ROWS WITH TIES", None),
    ],
)
def test_a_view_that_takes_rows_as_they_come_is_refused(
    postgres_server: PostgresServer, database: str, tmp_path: Path, view: str, word: str | None
) -> None:
    """A scan begins where the one before it ended, and threads race: two readings of one question would differ."""
    for statement in (
        "ALTER TABLE person RENAME TO hidden",
        "CREATE VIEW between AS SELECT * FROM hidden WHERE age = (SELECT age FROM hidden LIMIT 1)",
        "CREATE MATERIALIZED VIEW stored AS SELECT * FROM between",
        f"CREATE VIEW person AS {view}",
    ):
        postgres_server.run(statement, database)
    source = rules(postgres_server.url(database))
    if word is None:
        confide.open(source, ledger=tmp_path / "l", create=True).close()
        return
    with pytest.raises(SourceError, match=rf"person is a view with {word}.* materialised view"):
        confide.open(source, ledger=tmp_path / "l", create=True)


def test_rows_that_a_policy_chooses_must_stay_the_same(
    postgres_server: PostgresServer, database: str, tmp_path: Path
) -> None:
    reader = postgres_server.create_role("reader")
    source = rules(postgres_server.url(database, reader))
    for statement in (
        "GRANT SELECT ON person, visit, region_name TO reader",
        "ALTER TABLE person ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY ours ON person USING (income >= 0)",
    ):
        postgres_server.run(statement, database)
    confide.open(source, ledger=tmp_path / "l", create=True).close()
    postgres_server.run("CREATE POLICY others ON person USING (random() < 0.5)", database)
    with pytest.raises(SourceError, match=r"person has a row security policy that calls random, .* IMMUTABLE"):
        confide.open(source, ledger=tmp_path / "l")


def test_a_view_that_becomes_volatile_ends_the_question(
    postgres_server: PostgresServer, database: str, tmp_path: Path
) -> None:
    postgres_server.run("ALTER TABLE person RENAME TO hidden", database)
    columns = "person_id, region, age, income FROM hidden"
    postgres_server.run(f"CREATE VIEW person AS SELECT {columns}", database)
    with confide.open(rules(postgres_server.url(database)), ledger=tmp_path / "l", create=True) as people:
        people.sql(SQL, epsilon=1)
        postgres_server.run(f"CREATE OR REPLACE VIEW person AS SELECT {columns} WHERE random() < 0.5", database)
        with pytest.raises(EngineError) as caught:
            people.sql(SQL, epsilon=2)
        assert str(caught.value) == str(EngineError())
        assert people.budget.spent == 3


def test_a_ledger_on_postgres_without_a_schema(postgres_server: PostgresServer, database: str) -> None:
    with pytest.raises(LedgerError, match=r"schema="):
        confide.open(
            rules(postgres_server.url(database)),
            ledger=postgres_server.url(database, password="hidden-one"),
            create=True,
        )


def test_a_server_that_dies_gives_one_error_and_is_found_again(
    own_postgres_server: PostgresServer, tmp_path: Path
) -> None:
    server = own_postgres_server
    name = server.create_database()
    server.run("CREATE TABLE t AS SELECT g AS x FROM generate_series(1, 1000) AS g", name)
    policy = {
        "source": server.url(name),
        "budget": {"epsilon": 100},
        "unit": "row",
        "tables": {"t": {"columns": {"x": {"range": [0, 1000]}}}},
    }
    with confide.open(policy, ledger=tmp_path / "l", create=True) as table:
        table.sql("SELECT COUNT(*) AS n FROM t", epsilon=1)
        server.kill()
        with pytest.raises(SourceError, match=r"cannot be reached.*Nothing was charged"):
            table.sql("SELECT COUNT(*) AS n FROM t", epsilon=2)
        assert table.budget.spent == 1
        server.start()
        assert table.sql("SELECT COUNT(*) AS n FROM t", epsilon=2).to_dicts()[0]["n"] == pytest.approx(1000, abs=20)
        assert table.budget.spent == 3
