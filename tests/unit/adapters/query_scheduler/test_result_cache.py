"""The results that the cache keeps, their lifetime, and its size limit."""

from headrace.adapters.query_scheduler.key import QueryKey
from headrace.adapters.query_scheduler.result_cache import ResultCache
from headrace.ports.store import QueryLimits

LIMITS = QueryLimits(timeout_s=15.0, max_memory_bytes=10**9)
KILOBYTE = b"x" * 1000


def key(sql: str, **parameters: str) -> QueryKey:
    return QueryKey("web_1", sql, tuple(parameters.items()), LIMITS)


def test_result_is_cached_per_query_key_and_version() -> None:
    cache = ResultCache(10**6)
    cache.put(key("SELECT 1", p0="a"), (0, 2), b"1")
    assert cache.get(key("SELECT 1", p0="a"), (0, 2)) == b"1"
    assert cache.get(key("SELECT 1", p0="b"), (0, 2)) is None
    assert cache.get(key("SELECT 2", p0="a"), (0, 2)) is None
    assert cache.get(key("SELECT 1", p0="a"), (2, 2)) is None


def test_result_over_older_rows_is_not_cached() -> None:
    cache = ResultCache(10**6)
    cache.put(key("SELECT 1"), (0, 2), KILOBYTE)
    assert cache.get(key("SELECT 1"), (0, 4)) is None
    assert cache.size == 0


def test_newer_result_replaces_the_older_one() -> None:
    cache = ResultCache(10**6)
    cache.put(key("SELECT 1"), (0, 2), KILOBYTE)
    size = cache.size
    cache.put(key("SELECT 1"), (0, 4), KILOBYTE)
    assert (cache.get(key("SELECT 1"), (0, 4)), cache.size) == (KILOBYTE, size)


def test_least_recently_used_results_are_evicted() -> None:
    cache = ResultCache(16_000)
    for number in range(12):
        cache.put(key(f"SELECT {number}"), (0, 0), KILOBYTE)
        cache.get(key("SELECT 0"), (0, 0))
    kept = [n for n in range(12) if cache.get(key(f"SELECT {n}"), (0, 0)) is not None]
    assert kept == [0, *range(3, 12)]
    assert cache.size <= 16_000


def test_result_that_would_evict_too_many_is_not_cached() -> None:
    cache = ResultCache(16_000)
    cache.put(key("SELECT 1"), (0, 0), KILOBYTE)
    cache.put(key("SELECT 1"), (0, 2), KILOBYTE * 2)
    assert cache.get(key("SELECT 1"), (0, 2)) is None
    assert cache.size == 0


def test_cache_of_size_zero_stores_nothing() -> None:
    cache = ResultCache(0)
    cache.put(key("SELECT 1"), (0, 0), b"")
    assert cache.get(key("SELECT 1"), (0, 0)) is None
