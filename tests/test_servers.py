"""The servers that other tests stand on."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.servers import PASSWORD_ONLY, PostgresServer, find_binaries, hold_cluster

pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'confide[postgres]'")


def test_runs_unprivileged_and_makes_every_commit_durable(postgres_server: PostgresServer) -> None:
    assert postgres_server.folder.stat().st_uid != 0
    shown = [postgres_server.run(f"SHOW {name}")[0][0] for name in ("fsync", "synchronous_commit", "server_encoding")]
    assert shown == ["on", "on", "UTF8"]


def test_every_test_gets_a_database_of_its_own(postgres_server: PostgresServer, postgres_database: str) -> None:
    assert postgres_server.run("SELECT current_database()", postgres_database) == [(postgres_database,)]
    assert postgres_server.run("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", postgres_database) == [
        (0,)
    ]
    with pytest.raises(AssertionError, match="own_postgres_server"):
        postgres_server.kill()


def test_passwords_are_asked_for_where_they_should_be(postgres_server: PostgresServer) -> None:
    import psycopg  # noqa: PLC0415

    postgres_server.create_role(PASSWORD_ONLY, "s3cret")
    for loopback in (False, True):
        url = postgres_server.url("postgres", PASSWORD_ONLY, "s3cret", loopback=loopback)
        psycopg.connect(url).close()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url.replace("s3cret", "wrong")).close()


def test_survives_a_kill_and_a_restart(own_postgres_server: PostgresServer) -> None:
    server = own_postgres_server
    server.run("CREATE TABLE kept (x int)")
    for number, end in enumerate((server.kill, server.stop)):
        server.run(f"INSERT INTO kept VALUES ({number})")
        end()
        server.start()
    assert server.run("SELECT count(*) FROM kept") == [(2,)]


def test_a_cluster_ends_with_the_last_process_that_holds_it(tmp_path: Path) -> None:
    if find_binaries() is None:
        pytest.skip("PostgreSQL is not installed")
    code = (
        "import sys, time, pathlib\n"
        "from tests.servers import hold_cluster\n"
        "with hold_cluster(pathlib.Path(sys.argv[1]), loopback=False) as server:\n"
        "    print(server.folder, flush=True)\n"
        "    time.sleep(600)\n"
    )
    root = Path(__file__).parents[1]
    meeting = tmp_path / "meeting"
    processes, folders = [], set()
    for _ in range(2):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(meeting)], cwd=root, stdout=subprocess.PIPE, text=True
        )
        processes.append(process)
        assert process.stdout is not None
        folders.add(process.stdout.readline().strip())
    (folder,) = folders
    for process in processes:
        assert Path(folder, "data", "postmaster.pid").exists()
        process.kill()
        process.communicate()
    until = time.monotonic() + 30
    while Path(folder).exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert not os.path.lexists(folder), "the cluster is still there"
    with hold_cluster(meeting, loopback=False) as server:
        assert str(server.folder) != folder
        assert server.run("SELECT 1") == [(1,)]
