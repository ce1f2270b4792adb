"""Versions of ranges of rows: whether the answer of a saved query may have changed."""

import contextlib
import itertools
import threading
from collections import OrderedDict
from collections.abc import Collection, Generator, Sequence
from typing import Final

from msgspec import Struct

from headrace.ports.rows.versions import RowRange
from headrace.ports.store import StoredTimes

MAX_RANGES: Final = 10_000
"""Ranges in memory; the one that was read longest ago is forgotten. It gets a version that it never
had when it is read again, which costs its reader one select."""

_Watch = tuple[str, RowRange]


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
    """Gives every range that somebody asked for a number, and a new one when its rows change.

    Threads may record changes and read versions at the same time. No number is used twice, and
    `nonce` tells the numbers of this process from those of others, so that nothing has to be on
    disk: after a restart all ranges have versions that they never had.
    """

    def __init__(self, nonce: str, *, max_ranges: int = MAX_RANGES) -> None:
        self._nonce = nonce
        self._max_ranges = max_ranges
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._watched: OrderedDict[_Watch, int] = OrderedDict()  # least recently read first
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
            numbers = [self._number(website, rows) for rows in ranges]
        return "-".join((self._nonce, *map(str, numbers)))

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
                    self._watched[watch] = next(self._numbers)
                self._in_progress.remove(change)

    def _number(self, website: str, rows: RowRange) -> int:
        watch = (website, rows)
        if watch not in self._watched:
            self._watched[watch] = next(self._numbers)
            self._watches_of.setdefault(website, set()).add(rows)
            if len(self._watched) > self._max_ranges:
                self._forget(*self._watched.popitem(last=False)[0])
        self._watched.move_to_end(watch)
        return self._watched[watch]

    def _forget(self, website: str, rows: RowRange) -> None:
        watches = self._watches_of[website]
        watches.remove(rows)
        if not watches:
            del self._watches_of[website]

    def _affected(self, change: _Change) -> list[_Watch]:
        websites = self._watches_of if change.websites is None else change.websites
        return [
            (website, rows)
            for website in websites
            for rows in self._watches_of.get(website, ())
            if change.touches(website, rows)
        ]
