"""What is kept of answers, how long, and how much."""

from headrace.adapters.query_scheduler.key import Question
from headrace.adapters.query_scheduler.result_cache import AnswerCache
from headrace.ports.store import QueryGuards

GUARDS = QueryGuards(timeout_s=15.0, max_memory_bytes=10**9)
KILOBYTE = b"x" * 1000


def question(sql: str, **parameters: str) -> Question:
    return Question("web_1", sql, tuple(parameters.items()), GUARDS)


def test_answer_is_kept_for_its_question_and_version_alone() -> None:
    cache = AnswerCache(10**6)
    cache.put(question("SELECT 1", p0="a"), (0, 2), b"1")
    assert cache.get(question("SELECT 1", p0="a"), (0, 2)) == b"1"
    assert cache.get(question("SELECT 1", p0="b"), (0, 2)) is None
    assert cache.get(question("SELECT 2", p0="a"), (0, 2)) is None
    assert cache.get(question("SELECT 1", p0="a"), (2, 2)) is None


def test_answer_over_older_rows_takes_no_room() -> None:
    cache = AnswerCache(10**6)
    cache.put(question("SELECT 1"), (0, 2), KILOBYTE)
    assert cache.get(question("SELECT 1"), (0, 4)) is None
    assert cache.size == 0


def test_newer_answer_replaces_the_older_one() -> None:
    cache = AnswerCache(10**6)
    cache.put(question("SELECT 1"), (0, 2), KILOBYTE)
    size = cache.size
    cache.put(question("SELECT 1"), (0, 4), KILOBYTE)
    assert (cache.get(question("SELECT 1"), (0, 4)), cache.size) == (KILOBYTE, size)


def test_least_recently_used_answers_make_room() -> None:
    cache = AnswerCache(16_000)
    for number in range(12):
        cache.put(question(f"SELECT {number}"), (0, 0), KILOBYTE)
        cache.get(question("SELECT 0"), (0, 0))
    kept = [n for n in range(12) if cache.get(question(f"SELECT {n}"), (0, 0)) is not None]
    assert kept == [0, *range(3, 12)]
    assert cache.size <= 16_000


def test_answer_that_would_push_out_too_many_is_not_kept() -> None:
    cache = AnswerCache(16_000)
    cache.put(question("SELECT 1"), (0, 0), KILOBYTE)
    cache.put(question("SELECT 1"), (0, 2), KILOBYTE * 2)
    assert cache.get(question("SELECT 1"), (0, 2)) is None
    assert cache.size == 0


def test_cache_without_room_keeps_nothing() -> None:
    cache = AnswerCache(0)
    cache.put(question("SELECT 1"), (0, 0), b"")
    assert cache.get(question("SELECT 1"), (0, 0)) is None
