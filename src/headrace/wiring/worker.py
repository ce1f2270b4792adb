"""Builds and runs a worker: the process that serves HTTP."""

import asyncio
import gc
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from headrace.adapters.background.process import PooledProcess
from headrace.adapters.data_dir.runtime_directory import ENGINE_SOCKET, WATCHED_WEBSITES
from headrace.adapters.directory.directory_cutoffs import DirectoryCutoffs
from headrace.adapters.directory.tenancy_source import PollingTenancySource
from headrace.adapters.engine.ipc.client import (
    EngineBarrier,
    EngineConnections,
    EngineErasureClient,
    EngineStorageClient,
)
from headrace.adapters.engine.ipc.live_client import EngineLiveSource
from headrace.adapters.engine.watched_websites import WatchedWebsites
from headrace.adapters.enrichment.geo import open_geo_database
from headrace.adapters.enrichment.user_agents import UapUserAgentParser
from headrace.adapters.erasures.file_erasures import FileErasures
from headrace.adapters.event_log.ack_after_store_log import AckAfterStoreLog
from headrace.adapters.event_log.backpressure_log import (
    BackpressureLog,
    Thresholds,
    read_disk_usage,
)
from headrace.adapters.event_log.segment_log import SegmentLog
from headrace.adapters.quarantine.requeuer import QuarantineRequeuer
from headrace.base.clock import Clock, SystemClock
from headrace.base.json_size import JsonLimits
from headrace.base.settings import Settings
from headrace.base.telemetry import Logger, Metrics, get_logger
from headrace.http import endpoints
from headrace.http.app import ErasureUseCases, create_app
from headrace.http.routes.administration.objects import administration_use_cases
from headrace.http.routes.operations import ReadinessChecks
from headrace.http.server.server import serve
from headrace.ingest.load.requeue import to_log_record
from headrace.ingest.receive.decoding.decode_request import BodyLimits
from headrace.ingest.receive.enrich import Enricher
from headrace.ingest.receive.refusals import RefusalReporter
from headrace.ingest.receive.service import IngestService
from headrace.ingest.receive.visitor_salts import DailySalts, expire_salts
from headrace.model.audit import AuditedChange
from headrace.model.data_retention import RetentionPolicy
from headrace.ports.audit import RecordChanges
from headrace.ports.directory import Directory
from headrace.ports.event_log import EventLog
from headrace.ports.store import QueryLimits
from headrace.query.execution import QueryExecution
from headrace.query.export.service import ExportService
from headrace.query.funnel.service import FunnelService
from headrace.query.live.service import LiveService
from headrace.query.retention.service import RetentionService
from headrace.query.saved.service import SavedQueryService
from headrace.query.schema.service import SchemaService
from headrace.query.service import QueryService
from headrace.query.standard.service import StandardService
from headrace.query.values.service import ValuesService
from headrace.wiring.data import data_dir_paths
from headrace.wiring.shared import (
    has_external_directory,
    open_configured_directory,
    open_shared_state,
)
from headrace.wiring.store import open_export_store, open_worker_store
from headrace.wiring.subject_access import subject_access_of


