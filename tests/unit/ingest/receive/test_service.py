import asyncio
import gc
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace.adapters.background.process import PooledProcess
from headrace.adapters.data_dir.paths import IDEMPOTENCY
from headrace.adapters.memory.log import MemoryLog
from headrace.adapters.sqlite.idempotency import SqliteIdempotencyStore
from headrace.base.clock import MILLISECONDS_PER_DAY, FixedClock
from headrace.base.errors import (
    ClientError,
    DirectoryUnavailable,
    DurabilityUnknown,
    FieldError,
    HeadraceError,
    InvalidApiKey,
    InvalidBody,
    InvalidIdempotencyKey,
    LogUnavailable,
    MissingCredentials,
    MissingScope,
    OriginNotAuthorized,
    PayloadTooLarge,
    ScopeMismatch,
    StoreAckTimeout,
    WebsiteMissingOrganization,
    WebsiteNotFound,
)
from headrace.base.metrics import Metrics
from headrace.ingest.receive.authorize import SEVERAL_WEBSITES
from headrace.ingest.receive.decoding.decode import IngestPath
from headrace.ingest.receive.decoding.decode_request import BodyLimits
from headrace.ingest.receive.decoding.timestamps import INVALID_TIMESTAMP, SECONDS_HINT
from headrace.ingest.receive.decoding.validation_errors import REQUIRED
from headrace.ingest.receive.enrich import ADDRESS_ERROR
from headrace.ingest.receive.preparation import AcceptResult, IngestRequest
from headrace.ingest.receive.service import IngestService
from headrace.model.data_retention import DataRetention, RetentionPolicy
from headrace.model.log_records import (
    UNKNOWN_VISITOR,
    Event,
    EventRecord,
    LogRecord,
    Visitor,
    Vital,
    VitalRecord,
    decode_record,
)
from headrace.model.tenancy import Credentials, TenancySnapshot
from headrace.ports.event_log import OnDurable
from testing.tenants import (
    KEY_WITHOUT_DEFAULT,
    LIMITED_KEY,
    NOW_MS,
    READER_KEY,
    TENANCY,
    UNRESTRICTED_KEY,
    api_key,
    tenancy,
    website,
)
from testing.visitors import CHROME, CRAWLER, FRENCH, GERMAN, enricher

SIGNUP = b'{"name":"signup","anonymousId":"anon_1"}'
OLD_MS = NOW_MS - 1000
VITAL = b'{"timestamp":%d,"path":"/","metricName":"LCP","metricValue":1}' % OLD_MS
BERLIN_VISITOR = Visitor("DE", "Berlin", "Berlin", "Chrome", "126", "macOS", "10.15", "desktop")


class FakeTenancySource:
    """A `TenancySource` that returns the newest snapshot only after a refresh."""

    def __init__(self, known: TenancySnapshot, newest: TenancySnapshot | None = None) -> None:
        self._known = known
        self._newest = newest or known
        self.is_changed = False
        self.refreshes = 0

    def current(self) -> TenancySnapshot:
        return self._known

    async def refreshed(self) -> TenancySnapshot:
        self.refreshes += 1
        self._known = self._newest
        self.is_changed = False
        return self._known

    def is_latest(self) -> bool:
        return not self.is_changed

    async def latest(self) -> TenancySnapshot:
        return await self.refreshed() if self.is_changed else self._known


class SlowLog(MemoryLog):
    """A log that appends records only after the test permits it."""

    def __init__(self) -> None:
        super().__init__()
        self.is_reached = asyncio.Event()
        self.may_go_on = asyncio.Event()

    async def append(self, record: bytes) -> None:
        self.is_reached.set()
        await self.may_go_on.wait()
        await super().append(record)


