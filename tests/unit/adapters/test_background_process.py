"""The background process: results, errors, its end, and the next one."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.adapters.background.process import PooledProcess
from headrace.base.errors import FieldError, InvalidBody, Unavailable
from testing.service import wait_until

pytestmark = pytest.mark.slow

ERRORS = (FieldError(3, "name", "is required"),)
OUTLIVED = """
import asyncio, os, time
from headrace.adapters.background.process import PooledProcess
async def main():
    process = PooledProcess()
    print(await process.run(eval, "__import__('os').getpid()"), flush=True)
    await process.run(time.sleep, 600)
asyncio.run(main())
"""


def process_id(_argument: None) -> int:
    return os.getpid()


def is_running(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


def reject(field_errors: tuple[FieldError, ...]) -> None:
    raise InvalidBody(field_errors)


def die(_argument: None) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def process() -> Iterator[PooledProcess]:
    one = PooledProcess()
    yield one
    one.close()


async def test_calls_share_one_other_process(process: PooledProcess) -> None:
    first, second = await process.run(process_id, None), await process.run(process_id, None)

    assert first == second != os.getpid()


async def test_error_reaches_the_caller_as_it_was_raised(process: PooledProcess) -> None:
    with pytest.raises(InvalidBody) as raised:
        await process.run(reject, ERRORS)

    assert raised.value.field_errors == ERRORS


async def test_after_a_kill_the_call_is_unavailable_and_the_next_has_a_new_process(
    process: PooledProcess,
) -> None:
    before = await process.run(process_id, None)

    with pytest.raises(Unavailable):
        await process.run(die, None)

    assert await process.run(process_id, None) != before


async def test_signals_to_the_group_do_not_end_it(process: PooledProcess) -> None:
    before = await process.run(process_id, None)
    os.kill(before, signal.SIGTERM)
    os.kill(before, signal.SIGINT)

    assert await process.run(process_id, None) == before


async def test_idle_process_ends() -> None:
    process = PooledProcess(idle_timeout_s=0)
    before = await process.run(process_id, None)

    await asyncio.to_thread(wait_until, lambda: not is_running(before), "the process ends")


def test_it_ends_with_its_parent_even_in_the_middle_of_a_call() -> None:
    with subprocess.Popen([sys.executable, "-c", OUTLIVED], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        process = int(parent.stdout.readline())
        assert is_running(process)
        parent.kill()
    wait_until(lambda: not is_running(process), "the process ends")
