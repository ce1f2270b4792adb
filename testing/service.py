"""Runs a real service for tests: started like in production, queried over HTTP, and killed."""

import json
import os
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cache
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import requests

from headrace.adapters.data_dir.paths import DIRECTORY
from headrace.adapters.directory.sql_directory import SqlDirectory, open_directory
from headrace.base.clock import SystemClock
from headrace.model.tenancy import OrganizationId, Scope, WebsiteId
from testing.servers.ports import free_port

HEADRACE = str(Path(sys.executable).with_name("headrace"))
START_TIMEOUT_S = 110
STOP_TIMEOUT_S = 60
REQUEST_TIMEOUT_S = 60
"""Deadlines for a machine with a load of 20, below the timeout of a test."""

ABSENT_LIBRARIES = Path(__file__).with_name("absent")
"""Modules that take the place of libraries which production does not have."""

BASE_SETTINGS: Mapping[str, str] = {"HEADRACE_QUERY_RATE_LIMIT": "100000"}
PATIENT_QUERIES: Mapping[str, str] = {
    "HEADRACE_QUERY_QUEUE_TIMEOUT_S": "30",
    "HEADRACE_QUERY_TIMEOUT_S": "45",
}
"""Queries wait longer than by default for what was sent before: a busy machine loads slowly."""

MAX_ROWS = 10_000
COLUMNS_A_QUERY = 4  # five groupBy columns at most, one is the row's id
BOTS_TOO = {"field": "is_bot", "operator": "in", "value": [True, False]}
DERIVED_TABLES = frozenset({"sessions", "profiles"})

Row = dict[str, Any]
Json = Any


class Key(NamedTuple):
    """An API key as `key create` prints it."""

    secret: str
    id: str


@cache
def temporary_files() -> TemporaryDirectory[str]:
    """Return the directory for the sockets of services, deleted when this process exits."""
    return TemporaryDirectory(prefix="hr-")


def clean_environment(settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this environment without Headrace settings, plus the given ones.

    Processes import what they import in production, and not what tests have installed beside it.
    Their output is buffered as in the shell of a user, whatever the environment of the tests says.
    """
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("HEADRACE_")}
    inherited.pop("PYTHONUNBUFFERED", None)
    inherited["TMPDIR"] = temporary_files().name
    inherited["PYTHONPATH"] = str(ABSENT_LIBRARIES)
    return {**inherited, **BASE_SETTINGS, **(settings or {})}


def run_to_end(
    command: Sequence[str],
    settings: Mapping[str, str] | None = None,
    *,
    timeout_s: float = START_TIMEOUT_S,
) -> subprocess.CompletedProcess[str]:
    """Run a program with the environment of a service until it ends; return what it printed."""
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=clean_environment(settings),
        timeout=timeout_s,
        check=False,
    )


def with_file_limit(command: Sequence[str], *, blocks: int) -> list[str]:
    """Return a command that can write no file over so many blocks of 512 bytes: a full disk."""
    return ["sh", "-c", f"ulimit -f {blocks}; exec {shlex.join(command)}"]


def log_until_a_process_dies(data: Path) -> list[Json]:
    """Start a service that cannot begin; return its log lines up to the first end of a process."""
    command = [HEADRACE, "serve", "--data", str(data), "--port", "0"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=clean_environment()
    ) as serving:
        assert serving.stderr is not None
        lines = map(json.loads, serving.stderr)
        try:
            return list(takewhile(lambda line: line["event_name"] != "process_died", lines))
        finally:
            serving.terminate()


def wait_until(
    condition: Callable[[], bool], what: str, *, timeout_s: float = START_TIMEOUT_S
) -> None:
    """Poll until a condition holds; fail with `what` after the timeout."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s} s in vain until {what}")
        time.sleep(0.05)


def bearer(key: Key) -> dict[str, str]:
    """Return the request headers for an API key."""
    return {"Authorization": f"Bearer {key.secret}"}