class Harness:
    """An ingest service with its dependencies."""

    def __init__(
        self,
        idempotency_store: SqliteIdempotencyStore,
        clock: FixedClock,
        *,
        log: MemoryLog | None = None,
        source: FakeTenancySource | None = None,
        nowait: bool = False,
        default_days: int = 0,
        max_items: int = 3,
    ) -> None:
        self.log = log or MemoryLog()
        self.clock = clock
        self.accepted_nowait = 0
        self.reserved: list[int] = []
        self.requests: list[IngestRequest] = []
        self._nowait = nowait
        self.source = source or FakeTenancySource(TENANCY)
        self._metrics = Metrics()
        self._acceptor = IngestService(
            clock=clock,
            tenancy=self.source,
            enricher=enricher(),
            log=self.log,
            idempotency_store=idempotency_store,
            metrics=self._metrics,
            limits=BodyLimits(max_items),
            background=PooledProcess(),
            retention=RetentionPolicy(default_days),
        )

    async def take(
        self,
        body: bytes = SIGNUP,
        *,
        endpoint: IngestPath = IngestPath.TRACK,
        website_id: str | None = None,
        api_key: str | None = None,
        origin: str | None = None,
        address: str = GERMAN,
        user_agent: str = CHROME,
        idempotency_key: str | None = None,
    ) -> AcceptResult:
        request = IngestRequest(
            endpoint=endpoint,
            body=body,
            credentials=Credentials(api_key=api_key, website_id=website_id, origin=origin),
            address=address,
            user_agent=user_agent,
            idempotency_key=idempotency_key,
        )
        self.requests.append(request)
        accepted = await self._try_accept_nowait(request) if self._nowait else None
        return accepted or await self._acceptor.accept(request, self.reserved.append)

    async def _try_accept_nowait(self, request: IngestRequest) -> AcceptResult | None:
        on_durable = asyncio.get_running_loop().create_future()
        accepted = self._acceptor.try_accept_nowait(request, on_durable.set_result)
        if accepted is not None:
            self.accepted_nowait += 1
            failure = await on_durable
            if failure is not None:
                raise failure
        return accepted

    def records(self) -> Sequence[LogRecord]:
        return [decode_record(record) for record in self.log.records]

    def counted(self, outcome: str, stream: str = "events") -> int:
        label = f'{{outcome="{outcome}",stream="{stream}"}} '
        for line in self._metrics.render().decode().splitlines():
            if line.startswith("headrace_items_total" + label):
                return int(float(line.rpartition(" ")[2]))
        return 0


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW_MS)


@pytest.fixture
async def idempotency_store(
    tmp_path: Path, clock: FixedClock
) -> AsyncIterator[SqliteIdempotencyStore]:
    opened = SqliteIdempotencyStore.open(tmp_path / IDEMPOTENCY, owner="worker-0", clock=clock)
    yield opened
    await opened.close()


@pytest.fixture(params=[False, True], ids=["waiting", "directly"])
def nowait(request: pytest.FixtureRequest) -> bool:
    """Whether requests are accepted without waiting where that is possible."""
    chosen: bool = request.param
    return chosen


@pytest.fixture
def harness(idempotency_store: SqliteIdempotencyStore, clock: FixedClock, nowait: bool) -> Harness:
    return Harness(idempotency_store, clock, nowait=nowait)


async def test_event_of_a_browser_is_appended_with_its_visitor(harness: Harness) -> None:
    assert await harness.take(website_id="shop") == AcceptResult(1)

    assert harness.records() == [
        EventRecord(
            NOW_MS, BERLIN_VISITOR, [Event("shop", NOW_MS, "signup", "anon_1")], has_api_key=False
        )
    ]
    assert harness.counted("refused") == 0


async def test_only_requests_that_must_wait_are_not_accepted_nowait(
    idempotency_store: SqliteIdempotencyStore, clock: FixedClock
) -> None:
    harness = Harness(idempotency_store, clock, nowait=True)
    visitor = b'{"name":"a"}'

    await harness.take(visitor, website_id="shop")  # today's salt is not fetched yet
    await harness.take(api_key=UNRESTRICTED_KEY, website_id="shop", idempotency_key="1")
    await harness.take(b"[]", website_id="shop")
    assert harness.accepted_nowait == 0

    await harness.take(visitor, website_id="shop")
    await harness.take(website_id="shop")
    await harness.take(b"[%b,%b]" % (visitor, visitor), api_key=UNRESTRICTED_KEY, website_id="shop")
    assert harness.accepted_nowait == 3
    assert len(harness.records()) == 5


async def test_batch_of_many_new_visitors_waits_for_them_once(
    idempotency_store: SqliteIdempotencyStore, clock: FixedClock
) -> None:
    harness = Harness(idempotency_store, clock, nowait=True, max_items=100)
    addresses = [GERMAN, *(f"2001:db8::{number}" for number in range(2, 60))]
    body = json.dumps([{"name": "a", "ip": address} for address in addresses]).encode()
    visitors = [Visitor("DE", "Berlin", "Berlin"), *[Visitor()] * 58]
    items = [Event("shop", NOW_MS, "a", visitor=visitor) for visitor in visitors]

    for _ in range(2):
        await harness.take(body, api_key=UNRESTRICTED_KEY, website_id="shop")

    assert harness.accepted_nowait == 1
    assert [record.items for record in harness.records()] == [items, items]


