"""Caches the results of selects until a change of rows invalidates them."""

from collections import OrderedDict

from msgspec import Struct

from headrace.adapters.query_scheduler.key import QueryKey
from headrace.adapters.query_scheduler.versions import Version

_MAX_ENTRY_FRACTION = 8
"""A result larger than an eighth of the cache would evict too many others."""

_ENTRY_BYTES = 512
"""Approximate memory of an entry beside its texts."""


class _CachedResult(Struct, frozen=True):
    version: Version
    result: bytes
    size: int


class ResultCache:
    """An LRU cache of results by query, with one version of each."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[QueryKey, _CachedResult] = OrderedDict()
        self.size = 0

    def get(self, key: QueryKey, version: Version) -> bytes | None:
        """Return the result for this version of the rows, or None; evicts older ones."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.version != version:
            self._evict(key)
            return None
        self._entries.move_to_end(key)
        return entry.result

    def put(self, key: QueryKey, version: Version, result: bytes) -> None:
        """Store a result unless it is too large."""
        self._evict(key)
        size = len(result) + key.text_size() + _ENTRY_BYTES
        if size > self._max_bytes // _MAX_ENTRY_FRACTION:
            return
        self._entries[key] = _CachedResult(version, result, size)
        self.size += size
        while self.size > self._max_bytes:
            self._evict(next(iter(self._entries)))

    def _evict(self, key: QueryKey) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.size -= entry.size
