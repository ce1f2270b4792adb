"""Runs selects, and repairs what a select cannot read: a part, or the rollup of a part."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from headrace.adapters.store.dialect.errors import BrokenPart
from headrace.adapters.store.dialect.parameters import EncodedParameters
from headrace.base.clock import Clock
from headrace.base.errors import Unavailable
from headrace.base.logs import Logger
from headrace.formats.rollup_columns import rollup_from_events
from headrace.ports.store import QueryLimits

_REPAIR_COOLDOWN_S: Final = 30.0
"""Reopening does not repair a part whose bytes were altered, so it is not repeated at once.

It is well within the eight minutes for which chDB keeps the sources of a merged part.
"""


class SelectReader(Protocol):
    """Runs selects: `ChdbReader`."""

    async def select(
        self, sql: str, parameters: EncodedParameters, limits: QueryLimits, query_id: str
    ) -> bytes:
        """Run one SELECT. Raises `BrokenPart` where it meets a part that cannot be read."""
        ...


class RollupState(Protocol):
    """Whether the rollup can be read: `RollupRebuilder`."""

    @property
    def is_whole(self) -> bool:
        """Whether selects may read the rollup."""
        ...

    def request_rebuild(self) -> None:
        """Rebuild what cannot be read; selects must not read the rollup until then."""
        ...


class SelfHealingReader:
    """Runs the selects of one event loop. A select that meets a broken part raises `BrokenPart`.

    `reopen_tables` detaches and attaches the tables; it blocks. `run_exclusive` runs it while
    nothing is loaded.
    """

    def __init__(
        self,
        reader: SelectReader,
        *,
        rollup: RollupState,
        reopen_tables: Callable[[], None],
        run_exclusive: Callable[[Callable[[], None]], Awaitable[None]],
        clock: Clock,
        log: Logger,
    ) -> None:
        self._reader = reader
        self._rollup = rollup
        self._reopen_tables = reopen_tables
        self._run_exclusive = run_exclusive
        self._clock = clock
        self._log = log
        self._repair_task: asyncio.Task[None] | None = None
        self._next_repair_s = 0.0

    async def select(
        self, sql: str, parameters: EncodedParameters, limits: QueryLimits, query_id: str
    ) -> bytes:
        """Run one SELECT; see `ChdbReader.select`.

        While the rollup is not whole, and where it cannot be read, it is computed from the events:
        the result is the same.
        """
        over_events = rollup_from_events(sql)
        if self._rollup.is_whole and over_events != sql:
            with contextlib.suppress(BrokenPart):
                return await self._reader.select(sql, parameters, limits, query_id)
            self._log.error("broken_rollup_met")
            self._rollup.request_rebuild()
        try:
            return await self._reader.select(over_events, parameters, limits, query_id)
        except BrokenPart:
            self._start_repair()
            raise

    async def finish(self) -> None:
        """Wait until no repair runs."""
        if self._repair_task is not None:
            await asyncio.wait({self._repair_task})

    def _start_repair(self) -> None:
        is_repairing = self._repair_task is not None and not self._repair_task.done()
        if is_repairing or self._clock.monotonic_s() < self._next_repair_s:
            return
        self._log.error("broken_part_met")
        self._repair_task = asyncio.create_task(self._repair())

    async def _repair(self) -> None:
        try:
            await self._run_exclusive(self._reopen_tables)
        except Unavailable as error:
            self._log.error("tables_not_opened", reason=str(error))
        self._next_repair_s = self._clock.monotonic_s() + _REPAIR_COOLDOWN_S
