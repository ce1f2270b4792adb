"""Select threads: concurrency, cancellation with the caller, and an end before chDB closes."""

import asyncio
from typing import Any

import pytest

from headrace.adapters.store.chdb.reader import ChdbReader
from headrace.adapters.store.dialect.parameters import encode_parameters
from headrace.adapters.store.dialect.results import decode_rows
from headrace.base.errors import QueryTimedOut, QueryTooLarge, StoreUnavailable
from headrace.base.logs import get_logger
from headrace.ports.store import QueryLimits
from testing.chdb import ENDLESS, LIMITS, FreshStore, until_running

pytestmark = pytest.mark.asyncio

LARGE = "SELECT uniqExact(number) FROM numbers(50000000)"
MANY = "SELECT number FROM numbers(1000000000000)"
RUNNING = "SELECT count() FROM system.processes WHERE startsWith(query, {sql:String})"


async def _reader(store: FreshStore, *, threads: int = 2) -> ChdbReader:
    reader = ChdbReader(store.engine, threads=threads, log=get_logger(), database=store.database)
    reader.open()
    return reader


async def _select(reader: ChdbReader, sql: str, query_id: str) -> list[list[Any]]:
    return decode_rows(await reader.select(sql, encode_parameters({}), LIMITS, query_id))


async def test_concurrent_selects_get_their_own_rows(chdb_store: FreshStore) -> None:
    reader = await _reader(chdb_store)
    selects = [
        _select(reader, f"SELECT {number}, sleep(0.05)", f"s{number}") for number in range(9)
    ]
    assert await asyncio.gather(*selects) == [[[number, 0]] for number in range(9)]
    await reader.close()


async def test_cancelling_a_select_ends_the_query_and_frees_its_thread(
    chdb_store: FreshStore,
) -> None:
    reader = await _reader(chdb_store, threads=1)
    client = asyncio.create_task(_select(reader, ENDLESS, "cancelled-1"))
    await until_running(chdb_store, ENDLESS, 1)
    client.cancel()
    await until_running(chdb_store, ENDLESS, 0)
    assert await _select(reader, "SELECT 1", "after") == [[1]]
    await reader.close()


async def test_a_cancelled_select_returns_when_its_query_has_left_the_process_list(
    chdb_store: FreshStore,
) -> None:
    reader = await _reader(chdb_store, threads=1)
    client = asyncio.create_task(_select(reader, ENDLESS, "cancelled-2"))
    await until_running(chdb_store, ENDLESS, 1)
    client.cancel()
    with pytest.raises(asyncio.CancelledError):
        await client
    assert chdb_store.rows(RUNNING, {"sql": ENDLESS}) == [[0]]
    await reader.close()


@pytest.mark.parametrize(
    ("sql", "limits", "error"),
    [
        (ENDLESS, QueryLimits(timeout_s=0.2, max_memory_bytes=10**9), QueryTimedOut),
        (LARGE, QueryLimits(timeout_s=15, max_memory_bytes=50_000_000), QueryTooLarge),
        (MANY, QueryLimits(timeout_s=15, max_memory_bytes=10**9), QueryTooLarge),
        (MANY, QueryLimits(timeout_s=15, max_memory_bytes=10**9, max_rows=7), QueryTooLarge),
    ],
    ids=["deadline", "memory", "rows", "few rows"],
)
async def test_a_query_over_a_limit_has_left_the_process_list(
    sql: str, limits: QueryLimits, error: type[Exception], chdb_store: FreshStore
) -> None:
    reader = await _reader(chdb_store, threads=1)
    with pytest.raises(error):
        await reader.select(sql, encode_parameters({}), limits, "guarded")
    assert chdb_store.rows(RUNNING, {"sql": sql}) == [[0]]
    assert await _select(reader, "SELECT 1", "after") == [[1]]
    await reader.close()


async def test_as_many_rows_as_are_allowed_are_answered(chdb_store: FreshStore) -> None:
    reader = await _reader(chdb_store, threads=1)
    sql = "SELECT number FROM numbers(1000000000) LIMIT 10001"
    assert len(await _select(reader, sql, "most")) == 10_001
    await reader.close()


async def test_closing_cancels_running_queries(chdb_store: FreshStore) -> None:
    reader = await _reader(chdb_store)
    clients = [asyncio.create_task(_select(reader, ENDLESS, f"closing-{n}")) for n in range(2)]
    await until_running(chdb_store, ENDLESS, 2)
    await reader.close()
    ends = await asyncio.gather(*clients, return_exceptions=True)
    assert [type(end) for end in ends] == [StoreUnavailable, StoreUnavailable]
    await until_running(chdb_store, ENDLESS, 0)
