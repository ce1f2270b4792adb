"""Finds out whether files of a data directory are lost, from what the others contain."""

from pathlib import Path

from headrace.adapters.data_dir.paths import SEGMENT_SUFFIX, DataDirPaths, log_folders
from headrace.adapters.event_log.loaded_marker import read_loaded_offset
from headrace.adapters.event_log.segment_format import FIRST_SEGMENT, HEADER_SIZE, segment_name
from headrace.adapters.store.dialect.ddl import DATABASE
from headrace.model.storage import STORAGE_TABLES
from headrace.ports.event_log import LOG_START


def lost_state(path: Path) -> str | None:
    """Return `missing` or `empty`; None for a file that has something.

    SQLite takes an empty file for an intact database.
    """
    if not path.exists():
        return "missing"
    return None if path.stat().st_size else "empty"


def has_logged(paths: DataDirPaths) -> bool:
    """Return whether anything was ever logged or loaded."""
    return has_loaded(paths) or any(
        segment.stat().st_size > HEADER_SIZE for segment in paths.log.glob(f"*/*{SEGMENT_SUFFIX}")
    )


def has_loaded(paths: DataDirPaths) -> bool:
    """Return whether files other than the ledger show that something was ever loaded.

    A loaded log has an offset or lacks its first segments, and a loaded table has parts. The table
    of the store's version has some before anything is logged.
    """
    for log in log_folders(paths.log):
        oldest = min(log.glob(f"*{SEGMENT_SUFFIX}"), default=None)
        is_truncated = oldest is not None and oldest.name > segment_name(FIRST_SEGMENT)
        if is_truncated or (read_loaded_offset(log) or LOG_START) > LOG_START:
            return True
    tables = paths.store / "data" / DATABASE
    return any(any(tables.glob(f"{table.name}/all_*")) for table in STORAGE_TABLES.values())
