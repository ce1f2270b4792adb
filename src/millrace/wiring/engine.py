"""What the engine process is made of."""

import asyncio
import gc
from contextlib import ExitStack
from pathlib import Path

from millrace.adapters.chdb_store import ChdbEngine
from millrace.adapters.chdb_writer import ChdbWriter
from millrace.adapters.data_versions import DataVersions
from millrace.adapters.engine_process import EngineProcess, SelectBounds
from millrace.adapters.fair_places import PlaceBounds
from millrace.adapters.file_quarantine import FileQuarantine
from millrace.adapters.memory_limiter import WindowLimiter
from millrace.adapters.segment_reader import SegmentReader
from millrace.adapters.snapshots import Snapshots
from millrace.adapters.sqlite_ledger import SqliteLedger
from millrace.base.clock import SystemClock
from millrace.base.settings import Settings
from millrace.base.telemetry import Metrics, get_logger
from millrace.ingest.load import Loader
from millrace.wiring.places import ENGINE_SOCKET, places_of
from millrace.wiring.shared import open_claims

_COLLECT_SELDOM = (50_000, 20, 100)
"""Loading makes many small objects and no cycles; looking for cycles was a third of its time."""


async def run_engine(settings: Settings, *, runtime: Path, stop: asyncio.Event) -> None:
    """Run the engine until `stop`. Raises `OperatorError` when it cannot begin."""
    clock, log, metrics = SystemClock(), get_logger(), Metrics()
    places = places_of(settings)
    metrics.count("millrace_process_starts_total", 1, "engine")
    with ExitStack() as opened:
        ledger = SqliteLedger.open(places.ledger)
        opened.callback(ledger.close)
        reader = SegmentReader(places.log, damaged=places.damaged, clock=clock, metrics=metrics)
        opened.callback(reader.close)
        reader.note_loaded(ledger.positions())
        engine = ChdbEngine(places.store, log=log)
        versions = DataVersions()
        writer = ChdbWriter(engine, changes=versions)
        loader = Loader(
            log=reader,
            store=writer,
            ledger=ledger,
            quarantine=FileQuarantine(places.quarantine),
            metrics=metrics,
            clock=clock,
            claims=open_claims(settings, opened, places=places, ledger=ledger),
        )
        process = EngineProcess(
            engine=engine,
            writer=writer,
            loader=loader,
            versions=versions,
            log_reader=reader,
            limiter=WindowLimiter(settings.query_rate_limit, clock=clock),
            snapshots=Snapshots(places, engine=engine, ledger=ledger, log_reader=reader),
            socket=runtime / ENGINE_SOCKET,
            select_bounds=select_bounds_of(settings),
            load_interval_s=settings.load_interval_s,
            metrics=metrics,
            log=log,
        )
        gc.freeze()  # what was made until here lives as long as the process
        gc.set_threshold(*_COLLECT_SELDOM)
        await process.run(stop)


def select_bounds_of(settings: Settings) -> SelectBounds:
    """Return what selects may take together."""
    return SelectBounds(
        places=PlaceBounds(
            places=settings.query_threads,
            max_waiting=settings.query_queue,
            max_waiting_of_website=settings.query_queue_of_website,
        ),
        wait_timeout_s=settings.query_wait_s,
        cache_bytes=settings.query_cache_bytes,
    )
