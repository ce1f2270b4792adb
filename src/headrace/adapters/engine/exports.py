"""Exports within the engine process: their number, their watermarks and their selects."""

import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Final

from msgspec.structs import replace

from headrace.adapters.engine.ipc.services import SelectRunner
from headrace.adapters.engine.load_loop import LoadLoop
from headrace.adapters.query_scheduler.fair_semaphore import FairSemaphore
from headrace.adapters.store.dialect.parameters import EncodedParameters
from headrace.base.clock import Clock
from headrace.base.errors import StoreUnavailable
from headrace.formats.row_ids import log_number, parse_log_offset
from headrace.model.export import LogEnd, Watermark
from headrace.ports.event_log import LogOffset
from headrace.ports.store import QueryLimits

MAX_EXPORTS_PER_WEBSITE: Final = 2

TakeWatermark = Callable[[], Awaitable[Watermark]]
"""Returns the watermark of the call when the store has every row before it.

Raises `StoreUnavailable`, also where a log cannot be read.
"""


class EngineExports:
    """Runs exports on one event loop. Their selects take turns with those of queries."""

    def __init__(
        self,
        take_watermark: TakeWatermark,
        *,
        runner: SelectRunner,
        slots: FairSemaphore,
    ) -> None:
        self._take_watermark = take_watermark
        self._runner = runner
        self._slots = slots
        self._running: Counter[str] = Counter()

    @contextlib.asynccontextmanager
    async def open(self, website_id: str) -> AsyncGenerator[Watermark]:
        """Begin an export, which ends with the context. Raises `StoreUnavailable`."""
        if self._running[website_id] >= MAX_EXPORTS_PER_WEBSITE:
            raise StoreUnavailable(
                f"{MAX_EXPORTS_PER_WEBSITE} exports of the website are running already"
            )
        self._running[website_id] += 1
        try:
            yield await self._take_watermark()
        finally:
            self._running[website_id] -= 1
            if not self._running[website_id]:
                del self._running[website_id]

    async def read(
        self,
        sql: str,
        parameters: EncodedParameters,
        limits: QueryLimits,
        query_id: str,
        *,
        website_id: str,
    ) -> bytes:
        """Run one SELECT when its website has a slot; see `SelectRunner.select`."""
        async with self._slots.acquire(website_id):
            return await self._runner.select(sql, parameters, limits, query_id)


def watermark_behind(watermark: Watermark, imported_offsets: Mapping[int, bytes]) -> Watermark:
    """Return a watermark that is behind all imported rows too.

    These have log numbers of another machine, which may be numbers of this one by chance.
    """
    ends = (_end_behind(end, imported_offsets.get(end.number, b"")) for end in watermark.log_ends)
    return replace(watermark, log_ends=tuple(ends))


def _end_behind(end: LogEnd, last_offset: bytes) -> LogEnd:
    if not last_offset:
        return end
    last = parse_log_offset(last_offset)
    segment, offset = max((end.segment, end.offset), (last.segment, last.offset + 1))
    return LogEnd(end.number, segment, offset)


def _watermark_of_logs(
    identity: str, clock: Clock, durable_offsets: Mapping[str, LogOffset]
) -> Watermark:
    """Return the watermark at the durable ends of all logs of this machine."""
    ends = (
        LogEnd(log_number(identity, log), end.segment, end.offset)
        for log, end in sorted(durable_offsets.items())
    )
    return Watermark(identity, clock.now_ms(), tuple(ends))


def watermark_taker(
    load_loop: LoadLoop,
    *,
    identity: Callable[[], str],
    clock: Clock,
    durable_offsets: Callable[[], Mapping[str, LogOffset]],
    imported_offsets: Callable[[], Mapping[int, bytes]],
) -> TakeWatermark:
    """Return what takes watermarks; the callables run on the loader's thread.

    The ends of the logs are read first. What is durable by then is in the store after the barrier,
    and the offsets in the ids of imported rows are known.
    """

    async def take() -> Watermark:
        watermark = await load_loop.run_exclusive(
            lambda: _watermark_of_logs(identity(), clock, durable_offsets())
        )
        await load_loop.complete_barrier()
        return watermark_behind(watermark, await load_loop.run_exclusive(imported_offsets))

    return take
