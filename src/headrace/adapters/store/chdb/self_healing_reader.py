"""Runs selects, and has the tables opened anew where one meets a part that cannot be read."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from headrace.adapters.store.dialect.errors import BrokenPart
from headrace.adapters.store.dialect.parameters import ParameterTexts
from headrace.base.clock import Clock
from headrace.base.errors import Unavailable
from headrace.base.telemetry import Logger
from headrace.ports.store import QueryGuards

_PAUSE_S: Final = 30.0
"""A part whose bytes were altered is not mended by opening its table: do not try all the time.

It is well within the eight minutes for which the engine keeps what a broken part was merged from.
"""


class RunsSelects(Protocol):
    """What runs selects: `ChdbReader`."""

    async def select(
        self, sql: str, parameters: ParameterTexts, guards: QueryGuards, query_id: str
    ) -> bytes:
        """Run one SELECT. Raises `BrokenPart` where it meets a part that cannot be read."""
        ...


class MendingSelects:
    """Selects of one event loop. The one that meets a broken part fails with `StoreUnavailable`.

    `mend` opens the tables anew; it blocks. `between_loads` runs it while nothing is loaded.
    """

    def __init__(
        self,
        selects: RunsSelects,
        *,
        mend: Callable[[], None],
        between_loads: Callable[[Callable[[], None]], Awaitable[None]],
        clock: Clock,
        log: Logger,
    ) -> None:
        self._selects = selects
        self._mend = mend
        self._between_loads = between_loads
        self._clock = clock
        self._log = log
        self._mending: asyncio.Task[None] | None = None
        self._not_before_s = 0.0

    async def select(
        self, sql: str, parameters: ParameterTexts, guards: QueryGuards, query_id: str
    ) -> bytes:
        """Run one SELECT; see `ChdbReader.select`."""
        try:
            return await self._selects.select(sql, parameters, guards, query_id)
        except BrokenPart:
            self._begin_to_mend()
            raise

    async def finish(self) -> None:
        """Wait until nothing is being mended."""
        if self._mending is not None:
            await asyncio.wait({self._mending})

    def _begin_to_mend(self) -> None:
        is_mending = self._mending is not None and not self._mending.done()
        if is_mending or self._clock.monotonic_s() < self._not_before_s:
            return
        self._log.error("broken_part_met")
        self._mending = asyncio.create_task(self._open_anew())

    async def _open_anew(self) -> None:
        try:
            await self._between_loads(self._mend)
        except Unavailable as error:
            self._log.error("tables_not_opened", reason=str(error))
        self._not_before_s = self._clock.monotonic_s() + _PAUSE_S
