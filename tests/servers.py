"""Real database servers for tests: a private PostgreSQL cluster in a temporary folder.

A cluster runs as an unprivileged user, listens on a socket in its own folder and, if asked, on a free port of the
loopback interface. It is stopped, and its folder removed, when nobody holds it any more, however its users ended: each
holds a lock on a file, which the kernel drops with the process, and a guard watches that lock.
"""

import contextlib
import fcntl
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString
from urllib.parse import quote

import pytest

ADMINISTRATOR = "confide"
PASSWORD_ONLY = "guarded"
"""A role of this name must give its password on the socket too; everybody else is trusted there."""

_MISSING = "PostgreSQL is not installed, so this is not tested; install it with: apt-get install postgresql"
_PORT = 5432  # names the socket; nothing listens on the port itself
_SETTINGS = {
    "max_connections": "300",
    "shared_buffers": "'64MB'",
    "lc_messages": "'C'",
    "timezone": "'UTC'",
    # Charges must survive a crash here as they do in earnest.
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
}
_ACCESS = f"""\
local all {PASSWORD_ONLY} scram-sha-256
local all all trust
host all all 127.0.0.1/32 scram-sha-256
"""


def find_binaries() -> Path | None:
    """The folder with `initdb` and `postgres`; None if PostgreSQL is not installed."""
    candidates = []
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        told = subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True, check=True)
        candidates.append(Path(told.stdout.strip()))
    versions = Path("/usr/lib/postgresql").glob("*/bin")
    candidates += sorted(versions, key=lambda path: float(path.parent.name), reverse=True)
    on_path = shutil.which("initdb")
    if on_path is not None:
        candidates.append(Path(on_path).resolve().parent)
    return next((path for path in candidates if (path / "initdb").exists() and (path / "postgres").exists()), None)


@dataclass(frozen=True)
class PostgresServer:
    """One cluster. `loopback` is its port on 127.0.0.1, where every role needs its password; None without one."""

    folder: Path
    binaries: Path
    loopback: int | None = None
    shared: bool = False

    @property
    def port(self) -> int:
        return self.loopback or _PORT

    def url(
        self,
        database: str = "postgres",
        user: str = ADMINISTRATOR,
        password: str | None = None,
        *,
        loopback: bool = False,
        **parameters: str,
    ) -> str:
        """The address of a database, through the socket or the loopback port."""
        who = quote(user, safe="") + ("" if password is None else f":{quote(password, safe='')}")
        if loopback:
            assert self.loopback is not None, "this cluster has no loopback port"
            place, query = f"127.0.0.1:{self.loopback}", parameters
        else:
            place, query = "", {"host": str(self.folder), "port": str(self.port), **parameters}
        text = "&".join(f"{name}={quote(value, safe='/')}" for name, value in query.items())
        return f"postgresql://{who}@{place}/{quote(database, safe='')}" + (f"?{text}" if text else "")

    def connect(self, database: str = "postgres", user: str = ADMINISTRATOR) -> Any:
        """A connection of psycopg that commits each statement."""
        import psycopg  # noqa: PLC0415

        return psycopg.connect(self.url(database, user), autocommit=True)

    def run(self, statement: LiteralString | str, database: str = "postgres", user: str = ADMINISTRATOR) -> list[Any]:
        """The rows of one statement, as the administrator."""
        with self.connect(database, user) as connection:
            cursor = connection.execute(statement)
            return list(cursor.fetchall()) if cursor.description is not None else []

    def create_database(self, name: str | None = None, owner: str = ADMINISTRATOR) -> str:
        """Make an empty database in UTF-8, and return its name."""
        name = name or f"d{secrets.token_hex(6)}"
        self.run(f'CREATE DATABASE "{name}" OWNER "{owner}" TEMPLATE template0')
        return name

    def drop_database(self, name: str) -> None:
        self.run(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def create_role(self, name: str, password: str | None = None) -> str:
        """Make a role that may log in and has no rights, unless it is there; roles belong to the whole cluster."""
        secret = "" if password is None else f" PASSWORD '{password}'"
        with self.connect() as connection, connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(1)")
            if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (name,)).fetchone() is None:
                connection.execute(f'CREATE ROLE "{name}" LOGIN{secret}')
        return name

    def start(self) -> None:
        """Start, and wait until questions are answered. What a kill left behind is waited for."""
        deadline = time.monotonic() + 60
        while True:
            done = self._control("start", "-w", "-t", "60", "-l", str(self.folder / "log"))
            if done.returncode == 0:
                return
            if time.monotonic() > deadline:
                raise AssertionError(f"PostgreSQL does not start: {done.stdout}\n{(self.folder / 'log').read_text()}")
            time.sleep(0.05)

    def stop(self, mode: str = "fast") -> None:
        self._require_own()
        self._control("stop", "-w", "-m", mode)

    def restart(self, mode: str = "fast") -> None:
        """Stop and start; "immediate" stops without a checkpoint, as a crash does."""
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """kill -9 of every process of the cluster."""
        self._signal_all(signal.SIGKILL)

    def pause(self) -> None:
        """Stop every process in its tracks: a server that is there and says nothing."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal_all(signal.SIGCONT)

    def processes(self) -> list[int]:
        """The server's process and its children, the server first."""
        try:
            server = int((self.folder / "data" / "postmaster.pid").read_text().split("\n", 1)[0])
        except (FileNotFoundError, ValueError):
            return []
        found = [server]
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    # After the name, which may hold anything, in parentheses: the state, then the parent.
                    if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == server:
                        found.append(int(entry.name))
        return found

    def _signal_all(self, number: signal.Signals) -> None:
        self._require_own()
        for process in self.processes():
            with contextlib.suppress(ProcessLookupError):  # ended since it was listed
                os.kill(process, number)

    def _require_own(self) -> None:
        assert not self.shared, "other tests use this cluster: take the fixture own_postgres_server"

    def _control(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return as_server(self.folder, self.binaries / "pg_ctl", "-D", str(self.folder / "data"), *arguments)


def as_server(folder: Path, *command: str | Path) -> "subprocess.CompletedProcess[str]":
    """Run a command as whoever owns the folder: PostgreSQL refuses to run as root."""
    owner = folder.stat()
    other: dict[str, Any] = {}
    if owner.st_uid != os.getuid():
        other = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}
    with (folder / "output").open("w+") as output:  # a pipe would be held open by the server
        done = subprocess.run(
            [str(part) for part in command],
            check=False,
            cwd=folder,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **other,
        )
        output.seek(0)
        return subprocess.CompletedProcess(done.args, done.returncode, output.read())


