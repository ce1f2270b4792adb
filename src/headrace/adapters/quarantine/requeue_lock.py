"""Keeps entries where they are: blocks `headrace quarantine retry` for a moment."""

import contextlib
from collections.abc import Generator
from typing import Final

from headrace.adapters.data_dir.paths import RETRY_LOG, DataDirPaths
from headrace.adapters.event_log.file_ops import FileOps, create_directory
from headrace.adapters.event_log.segment_directory import LogDirectory
from headrace.adapters.event_log.segment_log import lock_log

_LOCK_TIMEOUT_S: Final = 10.0


@contextlib.contextmanager
def requeue_locked(paths: DataDirPaths) -> Generator[None]:
    """Block requeueing, which moves entries from the quarantine to a log.

    Raises `OperatorError` while another process requeues for long, and `OSError`.
    """
    if not paths.quarantine.exists():
        yield
        return
    path = paths.log / RETRY_LOG
    create_directory(path, file_ops=FileOps())
    log = LogDirectory(path, file_ops=FileOps())
    try:
        lock_log(log, _LOCK_TIMEOUT_S)
        log.recover()
        log.set_recovered()
        yield
    finally:
        log.close()
