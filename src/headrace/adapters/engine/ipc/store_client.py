"""The worker's `Store` and `ExportStore` over the engine process."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final

from headrace.adapters.data_dir.import_locks import ImportLocks
from headrace.adapters.engine.ipc.connections import EngineConnections
from headrace.adapters.engine.ipc.messages import (
    CheckReady,
    ExportOpened,
    ExportRead,
    OpenExport,
    ReadExport,
    Readiness,
    RunSelect,
    SelectResult,
)
from headrace.adapters.store.dialect.parameters import encode_parameters
from headrace.adapters.store.dialect.results import decode_result, decode_rows
from headrace.base.errors import StoreUnavailable
from headrace.model.export import Watermark
from headrace.model.plan import CompiledQuery
from headrace.ports.store import QueryLimits, StoreResult, StoreStatus

_READY_TIMEOUT_S: Final = 1.0
_SELECT_GRACE_S: Final = 5.0
"""The engine ends a select at its deadline; no reply by this time after it means a failure."""

_OPEN_EXPORT_TIMEOUT_S: Final = 600.0
"""An export begins when everything durable is stored, which takes long after an outage."""


class EngineStore:
    """The `Store` over the engine process."""

    def __init__(self, connections: EngineConnections) -> None:
        self._connections = connections

    async def select(self, query: CompiledQuery, limits: QueryLimits) -> StoreResult:
        """Run a query; see `Store.select`. Raises `SelectFailed` where the SQL itself is wrong."""
        request = RunSelect(
            sql=query.sql,
            parameters=encode_parameters(query.parameters),
            website_id=query.website_id,
            limits=limits,
        )
        timeout_s = limits.timeout_s + _SELECT_GRACE_S
        reply = await self._connections.send_request(request, SelectResult, timeout_s=timeout_s)
        return decode_result(reply.output, cached=reply.cached)

    async def status(self) -> StoreStatus:
        """Return whether a select would succeed now. Never raises."""
        try:
            reply = await self._connections.send_request(
                CheckReady(), Readiness, timeout_s=_READY_TIMEOUT_S
            )
        except StoreUnavailable:
            return StoreStatus.UNAVAILABLE
        return reply.status


class EngineExportStore:
    """The `ExportStore` over the engine process.

    While an export runs, imports into its website wait: imported rows keep their old ids, so no
    watermark tells those that came later. The exporting process has the lock, because an export
    goes on when the engine restarts.
    """

    def __init__(
        self, connections: EngineConnections, *, open_timeout_s: float = _OPEN_EXPORT_TIMEOUT_S
    ) -> None:
        self._connections = connections
        self._imports = ImportLocks(connections.runtime)
        self._open_timeout_s = open_timeout_s

    @contextlib.asynccontextmanager
    async def open(self, website_id: str) -> AsyncGenerator[Watermark]:
        """Begin an export; see `ExportStore.open`."""
        request = OpenExport(website_id)
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(self._open_timeout_s):
                    await stack.enter_async_context(self._imports.excluding_imports(website_id))
            except TimeoutError as error:
                raise StoreUnavailable("an import into the website is storing rows") from error
            reply = await stack.enter_async_context(
                self._connections.open_request(
                    request, ExportOpened, timeout_s=self._open_timeout_s
                )
            )
            yield reply.watermark

    async def read(self, query: CompiledQuery, limits: QueryLimits) -> bytes:
        """Run a SELECT that names its format; see `ExportStore.read`."""
        request = ReadExport(
            query.sql, encode_parameters(query.parameters), query.website_id, limits
        )
        timeout_s = limits.timeout_s + _SELECT_GRACE_S
        reply = await self._connections.send_request(request, ExportRead, timeout_s=timeout_s)
        return reply.output

    async def rows(self, query: CompiledQuery, limits: QueryLimits) -> Sequence[Sequence[Any]]:
        """Run a SELECT and return its rows; see `ExportStore.rows`."""
        return decode_rows(await self.read(query, limits))