class LogThatFailsLater(MemoryLog):
    """A log that accepts every record and later reports that it is not durable."""

    def append_nowait(self, record: bytes, on_durable: OnDurable) -> None:
        del record
        asyncio.get_running_loop().call_soon(on_durable, LogUnavailable("full"))


async def test_asynchronous_append_failure_counts_the_items_as_rejected(
    idempotency_store: SqliteIdempotencyStore, clock: FixedClock
) -> None:
    harness = Harness(idempotency_store, clock, log=LogThatFailsLater(), nowait=True)

    with pytest.raises(LogUnavailable):
        await harness.take(
            b'[{"name":"a"},{"name":"b"}]', api_key=UNRESTRICTED_KEY, website_id="shop"
        )

    assert (harness.accepted_nowait, harness.counted("refused"), harness.records()) == (1, 2, [])


async def test_items_before_the_cutoff_are_acknowledged_and_marked_as_expired(
    idempotency_store: SqliteIdempotencyStore, clock: FixedClock, nowait: bool
) -> None:
    source = FakeTenancySource(
        tenancy(
            (
                website("shop"),
                msgspec.structs.replace(website("blog"), retention=DataRetention(events=2)),
                msgspec.structs.replace(website("news"), retention=DataRetention(days=0)),
            ),
            (api_key(UNRESTRICTED_KEY),),
        )
    )
    harness = Harness(idempotency_store, clock, source=source, nowait=nowait, default_days=10)
    midnight_ms = NOW_MS - NOW_MS % MILLISECONDS_PER_DAY

    async def expired_of(days: int, path: IngestPath, fields: dict[str, Any]) -> tuple[int, ...]:
        cutoff_ms = midnight_ms - days * MILLISECONDS_PER_DAY
        items = [
            {**fields, "websiteId": name, "timestamp": cutoff_ms + later_ms}
            for name, later_ms in (("shop", -1), ("blog", 0), ("blog", -1))
        ]
        body = json.dumps(items).encode()
        accepted = await harness.take(body, endpoint=path, api_key=UNRESTRICTED_KEY)
        assert accepted == AcceptResult(3)
        return harness.records()[-1].expired

    assert await expired_of(2, IngestPath.TRACK, {"name": "a"}) == (2,)
    assert await expired_of(10, IngestPath.TRACK, {"name": "a"}) == (0, 1, 2)
    error = {"message": "a", "path": "/"}
    assert await expired_of(2, IngestPath.ERRORS, error) == ()
    assert await expired_of(10, IngestPath.ERRORS, error) == (0, 2)
    for days, expired in ((5_000, ()), (10, ())):
        body = json.dumps({"name": "a", "timestamp": midnight_ms - days * MILLISECONDS_PER_DAY})
        await harness.take(body.encode(), api_key=UNRESTRICTED_KEY, website_id="news")
        assert harness.records()[-1].expired == expired


async def test_cutoffs_of_items_follow_the_days_and_the_directory(
    idempotency_store: SqliteIdempotencyStore, clock: FixedClock
) -> None:
    kept_for = [
        tenancy(
            (msgspec.structs.replace(website("shop"), retention=DataRetention(days=days)),),
            (api_key(UNRESTRICTED_KEY),),
        )
        for days in (3, 4)
    ]
    source = FakeTenancySource(*kept_for)
    harness = Harness(idempotency_store, clock, source=source)
    body = json.dumps({"name": "a", "timestamp": NOW_MS - 3 * MILLISECONDS_PER_DAY}).encode()
    expired: list[tuple[int, ...]] = []
    for step in (lambda: None, lambda: clock.advance(MILLISECONDS_PER_DAY), source.refreshed):
        outcome = step()
        if outcome is not None:
            await outcome
        await harness.take(body, api_key=UNRESTRICTED_KEY, website_id="shop")
        expired.append(harness.records()[-1].expired)
    assert expired == [(), (0,), ()]


