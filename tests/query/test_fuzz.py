"""Random texts: each becomes a question or one of our two errors, nothing else, and quickly."""

import time
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from confide.errors import ParameterError, QueryError
from confide.query import Question, bind
from tests.query.samples import CATALOG, POLICIES
from tests.query.test_cases import read_cases

WORDS = r"""
SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET AS ON USING JOIN LEFT COUNT ( ) * , . ; SUM AVG DISTINCT FILTER
CASE WHEN THEN ELSE END AND OR NOT IN BETWEEN LIKE ILIKE IS NULL TRUE FALSE + - / % = <> < > <= >= :: || -> [ ] { }
person visit item region_name tag age income region job member born person_id cost kind BIN LEAST COALESCE ABS DATE
'N' 'x' '2024-01-01' 0 1 2.5 1e3 -5 "age" "" '' $1 ? @x #1 -- /* */ \ ☃ OVER PARTITION WITH RECURSIVE UNION ALL
CAST INT VARCHAR INTERVAL EXTRACT read_csv random now LATERAL UNNEST VALUES TABLESAMPLE PIVOT QUALIFY WINDOW EXISTS
MEDIAN QUANTILE MIN MAX STDDEV ROUND NULLIF IF DESC NULLS FIRST FETCH PERCENT t p s0 u k0 many rowid
CORR REGR_SLOPE COVAR_POP BOOL_AND EVERY VAR SUM_IF NDV MODE
""".split()  # noqa: SIM905
CASES = list(read_cases())


def ask(text: str, policy: str) -> Question | None:
    begun = time.perf_counter()
    question, message = None, "a question"
    try:
        question = bind(text, POLICIES[policy], CATALOG)
    except (QueryError, ParameterError) as error:
        message = str(error)
    assert 0 < len(message) < 1_500
    assert time.perf_counter() - begun < 5
    return question


@given(st.lists(st.sampled_from(WORDS), max_size=40), st.sampled_from(sorted(POLICIES)))
@settings(max_examples=250, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_a_soup_of_words(words: list[str], policy: str) -> None:
    ask("SELECT " + " ".join(words), policy)
    ask(" ".join(words), policy)


@given(st.text(max_size=80), st.sampled_from(sorted(POLICIES)))
@settings(max_examples=150, deadline=None)
def test_any_text(text: str, policy: str) -> None:
    ask(text, policy)
    ask(f"SELECT COUNT(*) FROM person WHERE {text}", policy)
    ask(f'SELECT COUNT(*) AS "{text}" FROM person', policy)


def mutated(text: str, rng: Random) -> str:
    """A question with a few words dropped, doubled, swapped or put in."""
    words = text.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split()
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(words)) if words else 0
        match rng.randrange(5):
            case 0 if words:
                del words[place]
            case 1 if words:
                words.insert(place, words[rng.randrange(len(words))])
            case 2 if words:
                words[place] = rng.choice(WORDS)
            case 3:
                words.insert(place, rng.choice(WORDS))
            case _ if words:
                other = rng.randrange(len(words))
                words[place], words[other] = words[other], words[place]
    return " ".join(words)


def mutants(seed: int, count: int) -> tuple[int, int]:
    rng, answered = Random(seed), 0
    for _ in range(count):
        case = rng.choice(CASES)
        answered += ask(mutated(case.text, rng), case.policy) is not None
    return answered, count


def test_mutated_questions() -> None:
    answered, count = mutants(1, 1_500)
    assert count // 200 < answered < count  # the mutants are neither all dead nor all alive


@pytest.mark.audit
@pytest.mark.parametrize("seed", range(100, 110))
def test_mutated_questions_at_length(seed: int) -> None:
    mutants(seed, 5_000)
