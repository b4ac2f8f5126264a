"""Known attacks that the query layer must refuse: from the text and the policy alone, nothing read, nothing charged.

Each refusal is made with a catalogue that must not be asked, so that a test fails if anything is looked at. Attacks on
single rows are shown to work on the bare database, so that the tests are known to be about something.
"""

import time
from collections.abc import Mapping

import duckdb
import pytest

from confide.errors import QueryError
from confide.policy import Column
from confide.query import bind
from tests.query.samples import POLICIES


class NoData:
    """A catalogue that must not be asked: no public table is in these queries."""

    def columns(self, table: str) -> Mapping[str, Column]:
        raise AssertionError(f"{table} was looked at")

    def multiplicity(self, table: str, columns: tuple[str, ...]) -> int:
        raise AssertionError(f"{table} was looked at")

    def distinct(self, table: str, columns: tuple[str, ...], most: int) -> None:
        raise KeyError(table)


def refused(text: str, policy: str = "row") -> str:
    begun = time.perf_counter()
    with pytest.raises(QueryError) as caught:
        bind(text, POLICIES[policy], NoData())
    assert time.perf_counter() - begun < 3
    return str(caught.value)


ATTACKS: dict[str, list[str]] = {
    "E01": [
        "SELECT SUM(1/(age-5)) FROM person",
        "SELECT SUM(1//(age-5)) FROM person",
        "SELECT SUM(age % (age-age)) FROM person",
        "SELECT SUM(age / age) FROM person",
        "SELECT COUNT(*) FROM person WHERE 1/(age-5) > 0",
        "SELECT COUNT(*) FILTER (WHERE 1/(age-5) > 0) FROM person",
        "SELECT SUM(CASE WHEN 1/(age-5) > 0 THEN 1 END) FROM person",
    ],
    "E03": [
        "SELECT SUM(CAST(job AS INT)) FROM person",
        "SELECT SUM(job::INT) FROM person",
        "SELECT COUNT(*) FROM person WHERE CAST(job AS DATE) > DATE '2020-01-01'",
        "SELECT COUNT(*) FROM person WHERE TRY_CAST(job AS INT) = 5",
    ],
    "E04": [
        "SELECT SUM(income * income * income * income * income) FROM person",
        "SELECT SUM(1e25 * 1) FROM person",
        "SELECT SUM(factorial(age)) FROM person",
        "SELECT SUM(age ^ 99) FROM person",
        "SELECT SUM(make_date(age, 13, 99) - born) FROM person",
    ],
    "E06": [
        "SELECT COUNT(error(job)) FROM person",
        "SELECT COUNT(*) FROM person WHERE error(job) IS NULL",
        "SELECT COUNT(repeat(job, 999999999)) FROM person",
        "SELECT COUNT(*) FROM person WHERE job SIMILAR TO '(a+)+$'",
        "SELECT COUNT(*) FROM person WHERE regexp_full_match(job, '(a+)+$')",
        "WITH RECURSIVE t AS (SELECT 1 UNION ALL SELECT 1 FROM t) SELECT COUNT(*) FROM t",
        "SELECT COUNT(*) FROM generate_series(1, 1000000000000)",
        "SELECT COUNT(*) FROM person, generate_series(1, 1000000000)",
        "SELECT COUNT(my_udf(age)) FROM person",
        "SELECT my_macro(age) FROM person",
        "SELECT COUNT(list_transform([1], x -> x)) FROM person",
    ],
    "E18": [
        "SELECT SUM(random()) FROM person",
        "SELECT COUNT(*) FROM person WHERE random() < 0.5",
        "SELECT COUNT(*) FROM person WHERE now() > born",
        "SELECT COUNT(*) FROM person WHERE born < current_timestamp",
        "SELECT COUNT(DISTINCT uuid()) FROM person",
        "SELECT COUNT(*) FROM person TABLESAMPLE 1%",
        "SELECT COUNT(*) FROM person USING SAMPLE reservoir(1 ROWS)",
        "SELECT nextval('s') FROM person",
    ],
    "E19": [
        "CREATE TABLE x AS SELECT * FROM person",
        "COPY person TO '/tmp/x.csv'",
        "COPY (SELECT 1) TO '/tmp/x.csv'",
        "ATTACH '/tmp/x.db' AS x",
        "PRAGMA show_tables",
        "SET threads = 1",
        "EXPLAIN ANALYZE SELECT COUNT(*) FROM person",
        "SUMMARIZE person",
        "SUMMARIZE SELECT * FROM person",
        "SELECT COUNT(*) FROM person; SELECT * FROM person",
        "SELECT COUNT(*) FROM person;\n-- quietly\nCOPY person TO '/tmp/x.csv'",
        "SELECT COUNT(*) FROM (SUMMARIZE person)",
        "SELECT COUNT(*) FROM (DESCRIBE person)",
        "INSERT INTO person SELECT * FROM person",
        "SELECT COUNT(*) INTO OUTFILE '/tmp/x' FROM person",
    ],
    "E20": [
        "SELECT COUNT(*) FROM read_csv('/etc/passwd')",
        "SELECT COUNT(*) FROM '/etc/passwd'",
        'SELECT COUNT(*) FROM "/etc/passwd"',
        "SELECT COUNT(*) FROM glob('/*')",
        "SELECT COUNT(*) FROM person JOIN read_csv('/etc/passwd') USING (region)",
        "SELECT COUNT(pg_read_file('/etc/passwd')) FROM person",
        "SELECT COUNT(*) FROM person WHERE pg_sleep(100) IS NULL",
        "SELECT COUNT(*) FROM sniff_csv('/etc/passwd')",
    ],
    "E21": [
        "SELECT COUNT(*) FROM duckdb_tables()",
        "SELECT COUNT(*) FROM information_schema.columns",
        "SELECT COUNT(*) FROM pragma_storage_info('person')",
        "SELECT COUNT(stats(age)) FROM person",
        "SELECT COUNT(*) FROM person WHERE rowid < 10",
        "SELECT SUM(rowid) FROM person",
        "SELECT COUNT(ctid) FROM person",
        "SELECT COUNT(*) FROM person WHERE person.rowid = 3",
    ],
    "E24": [
        "SELECT job FROM person",
        "SELECT * FROM person",
        "SELECT COLUMNS(*) FROM person",
        "SELECT person FROM person",
        "SELECT list(job) FROM person",
        "SELECT string_agg(job) FROM person",
        "SELECT first(job) FROM person",
        "SELECT mode(job) FROM person",
        "SELECT MIN(job) FROM person",
        "SELECT region, job, COUNT(*) FROM person GROUP BY region",
        "SELECT COUNT(*), (SELECT job FROM person LIMIT 1) AS j FROM person",
        "SELECT DISTINCT job FROM person",
    ],
}
CASES = [(row, text) for row, texts in ATTACKS.items() for text in texts]