async def test_item_expires_only_by_the_retention_that_stands_in_the_directory(
    idempotency_store: SqliteIdempotencyStore, clock: FixedClock, nowait: bool
) -> None:
    """A longer retention holds from the moment at which it is set: what it keeps is not lost."""
    kept_for = [
        tenancy(
            (msgspec.structs.replace(website("shop"), retention=DataRetention(days=days)),),
            (api_key(UNRESTRICTED_KEY),),
        )
        for days in (3, 5)
    ]
    source = FakeTenancySource(*kept_for)
    harness = Harness(idempotency_store, clock, source=source, nowait=nowait)

    async def expired_of(days: int) -> tuple[int, ...]:
        body = json.dumps({"name": "a", "timestamp": NOW_MS - days * MILLISECONDS_PER_DAY})
        await harness.take(body.encode(), api_key=UNRESTRICTED_KEY, website_id="shop")
        return harness.records()[-1].expired

    assert [await expired_of(days) for days in (3, 4)] == [(), (0,)]
    source.is_changed = True
    assert (await expired_of(3), source.refreshes) == ((), 0)
    assert [await expired_of(days) for days in (4, 6)] == [(), (0,)]
    assert source.refreshes == 1


async def test_events_with_a_key_are_appended_without_their_sender(harness: Harness) -> None:
    body = json.dumps(
        [
            {"name": "a", "timestamp": OLD_MS},
            {"name": "b", "websiteId": "blog", "ip": FRENCH, "userAgent": CRAWLER},
        ]
    ).encode()

    assert await harness.take(body, api_key=UNRESTRICTED_KEY, website_id="shop") == AcceptResult(2)

    named = Visitor(country="FR", browser_name="Googlebot", device_type="bot")
    assert harness.records() == [
        EventRecord(
            NOW_MS,
            UNKNOWN_VISITOR,
            [Event("shop", OLD_MS, "a"), Event("blog", NOW_MS, "b", visitor=named)],
            has_api_key=True,
        )
    ]


async def test_visitor_id_is_generated_only_without_a_key(harness: Harness) -> None:
    body = b'[{"name":"a"},{"name":"b","anonymousId":""}]'

    await harness.take(body, website_id="shop")
    await harness.take(body, api_key=LIMITED_KEY)

    by_browser, by_server = harness.records()
    assert isinstance(by_browser, EventRecord)
    assert isinstance(by_server, EventRecord)
    ids = {event.anonymous_id for event in by_browser.items}
    assert len(ids) == 1
    assert ids.pop().startswith("anon_")
    assert [event.anonymous_id for event in by_server.items] == ["", ""]


async def test_vitals_have_their_own_event_kind(harness: Harness) -> None:
    accepted = await harness.take(VITAL, endpoint=IngestPath.VITALS, api_key=LIMITED_KEY)

    assert accepted == AcceptResult(1)
    assert harness.records() == [
        VitalRecord(
            NOW_MS, UNKNOWN_VISITOR, [Vital("shop", OLD_MS, "LCP", 1.0, "/")], has_api_key=True
        )
    ]


async def test_batch_result_has_the_event_ids(harness: Harness) -> None:
    body = b'[{"name":"a","eventId":"e1"},{"name":"b"},{"name":"c","eventId":""}]'

    accepted = await harness.take(body, endpoint=IngestPath.BATCH, website_id="shop")

    assert accepted == AcceptResult(3, ("e1", None, None))


async def test_empty_batch_is_accepted_and_appends_nothing(harness: Harness) -> None:
    assert await harness.take(b"[]", website_id="shop") == AcceptResult(0)
    assert harness.records() == []


async def test_time_far_ahead_becomes_the_time_of_receipt(harness: Harness) -> None:
    ahead_ms = NOW_MS + 2 * MILLISECONDS_PER_DAY

    await harness.take(b'{"name":"a","timestamp":%d}' % ahead_ms, api_key=LIMITED_KEY)

    assert harness.records() == [
        EventRecord(NOW_MS, UNKNOWN_VISITOR, [Event("shop", NOW_MS, "a")], has_api_key=True)
    ]


async def test_field_errors_of_types_timestamps_and_visitors_are_listed_together(
    harness: Harness,
) -> None:
    body = json.dumps(
        [
            {"name": "", "timestamp": 1_714_564_800, "ip": "nowhere"},
            {"name": "a", "timestamp": "soon"},
        ]
    ).encode()

    with pytest.raises(InvalidBody) as rejection:
        await harness.take(body, api_key=LIMITED_KEY)

    assert rejection.value.field_errors == (
        FieldError(0, "name", "must be text of 1 to 256 characters"),
        FieldError(0, "timestamp", SECONDS_HINT),
        FieldError(0, "ip", ADDRESS_ERROR),
        FieldError(1, "timestamp", INVALID_TIMESTAMP),
    )


