"""The changes that give a range of rows a new version, against a model that knows every row."""

import threading
from collections.abc import Collection
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.adapters.query_scheduler.versions import DataVersions
from headrace.adapters.query_scheduler.watched_ranges import WatchedRanges
from headrace.ports.rows.versions import ALL_TIME, RowRange

DAY = RowRange("events", 100, 200)
ALL = RowRange("events", *ALL_TIME)


class Batch(NamedTuple):
    """`StoredTimes` of rows of one table, by website."""

    table: str
    times: dict[str, list[int]]

    def of_website(self, website_id: str) -> Collection[int]:
        return self.times[website_id]


class UnreadBatch(Batch):
    """Rows whose times nobody may read."""

    def of_website(self, website_id: str) -> Collection[int]:
        raise AssertionError(website_id)


def store(versions: WatchedRanges | DataVersions, table: str, website: str, *times: int) -> None:
    batch = Batch(table, {website: list(times)})
    listener = versions.changing if isinstance(versions, WatchedRanges) else versions.rows_changing
    with listener((website,), batch):
        pass


@pytest.mark.parametrize(
    ("table", "website", "time_ms", "changes"),
    [
        ("events", "a", 99, False),
        ("events", "a", 100, True),
        ("events", "a", 199, True),
        ("events", "a", 200, False),
        ("errors", "a", 150, False),
        ("events", "b", 150, False),
    ],
)
def test_a_row_changes_the_ranges_that_its_time_is_in(
    table: str, website: str, time_ms: int, changes: bool
) -> None:
    versions = WatchedRanges("n")
    before = versions.version_of("a", [DAY])
    assert before is not None
    store(versions, table, website, time_ms)
    assert (versions.version_of("a", [DAY]) != before) is changes


def test_rows_without_known_times_change_every_range_of_their_website() -> None:
    versions = DataVersions()
    before = [versions.ranges.version_of(website, [DAY]) for website in "ab"]
    with versions.rows_changing(("a",)):
        pass
    after = [versions.ranges.version_of(website, [DAY]) for website in "ab"]
    assert [old == new for old, new in zip(before, after, strict=True)] == [False, True]
    with versions.all_rows_changing():
        assert versions.ranges.version_of("b", [DAY]) is None
    assert versions.ranges.version_of("b", [DAY]) not in (None, after[1])


def test_no_version_is_known_while_rows_of_the_range_change() -> None:
    versions = WatchedRanges("n")
    with versions.changing(("a",), Batch("events", {"a": [150]})):
        assert versions.version_of("a", [DAY]) is None
        assert versions.version_of("a", [RowRange("events", 0, 100), DAY]) is None
        assert versions.version_of("a", [RowRange("events", 0, 100)]) is not None
        assert versions.version_of("b", [DAY]) is not None
    assert versions.version_of("a", [DAY]) is not None


def test_a_change_that_fails_is_a_change() -> None:
    versions = WatchedRanges("n")
    before = versions.version_of("a", [DAY])
    with (
        pytest.raises(OSError, match="disk"),
        versions.changing(("a",), Batch("events", {"a": [150]})),
    ):
        raise OSError("disk")
    assert versions.version_of("a", [DAY]) != before


def test_times_are_not_read_where_nobody_watches_the_website() -> None:
    versions = WatchedRanges("n")
    versions.version_of("a", [DAY])
    with versions.changing(("b",), UnreadBatch("events", {})):
        pass
    with versions.changing(("a",), UnreadBatch("errors", {})):
        pass


def test_processes_have_no_version_in_common() -> None:
    first, second = (WatchedRanges(nonce).version_of("a", [DAY]) for nonce in ("n1", "n2"))
    assert first != second


def test_adopted_versions_stay_until_rows_of_their_range_change() -> None:
    first = WatchedRanges("n1")
    kept = [
        first.version_of("a", [DAY]),
        first.version_of("a", [ALL]),
        first.version_of("b", [DAY]),
    ]
    second = WatchedRanges("n2")
    second.adopt(first.versions())
    assert [
        second.version_of("a", [DAY]),
        second.version_of("a", [ALL]),
        second.version_of("b", [DAY]),
    ] == kept
    store(second, "events", "a", 200)
    assert second.version_of("a", [DAY]) == kept[0]
    changed = second.version_of("a", [ALL])
    assert changed != kept[1]
    store(first, "events", "a", 200)  # a copy of the store goes its own way
    assert first.version_of("a", [ALL]) not in (kept[1], changed)


def test_of_adopted_versions_the_ones_read_last_are_kept() -> None:
    first = WatchedRanges("n1")
    versions = {website: first.version_of(website, [DAY]) for website in "abc"}
    first.version_of("a", [DAY])
    second = WatchedRanges("n2", max_ranges=2)
    second.adopt(first.versions())
    assert second.version_of("c", [DAY]) == versions["c"]
    assert second.version_of("a", [DAY]) == versions["a"]
    assert second.version_of("b", [DAY]) != versions["b"]


def test_a_forgotten_range_comes_back_with_a_version_that_it_never_had() -> None:
    versions = WatchedRanges("n", max_ranges=2)
    seen = [versions.version_of("a", [DAY])]
    others = [versions.version_of("b", [RowRange("events", 0, end)]) for end in (1, 2)]
    seen.append(versions.version_of("a", [DAY]))
    assert len({*seen, *others}) == 4


def test_a_range_that_is_new_during_a_change_is_changed_at_its_end() -> None:
    versions = WatchedRanges("n")
    entered, leave = threading.Event(), threading.Event()

    def change() -> None:
        with versions.changing(("a",), Batch("events", {"a": [150]})):
            entered.set()
            leave.wait()

    thread = threading.Thread(target=change)
    thread.start()
    entered.wait()
    during = versions.version_of("a", [DAY])
    leave.set()
    thread.join()
    assert during is None
    assert versions.version_of("a", [DAY]) is not None


WEBSITES, TABLES = ("a", "b"), ("events", "errors")
RANGES = st.builds(RowRange, st.sampled_from(TABLES), st.integers(0, 20), st.integers(0, 30))
CHANGES = st.tuples(
    st.sampled_from(TABLES),
    st.dictionaries(
        st.sampled_from(WEBSITES), st.lists(st.integers(0, 30), min_size=1), min_size=1
    ),
)


@given(watched=st.lists(RANGES, min_size=1, max_size=3), changes=st.lists(CHANGES, max_size=8))
def test_a_version_changes_exactly_with_a_row_of_its_ranges(
    watched: list[RowRange], changes: list[tuple[str, dict[str, list[int]]]]
) -> None:
    versions = WatchedRanges("n")
    for table, times in changes:
        before = {website: versions.version_of(website, watched) for website in WEBSITES}
        with versions.changing(tuple(times), Batch(table, times)):
            pass
        for website in WEBSITES:
            has_row = any(
                table == each.table and time_ms in range(each.start_ms, each.end_ms)
                for each in watched
                for time_ms in times.get(website, ())
            )
            assert (versions.version_of(website, watched) != before[website]) is has_row
