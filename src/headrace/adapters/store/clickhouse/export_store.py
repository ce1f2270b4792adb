"""The `ExportStore` over ClickHouse servers, which the exporting process reads directly."""

import contextlib
import itertools
import os
import secrets
from collections.abc import Callable, Sequence
from typing import Any

from headrace.adapters.store.clickhouse.reader import ClickHouseReader
from headrace.adapters.store.clickhouse.wide_parameters import fit_parameters
from headrace.adapters.store.dialect.errors import ClickHouseError
from headrace.adapters.store.dialect.failures import refused_select
from headrace.adapters.store.dialect.results import RESULT_FORMAT, decode_rows
from headrace.base.logs import Logger
from headrace.model.export import Watermark
from headrace.model.plan import CompiledQuery
from headrace.ports.store import QueryLimits


class ClickHouseExportStore:
    """Reads through a reader of its own. `open_export` begins an export in the engine process."""

    def __init__(
        self,
        reader: ClickHouseReader,
        *,
        open_export: Callable[[str], contextlib.AbstractAsyncContextManager[Watermark]],
        log: Logger,
    ) -> None:
        self._reader = reader
        self._open_export = open_export
        self._log = log
        id_prefix = f"headrace-export-{secrets.token_hex(4)}-{os.getpid()}"
        self._query_ids = (f"{id_prefix}-{number}" for number in itertools.count(1))

    def open(self, website_id: str) -> contextlib.AbstractAsyncContextManager[Watermark]:
        """Begin an export; see `ExportStore.open`."""
        return self._open_export(website_id)

    async def read(self, query: CompiledQuery, limits: QueryLimits) -> bytes:
        """Run a SELECT that names its format; see `ExportStore.read`."""
        return await self._select(query, limits, result_format=None)

    async def rows(self, query: CompiledQuery, limits: QueryLimits) -> Sequence[Sequence[Any]]:
        """Run a SELECT and return its rows; see `ExportStore.rows`."""
        return decode_rows(await self._select(query, limits, result_format=RESULT_FORMAT))

    async def close(self) -> None:
        """Close the connections. No read may run meanwhile."""
        await self._reader.close()

    async def _select(
        self, query: CompiledQuery, limits: QueryLimits, *, result_format: str | None
    ) -> bytes:
        sql, parameters = fit_parameters(query.sql, query.parameters)
        try:
            return await self._reader.select(
                sql, parameters, limits, next(self._query_ids), result_format=result_format
            )
        except ClickHouseError as failure:
            raise refused_select(failure, sql, self._log) from None
