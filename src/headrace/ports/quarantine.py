"""Where records and items go that can never be stored, for people to look at."""

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct

from headrace.ports.event_log import LogOffset


class QuarantineEntry(Struct, frozen=True):
    """What was set aside, where it came from, and why.

    One item of a record: `stream`, its `index` there, and `item` by field name. A record that
    cannot be decoded: its bytes as `payload`.
    """

    log: str
    position: LogOffset
    reason: str
    stream: str | None = None
    index: int | None = None
    item: Mapping[str, Any] | None = None
    payload: bytes | None = None


class StoredEntry(Struct, frozen=True):
    """An entry as it is kept: its id, when it was set aside, and its whole text for people."""

    id: str
    quarantined_ms: int
    entry: QuarantineEntry
    text: bytes


class Quarantine(Protocol):
    """Blocking, used from one thread."""

    def put(self, entry: QuarantineEntry) -> None:
        """Set an entry aside; it is on disk on return.

        Of several entries for one place in the log the first stays. Raises `StoreUnavailable`
        where it cannot be kept now.
        """
        ...
