"""Opens the quarantine of a data directory, to list and to requeue its entries."""

import contextlib
from collections.abc import Generator
from functools import partial

from headrace.adapters.data_dir.lock import SERVE_COMMAND, DataDirLocked
from headrace.adapters.quarantine.requeuer import QuarantineRequeuer
from headrace.base.clock import Clock
from headrace.base.settings import Settings
from headrace.ingest.load.requeue import to_log_record
from headrace.wiring.audit import record_changes
from headrace.wiring.data import (
    data_dir_paths,
    locked_for_command,
    migrate_data_dir_if_idle,
    require_data,
)


def open_requeuer(settings: Settings, clock: Clock) -> QuarantineRequeuer:
    """Return the requeuer of the configured data directory.

    Raises `OperatorError` when the directory has no data, or a newer version wrote it.
    """
    paths = data_dir_paths(settings)
    require_data(settings)
    migrate_data_dir_if_idle(settings)
    return QuarantineRequeuer(
        paths.quarantine,
        log_root=paths.log,
        to_log_record=to_log_record,
        record_changes=partial(record_changes, settings),
        clock=clock,
    )


@contextlib.contextmanager
def locked_requeuer(settings: Settings, clock: Clock) -> Generator[QuarantineRequeuer]:
    """Yield the requeuer with the data directory locked against backups and restores.

    While the service runs, it has that lock; the lock of the log is then sufficient. Raises
    `DataDirLocked` when another command has the lock, and otherwise as `open_requeuer`.
    """
    require_data(settings)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked_for_command(settings, "headrace quarantine retry"))
        except DataDirLocked as locked:
            if locked.owner.command != SERVE_COMMAND:
                raise
        yield open_requeuer(settings, clock)
