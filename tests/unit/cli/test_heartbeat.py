"""The heartbeat of a child, as its supervisor reads it. No processes are started."""

import asyncio
import os
from contextlib import closing

import pytest

from headrace.cli.process.heartbeat import Heartbeat, heartbeat_interval_s, send_heartbeats


@pytest.mark.parametrize(
    ("timeout_s", "interval_s"), [(30, 1.0), (5, 1.0), (2, 0.4), (0.05, 0.01)], ids=str
)
def test_several_beats_fit_into_the_timeout(timeout_s: float, interval_s: float) -> None:
    assert heartbeat_interval_s(timeout_s) == interval_s


async def test_missing_heartbeat_is_detected_after_the_timeout() -> None:
    with closing(Heartbeat(0.1)) as heartbeat:
        os.write(heartbeat.descriptor, b".")
        await heartbeat.wait_for_silence()
        assert 0.1 < heartbeat.silence_s < 0.15


async def test_child_that_never_beat_gets_more_time() -> None:
    with closing(Heartbeat(0.05)) as heartbeat:
        await heartbeat.wait_for_silence()
        assert 0.5 < heartbeat.silence_s < 0.55


async def test_beating_loop_is_never_silent() -> None:
    with closing(Heartbeat(0.5)) as heartbeat:
        beating = asyncio.create_task(send_heartbeats(heartbeat.descriptor, 0.5))
        listening = asyncio.create_task(heartbeat.wait_for_silence())
        done, _ = await asyncio.wait({listening}, timeout=1.5)
        assert done == set()
        beating.cancel()
        await listening


async def test_full_pipe_does_not_stop_the_beating() -> None:
    with closing(Heartbeat(0.1)) as heartbeat:
        os.write(heartbeat.descriptor, b"." * 65_536)
        beating = asyncio.create_task(send_heartbeats(heartbeat.descriptor, 0.01))
        await asyncio.sleep(0.05)
        assert not beating.done()
        beating.cancel()


async def test_exit_of_the_child_stops_the_heartbeat() -> None:
    with closing(Heartbeat(0.05)) as heartbeat:
        os.write(heartbeat.descriptor, b".")
        heartbeat.close_child_end()
        await heartbeat.wait_for_silence()
        assert heartbeat.silence_s > 0.05
