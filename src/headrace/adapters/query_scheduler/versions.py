"""Versions of each website's stored rows, which invalidate cached results."""

import contextlib
from collections import defaultdict
from collections.abc import Collection, Generator
from typing import TypeAlias

from headrace.adapters.query_scheduler.watched_ranges import WatchedRanges
from headrace.ports.store import StoredTimes

Version: TypeAlias = tuple[int, int]
"""If a website has the same version at two times, none of its rows changed in between."""

_ANY_WEBSITE = ""


class DataVersions:
    """Counts the start and the end of each change of a website's rows: odd during a change.

    One thread records changes; any thread may read versions. Nothing is stored on disk, because a
    cache does not outlive the process either. `ranges` has the versions of parts of the rows;
    `nonce` tells its versions from those of other processes.
    """

    def __init__(self, nonce: str = "") -> None:
        self.ranges = WatchedRanges(nonce)
        self._global_count = 0
        self._website_counts: defaultdict[str, int] = defaultdict(int)

    @contextlib.contextmanager
    def rows_changing(
        self, websites: Collection[str], times: StoredTimes | None = None
    ) -> Generator[None]:
        """Record that rows of these websites may change within the block, also if it fails."""
        self._increment(*websites, _ANY_WEBSITE)
        try:
            with self.ranges.changing(websites, times):
                yield
        finally:
            self._increment(*websites, _ANY_WEBSITE)

    @contextlib.contextmanager
    def all_rows_changing(self) -> Generator[None]:
        """Record that rows of any website may change within the block."""
        self._global_count += 1
        try:
            with self.ranges.changing(None, None):
                yield
        finally:
            self._global_count += 1

    def version_of(self, website: str) -> Version | None:
        """Return the version of a website's rows, of all rows for ""; None while they change."""
        version = (self._global_count, self._website_counts.get(website, 0))
        return None if any(count % 2 for count in version) else version

    def _increment(self, *websites: str) -> None:
        for website in websites:
            self._website_counts[website] += 1
