"""The rate limit: a sliding window for each caller. Windows of a second keep the waiting short."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from functools import partial

import pytest

from headrace.adapters.engine.rate_limiter import WindowLimiter
from headrace.adapters.valkey.client import AsyncSharedServer
from headrace.adapters.valkey.rate_limiter import SharedLimiter
from headrace.base.clock import FixedClock, SystemClock
from headrace.base.errors import SharedUnavailable
from headrace.ports.rate_limiter import Limiter, RateVerdict
from tests.servers import Shared

pytestmark = pytest.mark.asyncio

MakeLimiter = Callable[..., Limiter]


async def salt_at(_now_ms: int) -> bytes:
    return b"salt" * 8


def in_memory(limit: int, window_s: int = 60) -> WindowLimiter:
    return WindowLimiter(limit, window_s=window_s, clock=SystemClock())


def over(server: AsyncSharedServer, limit: int, window_s: int = 60) -> SharedLimiter:
    clock = SystemClock()
    return SharedLimiter(server, limit, window_s=window_s, salt_at=salt_at, clock=clock)


@pytest.fixture(params=["memory", "shared server"])
async def limiter(request: pytest.FixtureRequest) -> AsyncIterator[MakeLimiter]:
    if request.param == "memory":
        yield in_memory
        return
    shared: Shared = request.getfixturevalue("shared_server")
    shared.empty()
    server = AsyncSharedServer(shared.url)
    yield partial(over, server)
    await server.close()


async def hit(window: Limiter, caller: str) -> RateVerdict:
    verdict = await window.hit(caller)
    assert verdict is not None
    return verdict


async def until_allowed(window: Limiter, caller: str) -> RateVerdict:
    while not (verdict := await hit(window, caller)).allowed:  # noqa: ASYNC110 - it cannot tell
        await asyncio.sleep(0.02)
    return verdict


async def test_calls_within_the_limit_are_allowed_and_counted_down(limiter: MakeLimiter) -> None:
    window = limiter(3)
    assert [await hit(window, "a") for _ in range(4)] == [
        RateVerdict(allowed=True, limit=3, remaining=2, reset_s=60),
        RateVerdict(allowed=True, limit=3, remaining=1, reset_s=60),
        RateVerdict(allowed=True, limit=3, remaining=0, reset_s=60),
        RateVerdict(allowed=False, limit=3, remaining=0, reset_s=60),
    ]


async def test_callers_do_not_share_a_window(limiter: MakeLimiter) -> None:
    window = limiter(1)
    assert [(await hit(window, caller)).allowed for caller in ("a", "b", "a", "", "é/1")] == [
        True,
        True,
        False,
        True,
        True,
    ]


async def test_a_refused_call_is_not_counted(limiter: MakeLimiter) -> None:
    window = limiter(2, window_s=1)
    for _ in range(2):
        await hit(window, "a")
    await until_allowed(window, "a")  # asks all the time; were that counted, it would never end
    assert (await until_allowed(window, "a")).remaining <= 1


async def test_a_refused_call_hears_of_at_least_one_second(limiter: MakeLimiter) -> None:
    window = limiter(1, window_s=1)
    await hit(window, "a")
    assert await hit(window, "a") == RateVerdict(allowed=False, limit=1, remaining=0, reset_s=1)


async def test_the_window_slides(limiter: MakeLimiter) -> None:
    """Two calls at the end of a window leave no room at the beginning of the next."""
    window = limiter(2, window_s=2)
    await hit(window, "a")
    await asyncio.sleep(1)
    await hit(window, "a")
    assert (await until_allowed(window, "a")).remaining == 0
    assert not (await hit(window, "a")).allowed


async def test_a_refused_call_hears_when_the_oldest_leaves_not_the_newest(
    limiter: MakeLimiter,
) -> None:
    window = limiter(2, window_s=10)
    await hit(window, "a")
    await asyncio.sleep(1.5)
    await hit(window, "a")
    assert (await hit(window, "a")).reset_s <= 9


async def test_many_calls_at_once_are_counted_exactly(limiter: MakeLimiter) -> None:
    window = limiter(30)
    verdicts = await asyncio.gather(*(hit(window, "a") for _ in range(100)))
    assert sum(verdict.allowed for verdict in verdicts) == 30


async def test_callers_whose_calls_have_left_the_window_are_forgotten() -> None:
    clock = FixedClock(0)
    window = WindowLimiter(2, window_s=1, clock=clock)
    for caller in ("early", "often", "late"):
        await window.hit(caller)
        clock.advance(400)
    await window.hit("often")  # 1,200 ms: the call at 0 has left
    assert window.known_callers == 2
    clock.advance(600)
    await window.hit("often")  # 1,800 ms: so has that at 800
    assert window.known_callers == 1
    clock.advance(1001)
    await window.hit("new")
    assert window.known_callers == 1


async def test_a_call_leaves_the_window_when_it_has_lasted_whole() -> None:
    clock = FixedClock(0)
    window = WindowLimiter(1, clock=clock)
    await window.hit("a")
    clock.advance(59_001)
    assert await hit(window, "a") == RateVerdict(allowed=False, limit=1, remaining=0, reset_s=1)
    clock.advance(998)
    assert not (await hit(window, "a")).allowed
    clock.advance(1)
    assert await hit(window, "a") == RateVerdict(allowed=True, limit=1, remaining=0, reset_s=60)


async def test_machines_share_a_window(shared_server: Shared) -> None:
    shared_server.empty()
    servers = [AsyncSharedServer(shared_server.url) for _ in range(3)]
    windows = [over(server, 20) for server in servers]
    verdicts = await asyncio.gather(
        *(windows[number % 3].hit(caller) for number in range(90) for caller in ("key:a", "b"))
    )
    assert sum(verdict.allowed for verdict in verdicts) == 40
    for server in servers:
        await server.close()


async def test_no_address_is_told_to_the_server(shared_server: Shared) -> None:
    shared_server.empty()
    server = AsyncSharedServer(shared_server.url)
    window = over(server, 5)
    await window.hit("website:web_a:203.0.113.9")
    await window.hit("key:key_1")
    names = sorted(shared_server.names())
    assert [b"203.0.113.9" in name for name in names] == [False, False]
    assert [b"key:key_1" in name for name in names].count(True) == 1
    await server.close()


async def test_limiter_that_hangs_is_given_up_after_a_while(shared_server: Shared) -> None:
    server = AsyncSharedServer(shared_server.url)
    window = over(server, 3)
    await window.hit("a")
    shared_server.server.signal(signal.SIGSTOP)
    try:
        with pytest.raises(SharedUnavailable):
            await window.hit("a")
        assert not await server.is_ready()
    finally:
        shared_server.server.signal(signal.SIGCONT)
    await server.close()


async def test_limiter_that_is_away_says_so_and_counts_again_once_it_is_back(
    shared_server: Shared,
) -> None:
    shared_server.empty()
    server = AsyncSharedServer(shared_server.url)
    window = over(server, 3)
    await window.hit("a")
    shared_server.server.kill()
    with pytest.raises(SharedUnavailable):
        await window.hit("a")
    shared_server.server.start()
    assert (await window.hit("a")).remaining == 1
    await server.close()
