"""The file names of a data directory, each of them once. Backups use the same names."""

from pathlib import Path
from typing import Final

from msgspec import Struct

STORE: Final = "store"
LOG: Final = "log"
LEDGER: Final = "ledger.sqlite"
DIRECTORY: Final = "directory.sqlite"
CLAIMS: Final = "claims.msgpack"
IDEMPOTENCY: Final = "repeats.sqlite"
ROW_VERSIONS: Final = "row-versions.msgpack"
QUARANTINE: Final = "quarantine"
DAMAGED: Final = "damaged"
ERASURES: Final = "erasures"
FORMAT_MARKER: Final = "headrace.json"
LOCK: Final = "lock"
SNAPSHOTS: Final = "snapshots"
UNFINISHED_RESTORE: Final = "restore-unfinished"

RETRY_LOG: Final = "retry"
"""The log, below `LOG`, into which `headrace quarantine retry` appends."""

IMPORT_LOG: Final = "import"
"""The log, below `LOG`, into which `headrace import` appends."""

SEGMENT_SUFFIX: Final = ".segment"
"""Of a segment file in the directory of a log."""

DURABLE_MARKER: Final = "durable"
"""The file in a log's directory that its writer locks; it has the durable end of the log."""

LOADED_MARKER: Final = "loaded"
"""The file in a log's directory with the offset up to which the store has its records."""

ENTRY_SUFFIX: Final = ".json"
"""Of an entry's file in the quarantine."""

UNFINISHED_SUFFIX: Final = ".unfinished"
"""Of a file that is still being written. It is renamed when it is complete and on disk."""

LOST_AND_FOUND: Final = "lost+found"
"""The folder of a file system's own check, in the directory at which a disk is mounted."""

DATA_ENTRIES: Final = (STORE, LOG, LEDGER, DIRECTORY, IDEMPOTENCY, QUARANTINE, DAMAGED)
"""What a service keeps. A directory that has none of these is new, or no data directory."""


OWN_ENTRIES: Final = (
    *DATA_ENTRIES,
    *(ERASURES, CLAIMS, ROW_VERSIONS, FORMAT_MARKER, LOCK, SNAPSHOTS),
)
"""All entries that Headrace keeps in a data directory."""


def log_folders(root: Path) -> list[Path]:
    """Return the folders of the logs below `LOG`, sorted by name."""
    return sorted(path for path in root.glob("*/") if path.name != LOST_AND_FOUND)


class DataDirPaths(Struct, frozen=True):
    """The paths within one data directory, or within a copy of one."""

    root: Path

    @property
    def has_data(self) -> bool:
        """Whether the directory contains data of a service, or an unfinished restore."""
        return any((self.root / name).exists() for name in (*DATA_ENTRIES, UNFINISHED_RESTORE))

    @property
    def store(self) -> Path:
        """The directory of the column store (chDB)."""
        return self.root / STORE

    @property
    def row_versions(self) -> Path:
        """The versions of rows when the engine process ended; not there while it runs."""
        return self.root / ROW_VERSIONS

    @property
    def log(self) -> Path:
        """The directory of all logs: one directory each."""
        return self.root / LOG

    @property
    def ledger(self) -> Path:
        """The loader's ledger, in SQLite."""
        return self.root / LEDGER

    @property
    def directory(self) -> Path:
        """Websites, keys and organizations, in SQLite."""
        return self.root / DIRECTORY

    @property
    def idempotency(self) -> Path:
        """The idempotency keys, in SQLite."""
        return self.root / IDEMPOTENCY

    @property
    def claims(self) -> Path:
        """The decision on the pending batch's claims, where machines share a Valkey server."""
        return self.root / CLAIMS

    @property
    def quarantine(self) -> Path:
        """The directory of items and records that the store rejected."""
        return self.root / QUARANTINE

    @property
    def damaged(self) -> Path:
        """The directory of damaged bytes found in logs."""
        return self.root / DAMAGED

    @property
    def erasures(self) -> Path:
        """The directory of erasures and the key of their subjects."""
        return self.root / ERASURES

    @property
    def format_marker(self) -> Path:
        """The file with the format of the directory."""
        return self.root / FORMAT_MARKER

    @property
    def lock(self) -> Path:
        """The file that a service or command locks to use the directory alone."""
        return self.root / LOCK

    @property
    def snapshots(self) -> Path:
        """The directory of snapshots that a backup is reading."""
        return self.root / SNAPSHOTS

    @property
    def unfinished_restore(self) -> Path:
        """A marker file that exists while a backup is being restored.

        It has the erasures that were in the directory before, or is empty.
        """
        return self.root / UNFINISHED_RESTORE