@pytest.mark.parametrize(
    ("body", "field_errors"),
    [
        (
            b'[{"name":"a"},{"name":"b","timestamp":""}]',
            (FieldError(1, "timestamp", INVALID_TIMESTAMP),),
        ),
        (b'[{"name":"a"},{"name":"b","ip":5}]', (FieldError(1, "ip", ADDRESS_ERROR),)),
        (b"[{}]", (FieldError(0, "name", REQUIRED),)),
        (b"[{]", ()),
    ],
    ids=["time alone", "address alone", "type alone", "not JSON"],
)
async def test_body_is_rejected_before_a_broken_key(
    harness: Harness, body: bytes, field_errors: tuple[FieldError, ...]
) -> None:
    with pytest.raises(InvalidBody) as rejection:
        await harness.take(body, api_key="nonsense")

    assert rejection.value.field_errors == field_errors
    assert harness.records() == []


async def test_fields_of_a_visitor_are_unknown_keys_without_a_key(harness: Harness) -> None:
    body = b'{"name":"a","anonymousId":"anon_1","ip":5,"userAgent":[1e999]}'

    assert await harness.take(body, website_id="shop") == AcceptResult(1)
    assert harness.records() == [
        EventRecord(
            NOW_MS, BERLIN_VISITOR, [Event("shop", NOW_MS, "a", "anon_1")], has_api_key=False
        )
    ]


async def test_event_without_a_website_is_a_field_error(harness: Harness) -> None:
    with pytest.raises(InvalidBody) as rejection:
        await harness.take(api_key=KEY_WITHOUT_DEFAULT)

    assert rejection.value.field_errors == (FieldError(0, "websiteId", SEVERAL_WEBSITES),)


REJECTIONS: dict[str, tuple[dict[str, Any], type[ClientError]]] = {
    "no credentials": ({}, MissingCredentials),
    "broken key": ({"api_key": "nonsense", "website_id": "shop"}, InvalidApiKey),
    "key without scope": ({"api_key": READER_KEY}, MissingScope),
    "unknown website": ({"website_id": "nowhere"}, WebsiteNotFound),
    "orphaned website": ({"website_id": "orphan"}, WebsiteMissingOrganization),
    "another website": (
        {"website_id": "shop", "body": b'{"name":"a","websiteId":"blog"}'},
        ScopeMismatch,
    ),
    "another origin": (
        {"website_id": "guarded", "origin": "https://evil.example"},
        OriginNotAuthorized,
    ),
    "too many items": ({"website_id": "shop", "body": b'[{"name":"a"}%s]'}, PayloadTooLarge),
}


@pytest.mark.parametrize(("call", "error"), REJECTIONS.values(), ids=REJECTIONS)
@pytest.mark.parametrize("idempotency_key", [None, "key-1"], ids=["any number of times", "once"])
async def test_rejected_request_appends_nothing(
    harness: Harness, call: dict[str, Any], error: type[ClientError], idempotency_key: str | None
) -> None:
    if error is PayloadTooLarge:
        call = {**call, "body": call["body"] % (b',{"name":"a"}' * 3)}

    with pytest.raises(error):
        await harness.take(**call, idempotency_key=idempotency_key)

    assert harness.records() == []
    assert harness.counted("refused") == 1


async def test_rejected_items_are_counted_one_by_one(harness: Harness) -> None:
    with pytest.raises(InvalidApiKey):
        await harness.take(b'[{"name":"a"},{"name":"b"}]', api_key="nonsense")

    assert harness.counted("refused") == 2


async def test_failing_log_rejects_and_appends_nothing(harness: Harness) -> None:
    harness.log.is_broken = True

    with pytest.raises(LogUnavailable):
        await harness.take(website_id="shop")

    assert harness.records() == []
    assert harness.counted("refused") == 1


NEW_KEY, NEW_WEBSITE = "hr_new", "new"
GROWN = tenancy(
    (website("shop"), website(NEW_WEBSITE)),
    (api_key(NEW_KEY, NEW_WEBSITE), api_key(UNRESTRICTED_KEY)),
    revision=2,
)
YOUNG = tenancy((), (api_key(UNRESTRICTED_KEY),))
FIRST = tenancy((website("only"),), (api_key(UNRESTRICTED_KEY),), revision=2)


