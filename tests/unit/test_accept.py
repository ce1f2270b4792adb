import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from headrace.adapters.memory.log import MemoryLog
from headrace.adapters.sqlite.idempotency import REPEATS_FILE, SqliteRepeats
from headrace.base.clock import MILLISECONDS_PER_DAY, FixedClock
from headrace.base.errors import (
    CallerError,
    Fault,
    InvalidApiKey,
    InvalidBody,
    InvalidIdempotencyKey,
    LogUnavailable,
    MissingCredentials,
    MissingScope,
    OriginNotAuthorized,
    PayloadTooLarge,
    ScopeMismatch,
    WebsiteMissingOrganization,
    WebsiteNotFound,
)
from headrace.base.telemetry import Metrics
from headrace.ingest.receive.authorize import NO_WEBSITE
from headrace.ingest.receive.decode import Endpoint
from headrace.ingest.receive.enrich import ADDRESS_FAULT
from headrace.ingest.receive.service import Accepted, Acceptor, IngestRequest
from headrace.ingest.receive.timestamps import FORMATS, SECONDS_HINT
from headrace.ingest.receive.validation_errors import REQUIRED
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
from headrace.model.tenancy import Credentials, Tenancy
from headrace.ports.event_log import Told
from tests.tenants import (
    HOMELESS,
    LIMITED,
    NOW_MS,
    READER,
    TENANCY,
    WHOLE,
    api_key,
    tenancy,
    website,
)
from tests.visitors import CHROME, CRAWLER, FRENCH, GERMAN, enricher

SIGNUP = b'{"name":"signup","anonymousId":"anon_1"}'
OLD_MS = NOW_MS - 1000
VITAL = b'{"timestamp":%d,"path":"/","metricName":"LCP","metricValue":1}' % OLD_MS
BERLINER = Visitor("DE", "Berlin", "Berlin", "Chrome", "126", "macOS", "10.15", "desktop")


class TenancyStandIn:
    """A `TenancySource` whose newest snapshot is known only after it was asked for."""

    def __init__(self, known: Tenancy, newest: Tenancy | None = None) -> None:
        self._known = known
        self._newest = newest or known
        self.refreshes = 0

    def current(self) -> Tenancy:
        return self._known

    async def refreshed(self) -> Tenancy:
        self.refreshes += 1
        self._known = self._newest
        return self._known


