"""What the engine process is made of."""

import asyncio
import gc
import secrets
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from headrace.adapters.backup.snapshots import LiveSnapshots, Snapshots
from headrace.adapters.data_dir.import_locks import ImportLocks
from headrace.adapters.data_dir.paths import DataDirPaths
from headrace.adapters.data_dir.runtime_directory import ENGINE_SOCKET, WATCHED_WEBSITES
from headrace.adapters.engine.chdb_store import ChdbLifecycle, ChdbQueryService
from headrace.adapters.engine.clickhouse_store import (
    CLICKHOUSE_MAX_BACKOFF_S,
    ClickHouseLifecycle,
    DrainedSnapshots,
    PreparingLoader,
)
from headrace.adapters.engine.erasures import EngineErasures
from headrace.adapters.engine.error_fingerprints import LIVE_TIMEOUT_S, StoreFingerprints
from headrace.adapters.engine.exports import TakeWatermark, watermark_taker
from headrace.adapters.engine.kept_versions import KeptVersions
from headrace.adapters.engine.live_tail import LiveTail, TailedLoader
from headrace.adapters.engine.load_loop import MAX_BACKOFF_S, LoadLoop, LogLoader
from headrace.adapters.engine.process import EngineProcess
from headrace.adapters.engine.rate_limiter import WindowLimiter
from headrace.adapters.engine.store_recovery import StoreRecovery
from headrace.adapters.engine.watched_websites import WatchedWebsites
from headrace.adapters.event_log.segment_reader import SegmentReader
from headrace.adapters.quarantine.file_quarantine import FileQuarantine
from headrace.adapters.query_scheduler.versions import DataVersions
from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.chdb.part_lifetimes import ChdbPartLifetimes
from headrace.adapters.store.chdb.row_deletion import ChdbRowDeleter
from headrace.adapters.store.chdb.row_finder import ChdbRowFinder
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.adapters.store.clickhouse.address import ClickHouseAddress
from headrace.adapters.store.clickhouse.row_deletion import ClickHouseRowDeleter
from headrace.adapters.store.clickhouse.row_finder import ClickHouseRowFinder
from headrace.adapters.store.clickhouse.writer import ClickHouseWriter
from headrace.adapters.store_migration.migration_state import GatedLoader
from headrace.base.clock import SystemClock
from headrace.base.settings import Settings
from headrace.base.telemetry import Metrics, get_logger
from headrace.erasure.service import Leftovers
from headrace.ingest.load.live_rows import LiveRows
from headrace.ingest.load.loader import Loader
from headrace.ports.dedup_claims import DedupClaims
from headrace.ports.event_log import LogOffset
from headrace.ports.rate_limiter import RateLimiters, calls_per_minute
from headrace.ports.rows.deletion import RowDeleter
from headrace.ports.rows.erasure import KeptPartLifetimes, PartLifetimes, RowFinder
from headrace.ports.store import StoreWriter
from headrace.wiring.data import data_dir_paths
from headrace.wiring.engine_erasures import engine_erasures
from headrace.wiring.engine_pruning import engine_pruning
from headrace.wiring.shared import open_claims
from headrace.wiring.store import select_bounds_of
from headrace.wiring.store_address import clickhouse_address

_GC_THRESHOLDS = (50_000, 20, 100)
"""Loading makes many small objects and no cycles; looking for cycles was a third of its time."""

_NONCE_BYTES = 8
"""Of the versions of rows: those of two processes are never equal."""


async def run_engine(
    settings: Settings,
    *,
    runtime: Path,
    stop: asyncio.Event,
    is_alone: bool = False,
    erases_alone: bool = False,
) -> None:
    """Run the engine until `stop`. Raises `OperatorError` when it cannot begin.

    `is_alone` is for a command on a stopped service: no events arrive meanwhile. `erases_alone` is
    for one that restores a backup: other machines have nothing to do with its erasures.
    """
    clock, metrics = SystemClock(), Metrics()
    paths = data_dir_paths(settings)
    metrics.count("headrace_process_starts_total", 1, "engine")
    with ExitStack() as stack:
        ledger = SqliteLedger.open(paths.ledger)
        stack.callback(ledger.close)
        reader = SegmentReader(paths.log, damaged=paths.damaged, clock=clock, metrics=metrics)
        stack.callback(reader.close)
        dependencies = _Dependencies(
            settings,
            paths,
            ledger,
            reader,
            runtime / ENGINE_SOCKET,
            metrics,
            is_alone,
            erases_alone,
        )
        claims = open_claims(settings, stack, paths=paths, ledger=ledger)
        address = clickhouse_address(settings)
        if address is None:
            process = _chdb_engine_process(dependencies, claims)
        else:
            process = _clickhouse_engine_process(dependencies, claims, address)
        gc.freeze()  # what was made until here lives as long as the process
        gc.set_threshold(*_GC_THRESHOLDS)
        await process.run(stop)