@pytest.mark.parametrize(
    ("known", "newest", "call"),
    [
        (TENANCY, GROWN, {"api_key": NEW_KEY}),
        (TENANCY, GROWN, {"website_id": NEW_WEBSITE}),
        (YOUNG, FIRST, {"api_key": UNRESTRICTED_KEY}),
    ],
    ids=["new key", "new website", "first website, a home"],
)
async def test_new_key_and_website_work_immediately(
    idempotency_store: SqliteIdempotencyStore,
    clock: FixedClock,
    known: TenancySnapshot,
    newest: TenancySnapshot,
    call: dict[str, Any],
) -> None:
    source = FakeTenancySource(known, newest)
    harness = Harness(idempotency_store, clock, source=source)

    assert await harness.take(**call) == AcceptResult(1)
    assert source.refreshes == 1


class UnreadableTenancySource(FakeTenancySource):
    """A `TenancySource` whose directory cannot be read any more."""

    async def refreshed(self) -> TenancySnapshot:
        raise DirectoryUnavailable("the directory cannot be read")


async def test_what_is_unknown_is_unavailable_while_the_directory_cannot_be_read(
    idempotency_store: SqliteIdempotencyStore, clock: FixedClock, nowait: bool
) -> None:
    source = UnreadableTenancySource(TENANCY)
    harness = Harness(idempotency_store, clock, source=source, nowait=nowait)

    assert await harness.take(website_id="shop") == AcceptResult(1)
    assert await harness.take(api_key=LIMITED_KEY) == AcceptResult(1)
    calls: tuple[dict[str, Any], ...] = ({"api_key": "hr_unknown"}, {"website_id": "nowhere"})
    for call in calls:
        with pytest.raises(DirectoryUnavailable):
            await harness.take(**call)
    assert len(harness.records()) == 2


async def test_known_key_and_website_need_no_refresh(harness: Harness) -> None:
    await harness.take(website_id="shop")
    await harness.take(api_key=LIMITED_KEY)

    assert harness.source.refreshes == 0


async def test_unknown_key_or_website_needs_one_refresh(harness: Harness) -> None:
    with pytest.raises(WebsiteNotFound):
        await harness.take(website_id="nowhere")

    assert harness.source.refreshes == 1


async def test_repeat_with_an_invalid_body_gets_its_own_error(harness: Harness) -> None:
    await harness.take(website_id="shop", idempotency_key="key-1")

    for body in (b"[{}]", b"not JSON", b'{"name":"a","timestamp":"x"}'):
        with pytest.raises(InvalidBody):
            await harness.take(body, website_id="shop", idempotency_key="key-1")

    assert (harness.counted("repeated"), harness.counted("refused")) == (0, 3)


async def test_repeat_gets_the_first_response_whatever_its_valid_body(harness: Harness) -> None:
    first = b'[{"name":"a","eventId":"e1"},{"name":"b"}]'
    others = (first, b'{"name":"c"}', b"[]", b'{"name":"a","websiteId":"x"}')

    responses = [
        await harness.take(
            body, endpoint=IngestPath.BATCH, website_id="shop", idempotency_key="key-1"
        )
        for body in (first, *others)
    ]

    assert responses == [AcceptResult(2, ("e1", None))] * 5
    assert len(harness.records()) == 1
    assert (harness.counted("repeated"), harness.counted("refused")) == (8, 0)


async def test_record_carries_its_idempotency_digest(harness: Harness) -> None:
    for idempotency_key in ("key-1", "key-2", None):
        await harness.take(website_id="shop", idempotency_key=idempotency_key)

    keys = [record.idempotency_digest for record in harness.records()]
    assert [len(key) for key in keys] == [32, 32, 0]
    assert len(set(keys)) == 3


async def test_another_credential_path_or_key_is_no_repeat(harness: Harness) -> None:
    calls: tuple[dict[str, Any], ...] = (
        {"website_id": "shop", "idempotency_key": "key-1"},
        {"website_id": "shop", "idempotency_key": "key-2"},
        {"website_id": "blog", "idempotency_key": "key-1"},
        {"api_key": LIMITED_KEY, "idempotency_key": "key-1"},
        {"api_key": UNRESTRICTED_KEY, "website_id": "shop", "idempotency_key": "key-1"},
        {"website_id": "shop", "idempotency_key": "key-1", "endpoint": IngestPath.BATCH},
        {"website_id": "shop", "idempotency_key": "key-1", "endpoint": IngestPath.PAGE},
        {"website_id": "shop"},
        {"website_id": "shop"},
    )

    for call in calls:
        await harness.take(**call)

    assert len(harness.records()) == len(calls)


async def test_identifier_is_one_credential_in_every_location(harness: Harness) -> None:
    await harness.take(website_id="shop", idempotency_key="key-1")
    await harness.take(b'{"name":"a","websiteId":"shop"}', idempotency_key="key-1")

    assert len(harness.records()) == 1


