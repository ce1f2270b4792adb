"""Children that the supervisor cannot start."""

import asyncio
from typing import cast

import pytest
from structlog.testing import CapturingLogger

from headrace.base.clock import SystemClock
from headrace.base.logs import Logger
from headrace.cli.process.supervisor import ProcessSpec, Supervisor

NOT_OPEN = 1_000_000


def supervisor(log: CapturingLogger) -> Supervisor:
    """Return a supervisor whose only child inherits a descriptor that is not open."""
    spec = ProcessSpec("worker-0", ("--version",), descriptors=(NOT_OPEN,))
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
