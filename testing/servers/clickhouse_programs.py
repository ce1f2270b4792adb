"""The program that runs ClickHouse servers for tests: the official binary, or a packaged library.

`HEADRACE_TEST_CLICKHOUSE` names the official `clickhouse` binary, which has the server and Keeper.
Without it the servers run from the npm package that `clickhouse_server/` locks, installed once for
all test processes, and Debian's ZooKeeper takes the place of Keeper. What is missing skips tests
with a message; with CI=true it fails them.
"""

import fcntl
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import pytest

PROJECT = Path(__file__).with_name("clickhouse_server")
NPM_TIMEOUT_S = 300
ENDS_WITH_ITS_STARTER = ("setpriv", "--pdeathsig", "KILL", "--")
"""Prefix of a command: the kernel kills the process when the one that started it ends."""

_BINARY = "HEADRACE_TEST_CLICKHOUSE"
_LIBRARY = Path("node_modules/@chdb/lib-linux-x64-gnu/libchdb.so")
_ZOOKEEPER = Path("/usr/share/java/zookeeper.jar")


class ServerFiles(Protocol):
    """What a server is started with."""

    @property
    def data(self) -> Path:
        """Its data directory."""
        ...

    @property
    def configuration(self) -> Path:
        """Its configuration file."""
        ...

    @property
    def port(self) -> int:
        """The port of its HTTP interface."""
        ...

    @property
    def native_port(self) -> int:
        """The port of its native protocol."""
        ...

    @property
    def interserver_host(self) -> str:
        """The address at which other replicas fetch parts; empty without replicas."""
        ...


class ClickHouseProgram(Protocol):
    """A way to run ClickHouse servers."""

    def server_command(self, server: ServerFiles) -> Sequence[str]:
        """Return the command that runs a server until it is killed."""
        ...

    def keeper_command(self, configuration: Path) -> Sequence[str]:
        """Return the command that runs Keeper or ZooKeeper until it is killed."""
        ...

    @property
    def is_official(self) -> bool:
        """Whether servers open an interserver port, and `keeper_command` runs ClickHouse Keeper.

        The packaged library uses the HTTP port for replicas, too, with ZooKeeper.
        """
        ...


class OfficialBinary:
    """The official `clickhouse` binary."""

    is_official = True

    def __init__(self, binary: Path) -> None:
        self._binary = str(binary)

    def server_command(self, server: ServerFiles) -> Sequence[str]:
        """Return the command of `clickhouse server`."""
        options = [
            f"--path={server.data}",
            f"--http_port={server.port}",
            f"--tcp_port={server.native_port}",
            *([] if server.interserver_host else ["--listen_host=127.0.0.1"]),
        ]
        program = [self._binary, "server", f"--config-file={server.configuration}"]
        return [*ENDS_WITH_ITS_STARTER, *program, "--", *options]

    def keeper_command(self, configuration: Path) -> Sequence[str]:
        """Return the command of `clickhouse keeper`."""
        program = [self._binary, "keeper", f"--config-file={configuration}"]
        return [*ENDS_WITH_ITS_STARTER, *program]


class PackagedLibrary:
    """The packaged library; with replicas, ClickHouse's replication switched on by a launcher."""

    is_official = False

    def __init__(self, library: Path) -> None:
        self._library = str(library)

    def server_command(self, server: ServerFiles) -> Sequence[str]:
        """Return the command of the launcher."""
        launcher = "replication.py" if server.interserver_host else "run.py"
        return [
            *(sys.executable, str(PROJECT / launcher), self._library),
            *(str(server.data), str(server.configuration)),
            *(str(server.port), str(server.native_port)),
            *([server.interserver_host] if server.interserver_host else []),
        ]

    def keeper_command(self, configuration: Path) -> Sequence[str]:
        """Return the command of Debian's ZooKeeper."""
        if not _ZOOKEEPER.exists() or shutil.which("java") is None:
            missing("ZooKeeper (Debian: libzookeeper-java, default-jre-headless) is not installed")
        java = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        main_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        return [
            *ENDS_WITH_ITS_STARTER,
            *java,
            "-cp",
            str(_ZOOKEEPER),
            main_class,
            str(configuration),
        ]


def clickhouse_program(environment: Mapping[str, str] = os.environ) -> ClickHouseProgram:
    """Return the binary that the environment names, or else the library, installed if necessary."""
    binary = environment.get(_BINARY, "")
    if binary:
        path = shutil.which(binary)
        assert path is not None, f"{_BINARY} names no program: {binary}"
        return OfficialBinary(Path(path).resolve())
    return PackagedLibrary(_installed_library())


def _installed_library() -> Path:
    """Return the library. The first test process installs it as the lock file specifies."""
    if platform.machine() != "x86_64" or shutil.which("npm") is None:
        missing(
            "npm, which installs the ClickHouse server of the tests, is not on this machine, "
            f"and {_BINARY} names no `clickhouse` binary"
        )
    library = PROJECT / _LIBRARY
    stamp = library.with_name("installed")
    wanted = sha256((PROJECT / "package-lock.json").read_bytes()).hexdigest()
    with (PROJECT / ".npmrc").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted:
            _install()
            stamp.write_text(wanted)
    return library


def _install() -> None:
    done = subprocess.run(
        ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=NPM_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        missing(f"the ClickHouse server of the tests cannot be installed: {done.stderr}")


def missing(reason: str) -> None:
    """Skip the test; with CI=true fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}, and CI must have it")
    pytest.skip(reason)