def make_cluster(
    binaries: Path, *, loopback: bool = False, shared: bool = False, settings: Mapping[str, str] | None = None
) -> PostgresServer:
    """A new cluster in a folder of its own, started."""
    folder = Path(tempfile.mkdtemp(prefix="confide-postgres-", dir="/tmp"))  # sockets need short names
    if os.getuid() == 0:
        owner = _unprivileged()
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    server = PostgresServer(folder, binaries, _free_port() if loopback else None, shared)
    data = folder / "data"
    made = as_server(
        folder,
        binaries / "initdb",
        *("-D", data, "-U", ADMINISTRATOR, "-E", "UTF8", "--locale=C", "--auth=trust", "--no-sync"),
    )
    if made.returncode != 0:
        shutil.rmtree(folder, ignore_errors=True)
        raise AssertionError(f"PostgreSQL does not make a cluster: {made.stdout}")
    chosen = {
        **_SETTINGS,
        "port": str(server.port),
        "unix_socket_directories": f"'{folder}'",
        "listen_addresses": "'127.0.0.1'" if loopback else "''",
        **(settings or {}),
    }
    with (data / "postgresql.conf").open("a") as configuration:
        configuration.writelines(f"{name} = {value}\n" for name, value in chosen.items())
    (data / "pg_hba.conf").write_text(_ACCESS)
    server.start()
    return server


def remove_cluster(server: PostgresServer) -> None:
    server._control("stop", "-w", "-m", "immediate")
    shutil.rmtree(server.folder, ignore_errors=True)


def _unprivileged() -> pwd.struct_passwd:
    with contextlib.suppress(KeyError):
        return pwd.getpwnam("postgres")
    return pwd.getpwnam("nobody")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# --- held by many processes -------------------------------------------------------------------------------------------


@contextlib.contextmanager
def hold_cluster(meeting: Path, *, loopback: bool = True) -> Iterator[PostgresServer]:
    """The cluster of everybody who meets at this file: made by the first, stopped after the last."""
    binaries = find_binaries()
    assert binaries is not None
    held = os.open(meeting, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with _door(meeting):
            fcntl.flock(held, fcntl.LOCK_SH)
            text = os.pread(held, 4096, 0).decode().split()
            if text:
                server = PostgresServer(Path(text[0]), binaries, int(text[1]) or None, shared=True)
            else:
                server = make_cluster(binaries, loopback=loopback, shared=True)
                os.pwrite(held, f"{server.folder} {server.loopback or 0}".encode(), 0)
                _start_guard(meeting)
        yield server
    finally:
        os.close(held)


@contextlib.contextmanager
def _door(meeting: Path) -> Iterator[None]:
    """Through which one at a time comes or goes."""
    door = os.open(f"{meeting}.door", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(door, fcntl.LOCK_EX)
        yield
    finally:
        os.close(door)


def _start_guard(meeting: Path) -> None:
    subprocess.Popen(
        [sys.executable, str(Path(__file__).resolve()), str(meeting)],
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ).returncode = 0  # nobody waits for it: it outlives this process


def guard(meeting: Path) -> None:
    """Stop a cluster when nobody holds it any more."""
    held = os.open(meeting, os.O_RDWR | os.O_CLOEXEC)
    while True:
        time.sleep(0.3)
        with _door(meeting), contextlib.suppress(BlockingIOError):
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            text = os.pread(held, 4096, 0).decode().split()
            os.ftruncate(held, 0)
            binaries = find_binaries()
            if text and binaries is not None:
                remove_cluster(PostgresServer(Path(text[0]), binaries))
            return


# --- fixtures ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A cluster shared by all tests of a run, in all its processes."""
    if find_binaries() is None:
        pytest.skip(_MISSING)
    base = tmp_path_factory.getbasetemp()
    meeting = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "postgres-server"
    with hold_cluster(meeting) as server:
        yield server


@pytest.fixture
def postgres_database(postgres_server: PostgresServer) -> Iterator[str]:
    """The name of a fresh, empty database on the shared cluster."""
    name = postgres_server.create_database()
    yield name
    postgres_server.drop_database(name)


@pytest.fixture
def own_postgres_server() -> Iterator[PostgresServer]:
    """A cluster for one test alone, which may kill it."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip(_MISSING)
    server = make_cluster(binaries)
    try:
        yield server
    finally:
        with contextlib.suppress(ProcessLookupError):
            server.resume()
        remove_cluster(server)


if __name__ == "__main__":
    guard(Path(sys.argv[1]))
