"""Real ClickHouse servers for tests: single ones, shards, and shards with replicas.

`clickhouse_programs` says what runs them.
"""

import asyncio
import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Coroutine, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import pytest
import requests

from headrace.adapters.store.clickhouse.address import parse_address
from headrace.adapters.store.clickhouse.reader import ClickHouseReader
from headrace.adapters.store.clickhouse.wide_parameters import fit_parameters
from headrace.adapters.store.clickhouse.writer import ClickHouseWriter
from headrace.base.logs import get_logger
from headrace.model.catalog import Table
from headrace.model.storage import STORAGE_TABLES
from headrace.ports.store import SERVER_DIALECT, QueryLimits
from testing.chdb import Row, Selectable, arrow_stream
from testing.servers.clickhouse_configuration import (
    READER,
    READER_PASSWORD,
    WRITER,
    WRITER_PASSWORD,
    shards_xml,
    users_xml,
)
from testing.servers.clickhouse_programs import ClickHouseProgram, clickhouse_program
from testing.servers.ports import free_port

START_TIMEOUT_S = 180

_STATEMENT_TIMEOUT_S = 180
_NUMBERS = itertools.count(1)

ResultT = TypeVar("ResultT")


class ClickHouseServer:
    """A server with its own directory. It can be killed and started again.

    `host` is its address, `interserver_host` the one for other replicas. `prefix` is a command
    that runs the server's command, for example in a network namespace. Without a `configuration`
    its file is to be written before the start.
    """

    def __init__(
        self,
        program: ClickHouseProgram,
        configuration: Path | None = None,
        *,
        host: str = "127.0.0.1",
        interserver_host: str = "",
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._environment = {**os.environ, **(environment or {})}
        self.host = host
        self.interserver_host = interserver_host
        self.port = free_port()
        self.native_port = free_port()
        self.interserver_port = free_port() if program.is_official else self.port
        self.home = Path(tempfile.mkdtemp(prefix="headrace-clickhouse-"))
        self.data = self.home / "data"
        self.configuration = configuration or self.home / "config.xml"
        self._program = program
        self._prefix = prefix
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server on the data of its earlier runs and wait until it responds."""
        self.launch()
        self.wait_ready()

    def launch(self) -> None:
        """Start the server and return immediately."""
        self.data.mkdir(exist_ok=True)
        with (self.home / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._prefix, *self._program.server_command(self)],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=self._environment,
                cwd=self.home,
            )

    def wait_ready(self) -> None:
        """Wait until the server responds."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            assert not self.is_dead, self.last_log_lines()
            assert time.monotonic() < deadline, self.last_log_lines()
            time.sleep(0.05)

    @property
    def is_running(self) -> bool:
        """Whether the server was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def is_dead(self) -> bool:
        """Whether the server exited without being killed by a test."""
        return self._process is not None and self._process.poll() is not None

    def last_log_lines(self) -> str:
        """Return the state of the server and the end of its output."""
        if self._process is None:
            return "the server was killed, or not started"
        printed = (self.home / "server.log").read_text(errors="replace")
        return f"the server's exit code is {self._process.poll()}; it printed:\n{printed[-4000:]}"

    def restart_dead(self) -> None:
        """Restart a crashed server and log that, so that later tests do not fail because of it."""
        if self.is_dead:
            sys.stderr.write(
                f"a ClickHouse server of the tests has died: {self.last_log_lines()}\n"
            )
            self.start()

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None, "the server was not started"
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the server."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the server. Does nothing if it is not running."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._process = None

    def remove(self) -> None:
        """Kill the server and delete its directory."""
        self.kill()
        shutil.rmtree(self.home, ignore_errors=True)

    def execute(self, statement: str) -> str:
        """Run a statement as the server's own user and return the result as text."""
        try:
            response = self._post(statement)
        except requests.RequestException as error:
            error.add_note(self.last_log_lines())
            raise
        assert response.status_code == 200, response.text
        return response.text

    def _answers(self) -> bool:
        try:
            return self._post("SELECT 1").text == "1\n"
        except requests.RequestException:
            return False

    def _post(self, statement: str) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            url = f"http://{self.host}:{self.port}/"
            return session.post(url, data=statement.encode(), timeout=_STATEMENT_TIMEOUT_S)


class ClickHouseServers:
    """Servers configured as the shards of one cluster."""

    def __init__(self, program: ClickHouseProgram, count: int) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="headrace-clickhouse-cluster-"))
        configuration = self.home / "config.xml"
        self._servers = [ClickHouseServer(program, configuration) for _ in range(count)]
        users = self.home / "users.xml"
        users.write_text(users_xml())
        configuration.write_text(shards_xml(users, [[server] for server in self._servers]))

    @property
    def servers(self) -> Sequence[ClickHouseServer]:
        """The servers. A server that has crashed is restarted first."""
        self.restart_dead()
        return self._servers

    def last_log_lines(self) -> str:
        """Return the current state of each server, without restarting any."""
        return "\n".join(server.last_log_lines() for server in self._servers)

    def restart_dead(self) -> None:
        """Restart the servers that have crashed."""
        for server in self._servers:
            server.restart_dead()

    def start(self) -> None:
        """Start all servers."""
        for server in self._servers:
            server.launch()
        for server in self._servers:
            server.wait_ready()

    def remove(self) -> None:
        """Kill all servers and delete their directories."""
        for server in self._servers:
            server.remove()
        shutil.rmtree(self.home, ignore_errors=True)


