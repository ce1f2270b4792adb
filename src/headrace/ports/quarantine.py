"""Records and items that cannot be stored, kept for inspection by an operator."""

from collections.abc import Mapping, Sequence
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

    @property
    def website_id(self) -> str | None:
        """The website of the item; None for a record that cannot be decoded."""
        website_id = (self.entry.item or {}).get("website_id")
        return website_id if isinstance(website_id, str) else None


class RetryableQuarantine(Protocol):
    """The entries of a quarantine, to read and to retry them.

    Blocking. Raises `OperatorError` where the files cannot be read or written.
    """

    def readable_entries(self) -> Sequence[StoredEntry]:
        """Return the entries that can be decoded, sorted by log and offset."""
        ...

    def find(self, entry_id: str) -> StoredEntry | None:
        """Return one entry; None where it is unknown, or cannot be decoded."""
        ...

    def requeue(self, ids: Sequence[str] | None = None, *, by: str) -> list[str]:
        """Append entries to a log, from which they are loaded, and remove them; return their ids.

        Without ids these are all. `by` is who retries them, for the audit log. Also raises
        `RejectedField` for a changed entry that cannot be stored.
        """
        ...


class Quarantine(Protocol):
    """Blocking, used from one thread."""

    def put(self, entry: QuarantineEntry) -> None:
        """Store an entry; it is on disk on return.

        An entry that is there already remains as it is, also where an operator has changed it.
        Raises `StoreUnavailable` where it cannot be written now.
        """
        ...
