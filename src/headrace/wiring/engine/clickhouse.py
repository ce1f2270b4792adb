"""The engine process over ClickHouse servers."""

import secrets
from functools import partial

from headrace.adapters.engine.clickhouse_store import (
    CLICKHOUSE_MAX_BACKOFF_S,
    ClickHouseLifecycle,
    DrainedSnapshots,
    PreparingLoader,
)
from headrace.adapters.engine.error_fingerprints import LIVE_TIMEOUT_S
from headrace.adapters.engine.process import EngineProcess
from headrace.adapters.store.clickhouse.address import ClickHouseAddress
from headrace.adapters.store.clickhouse.row_deletion import ClickHouseRowDeleter
from headrace.adapters.store.clickhouse.row_finder import ClickHouseRowFinder
from headrace.adapters.store.clickhouse.writer import ClickHouseWriter
from headrace.adapters.store_migration.migration_state import GatedLoader
from headrace.base.logs import get_logger
from headrace.ports.dedup_claims import DedupClaims
from headrace.ports.rows.erasure import KeptPartLifetimes
from headrace.wiring.engine.dependencies import EngineDependencies


def clickhouse_engine_process(
    dependencies: EngineDependencies, claims: DedupClaims | None, address: ClickHouseAddress
) -> EngineProcess:
    """Return the engine process that loads into ClickHouse servers."""
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
    return dependencies.process(
        store=ClickHouseLifecycle(writer, log=get_logger()),
        query_service=None,
        load_loop=load_loop,
        live=live,
        snapshots=snapshots,
        snapshot_taker=DrainedSnapshots(snapshots, load_loop),
        new_finder=partial(ClickHouseRowFinder, address),
        new_deleter=partial(ClickHouseRowDeleter, address),
        lifetimes=KeptPartLifetimes(),
        versions=None,
    )