async def test_identifier_of_the_first_item_is_enough_for_a_replay(harness: Harness) -> None:
    await harness.take(b'{"name":"a","websiteId":"shop"}', idempotency_key="key-1")
    again = b'[{"name":"a","websiteId":"shop"},{"name":"b","websiteId":"blog"}]'

    assert await harness.take(again, idempotency_key="key-1") == AcceptResult(1)


async def test_invalid_credential_gets_no_replay(harness: Harness) -> None:
    await harness.take(website_id="guarded", idempotency_key="key-1")

    with pytest.raises(InvalidApiKey):
        await harness.take(website_id="guarded", api_key="nonsense", idempotency_key="key-1")
    with pytest.raises(OriginNotAuthorized):
        await harness.take(
            website_id="guarded", origin="https://evil.example", idempotency_key="key-1"
        )
    with pytest.raises(InvalidBody):
        await harness.take(
            b"x", website_id="guarded", origin="https://evil.example", idempotency_key="key-1"
        )


async def test_rejected_request_is_not_replayed(harness: Harness) -> None:
    with pytest.raises(InvalidBody):
        await harness.take(b"{}", website_id="shop", idempotency_key="key-1")
    harness.log.is_broken = True
    with pytest.raises(LogUnavailable):
        await harness.take(website_id="shop", idempotency_key="key-1")
    harness.log.is_broken = False

    assert await harness.take(website_id="shop", idempotency_key="key-1") == AcceptResult(1)
    assert len(harness.records()) == 1


class FullIdempotencyStore(SqliteIdempotencyStore):
    """An idempotency store whose disk is full when a claim is to be released."""

    async def release(self, digest: bytes) -> None:
        del digest
        raise LogUnavailable("the disk is full")


@pytest.mark.parametrize(
    "failure",
    [DurabilityUnknown("the disk failed"), StoreAckTimeout("not yet in the store")],
    ids=["perhaps durable", "stored later"],
)
async def test_items_that_may_be_stored_are_not_refused_where_the_claim_cannot_be_released(
    tmp_path: Path, clock: FixedClock, failure: HeadraceError
) -> None:
    class FailingLog(MemoryLog):
        async def append(self, record: bytes) -> None:
            await super().append(record)
            raise failure

    store = FullIdempotencyStore.open(tmp_path / IDEMPOTENCY, owner="worker-0", clock=clock)
    harness = Harness(store, clock, log=FailingLog())

    with pytest.raises(type(failure)):
        await harness.take(website_id="shop", idempotency_key="key-1")
    await store.close()

    assert harness.counted("refused") == 0


async def test_saved_response_expires_after_a_day(harness: Harness) -> None:
    await harness.take(website_id="shop", idempotency_key="key-1")
    harness.clock.advance(MILLISECONDS_PER_DAY - 1)
    await harness.take(website_id="shop", idempotency_key="key-1")
    assert len(harness.records()) == 1

    harness.clock.advance(1)
    await harness.take(website_id="shop", idempotency_key="key-1")

    assert len(harness.records()) == 2


async def test_retry_waits_while_the_first_request_runs(
    idempotency_store: SqliteIdempotencyStore, clock: FixedClock
) -> None:
    log = SlowLog()
    harness = Harness(idempotency_store, clock, log=log)
    first = asyncio.create_task(harness.take(website_id="shop", idempotency_key="key-1"))
    await log.is_reached.wait()
    second = asyncio.create_task(
        harness.take(b'{"name":"another"}', website_id="shop", idempotency_key="key-1")
    )
    await asyncio.sleep(0.05)
    assert not second.done()

    log.may_go_on.set()

    assert (await first, await second) == (AcceptResult(1), AcceptResult(1))
    assert len(harness.records()) == 1


async def test_retry_takes_over_when_the_first_request_is_rejected(
    idempotency_store: SqliteIdempotencyStore, clock: FixedClock
) -> None:
    log = SlowLog()
    harness = Harness(idempotency_store, clock, log=log)
    first = asyncio.create_task(harness.take(website_id="shop", idempotency_key="key-1"))
    await log.is_reached.wait()
    second = asyncio.create_task(harness.take(website_id="shop", idempotency_key="key-1"))

    first.cancel()
    log.may_go_on.set()

    assert await second == AcceptResult(1)
    assert len(harness.records()) == 1
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_empty_batch_is_remembered_too(harness: Harness) -> None:
    assert await harness.take(b"[]", website_id="shop", idempotency_key="key-1") == AcceptResult(0)
    assert await harness.take(website_id="shop", idempotency_key="key-1") == AcceptResult(0)
    assert harness.records() == []


