"""The engine server and its clients use a real socket and a real store, in one process."""

import asyncio
import contextlib
import shutil
import socket as sockets
import stat
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from headrace.adapters.backup.snapshots import Snapshot
from headrace.adapters.data_dir.import_locks import ImportLocks
from headrace.adapters.engine.exports import EngineExports
from headrace.adapters.engine.ipc.barrier_client import EngineBarrier
from headrace.adapters.engine.ipc.connections import EngineConnections
from headrace.adapters.engine.ipc.limiter_client import EngineLimiter
from headrace.adapters.engine.ipc.messages import (
    CheckReady,
    IpcReply,
    IpcRequest,
    Readiness,
    RunSelect,
)
from headrace.adapters.engine.ipc.server import EngineServer
from headrace.adapters.engine.ipc.snapshot_client import live_snapshot
from headrace.adapters.engine.ipc.store_client import EngineExportStore, EngineStore
from headrace.adapters.engine.rate_limiter import WindowLimiter, WorkerLimiter
from headrace.adapters.query_scheduler.coalescing_executor import CoalescingExecutor, NoVersions
from headrace.adapters.query_scheduler.fair_semaphore import FairSemaphore, SlotLimits
from headrace.adapters.store.chdb.reader import ChdbReader
from headrace.base.clock import SystemClock
from headrace.base.errors import OperatorError, QueryTimedOut, QueryTooLarge, StoreUnavailable
from headrace.base.logs import get_logger
from headrace.base.metrics import Metrics
from headrace.model.catalog import EVENTS
from headrace.model.export import LogEnd, Watermark
from headrace.model.plan import CompiledQuery
from headrace.ports.live import LiveItem, LiveItems
from headrace.ports.rate_limiter import CountedCall, RateLimitResult
from headrace.ports.store import QueryLimits, Rows, SelectFailed, StoreStatus
from testing.chdb import ENDLESS, LIMITS, FreshStore, until_running
from testing.erasures import NoErasures
from testing.pruning import NoPruning

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

LARGE = "SELECT uniqExact(number) FROM numbers(50000000)"


WATERMARK = Watermark("ledger", 1_767_607_200_000, (LogEnd(7, 1, 4096),))


class NoLive:
    """Keeps nothing."""

    async def follow(self, website: str, epoch: str, after: int) -> LiveItems:
        raise AssertionError(website, epoch, after)

    def publish(self, website: str, item: LiveItem) -> None:
        raise AssertionError(website, item)

    def count_stream(self, caller: str) -> contextlib.AbstractContextManager[bool]:
        raise AssertionError(caller)


class Engine:
    """A server that can be stopped and started, with the interfaces that it needs."""

    def __init__(self, store: FreshStore, socket: Path) -> None:
        self.store = store
        self.socket = socket
        self.is_ready = True
        self.wait_timeout_s = 60.0
        self.unreadable = ""
        self.load: Callable[[], None] = lambda: None
        self.loads_at_once = asyncio.Event()
        self.loads_at_once.set()

    async def start(self) -> None:
        self._reader = ChdbReader(
            self.store.engine, threads=2, log=get_logger(), database=self.store.database
        )
        self._reader.open()
        slots = FairSemaphore(SlotLimits(2, 100, 100), metrics=Metrics())
        self._server = EngineServer(
            socket=self.socket,
            runner=self._reader,
            executor=CoalescingExecutor(
                slots=slots,
                load_barrier=self._barrier,
                versions=NoVersions(),
                cache=None,
                wait_timeout_s=self.wait_timeout_s,
                metrics=Metrics(),
            ),
            limiters={call: WindowLimiter(3, clock=SystemClock()) for call in CountedCall},
            load_barrier=self._barrier,
            complete_barrier=self._complete_barrier,
            status=lambda: StoreStatus.READY if self.is_ready else StoreStatus.UNAVAILABLE,
            snapshots=self,
            exports=EngineExports(self._take_watermark, runner=self._reader, slots=slots),
            erasures=NoErasures(),
            pruner=NoPruning(),
            versions=None,
            live=NoLive(),
            log=get_logger(),
        )
        await self._server.open()

    async def stop(self) -> None:
        await self._server.close()
        await self._reader.close()

    async def take(self, *, partial: bool) -> Snapshot:
        """Create an empty directory as the snapshot."""
        if not self.is_ready:
            raise OperatorError("no snapshot can be taken: the disk is full")
        snapshot = self.socket.parent / "snapshot"
        await asyncio.to_thread(snapshot.mkdir)
        return Snapshot(snapshot, 7, ("worker-0",) if partial else ())

    async def remove(self, snapshot: Path) -> None:
        """Remove a snapshot."""
        await asyncio.to_thread(snapshot.rmdir)

    async def _barrier(self) -> None:
        await self.loads_at_once.wait()
        self.load()

    async def _take_watermark(self) -> Watermark:
        await self._complete_barrier()
        return WATERMARK

    async def _complete_barrier(self) -> None:
        if self.unreadable:
            raise StoreUnavailable(self.unreadable)
        await self._barrier()