class _Dependencies(NamedTuple):
    """What both kinds of the process are made of."""

    settings: Settings
    paths: DataDirPaths
    ledger: SqliteLedger
    reader: SegmentReader
    socket: Path
    metrics: Metrics
    is_alone: bool
    erases_alone: bool

    @property
    def import_locks(self) -> ImportLocks:
        """What keeps imports apart from exports and erasures, of this machine."""
        return ImportLocks(self.socket.parent)

    def loader(self, store: StoreWriter, claims: DedupClaims | None) -> Loader:
        """Return what loads into a store."""
        return Loader(
            log=self.reader,
            store=store,
            ledger=self.ledger,
            quarantine=FileQuarantine(self.paths.quarantine),
            metrics=self.metrics,
            clock=SystemClock(),
            claims=claims,
        )

    def live_loading(
        self, loader: LogLoader, max_backoff_s: float, finder: RowFinder
    ) -> tuple[LoadLoop, LiveTail]:
        """Return what runs the loader at intervals and on demand, and what reads ahead of it."""
        watched = WatchedWebsites(self.socket.with_name(WATCHED_WEBSITES))
        watched.write(())  # an earlier process may have been killed
        fingerprints = StoreFingerprints(finder, log=get_logger())
        live_rows = LiveRows(self.reader, self.ledger, fingerprints)
        tailed = TailedLoader(loader, live_rows, log=get_logger())
        load_loop = self.load_loop(tailed, max_backoff_s)
        tail = LiveTail(
            tailed,
            run_exclusive=load_loop.run_exclusive,
            durable_offsets=self.reader.durable_offsets,
            new_epoch=lambda: secrets.token_hex(_NONCE_BYTES),
            clock=SystemClock(),
            on_watched=watched.write,
        )
        return load_loop, tail

    def load_loop(self, loader: LogLoader, max_backoff_s: float) -> LoadLoop:
        """Return what runs the loader at intervals and on demand."""
        return LoadLoop(
            loader=loader,
            log_reader=self.reader,
            interval_s=self.settings.load_interval_s,
            log=get_logger(),
            max_backoff_s=max_backoff_s,
        )

    def limiters(self) -> RateLimiters:
        """Return what counts the calls of this machine."""
        limits = calls_per_minute(self.settings.query_rate_limit)
        return {call: WindowLimiter(limit, clock=SystemClock()) for call, limit in limits.items()}

    def take_watermark(self, load_loop: LoadLoop, *, has_store: bool) -> TakeWatermark:
        """Return what takes the watermarks of exports.

        The ends of this machine's logs decide only where it has all rows: on servers a log of
        another machine may have the same number.
        """
        return watermark_taker(
            load_loop,
            identity=self.ledger.identity,
            clock=SystemClock(),
            durable_offsets=self.reader.durable_offsets if has_store else dict[str, LogOffset],
            imported_offsets=self.ledger.imported_offsets,
        )

    def erasures(
        self,
        load_loop: LoadLoop,
        *,
        finder: RowFinder,
        deleter: RowDeleter,
        lifetimes: PartLifetimes,
        versions: DataVersions | None,
    ) -> EngineErasures[Leftovers]:
        """Return what runs erasures. Without `versions` nothing caches results."""
        return engine_erasures(
            self.settings,
            self.paths,
            machine_id=None if self.erases_alone else self.ledger.identity(),
            load_loop=load_loop,
            exclude_imports=self.import_locks.excluding_imports,
            finder=finder,
            deleter=deleter,
            lifetimes=lifetimes,
            versions=versions,
        )

    def snapshots(self, chdb: ChdbInstance | None) -> Snapshots:
        """Return what takes snapshots of the data directory, and of the store within it."""
        return Snapshots(
            self.paths,
            chdb=chdb,
            ledger=self.ledger,
            log_reader=self.reader,
            include_unstored=chdb is not None,
        )


