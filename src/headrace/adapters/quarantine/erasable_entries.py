"""Finds and removes the entries of the quarantine that an erasure is of."""

from collections.abc import Callable, Collection
from pathlib import Path

from headrace.adapters.data_dir.files import sync_directory
from headrace.adapters.quarantine.file_quarantine import FileQuarantine
from headrace.base.errors import OperatorError, StoreUnavailable, system_reason
from headrace.ports.quarantine import QuarantineEntry


class ErasableQuarantine:
    """An `ErasableEntries` over files. The caller blocks requeueing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files = FileQuarantine(path)

    def find(self, matches: Callable[[QuarantineEntry | bytes], bool]) -> list[str]:
        """Return the ids of matching entries; see `ErasableEntries.find`."""
        try:
            return [
                entry_id
                for entry_id in self._files.ids()
                if matches(self._entry_or_bytes(entry_id))
            ]
        except OSError as error:
            raise StoreUnavailable(f"cannot read the quarantine: {system_reason(error)}") from error

    def remove(self, ids: Collection[str]) -> None:
        """Remove entries; see `ErasableEntries.remove`."""
        try:
            for entry_id in ids:
                self._files.remove(entry_id)
            if ids:
                sync_directory(self._path)
        except OSError as error:
            raise StoreUnavailable(
                f"cannot change the quarantine: {system_reason(error)}"
            ) from error

    def _entry_or_bytes(self, entry_id: str) -> QuarantineEntry | bytes:
        """Return an entry, or the bytes of a file that an operator has damaged."""
        try:
            return self._files.read(entry_id).entry
        except OperatorError:
            return (self._path / entry_id).read_bytes()
