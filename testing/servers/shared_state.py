"""Real PostgreSQL and Valkey (or Redis) servers on loopback, removed when the tests end.

If their programs are missing, tests skip with a message; with CI=true they fail instead.
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from headrace.adapters.valkey.client import AsyncValkeyClient, ValkeyClient
from headrace.base.errors import SharedStateUnavailable
from testing.servers.ports import free_port

START_TIMEOUT_S = 180.0
_PATIENCE_S = 0.05
_COMMAND_TIMEOUT_S = 60.0


class Server:
    """A server process with its own directory. It can be killed, stopped and continued."""

    def __init__(
        self,
        command: Sequence[str],
        results: Callable[[], bool],
        home: Path,
        *,
        ends_with: signal.Signals = signal.SIGKILL,
    ) -> None:
        self.home = home
        self._ends_with = ends_with
        self._command = command
        self._answers = results
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server on the data of its earlier runs and wait until it responds."""
        with (self.home / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            log_text = (self.home / "server.log").read_text()
            assert self._process.poll() is None, f"the server ended:\n{log_text}"
            assert time.monotonic() < deadline, f"the server does not answer:\n{log_text}"
            time.sleep(_PATIENCE_S)

    def ensure_running(self) -> None:
        """Start the server again if a test killed it."""
        if self._process is None or self._process.poll() is not None:
            self.start()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the server."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """Kill the server. Does nothing if it is not running."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(self._ends_with)
            self._process.wait(START_TIMEOUT_S)

    def remove(self) -> None:
        """Kill the server and delete its directory."""
        self.kill()
        shutil.rmtree(self.home, ignore_errors=True)


class PostgreSQL:
    """A PostgreSQL server. Every test takes a database of its own."""

    def __init__(self, programs: Path, *, fsync: str = "off") -> None:
        self.port = free_port()
        home = Path(tempfile.mkdtemp(prefix="headrace-postgresql-"))
        account = _postgresql_account()
        if account is not None:
            shutil.chown(home, account)
        become = [] if account is None else ["setpriv", *_privileges_of(account)]
        data = str(home / "data")
        subprocess.run(
            [*become, programs / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "-N"],
            check=True,
            capture_output=True,
        )
        options = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": fsync,
            "max_connections": "200",
        }
        self.server = Server(
            [
                *(*become, str(programs / "postgres"), "-D", data, "-p", str(self.port)),
                *(part for name, value in options.items() for part in ("-c", f"{name}={value}")),
            ],
            self._is_up,
            home,
            ends_with=signal.SIGQUIT,  # like a crash; SIGKILL would leave its children
        )
        self._databases = 0

    def new_database(self) -> str:
        """Create an empty database and return its URL."""
        self._databases += 1
        name = f"headrace_{self._databases}"
        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self._address(name)

    def _address(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def _is_up(self) -> bool:
        with contextlib.suppress(psycopg.Error):
            psycopg.connect(self._address("postgres"), connect_timeout=2).close()
            return True
        return False


class ValkeyServer:
    """A Valkey or Redis server that writes every command to its file before it replies.

    The guide requires a sync of every write, too. Tests kill the server and not the machine, and
    a sync takes seconds while other tests write.
    """

    def __init__(self, program: str) -> None:
        self.program = Path(program).name
        self.port = free_port()
        self.url = f"valkey://127.0.0.1:{self.port}"
        home = Path(tempfile.mkdtemp(prefix="headrace-shared-"))
        options = {
            "bind": "127.0.0.1",
            "port": str(self.port),
            "dir": str(home),
            "appendonly": "yes",
            "appendfsync": "no",
            "save": "",
            "maxmemory-policy": "noeviction",
        }
        command = [part for name, value in options.items() for part in (f"--{name}", value)]
        self.server = Server([program, *command], self._is_up, home)

    def empty(self) -> None:
        """Delete all keys, as if the server had restarted without persistence."""
        self._execute("FLUSHALL")

    def names(self) -> list[bytes]:
        """Return all keys."""
        found: list[bytes] = self._execute("KEYS", "*")
        return found

    def calls(self, command: str) -> int:
        """Return how often a command was called since the server started."""
        statistics: dict[str, dict[str, int]] = self._execute("INFO", "commandstats")
        return statistics[f"cmdstat_{command}"]["calls"]

    def connections(self) -> AsyncValkeyClient:
        """Return connections that wait as long as commands take on a busy machine."""
        return AsyncValkeyClient(self.url, timeout_s=_COMMAND_TIMEOUT_S)

    def put(self, key: str, value: str) -> None:
        """Set a key."""
        self._execute("SET", key, value)

    def follow(self, primary: "ValkeyServer | None") -> None:
        """Become a replica of a server, or of none."""
        host, port = ("NO", "ONE") if primary is None else ("127.0.0.1", primary.port)
        self._execute("REPLICAOF", host, port)

    def configure(self, name: str, value: str) -> None:
        """Change an option at run time."""
        self._execute("CONFIG", "SET", name, value)

    def age(self, milliseconds: int) -> None:
        """Reduce the remaining time to live of every key."""
        for key in self.names():
            left_ms: int = self._execute("PTTL", key)
            if left_ms >= 0:
                self._execute("PEXPIRE", key, left_ms - milliseconds)

    def _execute(self, *command: str | bytes | int) -> Any:
        server = ValkeyClient(self.url)
        try:
            return server.execute(*command)
        finally:
            server.close()

    def _is_up(self) -> bool:
        with contextlib.suppress(SharedStateUnavailable):
            return bool(self._execute("PING"))
        return False


def find_postgresql() -> Path | None:
    """Return the directory of the newest PostgreSQL programs."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return programs[-1].parent if programs else None


def find_valkey() -> str | None:
    """Return the Valkey server program, or Redis's if Valkey is not installed."""
    return shutil.which("valkey-server") or shutil.which("redis-server")


def missing(what: str) -> None:
    """Skip the test because a server program is missing; fail if CI=true."""
    reason = f"{what} is not installed on this machine"
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}, and CI must have it")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """A PostgreSQL server that tests share. A test that kills it restarts it."""
    programs = find_postgresql()
    if programs is None:
        missing("PostgreSQL")
    assert programs is not None
    running = PostgreSQL(programs)
    try:
        running.server.start()
        yield running
    finally:
        running.server.remove()


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[ValkeyServer]:
    """A Valkey server, or Redis if Valkey is not installed; tests share it."""
    program = find_valkey()
    if program is None:
        missing("neither Valkey nor Redis")
    assert program is not None
    running = ValkeyServer(program)
    try:
        running.server.start()
        yield running
    finally:
        running.server.remove()


def _postgresql_account() -> str | None:
    """Return the account to run PostgreSQL as, because PostgreSQL does not run as root."""
    return "postgres" if os.geteuid() == 0 else None


def _privileges_of(account: str) -> list[str]:
    entry = pwd.getpwnam(account)
    return [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
