"""The use cases behind the endpoints of a worker."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

from headrace.adapters.background.process import PooledProcess
from headrace.adapters.data_dir.runtime_directory import WATCHED_WEBSITES
from headrace.adapters.directory.directory_cutoffs import DirectoryCutoffs
from headrace.adapters.engine.ipc.barrier_client import EngineBarrier
from headrace.adapters.engine.ipc.live_client import EngineLiveSource
from headrace.adapters.engine.ipc.rows_client import EngineErasureClient, EngineStorageClient
from headrace.adapters.engine.watched_websites import WatchedWebsites
from headrace.adapters.erasures.file_erasures import FileErasures
from headrace.adapters.quarantine.requeuer import QuarantineRequeuer
from headrace.base.clock import Clock
from headrace.base.settings import Settings
from headrace.http import endpoints
from headrace.http.handlers import ErasureUseCases, UseCases
from headrace.http.routes.administration.objects import administration_use_cases
from headrace.http.routes.operations import ReadinessChecks
from headrace.ingest.load.requeue import to_log_record
from headrace.ingest.receive.refusals import RefusalReporter
from headrace.ingest.receive.service import IngestService
from headrace.model.audit import AuditedChange
from headrace.ports.audit import RecordChanges
from headrace.ports.store import QueryLimits
from headrace.query.execution import QueryExecution
from headrace.query.export.service import ExportService
from headrace.query.funnel.service import FunnelService
from headrace.query.live.service import LiveService
from headrace.query.retention.service import RetentionService
from headrace.query.saved.service import SavedQueryService
from headrace.query.schema.service import SchemaService
from headrace.query.service import QueryService
from headrace.query.sql_service import SqlService
from headrace.query.standard.service import StandardService
from headrace.query.values.service import ValuesService
from headrace.wiring.data import data_dir_paths
from headrace.wiring.directory_file import has_external_directory
from headrace.wiring.sql_text import write_sql
from headrace.wiring.store import WorkerStore, open_export_store, open_worker_store
from headrace.wiring.subject_access import subject_access_of
from headrace.wiring.worker.parts import WorkerParts


def make_use_cases(
    parts: WorkerParts,
    ingest_service: IngestService,
    log_checks: ReadinessChecks,
    *,
    stack: AsyncExitStack,
    stop: asyncio.Event,
) -> UseCases:
    """Return the use cases; `stack` closes what they open, and live streams end at `stop`."""
    settings, engine, directory = parts.settings, parts.engine, parts.directory
    worker_store = open_worker_store(settings, stack, engine=engine, metrics=parts.metrics)
    export_store = open_export_store(settings, stack, engine=engine)
    cutoffs = DirectoryCutoffs(parts.tenancy, policy=parts.retention, clock=parts.clock)
    execution = _query_execution(parts, worker_store, cutoffs, stack)
    query_service = QueryService(execution)
    live_source = EngineLiveSource(engine)
    live = LiveService(live_source, clock=parts.clock)
    stack.callback(asyncio.create_task(_close_live(live, stop)).cancel)
    barrier = EngineBarrier(engine, timeout_s=settings.ack_timeout_s, all_logs=False)
    record_changes = _change_recorder(parts)
    return UseCases(
        acceptor=ingest_service,
        refusals=RefusalReporter(
            live_source,
            tenancy=parts.tenancy,
            is_watched=WatchedWebsites(parts.runtime / WATCHED_WEBSITES).has,
            clock=parts.clock,
        ),
        query_runners={
            endpoints.QUERY: query_service,
            endpoints.FUNNEL: FunnelService(execution),
            endpoints.RETENTION: RetentionService(execution),
            endpoints.VALUES: ValuesService(execution),
        },
        standard_runner=StandardService(execution),
        sql_writer=SqlService(query_service, write_sql=write_sql),
        saved_queries=SavedQueryService(
            directory.saved_queries,
            queries=query_service,
            versions=worker_store.versions,
            metrics=parts.metrics,
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
        administration=administration_use_cases(
            directory, _open_quarantine(settings, parts.clock, record_changes)
        ),
        record_changes=record_changes,
        is_loading=barrier.is_caught_up,
        readiness={**log_checks, **_server_checks(parts), "engine": worker_store.store.status},
    )


def _change_recorder(parts: WorkerParts) -> RecordChanges:
    """Return what writes lines to the audit log, as made by a caller."""

    def record_changes(by: str, changes: Sequence[AuditedChange]) -> None:
        parts.directory.acting_as(by).audit_log.record(changes)

    return record_changes


def _query_execution(
    parts: WorkerParts, worker_store: WorkerStore, cutoffs: DirectoryCutoffs, stack: AsyncExitStack
) -> QueryExecution:
    settings = parts.settings
    background = PooledProcess()  # not that of bodies, which would wait for patterns
    stack.callback(background.close)
    return QueryExecution(
        store=worker_store.store,
        dialect=worker_store.dialect,
        limits=QueryLimits(
            timeout_s=settings.query_timeout_s,
            max_memory_bytes=settings.query_max_memory_bytes,
        ),
        metrics=parts.metrics,
        clock=parts.clock,
        cutoffs=cutoffs,
        background=background,
        is_cluster=has_external_directory(settings),
    )


def _server_checks(parts: WorkerParts) -> ReadinessChecks:
    """Return the checks of the servers that the worker depends on."""
    if has_external_directory(parts.settings):
        return {"directory": parts.tenancy.is_usable, **parts.shared_state.readiness}
    return parts.shared_state.readiness


async def _close_live(live: LiveService, stop: asyncio.Event) -> None:
    """End the live streams when the service stops: they do not end by themselves."""
    await stop.wait()
    live.close()


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
