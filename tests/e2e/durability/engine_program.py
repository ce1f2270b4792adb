"""Runs the engine process as the service does: `engine_program.py DATA SOCKET`."""

import asyncio
import signal
import sys
from functools import partial
from pathlib import Path

import uvloop

from headrace.adapters.backup.snapshots import LiveSnapshots, Snapshots
from headrace.adapters.data_dir.paths import DataDirPaths
from headrace.adapters.engine.chdb_store import ChdbLifecycle, ChdbQueryService
from headrace.adapters.engine.exports import watermark_taker
from headrace.adapters.engine.kept_versions import KeptVersions
from headrace.adapters.engine.live_tail import LiveTail, TailedLoader
from headrace.adapters.engine.load_loop import LoadLoop
from headrace.adapters.engine.process import EngineProcess
from headrace.adapters.engine.rate_limiter import WindowLimiter
from headrace.adapters.engine.requeued_items import read_requeued_items
from headrace.adapters.engine.store_recovery import StoreRecovery
from headrace.adapters.event_log.segment_reader import SegmentReader
from headrace.adapters.quarantine.file_quarantine import FileQuarantine
from headrace.adapters.query_scheduler.fair_semaphore import SchedulerLimits, SlotLimits
from headrace.adapters.query_scheduler.versions import DataVersions
from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.base.clock import SystemClock
from headrace.base.errors import OperatorError, StoreUnavailable
from headrace.base.logs import configure_logging, get_logger
from headrace.base.metrics import Metrics
from headrace.ingest.load.live_rows import LiveRows
from headrace.ingest.load.loader import Loader
from headrace.model.erasure import ErasureRequest
from headrace.model.stored_rows import ExpiredRows, StoredRows
from headrace.model.tenancy import WebsiteId
from headrace.ports.rate_limiter import CountedCall
from headrace.ports.rows.erasure import Erasure

WAIT_TIMEOUT_S = 60
"""How long selects wait for a load, and the end of the process for the last one, however slow the
machine is."""


class NoErasures:
    """Begins no erasure."""

    async def begin(self, request: ErasureRequest) -> Erasure:
        raise StoreUnavailable(f"nothing is erased from {request.website_id}")

    async def restore_answers(self) -> None:
        """Do nothing."""

    async def resume_pending(self) -> None:
        """Do nothing."""

    def follow_others(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""


class NoPruning:
    """Prunes nothing."""

    async def describe(self, website_id: WebsiteId | None) -> tuple[StoredRows, ...]:
        raise StoreUnavailable(f"nothing is known of {website_id}")

    async def prune(self, *, dry_run: bool = False) -> tuple[ExpiredRows, ...]:
        raise StoreUnavailable(f"nothing is pruned, dry run: {dry_run}")

    def start(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""


def engine_process(data: Path, socket: Path) -> EngineProcess:
    chdb = ChdbInstance(data / "store", log=get_logger())
    log_reader = SegmentReader(data / "log", damaged=data / "damaged")
    ledger = SqliteLedger.open(data / "ledger.sqlite")
    recovery = StoreRecovery(
        chdb,
        ledger=ledger,
        logs=log_reader,
        read_requeued_items=partial(read_requeued_items, log_reader),
        can_reload=True,
        log=get_logger(),
    )
    versions, metrics = DataVersions(), Metrics()
    writer = ChdbWriter(chdb, change_listener=versions)
    loader = Loader(
        log=log_reader,
        ledger=ledger,
        store=writer,
        quarantine=FileQuarantine(data / "quarantine"),
        metrics=metrics,
        clock=SystemClock(),
    )
    tailed = TailedLoader(loader, LiveRows(log_reader, ledger), log=get_logger())
    load_loop = LoadLoop(
        loader=tailed,
        log_reader=log_reader,
        interval_s=0.1,
        query_wait_s=WAIT_TIMEOUT_S,
        log=get_logger(),
    )
    live = LiveTail(
        tailed,
        run_exclusive=load_loop.run_exclusive,
        durable_offsets=log_reader.durable_offsets,
        new_epoch=lambda: "epoch",
        clock=SystemClock(),
    )
    snapshots = Snapshots(DataDirPaths(data), chdb=chdb, ledger=ledger, log_reader=log_reader)
    limits = SchedulerLimits(SlotLimits(3, 100, 100), WAIT_TIMEOUT_S, cache_bytes=10**6)
    return EngineProcess(
        store=ChdbLifecycle(chdb, writer, recovery),
        load_loop=load_loop,
        query_service=ChdbQueryService(
            chdb,
            writer=writer,
            recovery=recovery,
            run_exclusive=load_loop.run_exclusive,
            versions=versions,
            kept_versions=KeptVersions(
                DataDirPaths(data).row_versions,
                chdb=chdb,
                ranges=versions.ranges,
                log=get_logger(),
            ),
            limits=limits,
            log=get_logger(),
        ),
        limiters={call: WindowLimiter(30, clock=SystemClock()) for call in CountedCall},
        snapshots=snapshots,
        snapshot_taker=LiveSnapshots(snapshots, load_loop),
        take_watermark=watermark_taker(
            load_loop,
            identity=ledger.identity,
            clock=SystemClock(),
            durable_offsets=log_reader.durable_offsets,
            imported_offsets=ledger.imported_offsets,
        ),
        erasures=NoErasures(),
        pruning=NoPruning(),
        live=live,
        prunes_daily=True,
        socket=socket,
        scheduler_limits=limits,
        metrics=metrics,
        log=get_logger(),
    )


async def main(data: Path, socket: Path) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await engine_process(data, socket).run(stop, last_load_timeout_s=WAIT_TIMEOUT_S)


if __name__ == "__main__":
    configure_logging("info", process="engine")
    try:
        uvloop.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
    except OperatorError as error:
        sys.exit(str(error))