@pytest.fixture
def socket() -> Iterator[Path]:
    """A path short enough for a socket, in a directory that does not exist yet."""
    directory = Path(tempfile.mkdtemp(prefix="headrace-test-"))
    yield directory / "runtime" / "engine.sock"
    shutil.rmtree(directory)


@pytest_asyncio.fixture
async def engine(chdb_store: FreshStore, socket: Path) -> AsyncIterator[Engine]:
    one = Engine(chdb_store, socket)
    await one.start()
    yield one
    await one.stop()


@pytest_asyncio.fixture
async def connections(engine: Engine) -> AsyncIterator[EngineConnections]:
    one = EngineConnections(engine.socket)
    yield one
    await one.close()


async def select(
    connections: EngineConnections,
    sql: str,
    parameters: Mapping[str, object] | None = None,
    limits: QueryLimits = LIMITS,
) -> Rows:
    query = CompiledQuery(sql=sql, parameters=dict(parameters or {}), outputs=())
    return (await EngineStore(connections).select(query, limits)).rows


async def test_rows_have_the_order_of_the_columns(connections: EngineConnections) -> None:
    rows = await select(
        connections,
        "SELECT {text:String}, number, number / 0, number > 0 FROM numbers({count:Int64})",
        {"text": "a'\\\t\0é😀", "count": 2},
    )
    assert rows == [["a'\\\t\0é😀", 0, None, 0], ["a'\\\t\0é😀", 1, None, 1]]


async def test_a_select_reads_what_was_durable_when_it_arrived(
    engine: Engine, connections: EngineConnections
) -> None:
    engine.load = lambda: engine.store.insert(EVENTS, [{"value": 1.0}])
    counts = [await select(connections, "SELECT count() FROM events") for _ in range(3)]
    assert counts == [[[1]], [[2]], [[3]]]


async def test_a_select_is_rejected_when_loading_fails(
    engine: Engine, connections: EngineConnections
) -> None:
    def fail() -> None:
        raise StoreUnavailable("the disk is full")

    engine.load = fail
    with pytest.raises(StoreUnavailable, match="the disk is full"):
        await select(connections, "SELECT 1")


async def test_an_unexpected_error_is_logged_and_closes_only_its_connection(
    engine: Engine, connections: EngineConnections
) -> None:
    error = ValueError("a bug")

    def fail() -> None:
        raise error

    engine.load = fail
    with capture_logs() as lines, pytest.raises(StoreUnavailable, match="the engine is away"):
        await select(connections, "SELECT 1")
    assert [line for line in lines if line["log_level"] == "error"] == [
        {
            "event": "engine_request_failed",
            "log_level": "error",
            "request": "RunSelect",
            "exc_info": error,
        }
    ]
    engine.load = lambda: None
    assert await select(connections, "SELECT 1") == [[1]]


