"""The quarantine as a directory of readable JSON files, one for each item or record."""

import os
from pathlib import Path
from typing import Any

import msgspec

from millrace.base.errors import StoreUnavailable
from millrace.ports.quarantine import Quarantined


class FileQuarantine:
    """A `Quarantine`. A file's name says where in the log its content came from.

    Bytes that are not JSON text come in base64.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def put(self, entry: Quarantined) -> None:
        """Write an entry's file; see `ports.quarantine.Quarantine`."""
        file = self._path / _file_name(entry)
        if file.exists():
            return
        content = msgspec.json.format(msgspec.json.encode(_readable(entry)), indent=2)
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            _write_durably(file, content)
        except OSError as error:
            raise StoreUnavailable(f"The quarantine cannot be written: {error}.") from error


def _file_name(entry: Quarantined) -> str:
    place = f"{entry.log}-{entry.position.segment:020}-{entry.position.offset:010}"
    return f"{place}.json" if entry.index is None else f"{place}-{entry.index:05}.json"


def _readable(entry: Quarantined) -> dict[str, Any]:
    readable = {
        name: value
        for name, value in msgspec.structs.asdict(entry).items()
        if value is not None and name != "item"
    }
    if entry.item is not None:
        readable["item"] = {name: _as_json(value) for name, value in entry.item.items()}
    return readable


def _as_json(value: object) -> object:
    """Let JSON text stand as it is; other bytes are left to be written in base64."""
    if not isinstance(value, bytes):
        return value
    try:
        msgspec.json.decode(value)
    except msgspec.MsgspecError:
        return value
    return msgspec.Raw(value)


def _write_durably(file: Path, content: bytes) -> None:
    unfinished = file.with_suffix(".unfinished")
    with unfinished.open("wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    unfinished.rename(file)
    directory = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
