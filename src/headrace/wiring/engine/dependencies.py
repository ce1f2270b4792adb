"""What both kinds of the engine process are made of."""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from headrace.adapters.backup.snapshots import Snapshots
from headrace.adapters.data_dir.import_locks import ImportLocks
from headrace.adapters.data_dir.paths import DataDirPaths
from headrace.adapters.data_dir.runtime_directory import WATCHED_WEBSITES
from headrace.adapters.engine.erasures import EngineErasures
from headrace.adapters.engine.error_fingerprints import StoreFingerprints
from headrace.adapters.engine.exports import TakeWatermark, watermark_taker
from headrace.adapters.engine.ipc.services import SnapshotTaker
from headrace.adapters.engine.live_tail import LiveTail, TailedLoader
from headrace.adapters.engine.load_loop import LoadLoop, LogLoader
from headrace.adapters.engine.process import EngineProcess, QueryService, StoreLifecycle
from headrace.adapters.engine.rate_limiter import WindowLimiter
from headrace.adapters.engine.watched_websites import WatchedWebsites
from headrace.adapters.event_log.segment_reader import SegmentReader
from headrace.adapters.quarantine.file_quarantine import FileQuarantine
from headrace.adapters.query_scheduler.versions import DataVersions
from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.base.clock import SystemClock
from headrace.base.freed_memory import return_freed_memory
from headrace.base.logs import get_logger
from headrace.base.metrics import Metrics
from headrace.base.settings import Settings
from headrace.erasure.files import Leftovers
from headrace.ingest.load.live_rows import LiveRows
from headrace.ingest.load.loader import Loader
from headrace.ports.dedup_claims import DedupClaims
from headrace.ports.event_log import LogOffset
from headrace.ports.rate_limiter import RateLimiters, calls_per_minute
from headrace.ports.rows.deletion import RowDeleter
from headrace.ports.rows.erasure import PartLifetimes, RowFinder
from headrace.ports.store import StoreWriter
from headrace.wiring.engine.erasures import engine_erasures
from headrace.wiring.engine.pruning import engine_pruning
from headrace.wiring.store import select_bounds_of

NONCE_BYTES: Final = 8
"""Of the versions of rows: those of two processes are never equal."""


class EngineDependencies(NamedTuple):
    """What they share, and how it is put together."""

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
        """What keeps the imports of this machine apart from its erasures."""
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
            new_epoch=lambda: secrets.token_hex(NONCE_BYTES),
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
            query_wait_s=self.settings.query_queue_timeout_s,
            log=get_logger(),
            max_backoff_s=max_backoff_s,
            return_memory=return_freed_memory,
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
        live: LiveTail,
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
            live=live,
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

    def process(
        self,
        *,
        store: StoreLifecycle,
        query_service: QueryService | None,
        load_loop: LoadLoop,
        live: LiveTail,
        snapshots: Snapshots,
        snapshot_taker: SnapshotTaker,
        new_finder: Callable[[], RowFinder],
        new_deleter: Callable[[], RowDeleter],
        lifetimes: PartLifetimes,
        versions: DataVersions | None,
    ) -> EngineProcess:
        """Return the process. With `versions` it has all rows, and keeps results of selects."""
        return EngineProcess(
            store=store,
            load_loop=load_loop,
            query_service=query_service,
            limiters=self.limiters(),
            snapshots=snapshots,
            snapshot_taker=snapshot_taker,
            take_watermark=self.take_watermark(load_loop, has_store=versions is not None),
            erasures=self.erasures(
                load_loop,
                finder=new_finder(),
                deleter=new_deleter(),
                lifetimes=lifetimes,
                versions=versions,
                live=live,
            ),
            pruning=engine_pruning(
                self.settings,
                self.paths,
                ledger=self.ledger,
                load_loop=load_loop,
                finder=new_finder(),
                deleter=new_deleter(),
                versions=versions,
            ),
            live=live,
            prunes_daily=not self.is_alone,
            socket=self.socket,
            scheduler_limits=select_bounds_of(self.settings),
            metrics=self.metrics,
            log=get_logger(),
        )