class Service:
    """A `headrace serve` process on its own data directory, and the command line for it.

    It can be started again on the same directory after it was stopped or killed. By default its
    queries are patient.
    """

    def __init__(
        self, data: Path, *, workers: int = 1, settings: Mapping[str, str] = PATIENT_QUERIES
    ) -> None:
        self.data = data
        self.log = data.with_name(data.name + ".log")
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._workers = workers
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._log_size_before = 0
        self._keys: dict[str, Key] = {}
        self._directory: SqlDirectory | None = None
        self.http = self.session()

    @staticmethod
    def session() -> requests.Session:
        """Return an HTTP session that ignores the machine's proxies. Each thread has its own."""
        session = requests.Session()
        session.trust_env = False
        return session

    def launch(self) -> None:
        """Start the service and return immediately."""
        command = [HEADRACE, "serve", "--data", str(self.data), "--host", "127.0.0.1"]
        command += ["--port", str(self.port), "--workers", str(self._workers)]
        with self.log.open("ab") as log:
            self._log_size_before = log.tell()
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=clean_environment(self._settings),
                start_new_session=True,  # so that all processes can be killed as one group
            )

    def start(self) -> "Service":
        """Start the service and wait until it is ready, with all of its workers."""
        self.launch()
        self.wait_ready()
        if self._workers > 1:  # one of them answers /ready while others still start
            wait_until(lambda: self._ready_workers() >= self._workers, "all workers are ready")
        return self

    def _ready_workers(self) -> int:
        with self.log.open("rb") as log:
            log.seek(self._log_size_before)
            return log.read().count(b'"worker_ready"')

    @property
    def pid(self) -> int:
        """The supervisor's process id."""
        assert self._process is not None, "the service was not started"
        return self._process.pid

    def exit_code(self) -> int | None:
        """Return the exit code, or None while it runs."""
        assert self._process is not None, "the service was not started"
        return self._process.poll()

    def is_ready(self) -> bool:
        """Return whether the response of /ready is 200."""
        try:
            return self.get("/ready").status_code == 200
        except requests.RequestException:
            return False

    def wait_ready(self) -> None:
        """Wait until /ready returns 200. Fails with the log if the service exits first."""

        def ready() -> bool:
            assert self.exit_code() is None, f"the service ended:\n{self.log_text()}"
            return self.is_ready()

        try:
            wait_until(ready, "the service is ready")
        except AssertionError as error:
            error.add_note(f"It says: {self._readiness()}\nIts log ends: {self.log_text()[-2000:]}")
            raise

    def _readiness(self) -> str:
        try:
            return self.get("/ready").text
        except requests.RequestException as error:
            return str(error)

    def stop(self) -> int:
        """Stop the service with SIGTERM and return its exit code."""
        assert self._process is not None, "the service was not started"
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(STOP_TIMEOUT_S)
        self.http.close()
        return code

    def kill(self) -> None:
        """Send SIGKILL to all processes of the service at once, and wait until all have ended."""
        if self._directory is not None:
            self._directory.close()
            self._directory = None
        if self._process is None:
            return
        children = _open_processes(self._children())
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(STOP_TIMEOUT_S)
        for child in children:  # until it ends it has the port and the files that a restart needs
            has_ended, _, _ = select.select([child], [], [], STOP_TIMEOUT_S)
            os.close(child)
            assert has_ended, "a child has not ended"
        self.http.close()

    def restart(self) -> None:
        """Start again on the same directory and port, after `stop` or `kill`."""
        self.start()

    def child_pids(self, kind: str) -> list[int]:
        """Return the process ids of the service's `engine` or `worker` processes."""
        return [pid for pid in self._children() if kind.encode() in _arguments(pid)]

    def _children(self) -> list[int]:
        with suppress(FileNotFoundError, ProcessLookupError):
            children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
            return list(map(int, children))
        return []

    def log_text(self) -> str:
        """Return everything the service has written to stdout and stderr."""
        return self.log.read_text(errors="replace")

    def command(self, *arguments: str) -> Json:
        """Run a headrace command on the data directory and return its JSON output."""
        command = [HEADRACE, *arguments, "--data", str(self.data), "--json"]
        done = run_to_end(command, self._settings)
        assert done.returncode == 0, f"headrace {' '.join(arguments)}: {done.stderr}"
        return json.loads(done.stdout) if done.stdout.strip() else None

    @property
    def directory(self) -> SqlDirectory:
        """The service's directory, for direct writes without starting the command line.

        The command line has tests of its own; its start would take most of the time of these tests.
        """
        if self._directory is None:
            shared = self._settings.get("HEADRACE_DATABASE_URL")
            self._directory = open_directory(shared or self.data / DIRECTORY, SystemClock())
        return self._directory

    def organization(self, name: str = "acme") -> str:
        """Create an organization and return its id."""
        return self.directory.create_organization(name).id

    def website(
        self,
        *,
        organization: str | None = None,
        origins: Sequence[str] = (),
        public: bool = False,
    ) -> str:
        """Create a website and return its id."""
        return self.directory.create_website(
            name="shop",
            domain="shop.example",
            organization_id=OrganizationId(organization) if organization else None,
            public=public,
            origins=tuple(origins),
        ).id

    def key(
        self,
        *scopes: str,
        organization: str | None = None,
        websites: Sequence[str] = (),
        home: str | None = None,
        expires: str | None = None,
    ) -> Key:
        """Create a key, by default with both scopes."""
        key, secret = self.directory.create_key(
            scopes=frozenset(map(Scope, scopes or ("track:events", "read:data"))),
            organization_id=OrganizationId(organization) if organization else None,
            website_ids=tuple(map(WebsiteId, websites)),
            default_website_id=WebsiteId(home) if home else None,
            expires_ms=_epoch_ms(expires) if expires else None,
        )
        return Key(secret, key.id)

    @property
    def master(self) -> Key:
        """A key with both scopes for all websites of the default organization."""
        if "master" not in self._keys:
            self._keys["master"] = self.key()
        return self._keys["master"]

    def get(self, path: str, **options: Any) -> requests.Response:
        """Send a GET request."""
        return self.http.get(self.url + path, timeout=REQUEST_TIMEOUT_S, **options)

    def post(self, path: str, body: Json = None, **options: Any) -> requests.Response:
        """Send a POST request with a JSON value, or with raw bytes as `data`."""
        if "data" not in options:
            options["data"] = json.dumps(body)
            options["headers"] = {"Content-Type": "application/json", **options.get("headers", {})}
        return self.http.post(self.url + path, timeout=REQUEST_TIMEOUT_S, **options)

    def send_query(
        self,
        website: str,
        query: Mapping[str, Json],
        *,
        key: Key | None = None,
        start: str = "2020-01-01",
        end: str = "2029-12-31",
        **rest: Json,
    ) -> requests.Response:
        """Send a custom query, by default with the master key."""
        body = {"query": query, "startDate": start, "endDate": end, **rest}
        return self.post(
            f"/v1/query/custom?website_id={website}", body, headers=bearer(key or self.master)
        )

    def answer(self, website: str, query: Mapping[str, Json], **options: Any) -> list[Row]:
        """Send a custom query that must succeed and return its rows."""
        response = self.send_query(website, query, **options)
        assert response.status_code == 200, response.text
        data: list[Row] = response.json()["data"]
        return data

    def rows(
        self,
        website: str,
        table: str,
        columns: Sequence[str],
        *,
        filters: Sequence[Mapping[str, Json]] = (),
        **options: Any,
    ) -> list[Row]:
        """Return the named columns of all stored rows of a website, including bots, in no order."""
        parts = (
            {
                row.pop("id"): row
                for row in self._grouped(website, table, ["id", *part], filters, **options)
            }
            for part in _chunks(columns, COLUMNS_A_QUERY)
        )
        found = next(parts)
        for part in parts:
            # A row that was stored between the two queries is only in the second one.
            for identifier in found.keys() & part.keys():
                found[identifier].update(part[identifier])
        return list(found.values())

    def row(self, website: str, table: str, columns: Sequence[str], **options: Any) -> Row:
        """Return the named columns of the only row of a website."""
        rows = self.rows(website, table, columns, **options)
        assert len(rows) == 1, f"expected one row of {table}, found {len(rows)}"
        return rows[0]

    def count(self, website: str, table: str, **options: Any) -> int:
        """Return the number of rows of a website, including bots."""
        query = _query(table, (), [] if table in DERIVED_TABLES else [BOTS_TOO])
        count: int = self.answer(website, query, **options)[0]["n"]
        return count

    def counts(self, website: str, table: str, column: str, **options: Any) -> dict[Any, int]:
        """Return the number of rows by value of a column, without a limit on distinct values."""
        rows = self._grouped(website, table, [column], (), keep_count=True, **options)
        return {row[column]: row["n"] for row in rows}

    def _grouped(
        self,
        website: str,
        table: str,
        columns: Sequence[str],
        filters: Sequence[Mapping[str, Json]],
        *,
        keep_count: bool = False,
        **options: Any,
    ) -> Iterator[Row]:
        query = _query(table, columns, [BOTS_TOO, *filters])
        order = [{"field": columns[0]}]
        offset = 0
        while True:
            page = self.answer(
                website, query, limit=MAX_ROWS, offset=offset, orderBy=order, **options
            )
            for row in page:
                if not keep_count:
                    del row["n"]
                yield row
            if len(page) < MAX_ROWS:
                return
            offset += MAX_ROWS


