"""The `Store` over ClickHouse servers, which workers query directly."""

import itertools
import os
import secrets
from collections.abc import Awaitable, Callable

from headrace.adapters.query_scheduler.coalescing_executor import CoalescingExecutor
from headrace.adapters.query_scheduler.key import QueryKey
from headrace.adapters.store.clickhouse.reader import ClickHouseReader
from headrace.adapters.store.clickhouse.wide_parameters import fit_parameters
from headrace.adapters.store.dialect.errors import ClickHouseError
from headrace.adapters.store.dialect.failures import refused_select
from headrace.adapters.store.dialect.parameters import EncodedParameters
from headrace.adapters.store.dialect.results import decode_result
from headrace.base.logs import Logger
from headrace.model.plan import CompiledQuery
from headrace.ports.store import QueryLimits, StoreResult, StoreStatus


class ClickHouseStore:
    """Runs queries on ClickHouse servers.

    `executor` waits until this machine's durable events are stored, and limits the concurrent
    selects. `is_loaded` returns whether this machine's load loop is caught up.
    """

    def __init__(
        self,
        reader: ClickHouseReader,
        *,
        executor: CoalescingExecutor[bytes],
        is_loaded: Callable[[], Awaitable[bool]],
        log: Logger,
    ) -> None:
        self._reader = reader
        self._executor = executor
        self._is_loaded = is_loaded
        self._log = log
        id_prefix = f"headrace-{secrets.token_hex(4)}-{os.getpid()}"
        self._query_ids = (f"{id_prefix}-{number}" for number in itertools.count(1))

    async def select(self, query: CompiledQuery, limits: QueryLimits) -> StoreResult:
        """Run a query; see `Store.select`. Raises `SelectFailed` where the SQL itself is wrong."""
        sql, parameters = fit_parameters(query.sql, query.parameters)
        key = QueryKey(query.website_id, sql, tuple(parameters.items()), limits)

        async def run(remaining: QueryLimits) -> bytes:
            return await self._run(sql, parameters, remaining)

        executed = await self._executor.execute(key, run)
        return decode_result(executed.result, cached=executed.cached)

    async def status(self) -> StoreStatus:
        """Return whether a select would succeed now. Never raises."""
        is_ready = await self._is_loaded() and await self._reader.is_ready()
        return StoreStatus.READY if is_ready else StoreStatus.UNAVAILABLE

    async def close(self) -> None:
        """Cancel the running selects and close the connections."""
        await self._executor.close()
        await self._reader.close()

    async def _run(self, sql: str, parameters: EncodedParameters, limits: QueryLimits) -> bytes:
        try:
            return await self._reader.select(sql, parameters, limits, next(self._query_ids))
        except ClickHouseError as failure:
            raise refused_select(failure, sql, self._log) from None
