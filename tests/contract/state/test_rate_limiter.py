"""The rate limit: a sliding window for each caller. One-second windows keep the tests short."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable
from functools import partial

import pytest
from msgspec.structs import replace

from headrace.adapters.engine.rate_limiter import WindowLimiter, WorkerLimiter
from headrace.adapters.valkey.client import AsyncValkeyClient
from headrace.adapters.valkey.rate_limiter import ValkeyRateLimiter
from headrace.base.clock import FixedClock, SystemClock
from headrace.base.errors import SharedStateUnavailable, StoreUnavailable
from headrace.ports.rate_limiter import RateLimiter, RateLimitResult
from testing.servers.shared_state import ValkeyServer

pytestmark = pytest.mark.asyncio

MakeLimiter = Callable[..., RateLimiter]

CLOCK_STEP_S = 0.01
"""By how much two clocks may differ that count the same seconds."""


async def get_salt(_now_ms: int) -> bytes:
    return b"salt" * 8


def in_memory(limit: int, window_s: int = 60) -> WindowLimiter:
    return WindowLimiter(limit, window_s=window_s, clock=SystemClock())


def is_over_limit(server: AsyncValkeyClient, limit: int, window_s: int = 60) -> ValkeyRateLimiter:
    clock = SystemClock()
    return ValkeyRateLimiter(server, limit, window_s=window_s, get_salt=get_salt, clock=clock)


@pytest.fixture(params=["memory", "shared server"])
async def limiter(request: pytest.FixtureRequest) -> AsyncIterator[MakeLimiter]:
    if request.param == "memory":
        yield in_memory
        return
    shared: ValkeyServer = request.getfixturevalue("valkey_server")
    shared.empty()
    server = shared.connections()
    yield partial(is_over_limit, server)
    await server.close()


async def hit(window: RateLimiter, client: str) -> RateLimitResult:
    return await window.hit(client)


async def until_allowed(window: RateLimiter, client: str) -> RateLimitResult:
    while not (verdict := await hit(window, client)).allowed:  # noqa: ASYNC110 - it sends no event
        await asyncio.sleep(0.02)
    return verdict


async def time_of_allowed(window: RateLimiter, client: str) -> tuple[float, float]:
    """Send requests until one is allowed; return the times between which that was."""
    while True:
        before_s = time.monotonic()
        if (await hit(window, client)).allowed:
            return before_s, time.monotonic()
        await asyncio.sleep(0.02)


async def until_refused(window: RateLimiter, client: str) -> RateLimitResult:
    while (verdict := await hit(window, client)).allowed:
        pass
    return verdict


async def test_requests_within_the_limit_are_allowed_and_counted_down(limiter: MakeLimiter) -> None:
    window, began_s = limiter(3), time.monotonic()
    verdicts = [await hit(window, "a") for _ in range(4)]
    elapsed_s = time.monotonic() - began_s
    assert [60 - elapsed_s <= verdict.reset_s <= 60 for verdict in verdicts] == [True] * 4
    assert [replace(verdict, reset_s=60) for verdict in verdicts] == [
        RateLimitResult(allowed=True, limit=3, remaining=2, reset_s=60),
        RateLimitResult(allowed=True, limit=3, remaining=1, reset_s=60),
        RateLimitResult(allowed=True, limit=3, remaining=0, reset_s=60),
        RateLimitResult(allowed=False, limit=3, remaining=0, reset_s=60),
    ]


async def test_clients_have_separate_windows(limiter: MakeLimiter) -> None:
    window = limiter(1)
    assert [(await hit(window, client)).allowed for client in ("a", "b", "a", "", "é/1")] == [
        True,
        True,
        False,
        True,
        True,
    ]


async def test_a_rejected_request_is_not_counted(limiter: MakeLimiter) -> None:
    window = limiter(2, window_s=1)
    for _ in range(2):
        await hit(window, "a")
    await until_allowed(window, "a")  # if rejected requests counted, the limit would never lift
    assert (await until_allowed(window, "a")).remaining <= 1


async def test_retry_after_is_at_least_one_second(limiter: MakeLimiter) -> None:
    refused = await until_refused(limiter(1, window_s=1), "a")
    assert refused == RateLimitResult(allowed=False, limit=1, remaining=0, reset_s=1)


@pytest.mark.slow
async def test_the_window_slides(limiter: MakeLimiter) -> None:
    """Two requests at the end of one window use up the limit at the start of the next.

    Whatever the pauses of a busy machine are, the second next request is allowed a window later.
    """
    window, window_s = limiter(2, window_s=2), 2
    allowed: list[tuple[float, float]] = []
    for pause_s in (0, 1, 0, 0):
        await asyncio.sleep(pause_s)
        allowed.append(await time_of_allowed(window, "a"))
    for (earliest_s, _), (_, latest_s) in zip(allowed, allowed[2:], strict=False):
        assert latest_s - earliest_s >= window_s - CLOCK_STEP_S


async def test_retry_after_is_when_the_oldest_request_leaves_the_window(
    limiter: MakeLimiter,
) -> None:
    window = limiter(2)
    await hit(window, "a")
    await asyncio.sleep(1.5)
    await hit(window, "a")
    assert (await hit(window, "a")).reset_s <= 59


async def test_concurrent_requests_are_counted_exactly(limiter: MakeLimiter) -> None:
    window = limiter(30)
    verdicts = await asyncio.gather(*(hit(window, "a") for _ in range(100)))
    assert sum(verdict.allowed for verdict in verdicts) == 30


async def test_clients_without_requests_in_the_window_are_removed() -> None:
    clock = FixedClock(0)
    window = WindowLimiter(2, window_s=1, clock=clock)
    for client in ("early", "often", "late"):
        await window.hit(client)
        clock.advance(400)
    await window.hit("often")  # 1,200 ms: the request at 0 has left the window
    assert window.known_callers == 2
    clock.advance(600)
    await window.hit("often")  # 1,800 ms: and so has the request at 800
    assert window.known_callers == 1
    clock.advance(1001)
    await window.hit("new")
    assert window.known_callers == 1


async def test_a_request_leaves_the_window_after_its_full_length() -> None:
    clock = FixedClock(0)
    window = WindowLimiter(1, clock=clock)
    await window.hit("a")
    clock.advance(59_001)
    assert await hit(window, "a") == RateLimitResult(allowed=False, limit=1, remaining=0, reset_s=1)
    clock.advance(998)
    assert not (await hit(window, "a")).allowed
    clock.advance(1)
    assert await hit(window, "a") == RateLimitResult(allowed=True, limit=1, remaining=0, reset_s=60)


class Engine:
    """A limiter of all workers that can be made too slow to answer."""

    def __init__(self, limit: int, clock: FixedClock) -> None:
        self.window = WindowLimiter(limit, clock=clock)
        self.is_slow = False

    async def hit(self, caller: str) -> RateLimitResult:
        if self.is_slow:
            raise StoreUnavailable("the engine is away")
        return await self.window.hit(caller)


async def allowed_calls(limiter: RateLimiter, calls: int, caller: str = "a") -> int:
    return sum([(await limiter.hit(caller)).allowed for _ in range(calls)])


async def test_workers_together_allow_the_limit_while_the_engine_is_slow() -> None:
    clock = FixedClock(0)
    engine = Engine(30, clock)
    workers = [WorkerLimiter(engine, 30, workers=4, clock=clock) for _ in range(4)]
    engine.is_slow = True
    assert [await allowed_calls(worker, 40) for worker in workers] == [7, 7, 7, 7]
    clock.advance(60_000)
    assert [await allowed_calls(worker, 40, "b") for worker in workers] == [7, 7, 7, 7]


async def test_what_the_engine_allowed_counts_in_the_worker() -> None:
    clock = FixedClock(0)
    engine = Engine(10, clock)
    worker = WorkerLimiter(engine, 10, workers=1, clock=clock)
    assert await allowed_calls(worker, 8) == 8
    engine.is_slow = True
    assert await allowed_calls(worker, 8) == 2
    clock.advance(60_000)
    assert await allowed_calls(worker, 20) == 10


async def test_worker_refuses_with_the_time_to_wait() -> None:
    clock = FixedClock(0)
    engine = Engine(2, clock)
    worker = WorkerLimiter(engine, 2, workers=1, clock=clock)
    engine.is_slow = True
    assert await allowed_calls(worker, 2) == 2
    clock.advance(20_000)
    refused = RateLimitResult(allowed=False, limit=2, remaining=0, reset_s=40)
    assert await worker.hit("a") == refused


async def test_machines_share_a_window(valkey_server: ValkeyServer) -> None:
    valkey_server.empty()
    servers = [valkey_server.connections() for _ in range(3)]
    windows = [is_over_limit(server, 20) for server in servers]
    verdicts = await asyncio.gather(
        *(windows[number % 3].hit(client) for number in range(90) for client in ("key:a", "b"))
    )
    assert sum(verdict.allowed for verdict in verdicts) == 40
    for server in servers:
        await server.close()


async def test_no_address_is_sent_to_valkey(valkey_server: ValkeyServer) -> None:
    valkey_server.empty()
    server = valkey_server.connections()
    window = is_over_limit(server, 5)
    await window.hit("website:web_a:203.0.113.9")
    await window.hit("key:key_1")
    names = sorted(valkey_server.names())
    assert [b"203.0.113.9" in name for name in names] == [False, False]
    assert [b"key:key_1" in name for name in names].count(True) == 1
    await server.close()


@pytest.mark.slow
async def test_limiter_times_out(valkey_server: ValkeyServer) -> None:
    server = AsyncValkeyClient(valkey_server.url, timeout_s=3)
    window = is_over_limit(server, 3)
    await window.hit("a")
    valkey_server.server.signal(signal.SIGSTOP)
    try:
        with pytest.raises(SharedStateUnavailable):
            await window.hit("a")
        assert not await server.is_ready()
    finally:
        valkey_server.server.signal(signal.SIGCONT)
    await server.close()


async def test_unavailable_limiter_raises_and_recovers(
    valkey_server: ValkeyServer,
) -> None:
    valkey_server.empty()
    server = valkey_server.connections()
    window = is_over_limit(server, 3)
    await window.hit("a")
    valkey_server.server.kill()
    with pytest.raises(SharedStateUnavailable):
        await window.hit("a")
    valkey_server.server.start()
    assert (await window.hit("a")).remaining == 1
    await server.close()
