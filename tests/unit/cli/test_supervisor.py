"""Children that the supervisor cannot start."""

import asyncio
import contextlib
import os
import resource
import sys
import threading
from collections.abc import Generator
from typing import cast

import pytest
from structlog.testing import CapturingLogger

from headrace.base.clock import SystemClock
from headrace.base.logs import Logger
from headrace.cli.process.supervisor import ProcessSpec, Supervisor

NOT_OPEN = 1_000_000
TOO_LARGE_BYTES = 1 << 47


def supervisor(log: CapturingLogger, *, descriptors: tuple[int, ...] = (NOT_OPEN,)) -> Supervisor:
    """Return a supervisor whose only child by default inherits a descriptor that is not open."""
    spec = ProcessSpec("worker-0", ("--version",), descriptors=descriptors)
    logger = cast("Logger", log)  # it takes any method, as loggers do
    return Supervisor([spec], environment={}, clock=SystemClock(), log=logger)


def events(log: CapturingLogger) -> list[str]:
    return [call.args[0] for call in log.calls]


@pytest.mark.asyncio
async def test_service_exits_with_the_reason_when_its_child_cannot_start() -> None:
    log = CapturingLogger()
    async with asyncio.timeout(30):
        assert not await supervisor(log).run()
    assert events(log) == ["process_not_started"]
    assert log.calls[0].kwargs == {"child": "worker-0", "reason": "Bad file descriptor"}


@pytest.mark.asyncio
async def test_service_that_was_ready_restarts_its_children() -> None:
    log = CapturingLogger()
    tries = supervisor(log)
    tries.mark_started()
    running = asyncio.create_task(tries.run())
    async with asyncio.timeout(30):
        while events(log).count("process_not_started") < 2:  # noqa: ASYNC110 - it sends no event
            await asyncio.sleep(0.02)
        tries.stop()
        assert await running
    assert events(log)[:2] == ["process_not_started", "process_died"]


@contextlib.contextmanager
def no_free_descriptor() -> Generator[None]:
    """Let no file of this process be opened."""
    free = os.dup(0)
    os.close(free)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.asyncio
async def test_children_are_restarted_after_files_ran_out() -> None:
    log = CapturingLogger()
    tries = supervisor(log)
    tries.mark_started()

    async def until_failed_by(reason: str) -> None:
        log.calls.clear()
        while reason not in [call.kwargs.get("reason") for call in log.calls]:  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    async with asyncio.timeout(30):
        running = asyncio.create_task(tries.run())
        await until_failed_by("Bad file descriptor")
        with no_free_descriptor():
            await until_failed_by("Too many open files")
        await until_failed_by("Bad file descriptor")
        tries.stop()
        assert await running


@contextlib.contextmanager
def no_new_thread() -> Generator[None]:
    """Let no thread of this process be started: no memory is large enough for its stack."""
    before = threading.stack_size(TOO_LARGE_BYTES)
    try:
        yield
    finally:
        threading.stack_size(before)


@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="asyncio waits for child processes without threads"
)
@pytest.mark.asyncio
async def test_service_exits_with_the_reason_when_no_thread_can_wait_for_its_child() -> None:
    log = CapturingLogger()
    with no_new_thread():
        async with asyncio.timeout(30):
            assert not await supervisor(log, descriptors=()).run()
    assert events(log) == ["process_not_started"]
    assert log.calls[0].kwargs == {"child": "worker-0", "reason": "can't start new thread"}