def new_database() -> str:
    """Return an unused database name."""
    return f"test_{os.getpid()}_{next(_NUMBERS)}"


def address_of(servers: Sequence[ClickHouseServer], database: str, **options: Any) -> str:
    """Return the URL with which a machine writes to these servers."""
    return _url(servers, WRITER, WRITER_PASSWORD, database, options)


def reading_address_of(servers: Sequence[ClickHouseServer], database: str, **options: Any) -> str:
    """Return the URL with which a machine reads from these servers."""
    return _url(servers, READER, READER_PASSWORD, database, options)


def _url(
    servers: Sequence[ClickHouseServer],
    user: str,
    password: str,
    database: str,
    options: Mapping[str, Any],
) -> str:
    hosts = ",".join(f"{server.host}:{server.port}" for server in servers)
    credentials = f"{user}:{quote(password, safe='')}"
    return f"clickhouse://{credentials}@{hosts}/{database}?{urlencode(options)}"


class ClickHouseTables(Selectable):
    """Empty tables in a database of their own: on one server, or over the shards of a cluster."""

    def __init__(self, servers: Sequence[ClickHouseServer], **options: Any) -> None:
        self.servers = servers
        self.database = new_database()
        self.url = address_of(servers, self.database, **options)
        self.address = parse_address(self.url)
        self.writer = ClickHouseWriter(self.address)
        self.writer.prepare()
        self.dialect = SERVER_DIALECT
        self._filled: set[str] = set()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()
        self.reader = ClickHouseReader(
            parse_address(reading_address_of(servers, self.database, **options)),
            connections=8,
            log=get_logger(),
        )

    def insert(self, table: Table, rows: Sequence[Row], *, token: str | None = None) -> None:
        """Insert rows by column name; see `FreshStore.insert`.

        Over shards and without a token, the rows are split into several batches, so that
        neighbouring rows are stored on different shards.
        """
        self._filled.add(table.name)
        batches = len(self.servers) * 2 if token is None and self.address.cluster else 1
        for first in range(batches):
            stream = arrow_stream(table, rows[first::batches])
            self.writer.insert(table, stream, token=token or f"test {next(_NUMBERS)}")

    def _output(self, sql: str, parameters: Mapping[str, object], limits: QueryLimits) -> bytes:
        matching, texts = fit_parameters(sql, parameters)
        query_id = f"{self.database}-{next(_NUMBERS)}"
        return self.run(self.reader.select(matching, texts, limits, query_id))

    def run(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Run a coroutine on the event loop of the reader. Call it from any other thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def execute(self, statement: str) -> None:
        """Run a statement on every server, in the database that contains the rows."""
        for server in self.servers:
            server.execute(statement.format(database=self.address.local_database))

    def empty(self) -> None:
        """Delete what `insert` has stored and keep the tables."""
        while self._filled:
            self._truncate(self._filled.pop())

    def empty_all(self) -> None:
        """Delete all rows of all writers, and keep the tables."""
        self._filled.clear()
        for table in STORAGE_TABLES:
            self._truncate(table)

    def _truncate(self, table: str) -> None:
        self.execute(f"TRUNCATE TABLE `{{database}}`.`{table}` SYNC")

    def close(self) -> None:
        """Drop the databases."""
        self.writer.close()
        self.run(self.reader.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()
        for server in self.servers:
            for database in {self.database, self.address.local_database}:
                server.execute(f"DROP DATABASE IF EXISTS `{database}` SYNC")


@contextlib.contextmanager
def running_servers(count: int) -> Generator[ClickHouseServers]:
    """Run servers, as shards of one cluster, for the duration of the block."""
    running = ClickHouseServers(clickhouse_program(), count)
    try:
        running.start()
        yield running
    finally:
        running.remove()


@pytest.fixture(scope="session")
def clickhouse_servers() -> Iterator[ClickHouseServers]:
    """Two servers, the shards of one cluster, shared by tests. A test restarts what it kills."""
    with running_servers(2) as running:
        yield running


@pytest.fixture
def dedicated_shards() -> Iterator[ClickHouseServers]:
    """Two shards for one test, which may kill them."""
    with running_servers(2) as running:
        yield running
