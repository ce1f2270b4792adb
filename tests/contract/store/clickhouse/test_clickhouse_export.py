"""Exports from ClickHouse servers: the same rows in every format, on one server and over shards."""

import asyncio
import contextlib
import csv
import io
import json
from collections.abc import AsyncGenerator, Iterator
from typing import Any, cast

import pytest
from arro3.core import Table
from arro3.io import read_ipc_stream, read_parquet

from headrace.adapters.store.clickhouse.address import parse_address
from headrace.adapters.store.clickhouse.export_store import ClickHouseExportStore
from headrace.adapters.store.clickhouse.reader import ClickHouseReader
from headrace.base.errors import QueryTooLarge
from headrace.base.logs import get_logger
from headrace.model.catalog import EVENTS
from headrace.model.export import Chunk, ExportFormat, ExportPlan, ExportRequest, Watermark
from headrace.model.plan import CompiledQuery
from headrace.model.tenancy import WebsiteId
from headrace.ports.store import QueryLimits
from testing.exports import MEMORY_BYTES, collect, export_service
from testing.servers.clickhouse import ClickHouseServers, ClickHouseTables, reading_address_of
from testing.servers.clickhouse_configuration import CLUSTER

pytestmark = pytest.mark.clickhouse

SHOP = WebsiteId("web_shop")
NOON_MS = 1_767_607_200_000
RECEIVED_MS = 1_767_607_300_000
OPTIONS: dict[str, dict[str, Any]] = {"one": {}, "shards": {"cluster": CLUSTER, "replicated": 0}}


def row(number: int, *, received_ms: int = RECEIVED_MS) -> dict[str, Any]:
    return {
        "id": received_ms.to_bytes(6, "big") + number.to_bytes(10, "big"),
        "website_id": SHOP,
        "time": NOON_MS + number // 2,
        "event_name": f"e{number}",
        "properties": b'{"n": 1.50}',
    }


@pytest.fixture(params=["one", "shards"])
def tables(
    request: pytest.FixtureRequest, clickhouse_servers: ClickHouseServers
) -> Iterator[ClickHouseTables]:
    """Ten rows of a website before the watermark, one after it, and one of another website."""
    servers = clickhouse_servers.servers
    made = ClickHouseTables(
        servers if request.param == "shards" else servers[:1], **OPTIONS[request.param]
    )
    later = row(10, received_ms=RECEIVED_MS + 1)
    made.insert(EVENTS, [*map(row, range(10)), later, {**row(11), "website_id": "web_other"}])
    yield made
    made.close()


@contextlib.asynccontextmanager
async def begin(_website_id: str) -> AsyncGenerator[Watermark]:
    yield Watermark("here", RECEIVED_MS)


async def export(
    tables: ClickHouseTables, request: ExportRequest, plan: ExportPlan | None
) -> bytes:
    options = OPTIONS["shards"] if tables.address.cluster else {}
    url = reading_address_of(tables.servers, tables.database, **options)
    reader = ClickHouseReader(parse_address(url), connections=2, log=get_logger())
    store = ClickHouseExportStore(reader, open_export=begin, log=get_logger())
    try:
        service = export_service(store)
        async with service.begin(request, plan) as run:
            return await collect(run)
    finally:
        await store.close()


def pairs(table: Table) -> list[tuple[str, str]]:
    columns = [
        cast("list[str]", table[name].to_pylist())  # pyright: ignore[reportUnknownMemberType] - the stubs' gap
        for name in ("event_name", "properties")
    ]
    return list(zip(*columns, strict=True))


def decode(content: bytes, export_format: ExportFormat) -> list[tuple[str, str]]:
    """Return names and properties in order of the names."""
    match export_format:
        case ExportFormat.NDJSON:
            objects = [json.loads(line) for line in content.splitlines()]
            found = [(one["event_name"], '{"n": 1.50}') for one in objects]
            assert content.count(b'"properties":{"n": 1.50}}\n') == len(objects)
        case ExportFormat.CSV:
            rows = csv.DictReader(io.StringIO(content.decode(), newline=""))
            found = [(one["event_name"], one["properties"]) for one in rows]
        case ExportFormat.PARQUET:
            found = pairs(read_parquet(io.BytesIO(content)).read_all())
        case ExportFormat.ARROW:
            found = pairs(read_ipc_stream(io.BytesIO(content)).read_all())
    return sorted(found)


@pytest.mark.parametrize("export_format", ExportFormat)
def test_export_has_the_rows_of_all_shards_that_were_received_by_its_watermark(
    tables: ClickHouseTables, export_format: ExportFormat
) -> None:
    request = ExportRequest(website_id=SHOP, table="events", format=export_format)
    chunks = (
        Chunk(NOON_MS, NOON_MS + 2, 4),
        Chunk(NOON_MS + 2, NOON_MS + 3, 1, 0, 2),
        Chunk(NOON_MS + 2, NOON_MS + 3, 1, 1, 2),
        Chunk(NOON_MS + 3, NOON_MS + 1000, 4),
    )
    expected = [(f"e{number}", '{"n": 1.50}') for number in range(10)]
    for plan in (None, ExportPlan(Watermark("here", RECEIVED_MS), chunks)):
        content = asyncio.run(export(tables, request, plan))
        assert decode(content, export_format) == expected


def test_read_with_too_many_rows_is_too_large(tables: ClickHouseTables) -> None:
    async def read() -> bytes:
        options = OPTIONS["shards"] if tables.address.cluster else {}
        url = reading_address_of(tables.servers, tables.database, **options)
        reader = ClickHouseReader(parse_address(url), connections=2, log=get_logger())
        store = ClickHouseExportStore(reader, open_export=begin, log=get_logger())
        try:
            query = CompiledQuery("SELECT event_name FROM events FORMAT CSV", {}, ())
            return await store.read(query, QueryLimits(60, MEMORY_BYTES, max_rows=3))
        finally:
            await store.close()

    with pytest.raises(QueryTooLarge):
        asyncio.run(read())
