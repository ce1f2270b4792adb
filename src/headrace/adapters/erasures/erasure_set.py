"""The erasures of a data directory as one value: what a restored copy of it must erase again."""

import os
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from headrace.adapters.data_dir.paths import ERASURES, FORMAT_MARKER
from headrace.adapters.erasures.file_erasures import KEY_FILE, FileErasures
from headrace.base.errors import OperatorError, StoreUnavailable, system_reason
from headrace.ports.rows.erasure import Erasure

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL


class ErasureSet(Struct, frozen=True):
    """Erasures, and the key of their subjects as hexadecimal digits; "" without any erasure."""

    key: str = ""
    erasures: tuple[Erasure, ...] = ()


def read_erasure_set(path: Path) -> ErasureSet:
    """Read erasures from their folder, from a data directory, or from a file of `export`.

    Raises `OperatorError`.
    """
    try:
        if path.is_dir():
            return _read_folder(path)
        return msgspec.json.decode(path.read_bytes(), type=ErasureSet)
    except OSError as error:
        raise OperatorError(f"cannot read {path}: {system_reason(error)}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError, StoreUnavailable) as error:
        raise OperatorError(f"{path} has no erasures that can be read: {error}") from error


def _read_folder(path: Path) -> ErasureSet:
    folder = path / ERASURES if (path / ERASURES).is_dir() else path
    if (folder / KEY_FILE).exists():
        erasures = FileErasures(folder)
        return ErasureSet(erasures.key().hex(), tuple(erasures.all()))
    if folder.name == ERASURES or (path / FORMAT_MARKER).exists():
        return ErasureSet()  # of a data directory from which nothing was erased
    raise OperatorError(f"{path} has no erasures: it has no file {KEY_FILE}")


def write_erasure_set(source: ErasureSet, file: Path) -> None:
    """Write a file for `read_erasure_set`, which names no identifier. Raises `OperatorError`."""
    content = msgspec.json.encode(
        ErasureSet(source.key, tuple(without_identifier(one) for one in source.erasures))
    )
    try:
        descriptor = os.open(file, _NEW, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(content)
                opened.flush()
                os.fsync(opened.fileno())
        except BaseException:
            file.unlink(missing_ok=True)  # the next call creates it
            raise
    except OSError as error:
        raise OperatorError(f"cannot write {file}: {system_reason(error)}") from error


def merge_erasures(into: FileErasures, folder: Path, known: ErasureSet) -> None:
    """Add erasures to those of a restored data directory; these are then pending there.

    An erasure that was done when the backup was made is left as it is: the backup lacks its rows.
    Raises `OperatorError` where the two belong to different data directories.
    """
    if not known.erasures:
        return
    if (folder / KEY_FILE).exists() and into.key().hex() != known.key:
        raise OperatorError("the erasures belong to another data directory than the backup")
    into.set_key(bytes.fromhex(known.key))
    restored = {erasure.id: erasure for erasure in into.all()}
    for erasure in known.erasures:
        if erasure.id not in restored or not restored[erasure.id].is_done:
            into.put(msgspec.structs.replace(without_identifier(erasure), done_ms=0))


def without_identifier(erasure: Erasure) -> Erasure:
    """Return an erasure that is recognized by its subjects alone."""
    return msgspec.structs.replace(erasure, plan=None, last_error="")