class SlowLog(MemoryLog):
    """A log that takes records once it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.is_reached = asyncio.Event()
        self.may_go_on = asyncio.Event()

    async def append(self, record: bytes) -> None:
        self.is_reached.set()
        await self.may_go_on.wait()
        await super().append(record)


class Desk:
    """An acceptor and everything around it."""

    def __init__(
        self,
        repeats: SqliteRepeats,
        clock: FixedClock,
        *,
        log: MemoryLog | None = None,
        source: TenancyStandIn | None = None,
        directly: bool = False,
    ) -> None:
        self.log = log or MemoryLog()
        self.clock = clock
        self.taken_directly = 0
        self._directly = directly
        self.source = source or TenancyStandIn(TENANCY)
        self._metrics = Metrics()
        self._acceptor = Acceptor(
            clock=clock,
            tenancy=self.source,
            enricher=enricher(),
            log=self.log,
            repeats=repeats,
            metrics=self._metrics,
            max_items=3,
        )

    async def take(
        self,
        body: bytes = SIGNUP,
        *,
        endpoint: Endpoint = Endpoint.TRACK,
        website_id: str | None = None,
        api_key: str | None = None,
        origin: str | None = None,
        address: str = GERMAN,
        user_agent: str = CHROME,
        once: str | None = None,
    ) -> Accepted:
        request = IngestRequest(
            endpoint=endpoint,
            body=body,
            credentials=Credentials(api_key=api_key, website_id=website_id, origin=origin),
            address=address,
            user_agent=user_agent,
            idempotency_key=once,
        )
        accepted = await self._take_directly(request) if self._directly else None
        return accepted or await self._acceptor.accept(request)

    async def _take_directly(self, request: IngestRequest) -> Accepted | None:
        told = asyncio.get_running_loop().create_future()
        accepted = self._acceptor.accept_directly(request, told.set_result)
        if accepted is not None:
            self.taken_directly += 1
            failure = await told
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
async def repeats(tmp_path: Path, clock: FixedClock) -> AsyncIterator[SqliteRepeats]:
    opened = SqliteRepeats.open(tmp_path / REPEATS_FILE, owner="worker-0", clock=clock)
    yield opened
    await opened.close()


@pytest.fixture(params=[False, True], ids=["waiting", "directly"])
def desk(repeats: SqliteRepeats, clock: FixedClock, request: pytest.FixtureRequest) -> Desk:
    return Desk(repeats, clock, directly=request.param)


async def test_event_of_a_browser_is_appended_with_its_visitor(desk: Desk) -> None:
    assert await desk.take(website_id="shop") == Accepted(1)

    assert desk.records() == [
        EventRecord(NOW_MS, BERLINER, [Event("shop", NOW_MS, "signup", "anon_1")])
    ]
    assert desk.counted("refused") == 0


async def test_only_what_has_to_wait_is_not_taken_directly(
    repeats: SqliteRepeats, clock: FixedClock
) -> None:
    desk = Desk(repeats, clock, directly=True)
    visitor = b'{"name":"a"}'

    await desk.take(visitor, website_id="shop")  # today's salt is not known yet
    await desk.take(api_key=WHOLE, website_id="shop", once="1")
    await desk.take(b"[]", website_id="shop")
    assert desk.taken_directly == 0

    await desk.take(visitor, website_id="shop")
    await desk.take(website_id="shop")
    await desk.take(b"[%b,%b]" % (visitor, visitor), api_key=WHOLE, website_id="shop")
    assert desk.taken_directly == 3
    assert len(desk.records()) == 5


class BrokenLater(MemoryLog):
    """A log that takes every record and tells later that it could not be kept."""

    def hand_in(self, record: bytes, told: Told) -> None:
        del record
        asyncio.get_running_loop().call_soon(told, LogUnavailable("full"))


async def test_failure_that_is_told_later_counts_the_items_as_refused(
    repeats: SqliteRepeats, clock: FixedClock
) -> None:
    desk = Desk(repeats, clock, log=BrokenLater(), directly=True)

    with pytest.raises(LogUnavailable):
        await desk.take(b'[{"name":"a"},{"name":"b"}]', api_key=WHOLE, website_id="shop")

    assert (desk.taken_directly, desk.counted("refused"), desk.records()) == (1, 2, [])


async def test_events_with_a_key_are_appended_without_their_sender(desk: Desk) -> None:
    body = json.dumps(
        [
            {"name": "a", "timestamp": OLD_MS},
            {"name": "b", "websiteId": "blog", "ip": FRENCH, "userAgent": CRAWLER},
        ]
    ).encode()

    assert await desk.take(body, api_key=WHOLE, website_id="shop") == Accepted(2)

    named = Visitor(country="FR", browser_name="Googlebot", device_type="bot")
    assert desk.records() == [
        EventRecord(
            NOW_MS,
            UNKNOWN_VISITOR,
            [Event("shop", OLD_MS, "a"), Event("blog", NOW_MS, "b", visitor=named)],
        )
    ]


async def test_visitor_without_cookies_is_named_on_calls_without_a_key_only(desk: Desk) -> None:
    body = b'[{"name":"a"},{"name":"b","anonymousId":""}]'

    await desk.take(body, website_id="shop")
    await desk.take(body, api_key=LIMITED)

    by_browser, by_server = desk.records()
    assert isinstance(by_browser, EventRecord)
    assert isinstance(by_server, EventRecord)
    ids = {event.anonymous_id for event in by_browser.items}
    assert len(ids) == 1
    assert ids.pop().startswith("anon_")
    assert [event.anonymous_id for event in by_server.items] == ["", ""]


async def test_vitals_go_to_their_own_stream(desk: Desk) -> None:
    accepted = await desk.take(VITAL, endpoint=Endpoint.VITALS, api_key=LIMITED)

    assert accepted == Accepted(1)
    assert desk.records() == [
        VitalRecord(NOW_MS, UNKNOWN_VISITOR, [Vital("shop", OLD_MS, "LCP", 1.0, "/")])
    ]


async def test_batch_tells_the_event_ids(desk: Desk) -> None:
    body = b'[{"name":"a","eventId":"e1"},{"name":"b"},{"name":"c","eventId":""}]'

    accepted = await desk.take(body, endpoint=Endpoint.BATCH, website_id="shop")

    assert accepted == Accepted(3, ("e1", None, None))


async def test_empty_batch_is_accepted_and_leaves_nothing_behind(desk: Desk) -> None:
    assert await desk.take(b"[]", website_id="shop") == Accepted(0)
    assert desk.records() == []


async def test_time_far_ahead_becomes_the_time_of_receipt(desk: Desk) -> None:
    ahead_ms = NOW_MS + 2 * MILLISECONDS_PER_DAY

    await desk.take(b'{"name":"a","timestamp":%d}' % ahead_ms, api_key=LIMITED)

    assert desk.records() == [EventRecord(NOW_MS, UNKNOWN_VISITOR, [Event("shop", NOW_MS, "a")])]


async def test_faults_of_types_and_times_and_visitors_are_listed_together(desk: Desk) -> None:
    body = json.dumps(
        [
            {"name": "", "timestamp": 1_714_564_800, "ip": "nowhere"},
            {"name": "a", "timestamp": "soon"},
        ]
    ).encode()

    with pytest.raises(InvalidBody) as refusal:
        await desk.take(body, api_key=LIMITED)

    assert refusal.value.faults == (
        Fault(0, "name", "must be text of 1 to 256 characters"),
        Fault(0, "timestamp", SECONDS_HINT),
        Fault(0, "ip", ADDRESS_FAULT),
        Fault(1, "timestamp", FORMATS),
    )


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        (b'[{"name":"a"},{"name":"b","timestamp":""}]', (Fault(1, "timestamp", FORMATS),)),
        (b'[{"name":"a"},{"name":"b","ip":5}]', (Fault(1, "ip", ADDRESS_FAULT),)),
        (b"[{}]", (Fault(0, "name", REQUIRED),)),
        (b"[{]", ()),
    ],
    ids=["time alone", "address alone", "type alone", "not JSON"],
)
async def test_body_is_refused_before_a_broken_key(
    desk: Desk, body: bytes, faults: tuple[Fault, ...]
) -> None:
    with pytest.raises(InvalidBody) as refusal:
        await desk.take(body, api_key="nonsense")

    assert refusal.value.faults == faults
    assert desk.records() == []


async def test_fields_of_a_visitor_are_unknown_keys_without_a_key(desk: Desk) -> None:
    body = b'{"name":"a","anonymousId":"anon_1","ip":5,"userAgent":[1e999]}'

    assert await desk.take(body, website_id="shop") == Accepted(1)
    assert desk.records() == [EventRecord(NOW_MS, BERLINER, [Event("shop", NOW_MS, "a", "anon_1")])]


async def test_event_without_a_place_is_a_fault(desk: Desk) -> None:
    with pytest.raises(InvalidBody) as refusal:
        await desk.take(api_key=HOMELESS)

    assert refusal.value.faults == (Fault(0, "websiteId", NO_WEBSITE),)


REFUSALS: dict[str, tuple[dict[str, Any], type[CallerError]]] = {
    "no credentials": ({}, MissingCredentials),
    "broken key": ({"api_key": "nonsense", "website_id": "shop"}, InvalidApiKey),
    "key without scope": ({"api_key": READER}, MissingScope),
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


@pytest.mark.parametrize(("call", "error"), REFUSALS.values(), ids=REFUSALS)
@pytest.mark.parametrize("once", [None, "key-1"], ids=["any number of times", "once"])
async def test_refused_request_leaves_nothing_behind(
    desk: Desk, call: dict[str, Any], error: type[CallerError], once: str | None
) -> None:
    if error is PayloadTooLarge:
        call = {**call, "body": call["body"] % (b',{"name":"a"}' * 3)}

    with pytest.raises(error):
        await desk.take(**call, once=once)

    assert desk.records() == []
    assert desk.counted("refused") == 1


async def test_refused_items_are_counted_one_by_one(desk: Desk) -> None:
    with pytest.raises(InvalidApiKey):
        await desk.take(b'[{"name":"a"},{"name":"b"}]', api_key="nonsense")

    assert desk.counted("refused") == 2


async def test_broken_log_refuses_and_leaves_nothing_behind(desk: Desk) -> None:
    desk.log.is_broken = True

    with pytest.raises(LogUnavailable):
        await desk.take(website_id="shop")

    assert desk.records() == []
    assert desk.counted("refused") == 1


NEW_KEY, NEW_WEBSITE = "hr_new", "new"
GROWN = tenancy(
    (website("shop"), website(NEW_WEBSITE)),
    (api_key(NEW_KEY, NEW_WEBSITE), api_key(WHOLE)),
    revision=2,
)
YOUNG = tenancy((), (api_key(WHOLE),))
FIRST = tenancy((website("only"),), (api_key(WHOLE),), revision=2)


@pytest.mark.parametrize(
    ("known", "newest", "call"),
    [
        (TENANCY, GROWN, {"api_key": NEW_KEY}),
        (TENANCY, GROWN, {"website_id": NEW_WEBSITE}),
        (YOUNG, FIRST, {"api_key": WHOLE}),
    ],
    ids=["new key", "new website", "first website, a home"],
)
async def test_what_is_new_works_at_once(
    repeats: SqliteRepeats,
    clock: FixedClock,
    known: Tenancy,
    newest: Tenancy,
    call: dict[str, Any],
) -> None:
    source = TenancyStandIn(known, newest)
    desk = Desk(repeats, clock, source=source)

    assert await desk.take(**call) == Accepted(1)
    assert source.refreshes == 1


async def test_what_is_known_costs_no_second_look(desk: Desk) -> None:
    await desk.take(website_id="shop")
    await desk.take(api_key=LIMITED)

    assert desk.source.refreshes == 0


async def test_what_is_unknown_costs_one_second_look(desk: Desk) -> None:
    with pytest.raises(WebsiteNotFound):
        await desk.take(website_id="nowhere")

    assert desk.source.refreshes == 1


async def test_repeat_gets_the_first_reply_whatever_its_body(desk: Desk) -> None:
    first = b'[{"name":"a","eventId":"e1"},{"name":"b"}]'
    others = (first, b'{"name":"c"}', b"[]", b"[{}]", b"not JSON", b'{"name":"a","websiteId":"x"}')

    replies = [
        await desk.take(body, endpoint=Endpoint.BATCH, website_id="shop", once="key-1")
        for body in (first, *others)
    ]

    assert replies == [Accepted(2, ("e1", None))] * 7
    assert len(desk.records()) == 1
    assert (desk.counted("repeated"), desk.counted("refused")) == (12, 0)


async def test_record_carries_what_may_repeat(desk: Desk) -> None:
    for once in ("key-1", "key-2", None):
        await desk.take(website_id="shop", once=once)

    keys = [record.repeat_key for record in desk.records()]
    assert [len(key) for key in keys] == [32, 32, 0]
    assert len(set(keys)) == 3


async def test_another_credential_path_or_key_is_no_repeat(desk: Desk) -> None:
    calls: tuple[dict[str, Any], ...] = (
        {"website_id": "shop", "once": "key-1"},
        {"website_id": "shop", "once": "key-2"},
        {"website_id": "blog", "once": "key-1"},
        {"api_key": LIMITED, "once": "key-1"},
        {"api_key": WHOLE, "website_id": "shop", "once": "key-1"},
        {"website_id": "shop", "once": "key-1", "endpoint": Endpoint.BATCH},
        {"website_id": "shop", "once": "key-1", "endpoint": Endpoint.PAGE},
        {"website_id": "shop"},
        {"website_id": "shop"},
    )

    for call in calls:
        await desk.take(**call)

    assert len(desk.records()) == len(calls)


async def test_identifier_is_the_same_credential_wherever_it_stands(desk: Desk) -> None:
    await desk.take(website_id="shop", once="key-1")
    await desk.take(b'{"name":"a","websiteId":"shop"}', once="key-1")

    assert len(desk.records()) == 1


async def test_identifier_of_the_first_item_is_enough_to_get_the_reply(desk: Desk) -> None:
    await desk.take(b'{"name":"a","websiteId":"shop"}', once="key-1")
    again = b'[{"name":"a","websiteId":"shop"},{"name":"b","websiteId":"blog"}]'

    assert await desk.take(again, once="key-1") == Accepted(1)


async def test_broken_credential_gets_no_remembered_reply(desk: Desk) -> None:
    await desk.take(website_id="guarded", once="key-1")

    with pytest.raises(InvalidApiKey):
        await desk.take(website_id="guarded", api_key="nonsense", once="key-1")
    with pytest.raises(OriginNotAuthorized):
        await desk.take(website_id="guarded", origin="https://evil.example", once="key-1")
    with pytest.raises(InvalidBody):
        await desk.take(b"x", website_id="guarded", origin="https://evil.example", once="key-1")


async def test_refused_request_is_not_remembered(desk: Desk) -> None:
    with pytest.raises(InvalidBody):
        await desk.take(b"{}", website_id="shop", once="key-1")
    desk.log.is_broken = True
    with pytest.raises(LogUnavailable):
        await desk.take(website_id="shop", once="key-1")
    desk.log.is_broken = False

    assert await desk.take(website_id="shop", once="key-1") == Accepted(1)
    assert len(desk.records()) == 1


async def test_reply_is_forgotten_after_a_day(desk: Desk) -> None:
    await desk.take(website_id="shop", once="key-1")
    desk.clock.advance(MILLISECONDS_PER_DAY - 1)
    await desk.take(website_id="shop", once="key-1")
    assert len(desk.records()) == 1

    desk.clock.advance(1)
    await desk.take(website_id="shop", once="key-1")

    assert len(desk.records()) == 2


async def test_repeat_waits_while_the_first_is_under_way(
    repeats: SqliteRepeats, clock: FixedClock
) -> None:
    log = SlowLog()
    desk = Desk(repeats, clock, log=log)
    first = asyncio.create_task(desk.take(website_id="shop", once="key-1"))
    await log.is_reached.wait()
    second = asyncio.create_task(desk.take(b"not JSON", website_id="shop", once="key-1"))
    await asyncio.sleep(0.05)
    assert not second.done()

    log.may_go_on.set()

    assert (await first, await second) == (Accepted(1), Accepted(1))
    assert len(desk.records()) == 1


async def test_repeat_takes_over_when_the_first_is_refused(
    repeats: SqliteRepeats, clock: FixedClock
) -> None:
    log = SlowLog()
    desk = Desk(repeats, clock, log=log)
    first = asyncio.create_task(desk.take(website_id="shop", once="key-1"))
    await log.is_reached.wait()
    second = asyncio.create_task(desk.take(website_id="shop", once="key-1"))

    first.cancel()
    log.may_go_on.set()

    assert await second == Accepted(1)
    assert len(desk.records()) == 1
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_empty_batch_is_remembered_too(desk: Desk) -> None:
    assert await desk.take(b"[]", website_id="shop", once="key-1") == Accepted(0)
    assert await desk.take(website_id="shop", once="key-1") == Accepted(0)
    assert desk.records() == []


async def test_idempotency_key_of_255_characters_is_the_longest(desk: Desk) -> None:
    assert await desk.take(website_id="shop", once="x" * 255) == Accepted(1)

    with pytest.raises(InvalidIdempotencyKey):
        await desk.take(website_id="shop", once="x" * 256)


async def test_empty_idempotency_key_is_none(desk: Desk) -> None:
    await desk.take(website_id="shop", once="")
    await desk.take(website_id="shop", once="")

    assert len(desk.records()) == 2


async def test_items_in_are_outcomes_out(desk: Desk) -> None:
    calls: tuple[tuple[bytes, str, str | None], ...] = (
        (b'[{"name":"a"},{"name":"b"},{"name":"c"}]', "shop", "key-1"),
        (b'[{"name":"a"},{"name":"b"},{"name":"c"}]', "shop", "key-1"),
        (b'[{"name":"a"},{"name":"b"}]', "nowhere", None),
        (b'{"name":"a"}', "shop", None),
    )

    for body, website_id, once in calls:
        try:
            await desk.take(body, website_id=website_id, once=once)
        except WebsiteNotFound:
            continue

    logged = sum(len(record.items) for record in desk.records())  # the loader counts these
    assert [logged, desk.counted("repeated"), desk.counted("refused")] == [4, 3, 2]
