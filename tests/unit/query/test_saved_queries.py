"""The use case of saved queries over given rows: when an answer has another entity tag."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from headrace.base.clock import FixedClock
from headrace.base.errors import InvalidQuery, NotFound
from headrace.base.metrics import Metrics
from headrace.model.data_retention import Cutoffs
from headrace.model.plan import CompiledQuery
from headrace.model.saved_query import SavedQuery, SavedQueryEntry
from headrace.model.tenancy import SecretHash, WebsiteId, hash_secret
from headrace.ports.rows.retention import FixedCutoffs
from headrace.ports.rows.versions import RowRange, RowVersions, UnknownVersions
from headrace.ports.saved_queries import SaveResult
from headrace.ports.store import CHDB_DIALECT, QueryLimits, Rows, StoreResult, StoreStatus
from headrace.query.execution import QueryExecution
from headrace.query.saved.service import SavedAnswer, SavedQueryService
from headrace.query.service import QueryService
from testing.chdb import LIMITS
from testing.queries import COUNT, WEBSITE, PickledCalls, as_bytes, query_body

DAY_MS = 86_400_000
NOON_MS = 1_767_614_400_000  # 2026-01-05T12:00:00Z
JANUARY_MS = 1_767_225_600_000
JANUARY = RowRange("events", JANUARY_MS, JANUARY_MS + 31 * DAY_MS)
TOKEN = hash_secret("hq_1")


class StoreOfRows:
    """Returns the rows that a test sets, and counts its selects."""

    def __init__(self) -> None:
        self.rows: Rows = [[1]]
        self.selects = 0

    async def select(self, query: CompiledQuery, limits: QueryLimits) -> StoreResult:
        assert query.sql
        assert limits.max_rows
        self.selects += 1
        return StoreResult(self.rows)

    async def status(self) -> StoreStatus:
        return StoreStatus.READY


class SettableVersions:
    """One version for all ranges, and the ranges that were asked for last."""

    def __init__(self) -> None:
        self.version: str | None = "1"
        self.ranges: tuple[RowRange, ...] = ()

    async def version_of(self, website_id: WebsiteId, ranges: Sequence[RowRange]) -> str | None:
        assert website_id == WEBSITE
        self.ranges = tuple(ranges)
        return self.version


class SavedInMemory:
    """Saved queries by name; all have the same token."""

    def __init__(self) -> None:
        self.kept: dict[str, SavedQuery] = {}

    def save(
        self, website_id: WebsiteId, name: str, body: bytes, *, rotate: bool = False
    ) -> SaveResult:
        self.kept[name] = SavedQuery(website_id, name, body, TOKEN, 0, 0)
        return SaveResult(self.kept[name], "hq_1" if rotate else None, is_new=True)

    def find(self, website_id: WebsiteId, name: str) -> SavedQuery | None:
        assert website_id == WEBSITE
        return self.kept.get(name)

    def find_by_token(self, token_hash: SecretHash) -> SavedQuery | None:
        return next((each for each in self.kept.values() if each.token_hash == token_hash), None)

    def list_of(self, website_id: WebsiteId) -> tuple[SavedQueryEntry, ...]:
        raise NotImplementedError

    def delete(self, website_id: WebsiteId, name: str) -> SavedQuery | None:
        found = self.find(website_id, name)
        self.kept.pop(name, None)
        return found


class Harness:
    """The service at noon of 5 January 2026."""

    def __init__(self, versions: RowVersions | None = None) -> None:
        self.clock = FixedClock(NOON_MS)
        self.store = StoreOfRows()
        self.versions = SettableVersions()
        self.saved = SavedInMemory()
        self.metrics = Metrics()
        self.cutoffs = Cutoffs()
        self._row_versions = versions or self.versions

    def service(self) -> SavedQueryService:
        execution = QueryExecution(
            store=self.store,
            limits=LIMITS,
            metrics=self.metrics,
            clock=self.clock,
            dialect=CHDB_DIALECT,
            cutoffs=FixedCutoffs(self.cutoffs),
            background=PickledCalls(),
        )
        return SavedQueryService(
            self.saved,
            queries=QueryService(execution),
            versions=self._row_versions,
            metrics=self.metrics,
        )

    def answer(self, body: Any, known: str = "", media_format: str = "json") -> SavedAnswer:
        saved = SavedQuery(WEBSITE, "one", as_bytes(body), TOKEN, 0, 0)
        return asyncio.run(self.service().answer(saved, media_format, lambda tag: tag == known))

    def tag(self, body: Any, media_format: str = "json") -> str:
        return self.answer(body, media_format=media_format).entity_tag


def last_days(days: int, **root: Any) -> dict[str, Any]:
    body = query_body(COUNT, **root)
    del body["startDate"], body["endDate"]
    return {**body, "lastDays": days}


def test_a_known_answer_costs_no_select() -> None:
    harness = Harness()
    body = query_body(COUNT)
    tag = harness.tag(body)
    assert harness.answer(body, tag) == SavedAnswer(tag, None)
    assert harness.store.selects == 1
    exposed = harness.metrics.render().decode()
    assert 'headrace_saved_answers_total{outcome="answered"} 1' in exposed
    assert 'headrace_saved_answers_total{outcome="unchanged"} 1' in exposed


def test_a_new_version_of_the_rows_is_another_answer() -> None:
    harness = Harness()
    body = query_body(COUNT)
    tag = harness.tag(body)
    harness.versions.version = "2"
    answer = harness.answer(body, tag)
    assert answer.result is not None
    assert answer.entity_tag != tag


def test_each_query_and_each_format_has_a_tag_of_its_own() -> None:
    harness = Harness()
    bodies = [query_body(COUNT), query_body(COUNT, limit=5), query_body(COUNT, table="errors")]
    tags = {harness.tag(body, ending) for body in bodies for ending in ("json", "csv")}
    assert len(tags) == 6


def test_midnight_of_the_querys_timezone_moves_a_relative_range() -> None:
    harness = Harness()
    utc, tokyo = last_days(7), last_days(7, timezone="Asia/Tokyo")
    before = harness.tag(utc), harness.tag(tokyo)
    harness.clock.advance(3 * 3_600_000)  # 15:00 UTC is midnight in Tokyo
    after = harness.tag(utc), harness.tag(tokyo)
    assert after[0] == before[0]
    assert after[1] != before[1]
    harness.clock.advance(9 * 3_600_000)
    assert harness.tag(utc) != before[0]
    assert harness.tag(tokyo) == after[1]


@pytest.mark.parametrize(
    ("body", "ranges"),
    [
        (query_body(COUNT), (JANUARY,)),
        (
            query_body(COUNT, table="web_vitals_spans"),
            (RowRange("performance", JANUARY.start_ms, JANUARY.end_ms),),
        ),
        (
            query_body(COUNT, compare="previous_period"),
            (JANUARY, RowRange("events", JANUARY_MS - 31 * DAY_MS, JANUARY_MS)),
        ),
        (query_body(COUNT, table="sessions"), "all"),
        (query_body(COUNT, table="profiles"), "all"),
    ],
    ids=["events", "alias", "compare", "sessions", "profiles"],
)
def test_the_ranges_are_all_rows_that_the_answer_is_made_of(
    body: Any, ranges: tuple[RowRange, ...] | str
) -> None:
    harness = Harness()
    harness.tag(body)
    if ranges == "all":
        (rows,) = harness.versions.ranges
        assert rows.table == "events"
        assert rows.start_ms < -(10**15)
        assert rows.end_ms > 10**15
    else:
        assert harness.versions.ranges == ranges


def test_a_cutoff_changes_the_answers_that_it_takes_rows_from() -> None:
    body, sessions = query_body(COUNT), query_body(COUNT, table="sessions")
    tags: list[tuple[str, str]] = []
    end_ms = JANUARY.end_ms
    for cutoff_ms in (
        *(None, JANUARY_MS - DAY_MS, JANUARY_MS, JANUARY_MS + DAY_MS),
        *(end_ms, end_ms + DAY_MS),
    ):
        harness = Harness()
        harness.cutoffs = Cutoffs(events=cutoff_ms)
        tags.append((harness.tag(body), harness.tag(sessions)))
    events = [of_events for of_events, _ in tags]
    assert events[0] == events[1] == events[2]
    assert events[4] == events[5]  # all rows have expired already
    assert len(set(events)) == 3
    assert len({of_sessions for _, of_sessions in tags}) == 6


def test_a_cutoff_between_compared_ranges_changes_no_answer() -> None:
    body = query_body(COUNT, compare={"startDate": "2025-01-01", "endDate": "2025-01-31"})
    compared_end_ms = JANUARY_MS - 334 * DAY_MS
    tags: list[str] = []
    for cutoff_ms in (compared_end_ms - DAY_MS, compared_end_ms, JANUARY_MS, JANUARY_MS + DAY_MS):
        harness = Harness()
        harness.cutoffs = Cutoffs(events=cutoff_ms)
        tags.append(harness.tag(body))
    assert tags[1] == tags[2]
    assert len(set(tags)) == 3


@pytest.mark.parametrize("while_changing", [True, False], ids=["rows change now", "other machines"])
def test_where_no_version_is_known_the_rows_themselves_decide(while_changing: bool) -> None:
    harness = Harness(None if while_changing else UnknownVersions())
    harness.versions.version = None
    body = query_body(COUNT)
    tag = harness.tag(body)
    assert harness.answer(body, tag) == SavedAnswer(tag, None)
    harness.store.rows = [[2]]
    changed = harness.answer(body, tag)
    assert changed.result is not None
    assert changed.entity_tag != tag
    assert harness.store.selects == 3


def test_where_no_version_is_known_the_rows_of_others_decide_too() -> None:
    harness = Harness(UnknownVersions())
    body = query_body(COUNT, group_by=["path"], granularity="daily", top=1, others=True)
    top_row, day = [JANUARY_MS // DAY_MS, "/a", 3, True], JANUARY_MS // DAY_MS
    harness.store.rows = [top_row, [day, None, 1, False]]
    tag = harness.tag(body)
    harness.store.rows = [top_row, [day, None, 2, False]]
    changed = harness.answer(body, tag)
    assert changed.result is not None
    assert changed.result.others == [{"date": "2026-01-01", "path": None, "n": 2}]
    assert changed.entity_tag != tag


def test_where_no_version_is_known_rows_may_have_numbers_of_any_size() -> None:
    harness = Harness(UnknownVersions())
    body = query_body(COUNT, group_by=["properties.n"])
    harness.store.rows = [["1" + 30 * "0", 2]]
    answer = harness.answer(body)
    assert answer.result is not None
    assert answer.result.rows == [[10**30, 2]]
    assert harness.answer(body, answer.entity_tag) == SavedAnswer(answer.entity_tag, None)
    harness.store.rows = [["1" + 29 * "0" + "1", 2]]
    assert harness.tag(body) != answer.entity_tag


def test_only_a_valid_query_with_a_valid_name_is_saved() -> None:
    harness = Harness()
    body = as_bytes(query_body(COUNT))
    for name in ("", "A", "a_b", "a.b", "ä", "a" * 65, "a/b", "a\n"):
        with pytest.raises(InvalidQuery, match="Invalid name"):
            asyncio.run(harness.service().save(WEBSITE, name, body, rotate=False))
    bad = as_bytes(query_body(COUNT, table="none"))
    with pytest.raises(InvalidQuery, match="Invalid table"):
        asyncio.run(harness.service().save(WEBSITE, "a", bad, rotate=False))
    assert harness.saved.kept == {}
    asyncio.run(harness.service().save(WEBSITE, "a-1" + "z" * 61, body, rotate=False))
    assert len(harness.saved.kept) == 1


def test_a_token_is_that_of_one_query_of_one_website() -> None:
    harness = Harness()
    service = harness.service()
    asyncio.run(service.save(WEBSITE, "one", as_bytes(query_body(COUNT)), rotate=False))
    found = harness.saved.kept["one"]
    assert asyncio.run(service.read_by_token("hq_1", "one", None)) == found
    assert asyncio.run(service.read_by_token("hq_1", "one", WEBSITE)) == found
    for token, name, website in (
        ("hq_2", "one", None),
        ("hq_1", "two", None),
        ("hq_1", "one", "web_2"),
    ):
        with pytest.raises(NotFound):
            asyncio.run(service.read_by_token(token, name, website))