@pytest.mark.parametrize(("row", "text"), CASES, ids=[f"{row}-{text[:50]}" for row, text in CASES])
def test_refused(row: str, text: str) -> None:
    assert len(refused(text)) > 20


def test_e23_huge_and_deep() -> None:
    for text in (
        "SELECT COUNT(*) FROM person WHERE age IN (" + "1," * 2_500_000 + "1)",
        "SELECT COUNT(*) FROM person WHERE " + "(" * 10_000 + "age > 3" + ")" * 10_000,
        "(" * 10_000,
        "SELECT " * 2_000,
        "SELECT COUNT(*) FROM person WHERE " + "NOT " * 4_000 + "member",
    ):
        begun = time.perf_counter()
        refused(text)
        assert time.perf_counter() - begun < 2


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM person WHERE person_id = 7",
        "SELECT COUNT(*) FROM person WHERE person_id IN (7, 8)",
        "SELECT COUNT(*) FROM person WHERE person_id > 7",
        "SELECT COUNT(*) FROM person WHERE person_id LIKE '7%'",
        "SELECT person_id, COUNT(*) FROM person GROUP BY person_id",
        "SELECT BIN(person_id, 10) AS b, COUNT(*) FROM person GROUP BY b",
        "SELECT SUM(person_id) FROM person",
        "SELECT SUM(CASE WHEN person_id = 7 THEN income ELSE 0 END) FROM person",
    ],
)
def test_e25_an_id_is_neither_a_filter_nor_a_group(text: str) -> None:
    assert "person_id is an id" in refused(text, "key")


# --- the same attacks on the bare database, which falls for them ------------------------------------------------------

CONTROLS = {
    "E01": "SELECT SUM(1 // (age - 5)) FROM person",
    "E03": "SELECT SUM(CAST(job AS INT)) FROM person",
    "E04": "SELECT SUM(age * 9223372036854775807) FROM person",
    "E06": "SELECT error(job) FROM person",
}


@pytest.mark.parametrize("row", CONTROLS)
def test_the_bare_database_fails_on_one_row_alone(row: str) -> None:
    def outcome(job: str, age: int) -> str:
        connection = duckdb.connect()
        connection.execute("CREATE TABLE person AS SELECT ?::VARCHAR AS job, ?::BIGINT AS age", [job, age])
        try:
            return str(connection.execute(CONTROLS[row]).fetchall())
        except duckdb.Error as error:
            return str(error)

    harmless, harmful = outcome("7", 1), outcome("boom", 5)
    assert harmless != harmful
    if row in ("E03", "E06"):
        assert "boom" in harmful


ANSWERED = {
    "E18": "SELECT SUM(random()) FROM person",
    "E19": "SUMMARIZE person",
    "E20": "SELECT * FROM glob('/*')",
    "E21": "SELECT SUM(rowid) FROM person WHERE job = 'spy'",
    "E24": "SELECT job FROM person",
    "E25": "SELECT job FROM person WHERE age = 7",
}


@pytest.mark.parametrize("row", ANSWERED)
def test_the_bare_database_answers(row: str) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE person AS SELECT 'spy' AS job, 7 AS age")
        told = [connection.execute(ANSWERED[row]).fetchall() for _ in range(2)]
    assert told[0]
    assert (told[0] != told[1]) == (row == "E18")
