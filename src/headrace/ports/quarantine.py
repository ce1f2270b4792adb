"""Records and items that cannot be stored, kept for inspection by an operator."""

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct

from headrace.ports.event_log import LogOffset


class QuarantineEntry(Struct, frozen=True):
    """A record or item that cannot be stored, its offset in the log, and the reason.

    An item has `stream`, its `index` in the record, and `item` by field name. A record that cannot
    be decoded has its bytes as `payload`.
    """

    log: str
    position: LogOffset
    reason: str
    stream: str | None = None
    index: int | None = None
    item: Mapping[str, Any] | None = None
    payload: bytes | None = None


class StoredEntry(Struct, frozen=True):
    """A stored entry: its id, when it was quarantined, and its file's text."""

    id: str
    quarantined_ms: int
    entry: QuarantineEntry
    text: bytes


class Quarantine(Protocol):
    """Blocking, used from one thread."""

    def put(self, entry: QuarantineEntry) -> None:
        """Store an entry; it is on disk on return.

        Of several entries for one offset and index the first remains. Raises `StoreUnavailable`
        where it cannot be written now.
        """
        ...
