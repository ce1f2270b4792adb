"""GET /v1/live over a fake use case: who may listen, and what is sent."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from headrace.base.errors import (
    FieldError,
    InvalidBody,
    LogUnavailable,
    RateLimited,
    StoreUnavailable,
)
from headrace.ingest.receive.refusals import RefusedCall
from headrace.model.tenancy import Credentials, WebsiteId
from tests.contract.http.fakes import (
    FOREIGN_KEY,
    MANAGER_KEY,
    PRIVATE,
    PUBLIC,
    READER_KEY,
    FakeLiveStreams,
    Harness,
    Response,
    make_scope,
)


def call(
    harness: Harness, website: str | None = PRIVATE, key: str | None = READER_KEY, **headers: str
) -> Response:
    query = "" if website is None else f"website_id={website}"
    credentials = {} if key is None else {"Authorization": f"Bearer {key}"}
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return harness.call("GET", "/v1/live", query=query, headers={**credentials, **sent})


@pytest.mark.parametrize(
    ("website", "key"), [(PRIVATE, READER_KEY), (PUBLIC, None)], ids=["key", "public website"]
)
def test_events_are_sent_as_they_are(website: str, key: str | None) -> None:
    harness = Harness()
    response = call(harness, website, key)
    assert (response.status, response.body) == (200, b":\n\ndata: 1\n\n")
    assert response.headers["content-type"] == "text/event-stream"
    assert response.headers["cache-control"] == "no-store"
    assert "content-length" not in response.headers
    assert "x-ratelimit-remaining" in response.headers
    assert harness.live.requests == [(website, "")]
    assert harness.live.counted == []  # the stream has ended


class SlowStreams(FakeLiveStreams):
    """Streams that are open once `opening` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.requested, self.opening = asyncio.Event(), asyncio.Event()

    async def stream(
        self, website_id: WebsiteId, last_id: str, may_read: Callable[[], bool]
    ) -> AsyncGenerator[bytes]:
        self.requested.set()
        await self.opening.wait()
        async for event in super().stream(website_id, last_id, may_read):
            yield event


def test_no_head_is_sent_before_the_stream_is_open() -> None:
    """A browser says that it listens when it has the head: items must be shown from then on."""
    harness = Harness()
    harness.live = streams = SlowStreams()
    scope = make_scope(
        "GET", "/v1/live", f"website_id={PRIVATE}", [("Authorization", f"Bearer {READER_KEY}")]
    )
    sent: list[str] = []
    has_received = False

    async def receive() -> Any:
        nonlocal has_received
        if has_received:
            await asyncio.Event().wait()
        has_received = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message["type"])

    async def scenario() -> list[str]:
        exchanging = asyncio.ensure_future(harness.app()(scope, receive, send))
        async with asyncio.timeout(60):
            await streams.requested.wait()
            await asyncio.sleep(0)
            sent_before = list(sent)
            streams.opening.set()
            await exchanging
        return sent_before

    assert asyncio.run(scenario()) == []
    assert sent[0] == "http.response.start"


def test_the_last_id_is_passed_on() -> None:
    harness = Harness()
    call(harness, Last_Event_ID="a-1")
    assert harness.live.requests == [(PRIVATE, "a-1")]


def test_a_stream_ends_with_its_key() -> None:
    harness = Harness()
    call(harness)
    assert harness.live.may_read()
    harness.tenancy.snapshot = type(harness.tenancy.snapshot)(0, {}, {}, {})
    assert not harness.live.may_read()


def test_too_many_streams_are_429() -> None:
    harness = Harness()
    harness.live.outcome = RateLimited(15)
    response = call(harness)
    assert (response.status, response.json["code"]) == (429, "RATE_LIMITED")
    assert response.headers["retry-after"] == "15"


def test_a_stream_is_503_while_the_engine_is_away() -> None:
    harness = Harness()
    harness.live.outcome = StoreUnavailable("the engine is away")
    assert call(harness).status == 503


@pytest.mark.parametrize(
    ("website", "key", "status", "error"),
    [
        (PRIVATE, None, 401, "Authentication required"),
        (PRIVATE, "hr_unknown", 401, "Invalid API key"),
        (PRIVATE, MANAGER_KEY, 403, "API key missing read:data scope"),
        (None, READER_KEY, 400, "website_id is required"),
        (PRIVATE, FOREIGN_KEY, 404, "Website not found"),
    ],
)
def test_a_stream_is_refused_as_a_query_is(
    website: str | None, key: str | None, status: int, error: str
) -> None:
    response = call(Harness(), website, key)
    assert (response.status, response.json["error"]) == (status, error)


def test_a_refused_call_is_reported_with_its_faults_and_its_credentials() -> None:
    harness = Harness()
    faults = (FieldError(3, "name", "is required"),)
    harness.acceptor.outcome = InvalidBody(faults)
    response = harness.call("POST", "/vitals", b"[]", query=f"website_id={PRIVATE}")
    assert response.status == 400
    assert harness.refusals.calls == [
        (Credentials(website_id=PRIVATE), RefusedCall("/vitals", "INVALID_BODY", faults))
    ]


def test_a_call_that_is_accepted_or_fails_is_no_refusal() -> None:
    harness = Harness()
    assert harness.call("POST", "/track", b"{}").status == 200
    harness.acceptor.outcome = LogUnavailable("the disk is full")
    assert harness.call("POST", "/track", b"{}").status == 503
    assert harness.refusals.calls == []
