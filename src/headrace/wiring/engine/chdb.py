"""The engine process over the embedded store."""

import secrets
from functools import partial

from headrace.adapters.backup.snapshots import LiveSnapshots
from headrace.adapters.engine.chdb_store import ChdbLifecycle, ChdbQueryService
from headrace.adapters.engine.kept_versions import KeptVersions
from headrace.adapters.engine.load_loop import MAX_BACKOFF_S
from headrace.adapters.engine.process import EngineProcess
from headrace.adapters.engine.requeued_items import read_requeued_items
from headrace.adapters.engine.store_recovery import StoreRecovery
from headrace.adapters.query_scheduler.versions import DataVersions
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.chdb.part_lifetimes import ChdbPartLifetimes
from headrace.adapters.store.chdb.row_deletion import ChdbRowDeleter
from headrace.adapters.store.chdb.row_finder import ChdbRowFinder
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.base.logs import get_logger
from headrace.ports.dedup_claims import DedupClaims
from headrace.wiring.engine.dependencies import NONCE_BYTES, EngineDependencies
from headrace.wiring.store import select_bounds_of


def chdb_engine_process(
    dependencies: EngineDependencies, claims: DedupClaims | None
) -> EngineProcess:
    """Return the engine process over the store of the data directory."""
    chdb = ChdbInstance(dependencies.paths.store, log=get_logger())
    recovery = StoreRecovery(
        chdb,
        ledger=dependencies.ledger,
        logs=dependencies.reader,
        read_requeued_items=partial(read_requeued_items, dependencies.reader),
        can_reload=claims is None,
        log=get_logger(),
    )
    versions = DataVersions(nonce=secrets.token_hex(NONCE_BYTES))
    writer = ChdbWriter(chdb, change_listener=versions)
    load_loop, live = dependencies.live_loading(
        dependencies.loader(writer, claims), MAX_BACKOFF_S, ChdbRowFinder(chdb)
    )
    snapshots = dependencies.snapshots(chdb)
    return dependencies.process(
        store=ChdbLifecycle(chdb, writer, recovery),
        query_service=ChdbQueryService(
            chdb,
            writer=writer,
            recovery=recovery,
            run_exclusive=load_loop.run_exclusive,
            versions=versions,
            kept_versions=KeptVersions(
                dependencies.paths.row_versions,
                chdb=chdb,
                ranges=versions.ranges,
                log=get_logger(),
            ),
            limits=select_bounds_of(dependencies.settings),
            log=get_logger(),
        ),
        load_loop=load_loop,
        live=live,
        snapshots=snapshots,
        snapshot_taker=LiveSnapshots(snapshots, load_loop),
        new_finder=partial(ChdbRowFinder, chdb),
        new_deleter=partial(ChdbRowDeleter, chdb),
        lifetimes=ChdbPartLifetimes(chdb, may_shorten=dependencies.is_alone),
        versions=versions,
    )
