"""What stands where in a data directory. Backups have the same names."""

from pathlib import Path
from typing import Final

from msgspec import Struct

STORE: Final = "store"
LOG: Final = "log"
LEDGER: Final = "ledger.sqlite"
DIRECTORY: Final = "directory.sqlite"
CLAIMS: Final = "claims.msgpack"
REPEATS: Final = "repeats.sqlite"
QUARANTINE: Final = "quarantine"
DAMAGED: Final = "damaged"
VERSION: Final = "headrace.json"
LOCK: Final = "lock"
SNAPSHOTS: Final = "snapshots"
UNFINISHED_RESTORE: Final = "restore-unfinished"

DATA_ENTRIES: Final = (STORE, LOG, LEDGER, DIRECTORY, REPEATS, QUARANTINE, DAMAGED)
"""What a service keeps. A directory that has none of these is new, or no data directory."""


class DataDirPaths(Struct, frozen=True):
    """The paths within one data directory, or within a copy of one."""

    root: Path

    @property
    def has_data(self) -> bool:
        """Whether anything is kept there, or was being restored."""
        return any((self.root / name).exists() for name in (*DATA_ENTRIES, UNFINISHED_RESTORE))

    @property
    def store(self) -> Path:
        """The column store's directory."""
        return self.root / STORE

    @property
    def log(self) -> Path:
        """The directory of all logs."""
        return self.root / LOG

    @property
    def ledger(self) -> Path:
        """The loader's ledger."""
        return self.root / LEDGER

    @property
    def directory(self) -> Path:
        """Websites and keys."""
        return self.root / DIRECTORY

    @property
    def repeats(self) -> Path:
        """The idempotency keys."""
        return self.root / REPEATS

    @property
    def claims(self) -> Path:
        """What was agreed with other machines of the batch under way."""
        return self.root / CLAIMS

    @property
    def quarantine(self) -> Path:
        """What the store refused."""
        return self.root / QUARANTINE

    @property
    def damaged(self) -> Path:
        """What a disk damaged."""
        return self.root / DAMAGED

    @property
    def version(self) -> Path:
        """The file that tells the format of the directory."""
        return self.root / VERSION

    @property
    def lock(self) -> Path:
        """The file that whoever has the directory for itself holds locked."""
        return self.root / LOCK

    @property
    def snapshots(self) -> Path:
        """Snapshots that are being archived."""
        return self.root / SNAPSHOTS

    @property
    def unfinished_restore(self) -> Path:
        """Stands there while a backup is being restored."""
        return self.root / UNFINISHED_RESTORE
