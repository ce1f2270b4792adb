"""Selects on their threads: at once, ended with their askers, gone before the engine closes."""

import asyncio
from typing import Any

import pytest

from millrace.adapters.chdb_reader import ChdbReader
from millrace.adapters.chdb_store import decode_rows
from millrace.adapters.parameters import encode_parameters
from millrace.base.errors import StoreUnavailable
from millrace.base.telemetry import get_logger
from tests.chdb_fixture import ENDLESS, GUARDS, FreshStore, until_running

pytestmark = pytest.mark.asyncio


async def _reader(store: FreshStore, *, threads: int = 2, wait_s: float = 10) -> ChdbReader:
    reader = ChdbReader(
        store.engine,
        threads=threads,
        wait_timeout_s=wait_s,
        log=get_logger(),
        database=store.database,
    )
    reader.open()
    return reader


async def _select(reader: ChdbReader, sql: str, query_id: str) -> list[list[Any]]:
    return decode_rows(await reader.select(sql, encode_parameters({}), GUARDS, query_id))


async def test_selects_run_at_once_and_each_gets_its_own_rows(chdb_store: FreshStore) -> None:
    reader = await _reader(chdb_store)
    selects = [
        _select(reader, f"SELECT {number}, sleep(0.05)", f"s{number}") for number in range(9)
    ]
    assert await asyncio.gather(*selects) == [[[number, 0]] for number in range(9)]
    await reader.close()


async def test_cancelling_the_asker_ends_the_query_and_frees_its_thread(
    chdb_store: FreshStore,
) -> None:
    reader = await _reader(chdb_store, threads=1)
    asker = asyncio.create_task(_select(reader, ENDLESS, "cancelled-1"))
    await until_running(chdb_store, ENDLESS, 1)
    asker.cancel()
    await until_running(chdb_store, ENDLESS, 0)
    assert await _select(reader, "SELECT 1", "after") == [[1]]
    await reader.close()


async def test_a_select_that_waits_too_long_for_a_thread_is_turned_away(
    chdb_store: FreshStore,
) -> None:
    reader = await _reader(chdb_store, threads=1, wait_s=0.1)
    asker = asyncio.create_task(_select(reader, ENDLESS, "busy-1"))
    await until_running(chdb_store, ENDLESS, 1)
    with pytest.raises(StoreUnavailable, match="too many queries"):
        await _select(reader, "SELECT 1", "turned away")
    asker.cancel()
    await reader.close()


async def test_closing_ends_what_runs(chdb_store: FreshStore) -> None:
    reader = await _reader(chdb_store)
    askers = [asyncio.create_task(_select(reader, ENDLESS, f"closing-{n}")) for n in range(2)]
    await until_running(chdb_store, ENDLESS, 2)
    await reader.close()
    ends = await asyncio.gather(*askers, return_exceptions=True)
    assert [type(end) for end in ends] == [StoreUnavailable, StoreUnavailable]
    await until_running(chdb_store, ENDLESS, 0)
