"""Records what was sent and how the service responded, and compares it with what is stored.

Shares no code with the product: identifies events by the ids that the senders assigned.
"""

import threading
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple


class Fate(IntEnum):
    """The result of sending an event, as known to its sender. Of several attempts the highest
    counts.

    A rejected event may be acknowledged when it is sent again. An acknowledged event must be
    stored, whatever the response to a repeated request is. From the begin of its erasure it may be
    gone, and from the end it must be, also when it is sent again.
    """

    REFUSED = 0
    UNANSWERED = 1
    ACKNOWLEDGED = 2
    ERASING = 3
    ERASED = 4


class Bucket(NamedTuple):
    """Where the events of one round and one endpoint are stored: a table and a URL path in it."""

    table: str
    path: str


class Violations(NamedTuple):
    """Violated guarantees of one bucket: the affected event ids for each kind of violation."""

    lost: tuple[str, ...] = ()
    doubled: tuple[str, ...] = ()
    refused_but_stored: tuple[str, ...] = ()
    never_sent: tuple[str, ...] = ()
    erased_but_stored: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(self)


class Rows(NamedTuple):
    """The number of rows in a bucket and the number of distinct events among them."""

    rows: int
    events: int


class EventJournal:
    """The fate of every event, by bucket. Safe to call from several threads."""

    def __init__(self) -> None:
        self._buckets: dict[Bucket, dict[str, Fate]] = {}
        self._lock = threading.Lock()

    def record(self, bucket: Bucket, ids: Iterable[str], fate: Fate) -> None:
        """Record the fate of the events of one request."""
        with self._lock:
            entries = self._buckets.setdefault(bucket, {})
            for event_id in ids:
                entries[event_id] = max(entries.get(event_id, fate), fate)

    def acknowledged(self, table: str | None = None) -> set[str]:
        """Return the acknowledged events, of all tables or of one, without erased ones."""
        return self._with_fates({Fate.ACKNOWLEDGED}, table)

    def ids(self, table: str) -> set[str]:
        """Return the events of a table that may be or may have been stored."""
        return self._with_fates(set(Fate) - {Fate.REFUSED}, table)

    def _with_fates(self, fates: Collection[Fate], table: str | None) -> set[str]:
        with self._lock:
            return {
                event_id
                for bucket, entries in self._buckets.items()
                if table in (None, bucket.table)
                for event_id, fate in entries.items()
                if fate in fates
            }

    def begin_erasing(self, ids: Collection[str]) -> None:
        """Record that events are about to be erased."""
        self._set_fate(ids, Fate.ERASING)

    def finish_erasing(self, ids: Collection[str]) -> None:
        """Record that events were erased."""
        self._set_fate(ids, Fate.ERASED)

    def _set_fate(self, ids: Collection[str], fate: Fate) -> None:
        wanted = frozenset(ids)
        with self._lock:
            for entries in self._buckets.values():
                entries.update(dict.fromkeys(wanted & entries.keys(), fate))

    def buckets(self, table: str) -> list[Bucket]:
        """Return the buckets of a table, oldest first."""
        return [bucket for bucket in self._buckets if bucket.table == table]

    def totals(self) -> Mapping[Fate, int]:
        """Return the number of events with each fate."""
        return Counter(fate for entries in self._buckets.values() for fate in entries.values())

    def is_plausible(self, bucket: Bucket, found: Rows) -> bool:
        """Return whether the row count is possible: no duplicates, none missing or unexpected."""
        fates = Counter(self._buckets.get(bucket, {}).values())
        least = fates[Fate.ACKNOWLEDGED]
        most = least + fates[Fate.UNANSWERED] + fates[Fate.ERASING]
        return found.rows == found.events and least <= found.rows <= most

    def find_violations(self, bucket: Bucket, stored: Mapping[str, int]) -> Violations:
        """Compare the stored rows of a bucket (event id to row count) with the journal."""
        entries = self._buckets.get(bucket, {})
        return Violations(
            lost=_with_fate(entries, Fate.ACKNOWLEDGED, entries.keys() - stored.keys()),
            doubled=tuple(sorted(event_id for event_id, rows in stored.items() if rows > 1)),
            refused_but_stored=_with_fate(entries, Fate.REFUSED, stored),
            never_sent=tuple(sorted(stored.keys() - entries.keys())),
            erased_but_stored=_with_fate(entries, Fate.ERASED, stored),
        )


def _with_fate(entries: Mapping[str, Fate], fate: Fate, ids: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(event_id for event_id in ids if entries.get(event_id) is fate))
