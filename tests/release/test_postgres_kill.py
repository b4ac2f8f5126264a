"""kill -9 of the server that holds the data and the ledger, in the middle of a charge and of a query.

One session, in one process that is never restarted, asks all the time: nothing is released that is not charged, every
question is charged once however often it is asked, and the session finds the server again by itself.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import confide
from confide.errors import ConfideError, EngineError, LedgerError, SourceError
from confide.release.session import Session
from tests.servers import PostgresServer

SQL = "SELECT k, COUNT(*) AS n, MEDIAN(x) AS m FROM {table} GROUP BY k"
COLUMNS = {"k": {"values": ["a", "b", "c"]}, "x": {"range": [0, 1000]}}


def opened(server: PostgresServer, folder: Path) -> tuple[Session, str]:
    """Data and ledger in one database. `slow` takes a while to read, so that a kill falls into the reading."""
    name = server.create_database()
    for statement in (
        "CREATE TABLE quick AS SELECT CASE g % 3 WHEN 0 THEN 'a' WHEN 1 THEN 'b' ELSE 'c' END AS k, g % 1000 AS x"
        " FROM generate_series(1, 3000) AS g",
        "CREATE FUNCTION pause() RETURNS int LANGUAGE plpgsql STABLE AS"
        " $$ BEGIN PERFORM pg_sleep(0.15); RETURN 1; END $$",
        "CREATE VIEW slow AS WITH wait AS MATERIALIZED (SELECT pause() AS p)"
        " SELECT k, x FROM wait CROSS JOIN quick WHERE p = 1",
    ):
        server.run(statement, name)
    policy = {
        "source": server.url(name),
        "budget": {"epsilon": 1_000_000},
        "unit": "row",
        "tables": {"quick": {"columns": COLUMNS}, "slow": {"columns": COLUMNS}},
    }
    return confide.open(
        policy, ledger=server.url(name, schema="book", anchor=str(folder / "anchor")), create=True
    ), name


def ask(session: Session, table: str, number: int) -> Any:
    """A question that was not asked before, at a price that tells which it was."""
    return session.sql(SQL.format(table=table), epsilon=f"1.{number:09d}").to_dicts()


def outcome(session: Session, table: str, number: int) -> Any:
    try:
        return ask(session, table, number)
    except EngineError as error:
        return str(error)


def killed_during(server: PostgresServer, act: Callable[[], None], after: float) -> None:
    """Run in a thread, and kill the server meanwhile; whatever it raises must be one of our own errors."""
    strange: list[BaseException] = []

    def run() -> None:
        try:
            act()
        except ConfideError:
            pass
        except BaseException as error:
            strange.append(error)

    worker = threading.Thread(target=run)
    worker.start()
    time.sleep(after)
    server.kill()
    worker.join(60)
    assert not worker.is_alive(), "it hangs"
    assert not strange, strange


def kill_rounds(server: PostgresServer, folder: Path, rounds: int) -> Counter[str]:
    """So many rounds, half of them in the middle of charges and half in the middle of a query; where they fell."""
    chance = random.Random(20)
    fell: Counter[str] = Counter()
    given: dict[tuple[str, int], Any] = {}
    asked: list[tuple[str, int]] = []
    session, _ = opened(server, folder)
    with session:
        ask(session, "quick", 0)
        asked.append(("quick", 0))
        for turn in range(rounds):
            table = ("quick", "slow")[turn % 2]

            def act(table: str = table) -> None:
                while True:
                    question = (table, len(asked))
                    asked.append(question)
                    try:
                        given[question] = ask(session, *question)
                    except LedgerError as error:
                        # The failure of a query is kept on the same server, and so is not.
                        query = "the charge stands" in str(error)
                        sure = "Nothing was charged" in str(error) or "It may have been charged" in str(error)
                        fell["query" if query else "charge" if sure else "look"] += 1
                        raise
                    except SourceError as error:
                        fell["look" if "Nothing was charged" in str(error) else "other"] += 1
                        raise
                    except EngineError as error:
                        fell["query" if str(error) == str(EngineError()) else "other"] += 1
                        raise

            killed_during(server, act, 0.05 + chance.random() * 0.15)
            with pytest.raises(ConfideError):
                ask(session, table, len(asked))
            asked.append((table, len(asked)))
            server.start()
            # By itself: the same session, the same question.
            again = ask(session, *asked[-1])
            assert ask(session, *asked[-1]) == again
            # What was lost in the middle of a query has that failure for its outcome; other than that it is answered.
            lost = asked[-2]
            assert lost not in given
            assert outcome(session, *lost) == outcome(session, *lost)
        charged = Counter(e.body["purpose"] for e in session._holdings.ledger.entries() if e.kind == "charge")
        # Every question was asked to its end, and charged once.
        assert sum(charged.values()) == len(asked)
        assert session.budget.spent == pytest.approx(sum(float(f"1.{number:09d}") for _, number in asked))
        for question, answer in given.items():
            assert outcome(session, *question) == answer
        assert session.budget.spent == pytest.approx(sum(float(f"1.{number:09d}") for _, number in asked))
    return fell


def test_a_killed_server_leaves_nothing_uncharged_and_is_found_again(
    own_postgres_server: PostgresServer, tmp_path: Path
) -> None:
    fell = kill_rounds(own_postgres_server, tmp_path, 2)
    assert sum(fell.values()) == 2
    assert fell["other"] == 0