def _chdb_engine_process(dependencies: _Dependencies, claims: DedupClaims | None) -> EngineProcess:
    chdb = ChdbInstance(dependencies.paths.store, log=get_logger())
    recovery = StoreRecovery(
        chdb,
        ledger=dependencies.ledger,
        logs=dependencies.reader,
        can_reload=claims is None,
        log=get_logger(),
    )
    versions = DataVersions(nonce=secrets.token_hex(_NONCE_BYTES))
    writer = ChdbWriter(chdb, change_listener=versions)
    load_loop, live = dependencies.live_loading(
        dependencies.loader(writer, claims), MAX_BACKOFF_S, ChdbRowFinder(chdb)
    )
    limits = select_bounds_of(dependencies.settings)
    snapshots = dependencies.snapshots(chdb)
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
                dependencies.paths.row_versions,
                chdb=chdb,
                ranges=versions.ranges,
                log=get_logger(),
            ),
            limits=limits,
            log=get_logger(),
        ),
        limiters=dependencies.limiters(),
        snapshots=snapshots,
        snapshot_taker=LiveSnapshots(snapshots, load_loop),
        take_watermark=dependencies.take_watermark(load_loop, has_store=True),
        exclude_imports=dependencies.import_locks.excluding_imports,
        erasures=dependencies.erasures(
            load_loop,
            finder=ChdbRowFinder(chdb),
            deleter=ChdbRowDeleter(chdb),
            lifetimes=ChdbPartLifetimes(chdb, may_shorten=dependencies.is_alone),
            versions=versions,
        ),
        pruning=engine_pruning(
            dependencies.settings,
            dependencies.paths,
            ledger=dependencies.ledger,
            load_loop=load_loop,
            finder=ChdbRowFinder(chdb),
            deleter=ChdbRowDeleter(chdb),
            versions=versions,
        ),
        live=live,
        prunes_daily=not dependencies.is_alone,
        socket=dependencies.socket,
        scheduler_limits=limits,
        metrics=dependencies.metrics,
        log=get_logger(),
    )


def _clickhouse_engine_process(
    dependencies: _Dependencies, claims: DedupClaims | None, address: ClickHouseAddress
) -> EngineProcess:
    dependencies.ledger.bind_store({})  # its rows are elsewhere now
    dependencies.paths.row_versions.unlink(missing_ok=True)
    dependencies.reader.publish_loaded_offsets(dependencies.ledger.stored_offsets())
    writer = ClickHouseWriter(address.rotated(secrets.randbits(16)))
    loader = GatedLoader(dependencies.loader(writer, claims), dependencies.paths.root)
    load_loop, live = dependencies.live_loading(
        PreparingLoader(writer, loader),
        CLICKHOUSE_MAX_BACKOFF_S,
        ClickHouseRowFinder(address, read_timeout_s=LIVE_TIMEOUT_S),
    )
    snapshots = dependencies.snapshots(None)
    return EngineProcess(
        store=ClickHouseLifecycle(writer, log=get_logger()),
        load_loop=load_loop,
        query_service=None,
        limiters=dependencies.limiters(),
        snapshots=snapshots,
        snapshot_taker=DrainedSnapshots(snapshots, load_loop),
        take_watermark=dependencies.take_watermark(load_loop, has_store=False),
        exclude_imports=dependencies.import_locks.excluding_imports,
        erasures=dependencies.erasures(
            load_loop,
            finder=ClickHouseRowFinder(address),
            deleter=ClickHouseRowDeleter(address),
            lifetimes=KeptPartLifetimes(),
            versions=None,
        ),
        pruning=engine_pruning(
            dependencies.settings,
            dependencies.paths,
            ledger=dependencies.ledger,
            load_loop=load_loop,
            finder=ClickHouseRowFinder(address),
            deleter=ClickHouseRowDeleter(address),
            versions=None,
        ),
        live=live,
        prunes_daily=not dependencies.is_alone,
        socket=dependencies.socket,
        scheduler_limits=select_bounds_of(dependencies.settings),
        metrics=dependencies.metrics,
        log=get_logger(),
    )
