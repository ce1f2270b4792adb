"""What the engine process is made of."""

import asyncio
import gc
import secrets
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from headrace.adapters.backup.snapshots import Snapshots
from headrace.adapters.data_dir.paths import DataPlaces
from headrace.adapters.engine.chdb_process import EngineProcess
from headrace.adapters.engine.clickhouse_process import LoadingProcess
from headrace.adapters.engine.rate_limiter import WindowLimiter
from headrace.adapters.event_log.segment_reader import SegmentReader
from headrace.adapters.quarantine.file_quarantine import FileQuarantine
from headrace.adapters.query_scheduler.versions import DataVersions
from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.adapters.store.chdb.connection import ChdbEngine
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.adapters.store.clickhouse.address import ClickHouseAddress
from headrace.adapters.store.clickhouse.writer import ClickHouseWriter
from headrace.adapters.store_migration.migration_state import HeldLoads
from headrace.base.clock import SystemClock
from headrace.base.settings import Settings
from headrace.base.telemetry import Metrics, get_logger
from headrace.ingest.load.loader import Loader
from headrace.ports.dedup_claims import Claims
from headrace.ports.store import StoreWriter
from headrace.wiring.data import ENGINE_SOCKET, places_of
from headrace.wiring.shared import open_claims
from headrace.wiring.store import select_bounds_of
from headrace.wiring.store_address import clickhouse_of

_COLLECT_SELDOM = (50_000, 20, 100)
"""Loading makes many small objects and no cycles; looking for cycles was a third of its time."""


async def run_engine(settings: Settings, *, runtime: Path, stop: asyncio.Event) -> None:
    """Run the engine until `stop`. Raises `OperatorError` when it cannot begin."""
    clock, metrics = SystemClock(), Metrics()
    places = places_of(settings)
    metrics.count("headrace_process_starts_total", 1, "engine")
    with ExitStack() as opened:
        ledger = SqliteLedger.open(places.ledger)
        opened.callback(ledger.close)
        reader = SegmentReader(places.log, damaged=places.damaged, clock=clock, metrics=metrics)
        opened.callback(reader.close)
        reader.note_loaded(ledger.positions())
        parts = _Parts(settings, places, ledger, reader, runtime / ENGINE_SOCKET, metrics)
        claims = open_claims(settings, opened, places=places, ledger=ledger)
        address = clickhouse_of(settings)
        if address is None:
            process: EngineProcess | LoadingProcess = _engine_process(parts, claims)
        else:
            process = _loading_process(parts, claims, address)
        gc.freeze()  # what was made until here lives as long as the process
        gc.set_threshold(*_COLLECT_SELDOM)
        await process.run(stop)


class _Parts(NamedTuple):
    """What both kinds of the process are made of."""

    settings: Settings
    places: DataPlaces
    ledger: SqliteLedger
    reader: SegmentReader
    socket: Path
    metrics: Metrics

    def loader(self, store: StoreWriter, claims: Claims | None) -> Loader:
        """Return what loads into a store."""
        return Loader(
            log=self.reader,
            store=store,
            ledger=self.ledger,
            quarantine=FileQuarantine(self.places.quarantine),
            metrics=self.metrics,
            clock=SystemClock(),
            claims=claims,
        )

    def limiter(self) -> WindowLimiter:
        """Return what counts the queries of this machine."""
        return WindowLimiter(self.settings.query_rate_limit, clock=SystemClock())

    def snapshots(self, engine: ChdbEngine | None) -> Snapshots:
        """Return what takes snapshots of the data directory, and of the store within it."""
        return Snapshots(
            self.places,
            engine=engine,
            ledger=self.ledger,
            log_reader=self.reader,
            has_unstored=engine is not None,
        )


def _engine_process(parts: _Parts, claims: Claims | None) -> EngineProcess:
    engine = ChdbEngine(parts.places.store, log=get_logger())
    versions = DataVersions()
    writer = ChdbWriter(engine, changes=versions)
    return EngineProcess(
        engine=engine,
        writer=writer,
        loader=parts.loader(writer, claims),
        versions=versions,
        log_reader=parts.reader,
        limiter=parts.limiter(),
        snapshots=parts.snapshots(engine),
        socket=parts.socket,
        select_bounds=select_bounds_of(parts.settings),
        load_interval_s=parts.settings.load_interval_s,
        metrics=parts.metrics,
        log=get_logger(),
    )


def _loading_process(
    parts: _Parts, claims: Claims | None, address: ClickHouseAddress
) -> LoadingProcess:
    writer = ClickHouseWriter(address.beginning_at(secrets.randbits(16)))
    return LoadingProcess(
        writer=writer,
        loader=HeldLoads(parts.loader(writer, claims), parts.places.root),
        log_reader=parts.reader,
        limiter=parts.limiter(),
        snapshots=parts.snapshots(None),
        socket=parts.socket,
        select_bounds=select_bounds_of(parts.settings),
        load_interval_s=parts.settings.load_interval_s,
        metrics=parts.metrics,
        log=get_logger(),
    )
