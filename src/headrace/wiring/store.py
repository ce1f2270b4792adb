"""Opens the configured store for the queries of a worker."""

import secrets
from contextlib import AsyncExitStack
from typing import Final

from msgspec import Struct

from headrace.adapters.engine.ipc.barrier_client import EngineBarrier
from headrace.adapters.engine.ipc.connections import EngineConnections
from headrace.adapters.engine.ipc.rows_client import EngineRowVersions
from headrace.adapters.engine.ipc.store_client import EngineExportStore, EngineStore
from headrace.adapters.query_scheduler.coalescing_executor import CoalescingExecutor, NoVersions
from headrace.adapters.query_scheduler.fair_semaphore import (
    FairSemaphore,
    SchedulerLimits,
    SlotLimits,
)
from headrace.base.logs import get_logger
from headrace.base.metrics import Metrics
from headrace.base.settings import Settings
from headrace.ports.rows.export import ExportStore
from headrace.ports.rows.versions import RowVersions, UnknownVersions
from headrace.ports.store import Dialect, Store
from headrace.wiring.server_urls import check_shared_urls
from headrace.wiring.store_address import (
    check_store_settings,
    clickhouse_address,
    clickhouse_reader_address,
    store_dialect,
)

_EXPORT_CONNECTIONS: Final = 8
"""Connections of a worker for exports; more exports at a time wait for each other."""


class WorkerStore(Struct, frozen=True):
    """The store of a worker, the SQL dialect that queries are compiled to, and rows' versions."""

    store: Store
    dialect: Dialect
    versions: RowVersions


def open_worker_store(
    settings: Settings, stack: AsyncExitStack, *, engine: EngineConnections, metrics: Metrics
) -> WorkerStore:
    """Open the configured store; `stack` closes it. Raises `OperatorError`."""
    address = clickhouse_address(settings)
    limits = select_bounds_of(settings)
    if address is None:
        versions = EngineRowVersions(engine, timeout_s=limits.wait_timeout_s)
        return WorkerStore(EngineStore(engine), store_dialect(settings), versions)
    # The client takes 0.2 s to import.
    from headrace.adapters.store.clickhouse.reader import ClickHouseReader  # noqa: PLC0415
    from headrace.adapters.store.clickhouse.store import ClickHouseStore  # noqa: PLC0415

    barrier = EngineBarrier(engine, timeout_s=limits.wait_timeout_s, all_logs=False)
    store = ClickHouseStore(
        ClickHouseReader(
            (clickhouse_reader_address(settings) or address).rotated(secrets.randbits(16)),
            connections=limits.slots.slots + 1,  # one to cancel queries with
            log=get_logger(),
        ),
        executor=CoalescingExecutor(
            slots=FairSemaphore(limits.slots, metrics=metrics),
            load_barrier=barrier.wait,
            versions=NoVersions(),
            cache=None,
            wait_timeout_s=limits.wait_timeout_s,
            metrics=metrics,
        ),
        is_loaded=barrier.is_caught_up,
        log=get_logger(),
    )
    stack.push_async_callback(store.close)
    return WorkerStore(store, store_dialect(settings), UnknownVersions())


def open_export_store(
    settings: Settings, stack: AsyncExitStack, *, engine: EngineConnections
) -> ExportStore:
    """Open the configured store for exports; `stack` closes it. Raises `OperatorError`."""
    address = clickhouse_address(settings)
    if address is None:
        return EngineExportStore(engine)
    from headrace.adapters.store.clickhouse.export_store import (  # noqa: PLC0415
        ClickHouseExportStore,
    )
    from headrace.adapters.store.clickhouse.reader import ClickHouseReader  # noqa: PLC0415

    store = ClickHouseExportStore(
        ClickHouseReader(
            (clickhouse_reader_address(settings) or address).rotated(secrets.randbits(16)),
            connections=_EXPORT_CONNECTIONS,
            log=get_logger(),
        ),
        open_export=EngineExportStore(engine).open,
        log=get_logger(),
    )
    stack.push_async_callback(store.close)
    return store


def select_bounds_of(settings: Settings) -> SchedulerLimits:
    """Return the limits on concurrent queries and on the memory of their results."""
    return SchedulerLimits(
        slots=SlotLimits(
            slots=settings.query_concurrency,
            max_queued=settings.query_queue_size,
            max_queued_per_website=settings.query_queue_size_per_website,
        ),
        wait_timeout_s=settings.query_queue_timeout_s,
        cache_bytes=settings.query_cache_bytes,
    )


def check_configured_files(settings: Settings) -> None:
    """Check the files and URLs in the settings before any process starts.

    Raises `OperatorError`.
    """
    from headrace.adapters.enrichment.geo import open_geo_database  # noqa: PLC0415 - not to query

    open_geo_database(settings.geo_database).close()
    check_store_settings(settings)
    check_shared_urls(settings)
