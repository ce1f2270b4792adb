"""What reads the quarantine of a data directory and puts entries back on their way."""

import contextlib
from collections.abc import Generator

from headrace.adapters.data_dir.lock import SERVE_COMMAND, DataDirLocked
from headrace.adapters.quarantine.requeuer import QuarantineRequeuer
from headrace.base.clock import Clock
from headrace.base.settings import Settings
from headrace.ingest.load.requeue import to_log_record
from headrace.wiring.data import (
    data_dir_paths,
    locked_for_command,
    migrate_data_dir_if_idle,
    require_data,
)


def open_requeuer(settings: Settings, clock: Clock) -> QuarantineRequeuer:
    """Return the desk of a data directory.

    Raises `OperatorError` when nothing is kept there, or a newer version wrote it.
    """
    paths = data_dir_paths(settings)
    require_data(settings)
    migrate_data_dir_if_idle(settings)
    return QuarantineRequeuer(
        paths.quarantine, log_root=paths.log, to_log_record=to_log_record, clock=clock
    )


@contextlib.contextmanager
def locked_requeuer(settings: Settings, clock: Clock) -> Generator[QuarantineRequeuer]:
    """Give the desk, and keep restores and backups away while no service runs.

    Beside a service the log's own lock is enough. Raises `OperatorError`, `DataDirLocked` when
    another command holds the data directory.
    """
    require_data(settings)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked_for_command(settings, "headrace quarantine retry"))
        except DataDirLocked as locked:
            if locked.owner.command != SERVE_COMMAND:
                raise
        yield open_requeuer(settings, clock)
