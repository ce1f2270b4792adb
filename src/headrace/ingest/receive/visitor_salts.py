"""The daily salt of visitor ids: used for events of its day, destroyed when the day is over."""

import asyncio
import secrets
from collections.abc import Callable

from headrace.base.clock import MILLISECONDS_PER_DAY, Clock, utc_day
from headrace.base.errors import HeadraceError
from headrace.base.logs import get_logger

_SALT_BYTES = 32
_RETRY_AFTER_MS = 5_000
_EXPIRY_INTERVAL_S = 30.0
_FETCH_TIMEOUT_S = 2.0
_FETCH_TIMEOUT_WITH_FALLBACK_S = 0.25
"""Shorter, because a fallback salt is in use while the directory fails."""


class DailySalts:
    """Keeps today's salt in memory, and no other; used from one event loop.

    `fetch` is the directory's `visitor_salt`: it blocks and is called in a thread, once a day.
    While the directory fails, or takes longer than `timeout_s`, a random salt of this process is
    used: visitors may be counted twice then, but their events are not refused.
    """

    def __init__(
        self, fetch: Callable[[str], bytes], *, timeout_s: float = _FETCH_TIMEOUT_S
    ) -> None:
        self._fetch = fetch
        self._timeout_s = timeout_s
        self._fetching: asyncio.Task[bytes] | None = None
        self._day_number = -1
        self._salt = b""
        self._retry_at_ms: int | None = None
        self._lock = asyncio.Lock()

    async def get(self, now_ms: int) -> bytes:
        """Return the salt of a timestamp's UTC day. Waits only when the day changes."""
        if self._is_current(now_ms):
            return self._salt
        async with self._lock:
            if not self._is_current(now_ms):
                await self._rotate(now_ms)
            return self._salt

    def get_nowait(self, now_ms: int) -> bytes | None:
        """Return the salt of a timestamp's UTC day, or None where `get` would wait."""
        return self._salt if self._is_current(now_ms) else None

    def expire(self, now_ms: int) -> None:
        """Drop the salt of another UTC day than that of a timestamp."""
        if now_ms // MILLISECONDS_PER_DAY != self._day_number:
            self._day_number, self._salt = -1, b""

    def _is_current(self, now_ms: int) -> bool:
        if now_ms // MILLISECONDS_PER_DAY != self._day_number:
            return False
        return self._retry_at_ms is None or now_ms < self._retry_at_ms

    async def _rotate(self, now_ms: int) -> None:
        day_number = now_ms // MILLISECONDS_PER_DAY
        is_new_day = day_number != self._day_number
        try:
            self._salt = await self._fetch_with_timeout(
                utc_day(now_ms), self._timeout_s if is_new_day else _FETCH_TIMEOUT_WITH_FALLBACK_S
            )
            self._retry_at_ms = None
        except (HeadraceError, TimeoutError) as error:
            reason = str(error) or "the directory takes too long"
            get_logger().warning("visitor_salt_unavailable", reason=reason)
            if is_new_day:
                self._salt = secrets.token_bytes(_SALT_BYTES)
            self._retry_at_ms = now_ms + _RETRY_AFTER_MS
        self._day_number = day_number

    async def _fetch_with_timeout(self, day: str, timeout_s: float) -> bytes:
        """Return the directory's salt. A hung fetch is awaited again, not repeated."""
        fetching = self._fetching or asyncio.create_task(
            asyncio.to_thread(self._fetch, day), name=day
        )
        self._fetching = fetching
        done, _ = await asyncio.wait((fetching,), timeout=timeout_s)
        if not done:
            raise TimeoutError
        self._fetching = None
        if fetching.get_name() != day:  # it hung since yesterday, and its salt is obsolete
            fetching.exception()
            return await self._fetch_with_timeout(day, timeout_s)
        return fetching.result()


async def expire_salts(salts: DailySalts, forget: Callable[[str], None], clock: Clock) -> None:
    """Destroy salts when their UTC day is over, by the clock and not by the next event.

    Runs until it is cancelled. `forget` is the directory's `forget_visitor_salts`: it blocks, and
    is called in a thread. Called again and again, because an event that was received just before
    midnight may create a salt of its day just after it.
    """
    while True:
        now_ms = clock.now_ms()
        salts.expire(now_ms)
        try:
            await asyncio.to_thread(forget, utc_day(now_ms))
        except HeadraceError as error:
            get_logger().warning("visitor_salts_not_destroyed", reason=str(error))
        await asyncio.sleep(min(_EXPIRY_INTERVAL_S, _until_next_day_s(clock.now_ms())))


def _until_next_day_s(now_ms: int) -> float:
    return (MILLISECONDS_PER_DAY - now_ms % MILLISECONDS_PER_DAY) / 1000
