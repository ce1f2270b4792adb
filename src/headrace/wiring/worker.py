"""What a server worker is made of."""

import asyncio
import gc
import socket
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from headrace.adapters.directory.tenancy_source import FollowingTenancySource
from headrace.adapters.engine.ipc.client import EngineBarrier, EngineConnections
from headrace.adapters.enrichment.geo import open_geo
from headrace.adapters.enrichment.user_agents import UaParserUserAgents
from headrace.adapters.event_log.ack_after_store_log import StoredLog
from headrace.adapters.event_log.backpressure_log import GuardedLog, LevelLimits, read_levels
from headrace.adapters.event_log.segment_log import SegmentLog
from headrace.base.clock import Clock, SystemClock
from headrace.base.settings import Settings
from headrace.base.telemetry import Logger, Metrics, get_logger
from headrace.http.app import create_app
from headrace.http.server.server import serve
from headrace.ingest.receive.enrich import Enricher
from headrace.ingest.receive.service import Acceptor
from headrace.ingest.receive.visitor_salts import VisitorSalts
from headrace.ports.directory import Directory
from headrace.ports.event_log import EventLog
from headrace.ports.store import QueryGuards
from headrace.query.service import QueryService
from headrace.wiring.data import ENGINE_SOCKET, places_of
from headrace.wiring.shared import open_directory_of, open_worker_shares, shares_directory
from headrace.wiring.store import open_worker_store


async def run_worker(
    settings: Settings,
    *,
    index: int,
    listening_socket: socket.socket,
    runtime: Path,
    stop: asyncio.Event,
) -> None:
    """Serve until `stop`, then answer what was accepted. Raises `OperatorError` at the start."""
    clock, log, metrics = SystemClock(), get_logger(), Metrics()
    metrics.count("headrace_process_starts_total", 1, "worker")
    name = f"worker-{index}"
    async with AsyncExitStack() as opened:
        directory = await asyncio.to_thread(open_directory_of, settings, clock)
        opened.callback(directory.close)
        tenancy = await _follow(directory, settings, opened, clock=clock, log=log)
        engine = EngineConnections(runtime / ENGINE_SOCKET)
        opened.push_async_callback(engine.close)
        salts = VisitorSalts(directory.visitor_salt)
        shares = await open_worker_shares(
            settings, opened, worker=name, engine=engine, salts=salts, clock=clock
        )
        guarded_log = await _open_log(settings, opened, worker=name, clock=clock, metrics=metrics)
        acknowledging_log = _open_acknowledging_log(settings, opened, guarded_log, engine)
        geo = open_geo(settings.geo_database)
        opened.callback(geo.close)

        acceptor = Acceptor(
            clock=clock,
            tenancy=tenancy,
            log=acknowledging_log,
            repeats=shares.repeats,
            enricher=Enricher(
                geo=geo,
                user_agents=UaParserUserAgents(),
                salts=salts,
            ),
            metrics=metrics,
            max_items=settings.max_items,
        )
        asked = open_worker_store(settings, opened, engine=engine, metrics=metrics)
        app = create_app(
            acceptor=acceptor,
            direct=acceptor,
            query_service=QueryService(
                store=asked.store,
                dialect=asked.dialect,
                guards=QueryGuards(
                    timeout_s=settings.query_timeout_s,
                    max_memory_bytes=settings.query_max_memory_bytes,
                ),
                metrics=metrics,
                clock=clock,
            ),
            tenancy=tenancy,
            limiter=shares.limiter,
            store=asked.store,
            readiness={
                "log": guarded_log.log_works,
                "disk": guarded_log.disk_has_room,
                "backlog": guarded_log.store_keeps_up,
                **({"directory": tenancy.is_usable} if shares_directory(settings) else {}),
                **shares.readiness,
            },
            settings=settings,
            clock=clock,
            metrics=metrics,
            log=log,
        )
        gc.freeze()  # what was made until here lives as long as the process
        log.info("worker_ready")
        await serve(
            app, listening_socket=listening_socket, settings=settings, stop=stop, lane=app.lane
        )


async def _follow(
    directory: Directory, settings: Settings, opened: AsyncExitStack, *, clock: Clock, log: Logger
) -> FollowingTenancySource:
    """Follow the changes of websites and keys from now on."""
    tenancy = FollowingTenancySource(
        directory, clock=clock, log=log, stale_s=settings.directory_stale_s
    )
    await tenancy.start()
    opened.push_async_callback(tenancy.close)
    return tenancy


async def _open_log(
    settings: Settings, opened: AsyncExitStack, *, worker: str, clock: Clock, metrics: Metrics
) -> GuardedLog:
    """Open the worker's log, which refuses while the disk is full or the store too far behind."""
    places = places_of(settings)
    event_log = await asyncio.to_thread(
        SegmentLog.open,
        places.log,
        worker,
        metrics=metrics,
        clock=clock,
        segment_bytes=settings.segment_bytes,
    )
    guarded_log = GuardedLog(
        event_log,
        read=partial(read_levels, places.root, places.log),
        limits=LevelLimits(settings.min_free_bytes, settings.max_backlog_bytes),
        metrics=metrics,
    )
    opened.push_async_callback(guarded_log.close)
    await guarded_log.start()
    return guarded_log


def _open_acknowledging_log(
    settings: Settings, opened: AsyncExitStack, log: GuardedLog, engine: EngineConnections
) -> EventLog:
    """Return the log whose appends are acknowledgements: this machine's disk, or the store too."""
    if settings.ack == "log":
        return log
    barrier = EngineBarrier(engine, timeout_s=settings.ack_timeout_s)
    stored = StoredLog(
        log,
        barrier=barrier.wait,
        is_store_ready=barrier.is_current,
        timeout_s=settings.ack_timeout_s,
    )
    opened.push_async_callback(stored.close)
    return stored
