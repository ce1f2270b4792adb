"""The rate limit: a sliding window for each caller. Windows of a second keep the waiting short."""

import asyncio

import pytest

from millrace.adapters.memory_limiter import WindowLimiter
from millrace.base.clock import SystemClock
from millrace.ports.limiter import RateVerdict

pytestmark = pytest.mark.asyncio


def limiter(limit: int, window_s: int = 60) -> WindowLimiter:
    return WindowLimiter(limit, window_s=window_s, clock=SystemClock())


async def until_allowed(window: WindowLimiter, caller: str) -> RateVerdict:
    while not (verdict := await window.hit(caller)).allowed:  # noqa: ASYNC110 - it cannot tell
        await asyncio.sleep(0.02)
    return verdict


async def test_calls_within_the_limit_are_allowed_and_counted_down() -> None:
    window = limiter(3)
    assert [await window.hit("a") for _ in range(4)] == [
        RateVerdict(allowed=True, limit=3, remaining=2, reset_s=60),
        RateVerdict(allowed=True, limit=3, remaining=1, reset_s=60),
        RateVerdict(allowed=True, limit=3, remaining=0, reset_s=60),
        RateVerdict(allowed=False, limit=3, remaining=0, reset_s=60),
    ]


async def test_callers_do_not_share_a_window() -> None:
    window = limiter(1)
    assert [(await window.hit(caller)).allowed for caller in ("a", "b", "a", "", "é/1")] == [
        True,
        True,
        False,
        True,
        True,
    ]


async def test_a_refused_call_is_not_counted() -> None:
    window = limiter(2, window_s=1)
    for _ in range(2):
        await window.hit("a")
    await until_allowed(window, "a")  # asks all the time; were that counted, it would never end
    assert (await until_allowed(window, "a")).remaining <= 1


async def test_a_refused_call_hears_of_at_least_one_second() -> None:
    window = limiter(1, window_s=1)
    await window.hit("a")
    assert await window.hit("a") == RateVerdict(allowed=False, limit=1, remaining=0, reset_s=1)


async def test_the_window_slides() -> None:
    """Two calls at the end of a window leave no room at the beginning of the next."""
    window = limiter(2, window_s=2)
    await window.hit("a")
    await asyncio.sleep(1)
    await window.hit("a")
    assert (await until_allowed(window, "a")).remaining == 0
    assert not (await window.hit("a")).allowed


async def test_a_refused_call_hears_when_the_oldest_leaves_not_the_newest() -> None:
    window = limiter(2, window_s=10)
    await window.hit("a")
    await asyncio.sleep(1.5)
    await window.hit("a")
    assert (await window.hit("a")).reset_s <= 9


async def test_callers_whose_calls_have_left_the_window_are_forgotten() -> None:
    window = limiter(1, window_s=1)
    for number in range(3000):
        await window.hit(f"early {number}")
    await asyncio.sleep(1.1)
    await window.hit("late")
    await asyncio.sleep(0.2)  # the library empties windows on a thread of its own
    for number in range(1500):
        await window.hit(f"late {number}")
    assert window.known_callers <= 1501