async def run_worker(
    settings: Settings,
    *,
    index: int,
    listening_socket: socket.socket,
    runtime: Path,
    stop: asyncio.Event,
) -> None:
    """Serve until `stop` and finish accepted requests. Raises `OperatorError` during startup."""
    clock, log, metrics = SystemClock(), get_logger(), Metrics()
    metrics.count("headrace_process_starts_total", 1, "worker")
    name = f"worker-{index}"
    async with AsyncExitStack() as stack:
        directory = await asyncio.to_thread(open_configured_directory, settings, clock)
        stack.callback(directory.close)
        tenancy = await _start_tenancy_source(directory, settings, stack, clock=clock, log=log)
        engine = EngineConnections(runtime / ENGINE_SOCKET)
        stack.push_async_callback(engine.close)
        salts = DailySalts(directory.visitor_salt)
        expiring = asyncio.create_task(expire_salts(salts, directory.forget_visitor_salts, clock))
        stack.callback(expiring.cancel)
        shared_state = await open_shared_state(
            settings, stack, worker=name, engine=engine, salts=salts, clock=clock
        )
        backpressure_log = await _open_log(
            settings, stack, worker=name, clock=clock, metrics=metrics
        )
        log_checks: ReadinessChecks = {
            "log": backpressure_log.is_log_ready,
            "disk": backpressure_log.has_free_disk_space,
            "backlog": backpressure_log.is_backlog_within_limit,
        }
        acknowledging_log: EventLog = backpressure_log
        if settings.ack_mode == "stored":
            acknowledging_log = _open_ack_after_store_log(settings, stack, backpressure_log, engine)
            log_checks = {**log_checks, "acknowledgements": acknowledging_log.is_acknowledging}
        geo = open_geo_database(settings.geo_database)
        stack.callback(geo.close)

        retention = RetentionPolicy(settings.retain_days)
        background = PooledProcess()
        stack.callback(background.close)
        ingest_service = IngestService(
            clock=clock,
            tenancy=tenancy,
            log=acknowledging_log,
            idempotency_store=shared_state.idempotency_store,
            enricher=Enricher(
                geo=geo,
                user_agents=UapUserAgentParser(),
                salts=salts,
            ),
            metrics=metrics,
            limits=BodyLimits(
                settings.max_items,
                JsonLimits(settings.max_body_objects, settings.max_body_keys),
                settings.max_decoded_bytes,
            ),
            background=background,
            retention=retention,
        )
        worker_store = open_worker_store(settings, stack, engine=engine, metrics=metrics)
        cutoffs = DirectoryCutoffs(tenancy, policy=retention, clock=clock)
        execution = QueryExecution(
            store=worker_store.store,
            dialect=worker_store.dialect,
            limits=QueryLimits(
                timeout_s=settings.query_timeout_s,
                max_memory_bytes=settings.query_max_memory_bytes,
            ),
            metrics=metrics,
            clock=clock,
            cutoffs=cutoffs,
            is_cluster=has_external_directory(settings),
        )
        query_service = QueryService(execution)

        def record_changes(by: str, changes: Sequence[AuditedChange]) -> None:
            directory.acting_as(by).audit_log.record(changes)

        live_source = EngineLiveSource(engine)
        live = LiveService(live_source, clock=clock)
        stack.callback(asyncio.create_task(_close_live(live, stop)).cancel)
        export_store = open_export_store(settings, stack, engine=engine)
        app = create_app(
            acceptor=ingest_service,
            nowait_acceptor=ingest_service,
            refusals=RefusalReporter(
                live_source,
                tenancy=tenancy,
                is_watched=WatchedWebsites(runtime / WATCHED_WEBSITES).has,
                clock=clock,
            ),
            query_runners={
                endpoints.QUERY: query_service,
                endpoints.FUNNEL: FunnelService(execution),
                endpoints.RETENTION: RetentionService(execution),
                endpoints.VALUES: ValuesService(execution),
            },
            standard_runner=StandardService(execution),
            saved_queries=SavedQueryService(
                directory.saved_queries,
                queries=query_service,
                versions=worker_store.versions,
                metrics=metrics,
            ),
            schema_describer=SchemaService(execution),
            live=live,
            exporter=ExportService(
                export_store,
                max_memory_bytes=settings.query_max_memory_bytes,
                cutoffs=cutoffs,
            ),
            erasures=ErasureUseCases(
                EngineErasureClient(engine),
                FileErasures(data_dir_paths(settings).erasures),
                subject_access_of(settings, export_store),
            ),
            storage_describer=EngineStorageClient(engine),
            tenancy=tenancy,
            administration=administration_use_cases(
                directory, _open_quarantine(settings, clock, record_changes)
            ),
            record_changes=record_changes,
            is_loading=EngineBarrier(
                engine, timeout_s=settings.ack_timeout_s, all_logs=False
            ).is_caught_up,
            sessions=directory.sessions,
            limiters=shared_state.limiters,
            store=worker_store.store,
            readiness={
                **log_checks,
                **({"directory": tenancy.is_usable} if has_external_directory(settings) else {}),
                **shared_state.readiness,
            },
            settings=settings,
            clock=clock,
            metrics=metrics,
            log=log,
        )
        gc.freeze()  # these objects live as long as the process
        log.info("worker_ready")
        await serve(
            app,
            listening_socket=listening_socket,
            settings=settings,
            stop=stop,
            fast_path=app.fast_path,
        )


async def _close_live(live: LiveService, stop: asyncio.Event) -> None:
    """End the live streams when the service stops: they do not end by themselves."""
    await stop.wait()
    live.close()


async def _start_tenancy_source(
    directory: Directory, settings: Settings, stack: AsyncExitStack, *, clock: Clock, log: Logger
) -> PollingTenancySource:
    """Start to poll the directory for changed websites and keys."""
    tenancy = PollingTenancySource(
        directory, clock=clock, log=log, max_staleness_s=settings.directory_max_staleness_s
    )
    await tenancy.start()
    stack.push_async_callback(tenancy.close)
    return tenancy


def _open_quarantine(
    settings: Settings, clock: Clock, record_changes: RecordChanges
) -> QuarantineRequeuer:
    """Return the quarantine of this machine; its log's lock excludes a second requeuer."""
    paths = data_dir_paths(settings)
    return QuarantineRequeuer(
        paths.quarantine,
        log_root=paths.log,
        to_log_record=to_log_record,
        record_changes=record_changes,
        clock=clock,
    )


async def _open_log(
    settings: Settings, stack: AsyncExitStack, *, worker: str, clock: Clock, metrics: Metrics
) -> BackpressureLog:
    """Open the worker's log, which rejects appends when the disk or the backlog is full."""
    paths = data_dir_paths(settings)
    event_log = await asyncio.to_thread(
        SegmentLog.open,
        paths.log,
        worker,
        metrics=metrics,
        clock=clock,
        segment_bytes=settings.log_segment_bytes,
    )
    backpressure_log = BackpressureLog(
        event_log,
        read=partial(read_disk_usage, paths.root, paths.log),
        limits=Thresholds(settings.min_free_bytes, settings.max_backlog_bytes),
        metrics=metrics,
    )
    stack.push_async_callback(backpressure_log.close)
    await backpressure_log.start()
    return backpressure_log


def _open_ack_after_store_log(
    settings: Settings, stack: AsyncExitStack, log: BackpressureLog, engine: EngineConnections
) -> AckAfterStoreLog:
    """Return the log that acknowledges a record when it is in the store."""
    barrier = EngineBarrier(engine, timeout_s=settings.ack_timeout_s, all_logs=True)
    stored = AckAfterStoreLog(
        log,
        barrier=barrier.wait,
        is_store_ready=barrier.is_caught_up,
        timeout_s=settings.ack_timeout_s,
    )
    stack.push_async_callback(stored.close)
    return stored
