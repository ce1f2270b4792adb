"""The quarantine as a directory of readable JSON files, one for each item or record."""

import base64
import contextlib
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import msgspec

from headrace.adapters.data_dir.files import create_private_directory, write_atomically
from headrace.adapters.data_dir.paths import ENTRY_SUFFIX
from headrace.base.errors import OperatorError, StoreUnavailable, system_reason
from headrace.formats.quarantine_objects import EntryFile
from headrace.ports.quarantine import QuarantineEntry, StoredEntry

_DIGEST_BYTES: Final = 8


class FileQuarantine:
    """A `Quarantine`. The name of a file is its id: log, segment, offset, index of the item.

    Where files of a log were replaced, another item may have had that name: then the digest, too.

    Bytes that are not JSON text are written in base64. An operator may edit a file to correct the
    item; `read` returns the edited content.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def put(self, entry: QuarantineEntry) -> None:
        """Write an entry's file; see `ports.quarantine.Quarantine`."""
        fields = _to_json_fields(entry)
        digest = _digest_of(fields)
        content = msgspec.json.format(msgspec.json.encode({**fields, "digest": digest}), indent=2)
        try:
            file = self._path / _file_name(entry)
            if file.exists() and _read_digest(file) != digest:
                file = self._path / _file_name(entry, digest)
            if file.exists():
                return
            create_private_directory(self._path)
            write_atomically(file, content)
        except OSError as error:
            raise StoreUnavailable(
                f"cannot write the quarantine: {system_reason(error)}"
            ) from error

    def ids(self) -> list[str]:
        """Return the ids of all entries, sorted by log and offset."""
        return sorted(file.name for file in self._path.glob(f"*{ENTRY_SUFFIX}"))

    def read(self, entry_id: str) -> StoredEntry:
        """Return an entry. Raises `OperatorError` when it does not exist or cannot be decoded."""
        if entry_id not in self.ids():
            raise OperatorError(f"no entry of the quarantine has the id {entry_id!r}")
        try:
            return self._load(entry_id)
        except (OSError, ValueError) as error:
            raise OperatorError(
                f"cannot read {self._path / entry_id}: {system_reason(error)}"
            ) from error

    def find(self, entry_id: str) -> StoredEntry | None:
        """Return an entry; None where it does not exist or cannot be decoded.

        Raises `OperatorError` where its file cannot be read.
        """
        if entry_id not in self.ids():
            return None
        try:
            return self._load(entry_id)
        except (FileNotFoundError, ValueError):
            return None
        except OSError as error:
            raise OperatorError(
                f"cannot read {self._path / entry_id}: {system_reason(error)}"
            ) from error

    def decodable_entries(self) -> list[StoredEntry]:
        """Return all entries that can be decoded, sorted by log and offset."""
        found = map(self.find, self.ids())
        return [stored for stored in found if stored is not None]

    def readable_contents(self) -> list[QuarantineEntry]:
        """Return the content of all entries that can be read and decoded."""
        found: list[QuarantineEntry] = []
        for entry_id in self.ids():
            with contextlib.suppress(OperatorError):
                found.append(self.read(entry_id).entry)
        return found

    def _load(self, entry_id: str) -> StoredEntry:
        file = self._path / entry_id
        text, status = file.read_bytes(), file.stat()
        return StoredEntry(entry_id, status.st_mtime_ns // 1_000_000, _parse(text), text)

    def remove(self, entry_id: str) -> None:
        """Remove an entry's file. Safe to call twice; durable after `sync_directory`."""
        (self._path / entry_id).unlink(missing_ok=True)


def _file_name(entry: QuarantineEntry, digest: str = "") -> str:
    position = f"{entry.log}-{entry.position.segment:020}-{entry.position.offset:010}"
    index = "" if entry.index is None else f"-{entry.index:05}"
    return f"{position}{index}{digest and f'-{digest}'}{ENTRY_SUFFIX}"


def _digest_of(fields: Mapping[str, Any]) -> str:
    rejected = msgspec.json.encode([fields.get("item"), fields.get("payload")])
    return blake2b(rejected, digest_size=_DIGEST_BYTES).hexdigest()


def _read_digest(file: Path) -> str:
    """Return the digest in a file, "" where it has none or is damaged. Raises `OSError`."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=EntryFile).digest
    except ValueError:
        return ""


def _to_json_fields(entry: QuarantineEntry) -> dict[str, Any]:
    fields = {
        name: value
        for name, value in msgspec.structs.asdict(entry).items()
        if value is not None and name != "item"
    }
    if entry.item is not None:
        fields["item"] = {name: _to_json_value(value) for name, value in entry.item.items()}
    return fields


def _parse(text: bytes) -> QuarantineEntry:
    decoded = msgspec.json.decode(text, type=EntryFile)
    item = decoded.item
    return QuarantineEntry(
        log=decoded.log,
        position=decoded.position,
        reason=decoded.reason,
        stream=decoded.stream,
        index=decoded.index,
        item=None
        if item is None
        else {name: _from_json_value(name, raw) for name, raw in item.items()},
        payload=decoded.payload,
    )


def _from_json_value(name: str, raw: msgspec.Raw) -> object:
    """Invert `_to_json_value`; `properties` is the only field of type bytes."""
    value = msgspec.json.decode(raw)
    if name != "properties":
        return value
    if isinstance(value, str):
        return base64.b64decode(value, validate=True)
    return msgspec.json.format(bytes(raw), indent=-1)


def _to_json_value(value: object) -> object:
    """Embed bytes that are JSON text as they are; the encoder writes others in base64."""
    if not isinstance(value, bytes):
        return value
    try:
        msgspec.json.decode(value)
    except ValueError:  # also what msgspec raises, and text that is not UTF-8
        return value
    return msgspec.Raw(value)
