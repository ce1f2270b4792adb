"""Versions of ranges of rows: whether the answer of a saved query may have changed."""

import contextlib
import itertools
import threading
from collections import OrderedDict
from collections.abc import Collection, Generator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from headrace.ports.rows.versions import RowRange
from headrace.ports.store import StoredTimes

MAX_RANGES: Final = 10_000
"""Ranges in memory; the one that was read longest ago is forgotten. It gets a version that it never
had when it is read again, which costs its reader one select."""

WatchedRange = tuple[str, RowRange]
"""A website and a range of its rows."""


class _Change(Struct, frozen=True, eq=False):
    """A change of rows: of these websites, None for all, at these times, None for any rows."""

    websites: Collection[str] | None
    times: StoredTimes | None

    def touches(self, website: str, rows: RowRange) -> bool:
        """Return whether it is one of rows in a range. Reads no times of other websites."""
        if self.websites is not None and website not in self.websites:
            return False
        if self.times is None:
            return True
        if rows.table != self.times.table:
            return False
        return any(
            rows.start_ms <= time_ms < rows.end_ms for time_ms in self.times.of_website(website)
        )


class WatchedRanges:
    """Gives every range that somebody asked for a version, and a new one when its rows change.

    Threads may record changes and read versions at the same time. No version is given twice:
    `nonce` tells those of this process from those of others. The versions of an earlier process
    may be adopted if no row has changed since it ended.
    """

    def __init__(self, nonce: str, *, max_ranges: int = MAX_RANGES) -> None:
        self._nonce = nonce
        self._max_ranges = max_ranges
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._watched: OrderedDict[WatchedRange, str] = OrderedDict()  # least recently read first
        self._watches_of: dict[str, set[RowRange]] = {}
        self._in_progress: list[_Change] = []

    def version_of(self, website: str, ranges: Sequence[RowRange]) -> str | None:
        """Return the version of a website's rows in ranges; None while some of them change.

        A select that starts later sees the rows of this version, or newer ones.
        """
        with self._lock:
            for change in self._in_progress:
                if any(change.touches(website, rows) for rows in ranges):
                    return None
            return "-".join(self._version(website, rows) for rows in ranges)

    def versions(self) -> Mapping[WatchedRange, str]:
        """Return the version of each range, the one that was read longest ago first."""
        with self._lock:
            return dict(self._watched)

    def adopt(self, versions: Mapping[WatchedRange, str]) -> None:
        """Give ranges the versions that they had when an earlier process ended."""
        with self._lock:
            for (website, rows), version in versions.items():
                self._watch(website, rows, version)

    @contextlib.contextmanager
    def changing(
        self, websites: Collection[str] | None, times: StoredTimes | None
    ) -> Generator[None]:
        """Record that rows may change within the block, also if it fails.

        `websites` is None for all of them; `times` is None for any rows.
        """
        change = _Change(websites, times)
        with self._lock:
            self._in_progress.append(change)
        try:
            yield
        finally:
            with self._lock:
                # All that are watched now: a range may be new since the change began.
                for watch in self._affected(change):
                    self._watched[watch] = self._new_version()
                self._in_progress.remove(change)

    def _version(self, website: str, rows: RowRange) -> str:
        watch = (website, rows)
        if watch not in self._watched:
            self._watch(website, rows, self._new_version())
        self._watched.move_to_end(watch)
        return self._watched[watch]

    def _watch(self, website: str, rows: RowRange, version: str) -> None:
        self._watched[website, rows] = version
        self._watches_of.setdefault(website, set()).add(rows)
        if len(self._watched) > self._max_ranges:
            self._forget(*self._watched.popitem(last=False)[0])

    def _new_version(self) -> str:
        return f"{self._nonce}.{next(self._numbers)}"

    def _forget(self, website: str, rows: RowRange) -> None:
        watches = self._watches_of[website]
        watches.remove(rows)
        if not watches:
            del self._watches_of[website]

    def _affected(self, change: _Change) -> list[WatchedRange]:
        websites = self._watches_of if change.websites is None else change.websites
        return [
            (website, rows)
            for website in websites
            for rows in self._watches_of.get(website, ())
            if change.touches(website, rows)
        ]