async def test_a_select_is_rejected_when_loading_takes_too_long(
    engine: Engine, connections: EngineConnections
) -> None:
    await engine.stop()
    engine.wait_timeout_s = 0.2
    await engine.start()
    engine.loads_at_once.clear()
    with pytest.raises(StoreUnavailable, match="still loading earlier events"):
        await select(connections, "SELECT 1")


@pytest.mark.parametrize(
    ("sql", "limits", "error"),
    [
        (ENDLESS, QueryLimits(timeout_s=0.2, max_memory_bytes=10**9), QueryTimedOut),
        (LARGE, QueryLimits(timeout_s=15, max_memory_bytes=50_000_000), QueryTooLarge),
    ],
    ids=["deadline", "memory"],
)
async def test_a_select_over_its_limits_is_cancelled(
    sql: str, limits: QueryLimits, error: type[Exception], connections: EngineConnections
) -> None:
    with pytest.raises(error):
        await select(connections, sql, limits=limits)
    assert await select(connections, "SELECT 1") == [[1]]


async def test_an_invalid_select_is_logged_without_its_values(
    connections: EngineConnections,
) -> None:
    sql = "SELECT toInt32({text:String})"
    with capture_logs() as lines, pytest.raises(SelectFailed):
        await select(connections, sql, {"text": "secret"})
    assert [line for line in lines if line["log_level"] == "error"] == [
        {
            "event": "select_refused",
            "log_level": "error",
            "code": 6,
            "name": "CANNOT_PARSE_TEXT",
            "sql": sql,
        }
    ]


async def test_cancelling_a_select_cancels_its_query_in_the_engine(
    engine: Engine, connections: EngineConnections
) -> None:
    client = asyncio.create_task(select(connections, ENDLESS))
    await until_running(engine.store, ENDLESS, 1)
    client.cancel()
    await until_running(engine.store, ENDLESS, 0)
    assert await select(connections, "SELECT 1") == [[1]]


async def test_killing_a_worker_cancels_its_query(engine: Engine) -> None:
    program = f"""
import asyncio
from pathlib import Path
from headrace.adapters.engine.ipc.connections import EngineConnections
from headrace.adapters.engine.ipc.store_client import EngineStore
from headrace.model.plan import CompiledQuery
from headrace.ports.store import QueryLimits
store = EngineStore(EngineConnections(Path({str(engine.socket)!r})))
query = CompiledQuery(sql={ENDLESS!r}, parameters={{}}, outputs=())
asyncio.run(store.select(query, QueryLimits(timeout_s=60, max_memory_bytes=10**9)))
"""
    worker = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    await until_running(engine.store, ENDLESS, 1)
    worker.kill()
    await worker.wait()
    await until_running(engine.store, ENDLESS, 0)


async def test_many_concurrent_selects_get_their_own_rows(connections: EngineConnections) -> None:
    selects = [select(connections, "SELECT {n:Int64}", {"n": number}) for number in range(50)]
    assert await asyncio.gather(*selects) == [[[number]] for number in range(50)]


async def test_a_result_of_many_megabytes_is_complete(connections: EngineConnections) -> None:
    sql = "SELECT number, repeat(toString(number % 10), 2000) FROM numbers(10000)"
    rows = await select(connections, sql)
    assert rows == [[number, str(number % 10) * 2000] for number in range(10_000)]


async def test_all_workers_share_the_rate_limit_windows(engine: Engine) -> None:
    connections = [EngineConnections(engine.socket) for _ in range(2)]
    workers = [EngineLimiter(one) for one in connections]
    began_s = time.monotonic()
    verdicts = [await workers[number % 2].hit("caller") for number in range(3)]
    elapsed_s = time.monotonic() - began_s
    assert [60 - elapsed_s <= verdict.reset_s <= 60 for verdict in verdicts] == [True] * 3
    assert [msgspec.structs.replace(verdict, reset_s=60) for verdict in verdicts] == [
        RateLimitResult(allowed=True, limit=3, remaining=remaining, reset_s=60)
        for remaining in (2, 1, 0)
    ]
    rejected = await workers[1].hit("caller")
    assert not rejected.allowed
    writes = await EngineLimiter(connections[0], CountedCall.WRITE).hit("caller")
    assert writes.remaining == 2
    await asyncio.gather(*(one.close() for one in connections))


