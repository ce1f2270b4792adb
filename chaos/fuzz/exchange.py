"""Sends the cases of the fuzzer, several connections at a time, and judges the responses."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from chaos.fuzz.cases import Case

RESPONSE_TIMEOUT_S: Final = 60.0
"""Far longer than any timeout of the service: what takes longer hangs."""

_STATUS: Final = re.compile(rb"HTTP/1\.1 ([0-9]{3}) ")
_KEPT_FINDINGS: Final = 20


class Received(NamedTuple):
    """The bytes that a connection returned, and whether it was reset instead of closed."""

    data: bytes
    is_reset: bool


class Findings:
    """What the service answered, and the cases in which it failed.

    A 503 is a failure unless `tolerates_503`: on an overloaded machine the engine may be late.
    """

    def __init__(self, *, tolerates_503: bool = False) -> None:
        self._tolerated = {503} if tolerates_503 else set[int]()
        self.connections = 0
        self.resets = 0
        self.requests = 0
        self.statuses: Counter[int] = Counter()
        self.failures: list[str] = []

    def record(self, number: int, case: Case, received: Received | None) -> None:
        """Judge what a connection returned; None if it did not end."""
        self.connections += 1
        self.requests += case.requests
        self.resets += received is not None and received.is_reset
        statuses = [int(each) for each in _STATUS.findall(received.data if received else b"")]
        self.statuses.update(statuses)
        for problem in _find_problems(case, received, statuses, self._tolerated):
            if len(self.failures) < _KEPT_FINDINGS:
                self.failures.append(f"case {number}: {problem}: {b''.join(case.pieces)[:2_000]!r}")


def _find_problems(
    case: Case, received: Received | None, statuses: list[int], tolerated: set[int]
) -> Iterator[str]:
    if received is None:
        yield "the connection hangs"
        return
    if any(status >= 500 and status not in tolerated for status in statuses):
        yield f"a server error, {received.data[-1_000:]!r}"
    answers = sum(status >= 200 for status in statuses)
    has_too_few = answers < case.requests and not received.is_reset
    if case.is_valid_http and (answers > case.requests or has_too_few):
        yield f"{answers} responses to {case.requests} requests"


async def run_cases(
    port: int, cases: Iterator[tuple[int, Case]], findings: Findings, *, connections: int
) -> None:
    """Send all cases; each connection sends one case after the other."""

    async def send_all() -> None:
        for number, case in cases:
            findings.record(number, case, await _exchange(port, case))

    async with asyncio.TaskGroup() as tasks:
        for _ in range(connections):
            tasks.create_task(send_all())


async def _exchange(port: int, case: Case) -> Received | None:
    """Return all bytes up to the end of the connection, or None if it does not end.

    Valid requests end their connection themselves. Behind mutated ones the client closes its half,
    since the service may wait for the rest of a body.
    """
    try:
        async with asyncio.timeout(RESPONSE_TIMEOUT_S):
            return await _converse(port, case)
    except TimeoutError:
        return None


async def _converse(port: int, case: Case) -> Received:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    received = bytearray()
    try:
        with suppress(OSError):  # the service has refused the rest
            for piece in case.pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            if not case.is_valid_http:
                writer.write_eof()
        while chunk := await reader.read(65_536):
            received += chunk
    except ConnectionError:
        return Received(bytes(received), is_reset=True)
    finally:
        writer.close()
    return Received(bytes(received), is_reset=False)


def numbered(make: Callable[[int], Case], wanted_requests: int) -> Iterator[tuple[int, Case]]:
    """Yield cases with their numbers until they have as many requests as wanted."""
    requests = number = 0
    while requests < wanted_requests:
        case = make(number)
        yield number, case
        number += 1
        requests += case.requests