async def test_idempotency_key_of_255_characters_is_the_longest(harness: Harness) -> None:
    assert await harness.take(website_id="shop", idempotency_key="x" * 255) == AcceptResult(1)

    with pytest.raises(InvalidIdempotencyKey):
        await harness.take(website_id="shop", idempotency_key="x" * 256)


async def test_empty_idempotency_key_is_none(harness: Harness) -> None:
    await harness.take(website_id="shop", idempotency_key="")
    await harness.take(website_id="shop", idempotency_key="")

    assert len(harness.records()) == 2


async def test_received_items_equal_counted_outcomes(harness: Harness) -> None:
    calls: tuple[tuple[bytes, str, str | None], ...] = (
        (b'[{"name":"a"},{"name":"b"},{"name":"c"}]', "shop", "key-1"),
        (b'[{"name":"a"},{"name":"b"},{"name":"c"}]', "shop", "key-1"),
        (b'[{"name":"a"},{"name":"b"}]', "nowhere", None),
        (b'{"name":"a"}', "shop", None),
    )

    for body, website_id, idempotency_key in calls:
        try:
            await harness.take(body, website_id=website_id, idempotency_key=idempotency_key)
        except WebsiteNotFound:
            continue

    logged = sum(len(record.items) for record in harness.records())  # the loader counts these
    assert [logged, harness.counted("repeated"), harness.counted("refused")] == [4, 3, 2]


def large(name: str = "large") -> bytes:
    """Return an event that is decoded in the background: 300,000 values."""
    values = b"1.50," * 300_000
    return b'{"name":"%s","anonymousId":"anon_1","properties":{"x":[%s1]}}' % (
        name.encode(),
        values,
    )


async def test_large_body_is_stored_as_a_small_one_is(
    idempotency_store: SqliteIdempotencyStore, clock: FixedClock
) -> None:
    harness = Harness(idempotency_store, clock)

    assert await harness.take(large(), website_id="shop") == AcceptResult(1)

    properties = b'{"x":[' + b"1.5," * 300_000 + b"1]}"
    event = Event("shop", NOW_MS, "large", "anon_1", properties=properties)
    assert harness.records() == [EventRecord(NOW_MS, BERLIN_VISITOR, [event], has_api_key=False)]
    assert harness.reserved == [len(large())]


@pytest.mark.parametrize(
    ("credentials", "error"),
    [
        ({"api_key": "hr_unknown"}, InvalidApiKey),
        ({"api_key": READER_KEY}, MissingScope),
        ({"website_id": "unknown"}, WebsiteNotFound),
        ({}, MissingCredentials),
    ],
    ids=["unknown key", "key without scope", "unknown website", "none"],
)
async def test_errors_of_a_large_body_come_before_those_of_its_credentials(
    idempotency_store: SqliteIdempotencyStore,
    clock: FixedClock,
    credentials: dict[str, Any],
    error: type[ClientError],
) -> None:
    harness = Harness(idempotency_store, clock)
    with pytest.raises(error):
        await harness.take(large(), **credentials)
    with pytest.raises(InvalidBody):
        await harness.take(large(name=""), **credentials)

    assert harness.counted("refused") == 2
    assert harness.records() == []


async def test_new_website_of_a_large_body_is_looked_up(
    idempotency_store: SqliteIdempotencyStore, clock: FixedClock
) -> None:
    source = FakeTenancySource(tenancy((), (), revision=0), TENANCY)
    harness = Harness(idempotency_store, clock, source=source)

    assert await harness.take(large(), website_id="shop") == AcceptResult(1)


def count_dictionaries() -> int:
    return sum(type(one) is dict for one in gc.get_objects())


async def test_waiting_request_keeps_its_record_alone(
    idempotency_store: SqliteIdempotencyStore, clock: FixedClock
) -> None:
    log = SlowLog()
    harness = Harness(idempotency_store, clock, log=log)
    body = b'{"name":"a","properties":{"x":[' + b"{}," * 10_000 + b"{}]}}"
    dictionaries = count_dictionaries()

    waiting = asyncio.create_task(harness.take(body, website_id="shop"))
    await log.is_reached.wait()
    gc.collect()
    kept = count_dictionaries() - dictionaries
    log.may_go_on.set()
    await waiting

    assert kept < 1_000
    assert harness.requests[-1].body == b""