async def test_a_worker_counts_alone_while_the_engine_is_away(
    engine: Engine, connections: EngineConnections
) -> None:
    limiter = WorkerLimiter(EngineLimiter(connections), 3, workers=1, clock=SystemClock())
    assert (await limiter.hit("caller")).remaining == 2
    await engine.stop()
    alone = [await limiter.hit("caller") for _ in range(4)]
    assert [result.allowed for result in alone] == [True, True, False, False]
    await engine.start()
    assert (await limiter.hit("another")).remaining == 2


@pytest.mark.parametrize("status", [StoreStatus.READY, StoreStatus.UNAVAILABLE])
async def test_the_engine_reports_its_status(
    status: StoreStatus, engine: Engine, connections: EngineConnections
) -> None:
    engine.is_ready = status is StoreStatus.READY
    assert await EngineStore(connections).status() is status


async def test_a_restarted_engine_is_reconnected(
    engine: Engine, connections: EngineConnections
) -> None:
    assert await select(connections, "SELECT 1") == [[1]]
    await engine.stop()
    with pytest.raises(StoreUnavailable, match="the engine is away"):
        await select(connections, "SELECT 1")
    with pytest.raises(StoreUnavailable, match="the engine is away"):
        await EngineLimiter(connections).hit("caller")
    assert await EngineStore(connections).status() is StoreStatus.UNAVAILABLE
    await engine.start()
    assert await select(connections, "SELECT 1") == [[1]]


async def test_an_engine_that_disconnects_immediately_is_unavailable(tmp_path: Path) -> None:
    async def disconnect(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_unix_server(disconnect, tmp_path / "engine.sock")
    connections = EngineConnections(tmp_path / "engine.sock")
    for _ in range(100):
        with pytest.raises(StoreUnavailable, match="the engine is away"):
            await connections.send_request(CheckReady(), Readiness, timeout_s=60)
    server.close()


async def test_a_running_select_fails_when_the_engine_stops(
    engine: Engine, connections: EngineConnections
) -> None:
    client = asyncio.create_task(select(connections, ENDLESS))
    await until_running(engine.store, ENDLESS, 1)
    await engine.stop()
    with pytest.raises(StoreUnavailable):
        await client
    await until_running(engine.store, ENDLESS, 0)
    await engine.start()


@pytest.mark.parametrize(
    ("sent", "reasons"),
    [
        (b"\0\0", []),
        (b"\xff\xff\xff\xff", ["a message is too long"]),
        (b"\0\0\0\x04junk", ["Expected `object`, got `int`"]),
        (b"\0\0\0\x09{}", []),
    ],
    ids=repr,
)
async def test_a_protocol_error_is_logged_and_closes_only_its_connection(
    sent: bytes, reasons: list[str], engine: Engine, connections: EngineConnections
) -> None:
    with capture_logs() as lines:
        reader, writer = await asyncio.open_unix_connection(engine.socket)
        writer.write(sent)
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()
        assert await select(connections, "SELECT 1") == [[1]]
    line = {"event": "engine_message_invalid", "log_level": "warning"}
    assert lines == [{**line, "reason": reason} for reason in reasons]


def frame(message: IpcRequest) -> bytes:
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(4, "big") + body


async def test_a_fragmented_request_is_answered(engine: Engine) -> None:
    reader, writer = await asyncio.open_unix_connection(engine.socket)
    for byte in frame(CheckReady()):
        writer.write(bytes([byte]))
        await asyncio.sleep(0.002)
    size = int.from_bytes(await reader.readexactly(4), "big")
    response = msgspec.msgpack.decode(await reader.readexactly(size), type=IpcReply)
    writer.close()
    assert response == Readiness(StoreStatus.READY)


@pytest.mark.parametrize("pause_s", [0, 0.1], ids=["in one piece", "later"])
async def test_a_second_request_before_the_result_closes_the_connection_and_cancels_the_query(
    pause_s: float, engine: Engine, connections: EngineConnections
) -> None:
    reader, writer = await asyncio.open_unix_connection(engine.socket)
    writer.write(frame(RunSelect(ENDLESS, {}, "", LIMITS)))
    await asyncio.sleep(pause_s)
    writer.write(frame(CheckReady()))
    assert await reader.read() == b""
    writer.close()
    await until_running(engine.store, ENDLESS, 0)
    assert await select(connections, "SELECT 1") == [[1]]


async def test_the_socket_is_accessible_by_its_owner_only(engine: Engine) -> None:
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (engine.socket, engine.socket.parent)]
    assert modes == [0o600, 0o700]


