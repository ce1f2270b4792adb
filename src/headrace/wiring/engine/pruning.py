"""What pruning within the engine process is made of."""

from collections.abc import Callable, Sequence
from typing import Final

from headrace.adapters.data_dir.paths import DataDirPaths
from headrace.adapters.engine.load_loop import LoadLoop
from headrace.adapters.engine.pruning import EnginePruning
from headrace.adapters.query_scheduler.versions import DataVersions
from headrace.adapters.store_migration.migration_state import MigrationState
from headrace.base.clock import SystemClock
from headrace.base.errors import StoreUnavailable
from headrace.base.logs import get_logger
from headrace.base.settings import Settings
from headrace.model.data_retention import RetentionPolicy
from headrace.model.tenancy import Website
from headrace.ports.ledger import Ledger
from headrace.ports.rows.deletion import RowDeleter
from headrace.ports.rows.erasure import RowFinder
from headrace.pruning.description import StorageDescriber
from headrace.pruning.service import PruneSteps
from headrace.wiring.shared import open_configured_directory

SHARED_STORE_MIN_AGE_MS: Final = 3_600_000
"""Another machine stores a batch once more within seconds, after an outage within minutes."""


def engine_pruning(
    settings: Settings,
    paths: DataDirPaths,
    *,
    ledger: Ledger,
    load_loop: LoadLoop,
    finder: RowFinder,
    deleter: RowDeleter,
    versions: DataVersions | None,
) -> EnginePruning:
    """Return what prunes. Without `versions` other machines use the store and no result is cached.

    `finder` and `deleter` are its own: they are closed with it.
    """
    clock = SystemClock()
    describer = StorageDescriber(
        finder=finder,
        deleter=deleter,
        read_websites=_website_reader(settings),
        policy=RetentionPolicy(settings.retain_days),
        clock=clock,
    )
    steps = PruneSteps(
        describer,
        deleter,
        clock=clock,
        min_age_ms=0 if versions is not None else SHARED_STORE_MIN_AGE_MS,
    )

    def check_may_begin() -> None:
        if ledger.pending_batch() is not None:
            raise StoreUnavailable("a batch has to be stored first")
        migration = MigrationState(paths.root).read()
        if migration is not None and not migration.is_done:
            raise StoreUnavailable("the rows are being migrated to another store")

    def forget_results() -> None:
        if versions is not None:
            with versions.all_rows_changing():
                pass  # every cached result has another version now

    def close_store() -> None:
        finder.close()
        deleter.close()

    return EnginePruning(
        steps,
        describer,
        load_loop=load_loop,
        check_may_begin=check_may_begin,
        forget_results=forget_results,
        close_store=close_store,
        clock=clock,
        log=get_logger(),
    )


def _website_reader(settings: Settings) -> Callable[[], Sequence[Website]]:
    def read() -> Sequence[Website]:
        directory = open_configured_directory(settings, SystemClock())
        try:
            return directory.websites()
        finally:
            directory.close()

    return read
