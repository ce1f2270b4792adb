"""Moves all rows between the data directory and ClickHouse, whether the service runs or not."""

import contextlib
from collections.abc import Callable, Generator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

from headrace.adapters.data_dir.lock import (
    SERVE_COMMAND,
    DataDirLocked,
    LockOwner,
    published_runtime,
)
from headrace.adapters.data_dir.paths import STORE, DataDirPaths
from headrace.adapters.data_dir.runtime_directory import ENGINE_SOCKET
from headrace.adapters.engine.ipc.snapshot_client import live_snapshot
from headrace.adapters.erasures.file_erasures import FileErasures
from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.clickhouse.address import ClickHouseAddress, parse_address
from headrace.adapters.store_migration.copy_stores import (
    ChdbCopyStore,
    ClickHouseCopyStore,
    CopyStore,
)
from headrace.adapters.store_migration.copying import CopyProgress, StoreCopier
from headrace.adapters.store_migration.migration_state import (
    MigrationState,
    StoreMigration,
    clickhouse_identity,
)
from headrace.adapters.store_migration.plan import ChunkLimits
from headrace.adapters.store_migration.selects import select_count
from headrace.base.errors import OperatorError
from headrace.base.logs import get_logger
from headrace.base.settings import Settings
from headrace.model.migration import MigrationResult, MigrationTarget
from headrace.model.storage import STORAGE_TABLES
from headrace.wiring.commands.reapplied_erasures import erase_again
from headrace.wiring.data import (
    create_data_dir,
    data_dir_paths,
    locked_for_command,
    migrate_data_dir_if_idle,
    require_data,
)
from headrace.wiring.server_urls import CLICKHOUSE_CLIENT, require_client
from headrace.wiring.store_address import clickhouse_address

_COMMAND = "headrace migrate-store"
_CLICKHOUSE = MigrationTarget.CLICKHOUSE


def migrate_store(
    settings: Settings, *, to: str, progress: CopyProgress, rows_at_once: int
) -> MigrationResult:
    """Copy all rows to ClickHouse or to the data directory. Can be killed and repeated.

    What was erased since its rows were copied is erased in the target, too.
    `to` is "embedded", "clickhouse" for the configured one, or a URL. Raises `OperatorError`; rows
    that were copied before it remain, and the next call continues after them.
    """
    paths, to_clickhouse = data_dir_paths(settings), migration_target(to) is _CLICKHOUSE
    address = _address(settings, to)
    if to_clickhouse:
        require_data(settings)
    else:
        create_data_dir(settings)
    with ExitStack() as stack:
        service = _lock_data_dir(settings, stack)
        state = MigrationState(paths.root)
        stack.enter_context(state.lock())
        open_stores = _open_to_clickhouse if to_clickhouse else _open_to_embedded
        stores = open_stores(_Opening(paths, address, state, service, stack))
        migration = _resume_or_start(
            state, migration_target(to), clickhouse_identity(address), stores.target
        )
        if migration.is_done:
            return MigrationResult(0, (), is_done=True)
        outcome = _run_copy(
            StoreCopier(
                source=stores.source,
                target=stores.target,
                journal=state,
                progress=progress,
                limits=ChunkLimits(rows=rows_at_once),
            ),
            is_final_run=stores.is_final_run,
            erase_again=partial(erase_again, FileErasures(paths.erasures), stores.erased_in),
        )
        if outcome.is_done:
            if not to_clickhouse:
                _unbind_ledger(paths)
            state.mark_done(migration)
        return outcome


def _unbind_ledger(paths: DataDirPaths) -> None:
    """Make the ledger accept the store that was filled, whatever store it loaded into before."""
    if paths.ledger.exists():
        ledger = SqliteLedger.open(paths.ledger)
        try:
            ledger.bind_store({})
        finally:
            ledger.close()


def migration_target(to: str) -> MigrationTarget:
    """Return the target of `--to`. A URL is one of ClickHouse."""
    return (
        MigrationTarget.EMBEDDED
        if to == MigrationTarget.EMBEDDED.value
        else MigrationTarget.CLICKHOUSE
    )


class _Opening(NamedTuple):
    """What opens the stores: where they are, who has the directory, and what closes them."""

    paths: DataDirPaths
    address: ClickHouseAddress
    state: MigrationState
    service: LockOwner | None
    stack: ExitStack


class _CopyStores(NamedTuple):
    """The stores of a run, and where erasures are repeated.

    `is_final_run` is whether no service adds rows to the source any more.
    """

    source: CopyStore
    target: CopyStore
    erased_in: ChdbInstance | ClickHouseAddress
    is_final_run: bool


