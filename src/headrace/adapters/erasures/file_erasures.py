"""Erasures as files of a data directory, one for each, and the key of their subjects.

A file names the identifier only while its erasure is pending. A file is replaced as a whole, so no
older content of it stays in the directory.
"""

import contextlib
import secrets
from collections.abc import Generator
from pathlib import Path
from typing import Final

import msgspec

from headrace.adapters.data_dir.files import (
    create_private_directory,
    remove_unfinished,
    write_atomically,
)
from headrace.base.errors import StoreUnavailable, system_reason
from headrace.ports.rows.erasure import Erasure

KEY_FILE: Final = "key"

_KEY_BYTES: Final = 32
_SUFFIX: Final = ".json"
_OTHER_KEY: Final = (
    "the erasures of this data directory were made before it shared a directory with other "
    "machines, under another key: keep them with `headrace erasures export FILE`, stop the "
    "service, remove the folder erasures/, and start it again"
)
_NONE: Final = frozenset[str]()


class FileErasures:
    """An `ErasureStore`. `path` is created with the first erasure."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def key(self) -> bytes:
        """Return the key of the subjects; the first call creates it. See `ErasureStore.key`."""
        with _translate_errors(self._path):
            file = self._path / KEY_FILE
            if not file.exists():
                create_private_directory(self._path)
                write_atomically(file, secrets.token_hex(_KEY_BYTES).encode())
            return _decode_key(file)

    def set_key(self, key: bytes) -> None:
        """Store the key of the subjects. Raises `StoreUnavailable`."""
        with _translate_errors(self._path):
            create_private_directory(self._path)
            write_atomically(self._path / KEY_FILE, key.hex().encode())

    def use_key(self, key: bytes) -> None:
        """Use the key of all machines; see `ErasureStore.use_key`."""
        if self.key() == key:
            return
        if self._ids():
            raise StoreUnavailable(_OTHER_KEY)
        self.set_key(key)

    def put(self, erasure: Erasure) -> None:
        """Write an erasure; see `ErasureStore.put`."""
        with _translate_errors(self._path):
            create_private_directory(self._path)
            write_atomically(self._file(erasure.id), msgspec.json.encode(erasure))

    def get(self, erasure_id: str) -> Erasure | None:
        """Return an erasure; see `ErasureStore.get`."""
        if erasure_id not in self._ids():
            return None
        with _translate_errors(self._path):
            return _decode(self._file(erasure_id))

    def all(self) -> list[Erasure]:
        """Return all erasures, oldest first; see `ErasureStore.all`."""
        with _translate_errors(self._path):
            found = [_decode(self._file(erasure_id)) for erasure_id in self._ids()]
        return sorted(found, key=lambda erasure: (erasure.requested_ms, erasure.id))

    def ids(self) -> frozenset[str]:
        """Return the ids of all erasures; see `ErasureStore.ids`."""
        with _translate_errors(self._path):
            return frozenset(self._ids())

    def issues(self) -> list[str]:
        """Return a sentence for each file that is damaged, and for a key that is missing."""
        found: list[str] = []
        for erasure_id in sorted(self._ids()):
            try:
                self.get(erasure_id)
            except StoreUnavailable as error:
                found.append(str(error))
        file = self._path / KEY_FILE
        if file.exists():
            try:
                self.key()
            except StoreUnavailable as error:
                found.append(str(error))
        elif self._ids():
            found.append(f"{file.name} is missing: what was erased is not known in an import")
        return found

    def remove_unfinished(self) -> None:
        """Remove what a killed process left of a file that it was writing."""
        with _translate_errors(self._path):
            remove_unfinished(self._path)

    def _ids(self) -> list[str]:
        """Return the names of the files. An id of a caller is compared with them, never a path."""
        return [file.stem for file in self._path.glob(f"*{_SUFFIX}")]

    def _file(self, erasure_id: str) -> Path:
        return self._path / f"{erasure_id}{_SUFFIX}"


def names_in(directory: Path) -> frozenset[str]:
    """Return the names in a directory, none where it is missing. Raises `StoreUnavailable`."""
    with _translate_errors(directory):
        return frozenset(path.name for path in directory.iterdir()) if directory.exists() else _NONE


def new_erasure_id() -> str:
    """Return a new id."""
    return f"era_{secrets.token_hex(8)}"


def _decode(file: Path) -> Erasure:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Erasure)
    except msgspec.MsgspecError as error:
        raise StoreUnavailable(f"the erasure {file} is damaged: {error}") from error


def _decode_key(file: Path) -> bytes:
    try:
        key = bytes.fromhex(file.read_text(encoding="ascii"))
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise StoreUnavailable(f"the key of the erasures {file} is damaged")
    return key


@contextlib.contextmanager
def _translate_errors(directory: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        reason = system_reason(error)
        named = error.filename or directory  # a full disk fails at a write, which names no file
        raise StoreUnavailable(f"cannot use the erasures {named}: {reason}") from error