@contextmanager
def running_service(
    data: Path, *, workers: int = 1, settings: Mapping[str, str] = PATIENT_QUERIES
) -> Generator[Service]:
    """Run a service until the end of the block, and kill it there."""
    service = Service(data, workers=workers, settings=settings)
    try:
        yield service.start()
    finally:
        service.kill()


@contextmanager
def empty_counts(service: Service, *websites: str) -> Generator[None]:
    """Require that the block adds no row to any table of the websites."""
    before = _stored(service, websites)
    yield
    assert _stored(service, websites) == before


def _stored(service: Service, websites: Sequence[str]) -> dict[tuple[str, str], int]:
    return {
        (website, table): service.count(website, table)
        for website in websites
        for table in ("events", "errors", "performance")
    }


def _epoch_ms(timestamp: str) -> int:
    return int(datetime.fromisoformat(timestamp).timestamp() * 1000)


def _query(
    table: str, columns: Sequence[str], filters: Sequence[Mapping[str, Json]]
) -> dict[str, Json]:
    return {
        "table": table,
        "selects": [{"field": "*", "aggregate": "count", "alias": "n"}],
        "groupBy": list(columns),
        "filters": list(filters),
    }


def _chunks(columns: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(columns), size):
        yield columns[start : start + size]


def _open_processes(pids: Sequence[int]) -> list[int]:
    """Return a descriptor for each process that still runs; it becomes readable at its end."""
    descriptors: list[int] = []
    for pid in pids:
        with suppress(ProcessLookupError):
            descriptors.append(os.pidfd_open(pid))
    return descriptors


def _arguments(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except FileNotFoundError:  # the process has ended meanwhile
        return []
