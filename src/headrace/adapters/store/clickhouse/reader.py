"""Runs selects on ClickHouse servers and kills those whose caller is gone."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from headrace.adapters.store.clickhouse.address import ClickHouseAddress
from headrace.adapters.store.clickhouse.connection import (
    AsyncClient,
    AsyncClientPool,
    bind_parameters,
    translate_client_errors,
)
from headrace.adapters.store.clickhouse.layout import FRESH_REPLICAS
from headrace.adapters.store.dialect.ddl import VERSION_TABLE
from headrace.adapters.store.dialect.errors import ClickHouseError, query_error
from headrace.adapters.store.dialect.parameters import EncodedParameters, quote_literal
from headrace.adapters.store.dialect.results import READER_SETTINGS, RESULT_FORMAT
from headrace.base.errors import HeadraceError, QueryTimedOut, StoreUnavailable
from headrace.base.logs import Logger
from headrace.ports.store import QueryLimits

_OVERRUN_S: Final = 2.0
"""A query that the server has not ended by this time after its deadline is killed."""

_KILL_PAUSE_S: Final = 0.05
_KILL_TIMEOUT_S: Final = 5.0
_READ_TIMEOUT_S: Final = 3600.0
"""Longer than any query's deadline, which ends the query."""

_ALL_REPLICAS_ARE_STALE: Final = 369
_STALE_PAUSE_S: Final = 0.2
"""The pause before a query is repeated; ClickHouse counts a replica's delay in whole seconds."""

_SHORTEST_TIMEOUT_S: Final = 0.001
"""For a server no time at all means no limit."""

_TRANSIENT: Final = frozenset(
    {
        3,  # UNEXPECTED_END_OF_FILE
        32,  # ATTEMPT_TO_READ_AFTER_EOF
        81,  # UNKNOWN_DATABASE, until a machine has created it
        202,  # TOO_MANY_SIMULTANEOUS_QUERIES
        209,  # SOCKET_TIMEOUT
        210,  # NETWORK_ERROR
        236,  # ABORTED
        242,  # TABLE_IS_READ_ONLY
        279,  # ALL_CONNECTION_TRIES_FAILED
        _ALL_REPLICAS_ARE_STALE,
        439,  # CANNOT_SCHEDULE_TASK
        473,  # DEADLOCK_AVOIDED, while a machine recreates tables
        497,  # ACCESS_DENIED: callers can retry after the operator has fixed it
        516,  # AUTHENTICATION_FAILED
        701,  # CLUSTER_DOESNT_EXIST
        745,  # SERVER_OVERLOADED: it rejects connections because its cores are busy
    }
)
"""Codes of a server or a cluster that recovers, in addition to those of `query_error`."""

_SETTINGS: Final[Mapping[str, str]] = {
    **READER_SETTINGS,
    "readonly": "2",  # the statement changes nothing, whatever the user's rights
    "cancel_http_readonly_queries_on_client_close": "1",  # a worker may die while it waits
    "timeout_overflow_mode": "throw",  # no partial results, whatever the user's profile says
    "result_overflow_mode": "throw",
    "group_by_overflow_mode": "throw",
    "http_write_exception_in_output_format": "0",  # an error is no result
    "skip_unavailable_shards": "0",
    # A host of the cluster that runs its own share of a statement would take the snapshot of the
    # rollup for that of the events, where a statement reads both: UNKNOWN_IDENTIFIER.
    "enable_shared_storage_snapshot_in_query": "0",
    **FRESH_REPLICAS,
}


