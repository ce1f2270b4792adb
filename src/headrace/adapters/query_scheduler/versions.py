"""What version the stored rows of each website are in, so that answers are kept no longer."""

import contextlib
from collections import defaultdict
from collections.abc import Collection, Generator
from typing import TypeAlias

Version: TypeAlias = tuple[int, int]
"""Two equal versions of a website, told at different moments: nothing of it changed in between."""


_ANY_WEBSITE = ""


class DataVersions:
    """Counts the changes of each website's rows, before and after each: odd while one goes on.

    One thread notes changes; any thread may ask. Nothing is kept on disk: who asks after a restart
    has no answers of before.
    """

    def __init__(self) -> None:
        self._global_count = 0
        self._website_counts: defaultdict[str, int] = defaultdict(int)

    @contextlib.contextmanager
    def rows_changing(self, websites: Collection[str]) -> Generator[None]:
        """Note that rows of these websites change within, whether it ends well or not."""
        self._increment(*websites, _ANY_WEBSITE)
        try:
            yield
        finally:
            self._increment(*websites, _ANY_WEBSITE)

    @contextlib.contextmanager
    def all_rows_changing(self) -> Generator[None]:
        """Note that rows of any website may change within."""
        self._global_count += 1
        try:
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
