"""Delays acknowledgements until a record is in the store, not only durable in the log."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

from headrace.base.errors import HeadraceError, LogUnavailable, StoreAckTimeout, StoreUnavailable
from headrace.base.logs import get_logger
from headrace.ports.event_log import EventLog, OnDurable

POLL_INTERVAL_S = 1.0


class AckAfterStoreLog:
    """An `EventLog` that wraps another; used from one event loop.

    `StoreAckTimeout` is raised for a record that is durable and not in the store within
    `timeout_s`: it will be stored later, so it must not be reported as rejected. From then on
    records are rejected before they are appended, until `is_store_ready` returns True.

    `barrier` returns when the store has everything that was durable when it was called, or raises
    `StoreUnavailable`. All records appended during one barrier share the next one.
    """

    def __init__(
        self,
        log: EventLog,
        *,
        barrier: Callable[[], Awaitable[None]],
        is_store_ready: Callable[[], Awaitable[bool]],
        timeout_s: float,
        poll_interval_s: float = POLL_INTERVAL_S,
    ) -> None:
        self._log = log
        self._barrier = barrier
        self._is_store_ready = is_store_ready
        self._timeout_s = timeout_s
        self._poll_interval_s = poll_interval_s
        self._is_store_unavailable = False
        self._waiting: list[asyncio.Future[None]] = []
        self._barrier_task: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def append(self, record: bytes) -> None:
        """Return when the store has a record. Raises `StoreAckTimeout` and what the log raises."""
        self._check_store()
        await self._log.append(record)
        await self._wait_until_stored()

    def append_nowait(self, record: bytes, on_durable: OnDurable) -> None:
        """Append without waiting; see `ports.event_log.EventLog`."""
        self._check_store()

        def handle_durable(failure: HeadraceError | None) -> None:
            if failure is None:
                waiting = self._start_task(self._wait_until_stored())
                waiting.add_done_callback(partial(_notify, on_durable))
            else:
                on_durable(failure)

        self._log.append_nowait(record, handle_durable)

    async def is_ready(self) -> bool:
        """Return whether an append would succeed now; see `ports.event_log.EventLog`."""
        return await self.is_acknowledging() and await self._log.is_ready()

    async def is_acknowledging(self) -> bool:
        """Return whether records are appended, and not rejected because of the store."""
        return not self._is_store_unavailable

    async def close(self) -> None:
        """Close the log and stop waiting. May be called twice."""
        await self._log.close()  # first: records that become durable meanwhile begin to wait
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _check_store(self) -> None:
        if self._is_store_unavailable:
            raise LogUnavailable("The store is unavailable, and acknowledgements wait for it.")

    async def _wait_until_stored(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        if self._barrier_task is None or self._barrier_task.done():
            self._barrier_task = self._start_task(self._run_barriers())
        try:
            async with asyncio.timeout(self._timeout_s):
                await waiter
        except (StoreUnavailable, TimeoutError) as error:
            self._pause()
            raise StoreAckTimeout("events are durable and not yet in the store") from error

    async def _run_barriers(self) -> None:
        while self._waiting:
            waiters, self._waiting = self._waiting, []
            try:
                async with asyncio.timeout(self._timeout_s):
                    await self._barrier()
            except (StoreUnavailable, TimeoutError) as error:
                _wake(waiters, StoreUnavailable(str(error) or "the store takes too long"))
            else:
                _wake(waiters, None)

    def _pause(self) -> None:
        if not self._is_store_unavailable:
            self._is_store_unavailable = True
            get_logger().error("acknowledgements_paused")
            self._start_task(self._poll_until_ready())

    async def _poll_until_ready(self) -> None:
        while not await self._is_store_ready():  # noqa: ASYNC110 - readiness is another process's
            await asyncio.sleep(self._poll_interval_s)
        self._is_store_unavailable = False
        get_logger().info("acknowledgements_resumed")

    def _start_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _notify(on_durable: OnDurable, waiting: asyncio.Task[None]) -> None:
    """Report the result of `_wait_until_stored`, which a shutdown cancels."""
    try:
        waiting.result()
    except StoreAckTimeout as failure:
        on_durable(failure)
    except asyncio.CancelledError:
        on_durable(StoreAckTimeout("the service stopped before the events were in the store"))
    else:
        on_durable(None)


def _wake(waiters: list[asyncio.Future[None]], error: Exception | None) -> None:
    for waiter in waiters:
        if waiter.done():
            continue  # its caller timed out or was cancelled
        if error is None:
            waiter.set_result(None)
        else:
            waiter.set_exception(error)