class ClickHouseReader:
    """Runs selects on the hosts of an address; used from one event loop by many tasks."""

    def __init__(self, address: ClickHouseAddress, *, connections: int, log: Logger) -> None:
        self._pool = AsyncClientPool(
            address, read_timeout_s=_READ_TIMEOUT_S, connections=connections
        )
        self._log = log
        self._user = address.user
        self._unreadable = ""

    async def select(
        self,
        sql: str,
        parameters: EncodedParameters,
        limits: QueryLimits,
        query_id: str,
        *,
        result_format: str | None = RESULT_FORMAT,
    ) -> bytes:
        """Run one SELECT and return its rows in a format, by default what `decode_rows` reads.

        Without a `result_format` the statement names one. While all replicas of a shard are behind
        (see `FRESH_REPLICAS`), the SELECT is repeated until its deadline.

        Raises `QueryTimedOut`, `QueryTooLarge`, `StoreUnavailable` when no server responds or the
        server ended the query, else `ClickHouseError`. Cancelling the caller kills the query; the
        call returns when the server has ended it.
        """
        settings = {
            **_SETTINGS,
            "query_id": query_id,
            "max_memory_usage": f"{limits.max_memory_bytes:d}",
            "max_result_rows": f"{limits.max_rows:d}",
        }
        try:
            return await _repeat_while_stale(
                lambda timeout_s: self._pool.run_on_any(
                    lambda client: self._run_query(
                        client,
                        sql,
                        bind_parameters(parameters),
                        {**settings, "max_execution_time": f"{timeout_s:f}"},
                        result_format,
                    )
                ),
                limits.timeout_s,
            )
        except ClickHouseError as failure:
            error = select_error(failure)
            if error is None:
                raise
            raise error from failure

    async def is_ready(self) -> bool:
        """Return whether a select would succeed now, on every shard. Never raises.

        Logs why not, once for each reason.
        """
        limits = QueryLimits(timeout_s=1, max_memory_bytes=100_000_000)
        try:
            async with asyncio.timeout(limits.timeout_s):
                future = await self._pool.run_on_any(self._select_version)
        except (ClickHouseError, StoreUnavailable) as error:
            return self._note_readable(str(error))
        except TimeoutError:
            return self._note_readable(f"no response within {limits.timeout_s:g} s")
        return self._note_readable("" if int(future) > 0 else "the tables are not created yet")

    async def close(self) -> None:
        """Close the connections. No select may run meanwhile."""
        await self._pool.close()

    async def _select_version(self, client: AsyncClient) -> bytes:
        sql = f"SELECT max(version) FROM `{VERSION_TABLE}`"  # noqa: S608 - our own name
        try:
            return await client.raw_query(sql, {}, settings=dict(_SETTINGS), fmt="TSV")
        except asyncio.CancelledError:
            self._pool.avoid(client)
            raise

    def _note_readable(self, reason: str) -> bool:
        """Log a change of the reason why selects fail, "" without one; return whether it is ""."""
        if reason and reason != self._unreadable:
            self._log.warning("clickhouse_not_readable", user=self._user, reason=reason)
        if self._unreadable and not reason:
            self._log.info("clickhouse_readable")
        self._unreadable = reason
        return not reason

    async def _run_query(
        self,
        client: AsyncClient,
        sql: str,
        parameters: dict[str, Any],
        settings: dict[str, str],
        result_format: str | None,
    ) -> bytes:
        future = asyncio.ensure_future(
            client.raw_query(sql, parameters, settings=dict(settings), fmt=result_format)
        )
        timeout_s = float(settings["max_execution_time"]) + _OVERRUN_S
        try:
            await asyncio.wait({future}, timeout=timeout_s)
        finally:
            overran = not future.done()
            if overran:
                await self._kill_until_done(client, settings["query_id"], future)
        if overran:
            raise QueryTimedOut("Query timed out")
        return future.result()

    async def _kill_until_done(
        self, client: AsyncClient, query_id: str, future: asyncio.Future[bytes]
    ) -> None:
        """Kill a query and wait until it has ended; a kill may come before the query has begun."""
        kill = f"KILL QUERY WHERE query_id = {quote_literal(query_id)} ASYNC"
        try:
            async with asyncio.timeout(_KILL_TIMEOUT_S):
                while not future.done():
                    with translate_client_errors():
                        await client.command(kill)
                    await asyncio.wait({future}, timeout=_KILL_PAUSE_S)
            self._log.info("query_killed", query_id=query_id)
        except Exception as error:  # noqa: BLE001 - whatever it is, the query is given up below
            reason = error.name if isinstance(error, ClickHouseError) else type(error).__name__
            self._log.warning("query_not_killed", query_id=query_id, reason=reason)
            self._pool.avoid(client)
        finally:
            future.cancel()  # does nothing when done; else the server notices the disconnect
            future.add_done_callback(_retrieve_exception)


async def _repeat_while_stale(run: Callable[[float], Awaitable[bytes]], timeout_s: float) -> bytes:
    """Run a query within the time that remains, again while all replicas are behind."""
    now_s = asyncio.get_running_loop().time
    deadline_s = now_s() + timeout_s
    while True:
        try:
            return await run(max(deadline_s - now_s(), _SHORTEST_TIMEOUT_S))
        except ClickHouseError as failure:
            is_stale = failure.code == _ALL_REPLICAS_ARE_STALE
            if not is_stale or deadline_s - now_s() <= _STALE_PAUSE_S:
                raise
        await asyncio.sleep(_STALE_PAUSE_S)


def _retrieve_exception(future: asyncio.Future[bytes]) -> None:
    """Retrieve the exception: the caller may be gone, and asyncio would warn."""
    if not future.cancelled():
        future.exception()


def select_error(failure: ClickHouseError) -> HeadraceError | None:
    """Return the caller's error for a failed select; None where the SQL itself is wrong."""
    if failure.code in _TRANSIENT:
        reason = f"{failure.name}{failure.grant}"
        return StoreUnavailable(f"ClickHouse cannot run the query: {reason}")
    return query_error(failure)
