"""Exports over a real store in this process: which rows are in them, and how files are joined."""

import asyncio
import contextlib
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

import pytest
from arro3.core import Table
from arro3.io import read_ipc_stream, read_parquet

from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.base.errors import QueryTooLarge, StoreUnavailable
from headrace.formats.row_ids import row_ids
from headrace.model.catalog import ERRORS, EVENTS
from headrace.model.data_retention import Cutoffs
from headrace.model.export import (
    Chunk,
    ExportFormat,
    ExportPlan,
    ExportRequest,
    LogEnd,
    Watermark,
)
from headrace.model.plan import CompiledQuery
from headrace.model.tenancy import WebsiteId
from headrace.ports.event_log import LoggedRecord, LogOffset
from headrace.ports.store import QueryLimits
from headrace.query.export.service import OtherStore, Progress
from testing.chdb import FreshStore
from testing.exports import (
    EVERYTHING,
    InProcessExportStore,
    collect,
    export,
    export_service,
)

SHOP = WebsiteId("web_shop")
OTHER_SHOP = WebsiteId("web_other_shop")
NOON_MS = 1_767_607_200_000
TIMES = [NOON_MS, NOON_MS + 1, NOON_MS + 1, NOON_MS + 500_000, NOON_MS + 90_000_000]


def request_of(
    export_format: ExportFormat, table: str = "events", website: WebsiteId = SHOP
) -> ExportRequest:
    return ExportRequest(website_id=website, table=table, format=export_format)


def chunks() -> tuple[Chunk, ...]:
    """Chunks of one or two rows of `TIMES`, one chunk without any row, and two slices."""
    return (
        Chunk(NOON_MS, NOON_MS + 1, 1),
        Chunk(NOON_MS + 1, NOON_MS + 2, 1, 0, 2),
        Chunk(NOON_MS + 1, NOON_MS + 2, 1, 1, 2),
        Chunk(NOON_MS + 2, NOON_MS + 3, 0),
        Chunk(NOON_MS + 3, NOON_MS + 90_000_001, 2),
    )


@pytest.fixture(scope="module")
def store(chdb_store_of_module: FreshStore) -> FreshStore:
    rows = [
        {"website_id": SHOP, "time": time_ms, "event_name": f"e{number}", "received_at": NOON_MS}
        for number, time_ms in enumerate(TIMES)
    ]
    chdb_store_of_module.insert(EVENTS, [*rows, {"website_id": "web_other", "time": NOON_MS}])
    return chdb_store_of_module


@pytest.fixture(scope="module")
def exports(store: FreshStore) -> Iterator[InProcessExportStore]:
    session = store.engine.session(store.database)
    yield InProcessExportStore(session)
    session.close()


def texts(table: Table) -> list[str]:
    return cast("list[str]", table["event_name"].to_pylist())  # pyright: ignore[reportUnknownMemberType] - the stubs' gap


def names_in(content: bytes, export_format: ExportFormat) -> list[str]:
    match export_format:
        case ExportFormat.NDJSON:
            found = [json.loads(line)["event_name"] for line in content.splitlines()]
        case ExportFormat.CSV:
            found = [line.split(b",")[2].decode() for line in content.splitlines()[1:]]
            found = [name.strip('"') for name in found]
        case ExportFormat.PARQUET:
            found = texts(read_parquet(io.BytesIO(content)).read_all())
        case ExportFormat.ARROW:
            found = texts(read_ipc_stream(io.BytesIO(content)).read_all())
    return sorted(found)


EVERY_NAME = [f"e{number}" for number in range(len(TIMES))]


@pytest.mark.parametrize("export_format", ExportFormat)
@pytest.mark.parametrize("plan", [None, ExportPlan(EVERYTHING, chunks())], ids=["one", "many"])
def test_joined_chunks_are_one_file_with_each_row_once(
    exports: InProcessExportStore, export_format: ExportFormat, plan: ExportPlan | None
) -> None:
    content = asyncio.run(export(exports, request_of(export_format), plan))
    assert names_in(content, export_format) == EVERY_NAME


