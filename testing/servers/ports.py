"""Ports for servers under test, unused by every other test process of this machine."""

import fcntl
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import gettempdir

FIRST_PORT = 18_000
PORTS_OF_A_PROCESS = 300
MAX_PROCESSES = 48


def free_port() -> int:
    """Return an unused port, never the same one twice.

    It is below the range of ephemeral ports, because an outgoing connection could otherwise take it
    first. Each process has a range of its own, so that a server that is killed and restarted finds
    its port unused.
    """
    for port in _unissued_ports():
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError(f"this process has used all of its {PORTS_OF_A_PROCESS} ports")


@cache
def _unissued_ports() -> Iterator[int]:
    """Reserve a range for the life of this process: also beside a second test run."""
    folder = Path(gettempdir()) / f"headrace-test-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for number in range(MAX_PROCESSES):
        descriptor = os.open(folder / str(number), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        first = FIRST_PORT + number * PORTS_OF_A_PROCESS  # the kernel releases the lock at exit
        # Not in order: a port that a previous owner of the range has just released stays unused.
        # By `secrets`, because parallel test processes share the seed of `random`.
        ports = range(first, first + PORTS_OF_A_PROCESS)
        return iter(secrets.SystemRandom().sample(ports, PORTS_OF_A_PROCESS))
    raise RuntimeError(f"more than {MAX_PROCESSES} processes run tests on this machine")
