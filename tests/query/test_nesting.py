"""Every construct nested in itself and in every other, as deep as a text may be: bound or refused, in linear work.

Time is the processor's own and its bound is generous: what doubles with every level passes any bound by far. Memory is
that of a process of its own with a limit on its addresses.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice, product
from pathlib import Path

import pytest
from sqlglot.dialects.dialect import Dialects

from confide.errors import ParameterError, QueryError
from confide.privacy.limits import LONGEST_QUERY, MOST_PARTS
from confide.query import bind
from confide.query.conjunction import bind_conjunction
from confide.query.identity import question_name
from confide.query.parse import parse, shown
from confide.query.room import size
from tests.query.samples import CATALOG, POLICIES

SECONDS = 1.0
MEGABYTES = 200
NUMBERS = (
    "(X)", "-X", "X + 1", "1 - (X)", "(X) * 1", "X / 2", "ABS(X)", "LEAST(X, 1)", "GREATEST(1, X)",
    "LEAST(COALESCE(X, 0), 1)", "COALESCE(X, 0)", "COALESCE(0, X)", "NULLIF(X, 0)", "IF(X > 1, X, 0)",
    "IFF(X > 1, 1, X)", "DECODE(X, 1, 2, 3)", "NVL(X, 0)", "IIF(X > 1, 1, 2)", "ROUND(X, 1)",
    "CASE WHEN X > 1 THEN 1 ELSE 0 END", "CASE WHEN age > 1 THEN X ELSE X END",
    "CASE X WHEN 1 THEN 2 WHEN 3 THEN 4 ELSE 0 END", "CASE X WHEN 1 THEN 1 END", "CASE 1 WHEN X THEN 1 ELSE 0 END",
    "CASE WHEN X BETWEEN 0 AND 5 THEN 1 ELSE 0 END", "CASE WHEN 1 BETWEEN X AND 5 THEN 1 ELSE 0 END",
    "CASE WHEN X NOT BETWEEN 0 AND X THEN 1 ELSE 0 END", "CASE WHEN X BETWEEN SYMMETRIC 0 AND 5 THEN 1 ELSE 0 END",
    "CASE WHEN X IN (1, 2, 3) THEN 1 ELSE 0 END", "CASE WHEN X NOT IN (1, 2) THEN 1 ELSE 0 END",
    "CASE WHEN 1 IN (X, 2) THEN 1 ELSE 0 END", "CASE WHEN X IN (age, 2, 3) THEN 1 ELSE 0 END",
    "CASE WHEN NOT (X > 1 AND X < 5 OR X = 3) THEN 1 ELSE 0 END", "CASE WHEN X IS NULL THEN 1 ELSE 0 END",
    "CASE WHEN X IS NOT NULL THEN X ELSE 0 END", "CASE WHEN X <> X THEN 1 ELSE 0 END", "CAST(X AS DOUBLE)",
    "GREATEST(X, X)", "X * X", "X + X", "CHAR(X)", "STRUCT(X)", "ROW(X)", "OBJECT(X)", "ARRAY(X)", "f(X)",
    "DATE(X)", "EXTRACT(day FROM X)", "CAST(CAST(X AS INT) AS DATE)", "f(a -> X)", "(SELECT X)", "MAP(X, X)",
)  # fmt: skip
RELEASED = (
    "(X)", "-X", "X + 1", "X - X", "X * 2", "X * X", "1 / X", "X / COUNT(*)", "ABS(X)", "ROUND(X, 2)", "NULLIF(X, 0)",
    "COALESCE(X, 0)", "CAST(X AS DOUBLE)",
)  # fmt: skip
CONDITIONS = (
    "NOT (X)", "(X) AND age > 1", "age > 1 OR (X)", "(X) AND (X)", "NOT (NOT (X) OR (X))",
    "CASE WHEN X THEN 1 ELSE 0 END = 1", "CASE WHEN X THEN 1 ELSE 0 END IN (0, 1, 2)",
    "CASE WHEN X THEN 1 ELSE 0 END BETWEEN 0 AND 1", "IF(X, 1, 0) > 0", "(X) IS TRUE",
)  # fmt: skip
CHAINS = {
    "list": ("SELECT COUNT(*) FROM person WHERE age IN (0{})", ",{i}"),
    "list of one digit": ("SELECT COUNT(*) FROM person WHERE age IN (0{})", ",1"),
    "list of columns": ("SELECT COUNT(*) FROM person WHERE age IN (0{})", ",age"),
    "list over CASE": ("SELECT SUM(CASE WHEN CASE WHEN age > 1 THEN 1 END IN (0{}) THEN 1 END) FROM person", ",{i}"),
    "branches": ("SELECT SUM(CASE {} END) FROM person", " WHEN age = {i} THEN {i}"),
    "values": ("SELECT SUM(CASE age {} END) FROM person", " WHEN {i} THEN {i}"),
    "values of a CASE": ("SELECT SUM(CASE CASE WHEN age > 1 THEN 1 ELSE 2 END {} END) FROM person", " WHEN {i} THEN 1"),
    "alternatives": ("SELECT COUNT(*) FROM person WHERE age = 0{}", " OR age = {i}"),
    "columns": ("SELECT COUNT(*) AS n{} FROM person", ", SUM(age + {i}) AS c{i}"),
    "one column": ("SELECT COUNT(*){} AS n FROM person", "+SUM(age+{i})"),
    "spreads": ("SELECT COUNT(*) AS n{} FROM person", ", STDDEV(age + {i}) AS c{i}"),
    "medians": ("SELECT COUNT(*) AS n{} FROM person", ", MEDIAN(age + {i}) AS c{i}"),
    "filters": ("SELECT COUNT(*) AS n{} FROM person", ", COUNT(*) FILTER (WHERE age > {i}) AS c{i}"),
    "having": ("SELECT SUM(age) * 2 + SUM(income) AS h FROM person HAVING h > 0{}", " AND h + 1 > {i}"),
    "having a list": ("SELECT region, SUM(age) * 2 AS h FROM person GROUP BY region HAVING h * h IN (0{})", ",{i}"),
    "having a long name": (
        f"SELECT COUNT(*) FILTER (WHERE age IN ({','.join(map(str, range(1_500)))})) AS h FROM person HAVING h > 0{{}}",
        " AND h + 1 > {i}",
    ),
    "orders": ("SELECT region, COUNT(*) AS n FROM person GROUP BY region ORDER BY n{}", ", n"),
    "orders of expressions": ("SELECT region, COUNT(*) AS n FROM person GROUP BY region ORDER BY n{}", ", n + {i}"),
    "bins": ("SELECT COUNT(*) AS n FROM person GROUP BY region{}", ", BIN(income, {i}00)"),
    "cubes": ("SELECT COUNT(*) AS n FROM person GROUP BY CUBE(region{})", ", sex"),
    "sets": ("SELECT COUNT(*) AS n FROM person GROUP BY GROUPING SETS ((region){})", ", (sex)"),
    "texts": ("SELECT COUNT(*) FROM person WHERE job LIKE 'a'{}", " OR job LIKE '%a%a%a%{i}'"),
    "patterns": ("SELECT COUNT(*) FROM person WHERE job LIKE '{}'", "%a"),
    "categories": ("SELECT COUNT(*) FROM person WHERE region <> 'N'{}", " AND region <> 'E'"),
    "flags": ("SELECT COUNT(*) FROM person WHERE member{}", " AND (member OR NOT member)"),
    "joins": ("SELECT COUNT(*) FROM person{}", " JOIN region_name AS r{i} USING (region)"),
    "commas": ("SELECT COUNT(*) FROM person{}", ", person"),
    "withs": ("WITH a AS (SELECT 1){} SELECT COUNT(*) FROM a", ", a{i} AS (SELECT * FROM a JOIN a)"),
    "unions": ("SELECT COUNT(*) FROM person{}", " UNION ALL SELECT COUNT(*) FROM person"),
    "factors": ("SELECT SUM(age{}) FROM person", " * 1e30"),
    "small factors": ("SELECT SUM(age{}) FROM person", " / 3"),
    "folded constants": ("SELECT COUNT(*) FROM person WHERE age > 1{}", " * 1e30"),
    "long constants": ("SELECT COUNT(*) FROM person WHERE age > 1{}", " * 0.{i}123456789012345678901234567"),
    "released factors": ("SELECT COUNT(*){} AS n FROM person", " * 1e30"),
    "released ratios": ("SELECT COUNT(*){} AS n FROM person", " / SUM(age)"),
    "digits": ("SELECT COUNT(*) FROM person WHERE age > 9{}", "9"),
    "exponents": ("SELECT COUNT(*) FROM person WHERE age > 1e9{}", "9"),
    "fractions": ("SELECT COUNT(*) FROM person WHERE age IN (0{})", ", 1/{i}"),
    "grains": ("SELECT SUM(CASE WHEN age > 0 THEN 0 {} END) FROM person", " WHEN age > {i} THEN 1/{i}"),
    "comments": ("SELECT COUNT(*) FROM person{}", "/* {i} */"),
    "names": ("SELECT COUNT(*) FROM person WHERE {} > 1", "a"),
    "dots": ("SELECT COUNT(*) FROM person WHERE a{} > 1", ".a"),
    "calls after dots": ("SELECT a.b(){} FROM person", ".c a.b()"),
    "brackets": ("SELECT COUNT(*) FROM person WHERE age{} > 1", "[1]"),
    "casts": ("SELECT COUNT(*) FROM person WHERE age{} > 1", "::int"),
    "minus": ("SELECT SUM({}age) FROM person", "- "),
    "nots": ("SELECT COUNT(*) FROM person WHERE {}member", "NOT "),
    "escapes": ("SELECT COUNT(*) FROM person WHERE job = '{}'", "''"),
    "unicode": ("SELECT COUNT(*) FROM person WHERE job = U&'{}'", "\\0041"),
}  # fmt: skip
DIALECTS = sorted(option.value for option in Dialects if option.value)


def nested(outer: str, inner: str, depth: int, innermost: str) -> str:
    text = innermost
    for level in range(depth):
        template = (inner, outer)[level % 2]
        text = template.replace("X", text, 1).replace("X", "age" if "age" in innermost else "COUNT(*)")
    return text


def chained(name: str, limit: int = LONGEST_QUERY) -> str:
    frame, link = CHAINS[name]
    room, links = limit - len(frame), []
    number = 1
    while (own := link.replace("{i}", str(number))) and len(own) <= room:
        links.append(own)
        room -= len(own)
        number += 1
    return frame.replace("{}", "".join(links), 1)


def seconds(text: str, dialect: str, policy: str = "row") -> float:
    """How long a text takes to be bound or refused; what is bound has no more parts than there is room for."""
    assert len(text) <= LONGEST_QUERY
    begun, message = time.process_time(), "a question"
    try:
        question = bind(text, POLICIES[policy], CATALOG, dialect=dialect)
    except (QueryError, ParameterError) as error:
        message = str(error)
    else:
        assert question_name(question)
        assert size(question.summary.where) <= MOST_PARTS
    with suppress(QueryError, ParameterError):
        assert question_name(bind_conjunction(text, POLICIES[policy], CATALOG, dialect))
    assert 0 < len(message) < 1_500
    return time.process_time() - begun


def attacks(depths: tuple[int, ...], pairs: bool) -> Iterator[str]:
    for templates, frame, innermost in (
        (NUMBERS, "SELECT SUM({}) AS s FROM person", "age"),
        (RELEASED, "SELECT {} AS s FROM person", "COUNT(*)"),
        (CONDITIONS, "SELECT COUNT(*) AS s FROM person WHERE {}", "age > 3"),
    ):
        for outer, inner in product(templates, templates) if pairs else zip(templates, templates, strict=True):
            for depth in depths:
                text = frame.format(nested(outer, inner, depth, innermost))
                if len(text) <= LONGEST_QUERY:
                    yield text


def test_what_is_repeated_counts_as_often_as_it_is_written_out() -> None:
    chosen = f"(age{' + 1' * 30}) BETWEEN 1 AND 2"
    with pytest.raises(QueryError, match="says more than 5,000 things"):
        bind(f"SELECT COUNT(*) AS n FROM person WHERE {' OR '.join([chosen] * 120)}", POLICIES["row"], CATALOG)


def test_each_construct_in_itself() -> None:
    slow = {text: own for text in attacks((14, 29), pairs=False) if (own := seconds(text, "mysql")) > SECONDS}
    assert not slow


def test_each_construct_in_some_others() -> None:
    some = islice(attacks((14,), pairs=True), 0, None, 41)  # the rest is in the audit below
    slow = {text: own for text in some if (own := seconds(text, "mysql")) > SECONDS}
    assert not slow


@pytest.mark.parametrize("name", [*CHAINS][::2])
def test_each_chain_as_long_as_fits(name: str) -> None:
    assert seconds(chained(name), "duckdb") < 2 * SECONDS  # both ways of binding, one after the other


def test_messages_are_written_in_no_time() -> None:
    """LEAST of a dialect in which NULL wins is written in DuckDB's words with each part twice."""
    select = parse(f"SELECT {nested('LEAST(X, 1)', 'LEAST(X, 1)', 28, 'age')} FROM person", "mysql")
    begun = time.process_time()
    assert len(shown(select.expressions[0])) <= 60
    assert time.process_time() - begun < SECONDS


@pytest.mark.audit
@pytest.mark.parametrize("dialect", DIALECTS)
def test_everything_in_every_dialect(dialect: str) -> None:
    slow = {text: own for text in attacks((4, 12, 29), pairs=True) if (own := seconds(text, dialect)) > SECONDS}
    slow |= {name: own for name in CHAINS if (own := seconds(chained(name), dialect)) > 2 * SECONDS}
    assert not slow


def test_memory_has_a_bound() -> None:
    """In a process that may have 200 MB more than it has once everything is imported."""
    script = f"""
import resource, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from tests.query.test_nesting import CHAINS, attacks, chained, seconds
pages = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (pages + {MEGABYTES} * 2**20,) * 2)
for name in list(CHAINS)[::6]:
    seconds(chained(name), "duckdb")
for text in list(attacks((29,), pairs=False))[::6]:
    seconds(text, "mysql")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
