"""Controls the service under test: its processes, and single HTTP requests to it."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

Json = Any

HEADRACE = str(Path(sys.executable).with_name("headrace"))
HOST = "127.0.0.1"
RESPONSE_TIMEOUT_S = 30.0
RECOVERY_TIMEOUT_S = 300.0  # a start took 85 s on a machine with a load average of 30
_LAUNCH_PAUSE_S = 0.2
_RUNTIME_NAME = "runtime"
_SETTING_PREFIX = "HEADRACE_"

SETTINGS: Mapping[str, str] = {
    "HEADRACE_QUERY_RATE_LIMIT": "1000000",
    "HEADRACE_LOG_SEGMENT_BYTES": "65536",  # small, so that segments change constantly
    "HEADRACE_LOAD_INTERVAL_S": "0.2",
}


class RecoveryTimeout(Exception):
    """The service did not recover in time."""


class Response(NamedTuple):
    """A response: status and body. The body is None unless it is JSON."""

    status: int
    body: Json


class Service:
    """`headrace serve` with two workers on one data directory."""

    def __init__(
        self,
        data: Path,
        *,
        log: Path,
        port: int,
        environment: Mapping[str, str] | None = None,
        recovery_timeout_s: float = RECOVERY_TIMEOUT_S,
    ) -> None:
        self.data = data
        self.log = log
        self.port = port
        self.starts = 0
        self.recovery_timeout_s = recovery_timeout_s
        self._environment = environment or {}
        self._readiness = "nothing"
        self._process: subprocess.Popen[bytes] | None = None
        self._runtime = log.with_name(f"{_RUNTIME_NAME}-{port}")

    def launch(self) -> None:
        """Start the service and return immediately."""
        self._runtime.mkdir(exist_ok=True)
        command = [HEADRACE, "serve", "--data", str(self.data), "--host", HOST]
        command += ["--port", str(self.port), "--workers", "2"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={
                    **_own_environment(),
                    **SETTINGS,
                    **self._environment,
                    "TMPDIR": str(self._runtime),
                },
                start_new_session=True,  # so that all processes can be killed as one group
            )
        self.starts += 1

    def command(self, *arguments: str) -> Json:
        """Run another headrace command on the data directory and return its output."""
        command = self._command(*arguments)
        with self.log.open("ab") as log:
            return json.loads(
                subprocess.check_output(
                    command, stderr=log, env=self._settings(), timeout=self.recovery_timeout_s
                )
            )

    def launch_command(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start another headrace command on the data directory and return immediately."""
        with self.log.open("ab") as log:
            return subprocess.Popen(
                self._command(*arguments),
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._settings(),
            )

    def _settings(self) -> dict[str, str]:
        """Return the environment of a command, which must know the same store as the service."""
        settings = {
            name: value
            for name, value in self._environment.items()
            if name.startswith(_SETTING_PREFIX)
        }
        return {**_own_environment(), **settings}

    def _command(self, *arguments: str) -> list[str]:
        return [HEADRACE, *arguments, "--data", str(self.data), "--json"]

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The supervisor process."""
        if self._process is None:
            raise RuntimeError("the service was not started")
        return self._process

    def children(self, kind: str) -> list[int]:
        """Return the process ids of the running `worker` or `engine` processes."""
        pid = self.process.pid
        with suppress(OSError):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            return [int(child) for child in children if kind in _arguments(child)]
        return []

    def pick_child(self, kind: str, choose: Callable[[list[int]], int]) -> int:
        """Wait until a child process of the given kind runs and return the chosen process id."""
        deadline = time.monotonic() + self.recovery_timeout_s
        while not (found := self.children(kind)):
            if time.monotonic() > deadline:
                raise RecoveryTimeout(f"there was no {kind} for {self.recovery_timeout_s:.0f} s")
            time.sleep(0.02)
        return choose(found)

    def kill_child(self, kind: str, choose: Callable[[list[int]], int]) -> None:
        """Send SIGKILL to the chosen child process of the given kind."""
        with suppress(ProcessLookupError):
            os.kill(self.pick_child(kind, choose), signal.SIGKILL)

    def kill(self) -> None:
        """Send SIGKILL to all processes at once and return immediately."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def wait(self) -> None:
        """Wait until all killed processes have ended."""
        self.process.wait()
        while _group_lives(self.process.pid):
            time.sleep(0.005)

    def kill_everything(self) -> None:
        """Send SIGKILL to all processes at once and wait until they have ended."""
        self.kill()
        self.wait()

    def wait_for_recovery(self) -> None:
        """Wait until queries succeed. Restarts the service if it has exited, as systemd would."""
        deadline = time.monotonic() + self.recovery_timeout_s
        while not self.is_ready():
            if time.monotonic() > deadline:
                raise RecoveryTimeout(
                    f"the service was not back after {self.recovery_timeout_s:.0f} s, "
                    f"/ready replied {self._readiness}"
                )
            self.launch_again_if_exited()
            time.sleep(0.02)

    def launch_again_if_exited(self) -> None:
        """Start a service that has exited, as systemd would: a command may have had its lock."""
        if self.process.poll() is not None:
            time.sleep(_LAUNCH_PAUSE_S)
            self.launch()

    def is_ready(self) -> bool:
        """Return whether the response of /ready is 200."""
        try:
            response = send_request(self.port, "GET", "/ready", timeout_s=5)
        except (OSError, http.client.HTTPException) as error:
            self._readiness = f"nothing: {error!r}"
            return False
        self._readiness = json.dumps(response.body)
        return response.status == 200


def send_request(
    port: int,
    method: str,
    path: str,
    *,
    body: Json = None,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = RESPONSE_TIMEOUT_S,
) -> Response:
    """Send one request on a new connection."""
    connection = http.client.HTTPConnection(HOST, port, timeout=timeout_s)
    try:
        sent = None if body is None else json.dumps(body)
        all_headers = {"Content-Type": "application/json", **(headers or {})}
        connection.request(method, path, body=sent, headers=all_headers)
        response = connection.getresponse()
        return Response(response.status, _decoded(response.read()))
    finally:
        connection.close()


def _decoded(body: bytes) -> Json:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _own_environment() -> dict[str, str]:
    """Return the environment without settings of Headrace."""
    return {k: v for k, v in os.environ.items() if not k.startswith(_SETTING_PREFIX)}


def _arguments(pid: str) -> list[str]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return []


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