@pytest.mark.parametrize("plan", [None, ExportPlan(EVERYTHING, chunks())], ids=["one", "many"])
@pytest.mark.parametrize("day", [0, 1, 2], ids=["before all", "between", "after all"])
def test_expired_rows_are_not_exported(
    exports: InProcessExportStore, plan: ExportPlan | None, day: int
) -> None:
    cutoff_ms = (min(TIMES) // MILLISECONDS_PER_DAY + day) * MILLISECONDS_PER_DAY

    async def over_remaining_rows() -> bytes:
        service = export_service(exports, Cutoffs(events=cutoff_ms))
        async with service.begin(request_of(ExportFormat.NDJSON), plan) as run:
            return await collect(run)

    left = [name for name, time in zip(EVERY_NAME, TIMES, strict=True) if time >= cutoff_ms]
    content = asyncio.run(over_remaining_rows())
    assert names_in(content, ExportFormat.NDJSON) == left


@pytest.mark.parametrize("export_format", ExportFormat)
@pytest.mark.parametrize("done", range(6))
def test_export_that_goes_on_after_any_chunk_makes_the_same_file(
    exports: InProcessExportStore, export_format: ExportFormat, done: int
) -> None:
    async def interrupted() -> bytes:
        service = export_service(exports)
        plan = ExportPlan(EVERYTHING, chunks())
        written, memos = b"", list[bytes]()
        async with (
            service.begin(request_of(export_format), plan) as run,
            contextlib.aclosing(run.pieces()) as pieces,
        ):
            async for piece in pieces:
                written += piece.data
                memos += [piece.memo] if piece.memo else []
                if piece.chunks == done:
                    break
        progress = Progress(done, len(written), tuple(memos))
        if not written:
            progress = Progress()
        async with service.begin(request_of(export_format), plan) as run:
            return written + b"".join([bytes(one.data) async for one in run.pieces(progress)])

    content = asyncio.run(interrupted())
    assert names_in(content, export_format) == EVERY_NAME
    if export_format is not ExportFormat.PARQUET:  # its footer has the sizes of compressed pages
        assert content == asyncio.run(
            export(exports, request_of(export_format), ExportPlan(EVERYTHING, chunks()))
        )


def logged(number: int, segment: int, offset: int, *, received_ms: int = NOON_MS) -> bytes:
    record = LoggedRecord(b"", LogOffset(segment, offset), LogOffset(segment, offset + 10))
    return row_ids(number, record, received_ms, [0])[0]


LOGGED = [
    pytest.param(logged(5, 3, 90), True, id="the last record before the end of its log"),
    pytest.param(logged(5, 3, 100), False, id="the first record after it"),
    pytest.param(logged(5, 2, 10**9), True, id="an earlier segment"),
    pytest.param(logged(5, 4, 0), False, id="a later segment"),
    pytest.param(
        logged(5, 4, 0, received_ms=1), False, id="later in the log, though the clock went back"
    ),
    pytest.param(
        logged(5, 3, 0, received_ms=NOON_MS + 9), True, id="before, by a clock that went ahead"
    ),
    pytest.param(logged(6, 1, 0), False, id="a log that was empty"),
    pytest.param(logged(7, 9, 9), True, id="another log, received at the watermark"),
    pytest.param(
        logged(7, 1, 0, received_ms=NOON_MS + 1), False, id="another log, received after it"
    ),
]


@pytest.fixture(scope="module")
def exported_ids(store: FreshStore) -> list[str]:
    """The ids in an export of the rows of `LOGGED`."""
    watermark = Watermark("here", NOON_MS, (LogEnd(5, 3, 100), LogEnd(6, 1, 0)))
    ids = [case.values[0] for case in LOGGED]
    store.insert(ERRORS, [{"id": one, "website_id": SHOP, "time": NOON_MS} for one in ids])
    session = store.engine.session(store.database)
    content = asyncio.run(
        export(InProcessExportStore(session, watermark), request_of(ExportFormat.NDJSON, "errors"))
    )
    session.close()
    return [json.loads(line)["id"] for line in content.splitlines()]


@pytest.mark.parametrize(("row_id", "is_included"), LOGGED)
def test_watermark_decides_by_the_position_in_the_log(
    exported_ids: list[str], row_id: bytes, is_included: bool
) -> None:
    assert exported_ids.count(row_id.hex()) == is_included


def test_rows_that_are_stored_while_an_export_runs_are_not_in_it(store: FreshStore) -> None:
    watermark = Watermark("here", NOON_MS, (LogEnd(5, 1, 1000),))
    first, later = logged(5, 1, 0), logged(5, 1, 1000)
    row = {"website_id": OTHER_SHOP, "time": NOON_MS}
    store.insert(EVENTS, [{**row, "id": first, "event_name": "old"}])

    async def with_later_rows() -> bytes:
        session = store.engine.session(store.database)
        exports = InProcessExportStore(session, watermark)
        service = export_service(exports)
        async with service.begin(request_of(ExportFormat.NDJSON, website=OTHER_SHOP)) as run:
            store.insert(EVENTS, [{**row, "id": later, "event_name": "new"}])
            store.rows("SELECT 1")
            content = b"".join([bytes(piece.data) async for piece in run.pieces()])
        session.close()
        return content

    content = asyncio.run(with_later_rows())
    assert [json.loads(line)["event_name"] for line in content.splitlines()] == ["old"]


class FailingExportStore(InProcessExportStore):
    """Fails the first reads with these errors."""

    def __init__(self, session: Any, errors: Sequence[Exception]) -> None:
        super().__init__(session)
        self.errors = list(errors)

    async def read(self, query: CompiledQuery, limits: QueryLimits) -> bytes:
        """Fail, or read."""
        if self.errors:
            raise self.errors.pop(0)
        return await super().read(query, limits)


@pytest.mark.parametrize("export_format", ExportFormat)
def test_chunk_that_is_too_large_for_memory_is_read_in_parts(
    store: FreshStore, export_format: ExportFormat
) -> None:
    session = store.engine.session(store.database)
    exports = FailingExportStore(session, [QueryTooLarge("too large")] * 3)
    content = asyncio.run(export(exports, request_of(export_format)))
    session.close()
    assert names_in(content, export_format) == EVERY_NAME
    assert len(exports.reads) == 4


def test_engine_that_is_away_briefly_does_not_end_an_export(store: FreshStore) -> None:
    session = store.engine.session(store.database)
    exports = FailingExportStore(session, [StoreUnavailable("away")])
    content = asyncio.run(export(exports, request_of(ExportFormat.NDJSON)))
    session.close()
    assert names_in(content, ExportFormat.NDJSON) == EVERY_NAME


def test_plan_of_another_store_is_refused(exports: InProcessExportStore) -> None:
    other = ExportPlan(Watermark("elsewhere", NOON_MS), chunks())
    with pytest.raises(OtherStore):
        asyncio.run(export(exports, request_of(ExportFormat.CSV), other))
