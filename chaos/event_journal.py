"""What was sent, what the service said to it, and whether what it has stored agrees.

Shares nothing with the product: it knows events by the ids that the senders gave them.
"""

import threading
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple


class Fate(IntEnum):
    """What became of an event, as its sender knows it; of several sendings the highest counts.

    An event that was refused and sent again may be acknowledged; one that was acknowledged stays
    promised, whatever a repeat of it is answered.
    """

    REFUSED = 0
    UNANSWERED = 1
    ACKNOWLEDGED = 2


class Bucket(NamedTuple):
    """Where the events of one round and one endpoint are stored: a table and a path in it."""

    table: str
    path: str


class Violations(NamedTuple):
    """What is wrong with one page: the ids of events for each broken promise."""

    lost: tuple[str, ...] = ()
    doubled: tuple[str, ...] = ()
    refused_but_stored: tuple[str, ...] = ()
    never_sent: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(self)


class Rows(NamedTuple):
    """How many rows a page has, and how many events they are of."""

    rows: int
    events: int


class EventJournal:
    """The fate of every event, page by page; written by many threads."""

    def __init__(self) -> None:
        self._buckets: dict[Bucket, dict[str, Fate]] = {}
        self._lock = threading.Lock()

    def record(self, bucket: Bucket, ids: Iterable[str], fate: Fate) -> None:
        """Book the events of one request."""
        with self._lock:
            entries = self._buckets.setdefault(bucket, {})
            for event_id in ids:
                entries[event_id] = max(entries.get(event_id, fate), fate)

    def buckets(self, table: str) -> list[Bucket]:
        """Return the pages of a table, oldest first."""
        return [bucket for bucket in self._buckets if bucket.table == table]

    def totals(self) -> Mapping[Fate, int]:
        """Return how many events have each fate."""
        return Counter(fate for entries in self._buckets.values() for fate in entries.values())

    def is_plausible(self, bucket: Bucket, found: Rows) -> bool:
        """Tell whether so many rows can be right: none twice, none too few, none too many."""
        fates = Counter(self._buckets.get(bucket, {}).values())
        least = fates[Fate.ACKNOWLEDGED]
        return found.rows == found.events and least <= found.rows <= least + fates[Fate.UNANSWERED]

    def find_violations(self, bucket: Bucket, stored: Mapping[str, int]) -> Violations:
        """Hold the service to its word, with what a page has stored: id to number of rows."""
        entries = self._buckets.get(bucket, {})
        return Violations(
            lost=_with_fate(entries, Fate.ACKNOWLEDGED, entries.keys() - stored.keys()),
            doubled=tuple(sorted(event_id for event_id, rows in stored.items() if rows > 1)),
            refused_but_stored=_with_fate(entries, Fate.REFUSED, stored),
            never_sent=tuple(sorted(stored.keys() - entries.keys())),
        )


def _with_fate(entries: Mapping[str, Fate], fate: Fate, ids: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(event_id for event_id in ids if entries.get(event_id) is fate))