async def test_a_stale_socket_does_not_prevent_startup(
    chdb_store: FreshStore, socket: Path
) -> None:
    socket.parent.mkdir()
    with sockets.socket(sockets.AF_UNIX) as left_behind:
        left_behind.bind(str(socket))
    engine = Engine(chdb_store, socket)
    await engine.start()
    await engine.stop()
    assert not await asyncio.to_thread(socket.exists)


async def test_a_path_too_long_for_a_socket_gets_a_clear_error(
    chdb_store: FreshStore, tmp_path: Path
) -> None:
    path = tmp_path / ("x" * 100) / "engine.sock"
    with pytest.raises(OperatorError, match="is longer than 107 bytes"):
        await Engine(chdb_store, path).start()


async def take_snapshot(
    engine: Engine, snapshot_task: ExitStack, *, partial: bool = False
) -> Snapshot:
    return await asyncio.to_thread(
        snapshot_task.enter_context, live_snapshot(engine.socket, partial=partial)
    )


async def is_gone(snapshot: Snapshot) -> bool:
    """Wait until the engine has removed a snapshot."""
    for _ in range(3_000):
        if not await asyncio.to_thread(snapshot.path.exists):
            return True
        await asyncio.sleep(0.01)
    return False


async def test_snapshot_exists_until_its_client_disconnects(engine: Engine) -> None:
    with ExitStack() as snapshot_task:
        snapshot = await take_snapshot(engine, snapshot_task)
        assert snapshot == Snapshot(engine.socket.parent / "snapshot", 7)
        assert await asyncio.to_thread(snapshot.path.is_dir)
    assert await is_gone(snapshot)


async def test_partial_snapshot_names_what_it_lacks(engine: Engine) -> None:
    with ExitStack() as snapshot_task:
        snapshot = await take_snapshot(engine, snapshot_task, partial=True)
    assert snapshot.unreadable == ("worker-0",)


async def test_snapshot_is_removed_when_the_engine_stops(engine: Engine) -> None:
    with ExitStack() as snapshot_task:
        snapshot = await take_snapshot(engine, snapshot_task)
        await engine.stop()
        assert await is_gone(snapshot)


async def test_snapshot_failure_reason_is_reported(engine: Engine) -> None:
    engine.is_ready = False
    with ExitStack() as snapshot_task, pytest.raises(OperatorError) as rejection:
        await take_snapshot(engine, snapshot_task)
    assert str(rejection.value) == "no snapshot can be taken: the disk is full"


async def test_unavailable_engine_takes_no_snapshot(engine: Engine) -> None:
    await engine.stop()
    with ExitStack() as snapshot_task, pytest.raises(OperatorError) as rejection:
        await take_snapshot(engine, snapshot_task)
    assert str(rejection.value) == "the engine of the running service does not respond; try again"


async def test_barrier_waits_until_durable_records_are_stored(
    engine: Engine, connections: EngineConnections
) -> None:
    engine.loads_at_once.clear()
    waiting = asyncio.create_task(EngineBarrier(connections, timeout_s=60, all_logs=False).wait())
    done, _ = await asyncio.wait({waiting}, timeout=0.1)
    engine.loads_at_once.set()
    await waiting
    assert done == set()