def _open_to_clickhouse(opening: _Opening) -> _CopyStores:
    target = _open_clickhouse_store(opening)
    directory = opening.stack.enter_context(_source_directory(opening))
    source = _open_chdb_store(ChdbInstance(directory, log=get_logger()), opening.stack)
    service = opening.service
    is_final_run = service is None or not service.has_store
    return _CopyStores(source, target, opening.address, is_final_run)


def _open_to_embedded(opening: _Opening) -> _CopyStores:
    source = _open_clickhouse_store(opening)
    _check_not_open(opening.paths, opening.service)
    chdb = ChdbInstance(opening.paths.store, log=get_logger())
    target = _open_chdb_store(chdb, opening.stack)
    return _CopyStores(source, target, chdb, is_final_run=opening.service is None)


def _open_clickhouse_store(opening: _Opening) -> ClickHouseCopyStore:
    store = ClickHouseCopyStore(opening.address)
    opening.stack.callback(store.close)
    store.prepare()
    return store


def _run_copy(
    copy: StoreCopier, *, is_final_run: bool, erase_again: Callable[[], int]
) -> MigrationResult:
    copy.resend_pending_chunk()
    erase_again()
    if is_final_run:
        copy.wait_for_source()
    copy.copy()
    mismatches = copy.compare()
    return MigrationResult(copy.copied, mismatches, is_done=is_final_run and not mismatches)


def _address(settings: Settings, to: str) -> ClickHouseAddress:
    if to not in (target.value for target in MigrationTarget):
        require_client(CLICKHOUSE_CLIENT, needed_by="--to URL")
        return parse_address(to)
    address = clickhouse_address(settings)
    if address is None:
        raise OperatorError(
            f"--to {to} needs the URL of ClickHouse: set HEADRACE_CLICKHOUSE_URL or "
            "HEADRACE_CLICKHOUSE_URL_FILE"
        )
    return address


def _lock_data_dir(settings: Settings, stack: ExitStack) -> LockOwner | None:
    """Lock the data directory, or return the service that has the lock."""
    try:
        stack.enter_context(locked_for_command(settings, _COMMAND))
    except DataDirLocked as locked:
        if locked.owner.command != SERVE_COMMAND:
            raise
        migrate_data_dir_if_idle(settings)
        return locked.owner
    return None


@contextlib.contextmanager
def _source_directory(opening: _Opening) -> Generator[Path]:
    """Yield the directory of the embedded store, or of its snapshot if a service has it open."""
    service = opening.service
    if service is None:
        yield opening.paths.store
    elif service.has_store:
        socket = published_runtime(service) / ENGINE_SOCKET
        with live_snapshot(socket, partial=True) as snapshot:  # only the store of it is read
            yield snapshot.path / STORE
    else:
        migration = opening.state.read()
        if migration is None or migration.to is not _CLICKHOUSE:
            raise OperatorError(
                "the running service stores its events in ClickHouse already: stop it to migrate "
                "the rows in its data directory"
            )
        yield opening.paths.store


def _check_not_open(paths: DataDirPaths, service: LockOwner | None) -> None:
    if service is not None and service.has_store:
        raise OperatorError(
            f"the running service stores its events in {paths.root}, not in ClickHouse: stop it, "
            "or start it with HEADRACE_CLICKHOUSE_URL"
        )


def _open_chdb_store(chdb: ChdbInstance, stack: ExitStack) -> ChdbCopyStore:
    store = ChdbCopyStore(chdb)
    stack.callback(store.close)
    store.prepare()
    return store


def _resume_or_start(
    state: MigrationState, to: MigrationTarget, clickhouse: str, target: CopyStore
) -> StoreMigration:
    """Continue a migration or start one. A target with rows of another origin is rejected."""
    migration = state.read()
    if migration is not None and (migration.to, migration.clickhouse) == (to, clickhouse):
        return migration
    if migration is None or migration.clickhouse != clickhouse:
        where = f"ClickHouse ({clickhouse})" if to is _CLICKHOUSE else "data directory"
        _require_no_rows(target, where)
    return state.start(to, clickhouse)


def _require_no_rows(target: CopyStore, where: str) -> None:
    rows = sum(int(target.rows(select_count(table), {})[0][0]) for table in STORAGE_TABLES.values())
    if rows:
        raise OperatorError(
            f"cannot copy to the {where}: it has {rows} rows already that this machine did not "
            "move there; name an empty store"
        )
