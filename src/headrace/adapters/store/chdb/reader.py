"""Runs selects on a bounded pool of threads and kills those whose caller is gone."""

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor

from headrace.adapters.store.chdb.connection import ChdbInstance, ChdbSession
from headrace.adapters.store.dialect.ddl import DATABASE
from headrace.adapters.store.dialect.errors import ClickHouseError
from headrace.adapters.store.dialect.parameters import EncodedParameters
from headrace.base.errors import QueryTimedOut
from headrace.base.logs import Logger
from headrace.ports.store import QueryLimits

_OVERRUN_S = 2.0
"""A query that chDB has not ended by this time after its deadline is killed."""

_KILL_PAUSE_S = 0.05
"""A kill may come before the query has begun, so it is repeated until the thread is free."""


class ChdbReader:
    """A connection for each thread; used from one event loop by many tasks."""

    def __init__(
        self,
        chdb: ChdbInstance,
        *,
        threads: int,
        log: Logger,
        database: str = DATABASE,
    ) -> None:
        self._chdb = chdb
        self._threads = threads
        self._log = log
        self._database = database
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="select")
        self._control = ThreadPoolExecutor(1, thread_name_prefix="kill")
        self._idle: asyncio.Queue[ChdbSession] = asyncio.Queue()
        self._running: dict[str, asyncio.Future[bytes]] = {}
        self._killers: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Open the connections; the tables must have been prepared."""
        for _ in range(self._threads):
            self._idle.put_nowait(self._chdb.session(self._database))

    async def select(
        self, sql: str, parameters: EncodedParameters, limits: QueryLimits, query_id: str
    ) -> bytes:
        """Run one SELECT and return its rows in the format that `decode_rows` reads.

        Raises the errors of `ChdbSession.select`. Waits for a free thread: the caller limits its
        concurrent selects to the number of threads. Cancelling the caller kills the query; the
        call returns when the thread is free again.
        """
        session = await self._idle.get()
        future = asyncio.get_running_loop().run_in_executor(
            self._pool, session.select, sql, parameters, limits, query_id
        )
        self._running[query_id] = future
        future.add_done_callback(lambda done: self._release(query_id, session, done))
        try:
            await asyncio.wait({future}, timeout=limits.timeout_s + _OVERRUN_S)
        finally:
            overran = not future.done()
            if overran:
                await asyncio.shield(self._start_killing(query_id, future))
        if overran:
            raise QueryTimedOut("Query timed out")
        return future.result()

    async def close(self) -> None:
        """Kill the running queries, wait for their threads, close the connections.

        Exiting the process while a query runs would be a segmentation fault.
        """
        for query_id, future in tuple(self._running.items()):
            self._start_killing(query_id, future)
        while self._killers:
            await asyncio.wait(self._killers)
        self._pool.shutdown()
        self._control.shutdown()
        while not self._idle.empty():
            self._idle.get_nowait().close()

    def _release(self, query_id: str, session: ChdbSession, future: asyncio.Future[bytes]) -> None:
        del self._running[query_id]
        self._idle.put_nowait(session)
        future.exception()  # retrieved here: the caller may be gone, and asyncio would warn

    def _start_killing(self, query_id: str, future: asyncio.Future[bytes]) -> asyncio.Task[None]:
        killer = asyncio.create_task(self._kill_until_done(query_id, future))
        self._killers.add(killer)
        killer.add_done_callback(self._killers.discard)
        return killer

    async def _kill_until_done(self, query_id: str, future: asyncio.Future[bytes]) -> None:
        loop = asyncio.get_running_loop()
        while not future.done():
            with contextlib.suppress(ClickHouseError):
                await loop.run_in_executor(self._control, self._chdb.kill, query_id)
            await asyncio.wait({future}, timeout=_KILL_PAUSE_S)
        self._log.info("query_killed", query_id=query_id)