async def test_barrier_reports_what_cannot_be_stored(
    engine: Engine, connections: EngineConnections
) -> None:
    def fail() -> None:
        raise StoreUnavailable("earlier events cannot be stored now")

    engine.load = fail
    with pytest.raises(StoreUnavailable, match="earlier events cannot be stored now"):
        await EngineBarrier(connections, timeout_s=60, all_logs=False).wait()


async def test_only_a_barrier_of_all_logs_fails_while_a_log_cannot_be_read(
    engine: Engine, connections: EngineConnections
) -> None:
    engine.unreadable = "the log worker-0 cannot be read"
    await EngineBarrier(connections, timeout_s=60, all_logs=False).wait()
    with pytest.raises(StoreUnavailable, match="the log worker-0 cannot be read"):
        await EngineBarrier(connections, timeout_s=60, all_logs=True).wait()


async def test_barrier_times_out(engine: Engine, connections: EngineConnections) -> None:
    barrier = EngineBarrier(connections, timeout_s=0.1, all_logs=False)
    engine.loads_at_once.clear()
    with pytest.raises(StoreUnavailable, match="the engine is away"):
        await barrier.wait()
    assert await barrier.is_caught_up()
    engine.is_ready = False
    assert not await barrier.is_caught_up()


async def test_an_export_begins_with_a_watermark_when_everything_durable_is_stored(
    engine: Engine, connections: EngineConnections
) -> None:
    loads: list[str] = []
    engine.load = lambda: loads.append("loaded")
    async with EngineExportStore(connections).open("web_1") as watermark:
        assert (watermark, loads) == (WATERMARK, ["loaded"])


async def test_an_export_does_not_begin_while_a_log_cannot_be_read(
    engine: Engine, connections: EngineConnections
) -> None:
    engine.unreadable = "the log worker-0 cannot be read"
    store = EngineExportStore(connections)
    with pytest.raises(StoreUnavailable, match="the log worker-0 cannot be read"):
        await store.open("web_1").__aenter__()


async def test_imports_wait_for_an_export_also_where_the_engine_restarts_meanwhile(
    engine: Engine, connections: EngineConnections
) -> None:
    imports = ImportLocks(engine.socket.parent)
    async with EngineExportStore(connections).open("web_1"):
        await engine.stop()
        await engine.start()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await imports.importing("web_1").__aenter__()
    async with asyncio.timeout(30), imports.importing("web_1"):
        pass


async def test_an_export_waits_for_no_import_for_ever(
    engine: Engine, connections: EngineConnections
) -> None:
    store = EngineExportStore(connections, open_timeout_s=0.2)
    async with ImportLocks(engine.socket.parent).importing("web_1"):
        with pytest.raises(StoreUnavailable, match="an import into the website is storing rows"):
            await store.open("web_1").__aenter__()


async def test_two_exports_of_a_website_run_at_once_and_a_third_is_refused_until_one_ends(
    connections: EngineConnections,
) -> None:
    store = EngineExportStore(connections)
    async with store.open("web_1"):
        async with store.open("web_1"), store.open("web_2"):
            with pytest.raises(StoreUnavailable, match="2 exports of the website are running"):
                await store.open("web_1").__aenter__()
        async with asyncio.timeout(30):  # the engine hears of the end over the socket
            while True:
                with contextlib.suppress(StoreUnavailable):
                    async with store.open("web_1"):
                        return
                await asyncio.sleep(0.01)


async def test_an_export_reads_any_format_without_waiting_for_a_load(
    engine: Engine, connections: EngineConnections
) -> None:
    engine.loads_at_once.clear()
    store = EngineExportStore(connections)
    lines = CompiledQuery("SELECT number FROM numbers(3) FORMAT CSV", {}, (), "web_1")
    assert await store.read(lines, LIMITS) == b"0\n1\n2\n"
    rows = CompiledQuery("SELECT number, 'a' FROM numbers(2)", {}, (), "web_1")
    assert await store.rows(rows, LIMITS) == [[0, "a"], [1, "a"]]
