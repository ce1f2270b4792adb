"""The ingestion of a worker: its event log, and what accepts events."""

import asyncio
from contextlib import AsyncExitStack
from functools import partial

from headrace.adapters.background.process import PooledProcess
from headrace.adapters.engine.ipc.barrier_client import EngineBarrier
from headrace.adapters.enrichment.geo import open_geo_database
from headrace.adapters.enrichment.user_agents import UapUserAgentParser
from headrace.adapters.event_log.ack_after_store_log import AckAfterStoreLog
from headrace.adapters.event_log.backpressure_log import (
    BackpressureLog,
    Thresholds,
    read_disk_usage,
)
from headrace.adapters.event_log.segment_log import SegmentLog
from headrace.base.json_size import JsonLimits
from headrace.http.routes.operations import ReadinessChecks
from headrace.ingest.receive.decoding.decode_request import BodyLimits
from headrace.ingest.receive.enrich import Enricher
from headrace.ingest.receive.service import IngestService
from headrace.ports.event_log import EventLog
from headrace.wiring.data import data_dir_paths
from headrace.wiring.worker.parts import WorkerParts


async def open_log(parts: WorkerParts, stack: AsyncExitStack) -> tuple[EventLog, ReadinessChecks]:
    """Open the log that acknowledges records as the settings say, and its checks of readiness."""
    log = await _open_backpressure_log(parts, stack)
    checks: ReadinessChecks = {
        "log": log.is_log_ready,
        "disk": log.has_free_disk_space,
        "backlog": log.is_backlog_within_limit,
    }
    if parts.settings.ack_mode != "stored":
        return log, checks
    stored = _open_ack_after_store_log(parts, stack, log)
    return stored, {**checks, "acknowledgements": stored.is_acknowledging}


def make_ingest_service(
    parts: WorkerParts, event_log: EventLog, stack: AsyncExitStack
) -> IngestService:
    """Return what accepts events and appends them to a log; `stack` closes what it opens."""
    settings = parts.settings
    geo = open_geo_database(settings.geo_database)
    stack.callback(geo.close)
    background = PooledProcess()
    stack.callback(background.close)
    return IngestService(
        clock=parts.clock,
        tenancy=parts.tenancy,
        log=event_log,
        idempotency_store=parts.shared_state.idempotency_store,
        enricher=Enricher(geo=geo, user_agents=UapUserAgentParser(), salts=parts.salts),
        metrics=parts.metrics,
        limits=BodyLimits(
            settings.max_items,
            JsonLimits(settings.max_body_objects, settings.max_body_keys),
            settings.max_decoded_bytes,
        ),
        background=background,
        retention=parts.retention,
    )


async def _open_backpressure_log(parts: WorkerParts, stack: AsyncExitStack) -> BackpressureLog:
    """Open the worker's log, which rejects appends when the disk or the backlog is full."""
    settings = parts.settings
    paths = data_dir_paths(settings)
    event_log = await asyncio.to_thread(
        SegmentLog.open,
        paths.log,
        parts.name,
        metrics=parts.metrics,
        clock=parts.clock,
        segment_bytes=settings.log_segment_bytes,
    )
    backpressure_log = BackpressureLog(
        event_log,
        read=partial(read_disk_usage, paths.root, paths.log),
        limits=Thresholds(settings.min_free_bytes, settings.max_backlog_bytes),
        metrics=parts.metrics,
    )
    stack.push_async_callback(backpressure_log.close)
    await backpressure_log.start()
    return backpressure_log


def _open_ack_after_store_log(
    parts: WorkerParts, stack: AsyncExitStack, log: BackpressureLog
) -> AckAfterStoreLog:
    """Return the log that acknowledges a record when it is in the store."""
    timeout_s = parts.settings.ack_timeout_s
    barrier = EngineBarrier(parts.engine, timeout_s=timeout_s, all_logs=True)
    stored = AckAfterStoreLog(
        log,
        barrier=barrier.wait,
        is_store_ready=barrier.is_caught_up,
        timeout_s=timeout_s,
    )
    stack.push_async_callback(stored.close)
    return stored
