"""How a worker asks the store that the settings name."""

import secrets
from contextlib import AsyncExitStack

from msgspec import Struct

from headrace.adapters.engine.ipc.client import EngineBarrier, EngineConnections, EngineStore
from headrace.adapters.enrichment.geo import open_geo
from headrace.adapters.query_scheduler.coalescing_executor import NoVersions, SharedSelects
from headrace.adapters.query_scheduler.fair_semaphore import FairPlaces, PlaceBounds, SelectBounds
from headrace.base.settings import Settings
from headrace.base.telemetry import Metrics, get_logger
from headrace.ports.store import EMBEDDED, Dialect, Store
from headrace.wiring.store_address import check_store_settings, clickhouse_of, reading_clickhouse_of


class WorkerStore(Struct, frozen=True):
    """What a worker asks, and what that makes of statements."""

    store: Store
    dialect: Dialect


def open_worker_store(
    settings: Settings, opened: AsyncExitStack, *, engine: EngineConnections, metrics: Metrics
) -> WorkerStore:
    """Open what the settings name; `opened` closes it. Raises `OperatorError`."""
    address = clickhouse_of(settings)
    if address is None:
        return WorkerStore(EngineStore(engine), EMBEDDED)
    # Where it is not used it is not loaded: the library takes 0.2 s.
    from headrace.adapters.store.clickhouse.reader import ClickHouseReader  # noqa: PLC0415
    from headrace.adapters.store.clickhouse.store import SERVERS, ClickHouseStore  # noqa: PLC0415

    bounds = select_bounds_of(settings)
    barrier = EngineBarrier(engine, timeout_s=bounds.wait_timeout_s)
    store = ClickHouseStore(
        ClickHouseReader(
            (reading_clickhouse_of(settings) or address).beginning_at(secrets.randbits(16)),
            connections=bounds.places.places + 1,  # one that kills
            log=get_logger(),
        ),
        shared=SharedSelects(
            places=FairPlaces(bounds.places, metrics=metrics),
            load_barrier=barrier.wait,
            versions=NoVersions(),
            cache=None,
            wait_timeout_s=bounds.wait_timeout_s,
            metrics=metrics,
        ),
        is_loaded=barrier.is_current,
        log=get_logger(),
    )
    opened.push_async_callback(store.close)
    return WorkerStore(store, SERVERS)


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


def check_files(settings: Settings) -> None:
    """Look at what the settings name. Raises `OperatorError`."""
    open_geo(settings.geo_database).close()
    check_store_settings(settings)
