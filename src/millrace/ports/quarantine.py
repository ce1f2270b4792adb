"""Where records and items go that the store will never take, for people to look at."""

from typing import Protocol

from msgspec import Struct

from millrace.ports.log import LogPosition


class Quarantined(Struct, frozen=True):
    """What was set aside, where it came from, and why.

    `item` is the item as plain values, None where the whole record could not be decoded; `index`
    is its place in the record. `payload` is the whole record as it was logged.
    """

    log: str
    position: LogPosition
    reason: str
    payload: bytes
    stream: str = ""
    index: int | None = None
    item: object = None


class Quarantine(Protocol):
    """Blocking, used from one thread."""

    def put(self, entry: Quarantined) -> None:
        """Set an entry aside; it is on disk on return.

        The same place in the log is kept once, however often it is put.
        """
        ...
