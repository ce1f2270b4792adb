from typing import Any

import msgspec
import pytest

from headrace.ingest.receive.convert import AuthorizedBatch, convert_batch, promote_fields
from headrace.ingest.receive.decoding.decode import PATH_SPECS, IngestPath, WireItem, decode_items
from headrace.ingest.receive.decoding.named_events import NamedEvent
from headrace.ingest.receive.enrich import Enrichment
from headrace.model.catalog import PROMOTED_COLUMNS, Kind
from headrace.model.log_records import (
    UNKNOWN_VISITOR,
    ErrorEvent,
    ErrorRecord,
    Event,
    EventRecord,
    LogRecord,
    Visitor,
    Vital,
    VitalRecord,
    decode_record,
    encode_record,
)
from headrace.model.tenancy import WebsiteId
from headrace.model.wire import (
    CustomEvent,
    Engagement,
    ErrorReport,
    Identification,
    Level,
    MetricName,
    PageView,
    WebVital,
)
from testing.tenants import NOW_MS

SHOP = WebsiteId("shop")


def convert(
    endpoint: IngestPath,
    *items: WireItem,
    enrichment: Enrichment | None = None,
    idempotency_digest: bytes = b"",
) -> LogRecord:
    batch = AuthorizedBatch(
        received_ms=NOW_MS,
        items=items,
        timestamps_ms=[NOW_MS - index for index in range(len(items))],
        websites=[SHOP] * len(items),
        enrichment=enrichment or Enrichment(),
        has_api_key=False,
        idempotency_digest=idempotency_digest,
    )
    record = decode_record(encode_record(convert_batch(endpoint, batch)))
    assert decode_record(encode_record(record)) == record
    return record


def only_event(endpoint: IngestPath, item: CustomEvent) -> Event:
    record = convert(endpoint, item)
    assert isinstance(record, EventRecord)
    return record.items[0]


def test_custom_event_becomes_an_event() -> None:
    item = CustomEvent(
        name="signup",
        properties={"plan": "pro"},
        anonymous_id="anon_1",
        session_id="sess_1",
        timestamp="2024-05-01",
        namespace="billing",
        source="server",
        website_id="blog",
        event_id="e1",
        path="https://shop.example/a?utm_source=x",
        url="https://shop.example/a",
    )

    assert convert(IngestPath.TRACK, item, idempotency_digest=b"digest") == EventRecord(
        received_ms=NOW_MS,
        visitor=UNKNOWN_VISITOR,
        idempotency_digest=b"digest",
        items=[
            Event(
                website_id="shop",
                time_ms=NOW_MS,
                name="signup",
                anonymous_id="anon_1",
                session_id="sess_1",
                namespace="billing",
                source="server",
                event_id="e1",
                path="https://shop.example/a?utm_source=x",
                url="https://shop.example/a",
                properties=b'{"plan":"pro"}',
            )
        ],
        has_api_key=False,
    )


@pytest.mark.parametrize(
    "item",
    [
        CustomEvent(name="a"),
        CustomEvent(
            name="a",
            properties={},
            anonymous_id="",
            session_id="",
            event_id="",
            website_id="",
            namespace="",
            source="",
            path="",
            url="",
        ),
    ],
    ids=["absent", "empty"],
)
def test_what_is_missing_is_empty(item: CustomEvent) -> None:
    assert only_event(IngestPath.TRACK, item) == Event("shop", NOW_MS, "a")


def test_item_without_an_anonymous_id_gets_the_visitor_id() -> None:
    record = convert(
        IngestPath.TRACK,
        CustomEvent(name="a"),
        CustomEvent(name="b", anonymous_id="anon_1"),
        enrichment=Enrichment(Visitor(country="DE"), anonymous_id="anon_day"),
    )

    assert record == EventRecord(
        NOW_MS,
        Visitor(country="DE"),
        [
            Event("shop", NOW_MS, "a", "anon_day"),
            Event("shop", NOW_MS - 1, "b", "anon_1"),
        ],
        has_api_key=False,
    )


def test_items_keep_their_own_visitor_fields() -> None:
    record = convert(
        IngestPath.TRACK,
        CustomEvent(name="a", ip="192.0.2.1", user_agent="Mozilla"),
        CustomEvent(name="b"),
        enrichment=Enrichment(visitors=[Visitor(country="DE"), None]),
    )

    assert record == EventRecord(
        NOW_MS,
        UNKNOWN_VISITOR,
        [
            Event("shop", NOW_MS, "a", visitor=Visitor(country="DE")),
            Event("shop", NOW_MS - 1, "b"),
        ],
        has_api_key=False,
    )


@pytest.mark.parametrize("endpoint", IngestPath, ids=lambda endpoint: endpoint.value)
def test_record_contains_neither_address_nor_user_agent(endpoint: IngestPath) -> None:
    body = msgspec.json.encode(
        {
            "name": "a",
            "timestamp": NOW_MS,
            "path": "/",
            "message": "boom",
            "metricName": "LCP",
            "metricValue": 1,
            "ip": "192.0.2.1",
            "userAgent": "Mozilla/5.0",
            "profileId": "account-17",
        }
    )
    items = decode_items(endpoint, body, max_items=1)

    record = encode_record(convert(endpoint, *items))

    assert b"192.0.2.1" not in record
    assert b"Mozilla" not in record


PROPERTIES: dict[str, tuple[bytes, bytes]] = {
    "order and types are kept": (
        b'{ "b" : 1, "a" : [1.0, -0.0, 1e3, true, null, "x"] }',
        b'{"b":1,"a":[1.0,-0.0,1000.0,true,null,"x"]}',
    ),
    "integers of any length": (
        b'{"x":123456789012345678901234567890}',
        b'{"x":123456789012345678901234567890}',
    ),
    "texts as sent": (
        rb'{"x":"\u00e9 \ud83d\ude00 \"q\" \\ \/ <b> \n"}',
        b'{"x":"\xc3\xa9 \xf0\x9f\x98\x80 \\"q\\" \\\\ / <b> \\n"}',
    ),
    "the last of repeated keys": (b'{"x":1,"x":2}', b'{"x":2}'),
    "nothing": (b"{}", b""),
}


@pytest.mark.parametrize(("sent", "kept"), PROPERTIES.values(), ids=PROPERTIES)
def test_properties_are_kept_as_one_json_text(sent: bytes, kept: bytes) -> None:
    items = decode_items(IngestPath.TRACK, b'{"name":"a","properties":' + sent + b"}", max_items=1)

    assert convert(IngestPath.TRACK, *items) == EventRecord(
        NOW_MS, UNKNOWN_VISITOR, [Event("shop", NOW_MS, "a", properties=kept)], has_api_key=False
    )


PROMOTED: dict[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
    "texts and numbers": (
        {"title": "Home", "referrer": "direct", "load_time": 12, "ttfb": 3.5, "value": 0},
        {"title": "Home", "referrer": "direct", "load_time": 12.0, "ttfb": 3.5, "value": 0.0},
    ),
    "wrong types": (
        {"title": 5, "referrer": ["x"], "language": {}, "load_time": "12", "ttfb": True},
        None,
    ),
    "nothing": ({}, None),
    "null and empty": ({"title": None, "referrer": "", "load_time": None}, None),
    "numbers that no column can hold": ({"load_time": 10**400, "ttfb": -(10**400)}, None),
    "numbers beyond 64 bits": ({"load_time": 2**70}, {"load_time": float(2**70)}),
    "long texts are cut later": ({"utm_source": "x" * 300}, {"utm_source": "x" * 300}),
}


@pytest.mark.parametrize(("sent", "promoted"), PROMOTED.values(), ids=PROMOTED)
def test_page_view_fields_of_the_right_type_are_promoted(
    sent: dict[str, Any], promoted: dict[str, Any] | None
) -> None:
    assert promote_fields(PageView(name="screen_view", **sent)) == promoted


def test_every_promoted_column_is_read_from_the_top_level() -> None:
    columns = [column for column in PROMOTED_COLUMNS if column.name not in {"path", "url"}]
    sent: dict[str, Any] = {
        column.name: "x" if column.kind is Kind.TEXT else 1.5 for column in columns
    }

    assert promote_fields(PageView(name="screen_view", **sent)) == sent


@pytest.mark.parametrize("endpoint", [IngestPath.BATCH, IngestPath.PAGE])
def test_page_view_becomes_an_event(endpoint: IngestPath) -> None:
    item = PageView(
        name="screen_view", path="/a", title="A", event_id="e1", properties={"title": "B"}
    )

    assert only_event(endpoint, item) == Event(
        "shop",
        NOW_MS,
        "screen_view",
        event_id="e1",
        path="/a",
        properties=b'{"title":"B"}',
        promoted={"title": "A"},
    )


def test_custom_event_promotes_nothing_from_the_top_level() -> None:
    items = decode_items(IngestPath.TRACK, b'{"name":"a","title":"Home"}', max_items=1)

    assert convert(IngestPath.TRACK, *items) == EventRecord(
        NOW_MS, UNKNOWN_VISITOR, [Event("shop", NOW_MS, "a")], has_api_key=False
    )


def test_web_vital_becomes_a_vital() -> None:
    full = WebVital(
        timestamp=1,
        path="/a",
        metric_name=MetricName.CLS,
        metric_value=0.25,
        anonymous_id="anon_1",
        session_id="sess_1",
        event_id="e1",
        url="https://shop.example/a",
    )
    without_visitor = WebVital(timestamp=1, path="", metric_name=MetricName.LCP, metric_value=-1.0)
    enrichment = Enrichment(Visitor(country="DE"), anonymous_id="anon_day")

    assert convert(IngestPath.VITALS, full, without_visitor, enrichment=enrichment) == VitalRecord(
        NOW_MS,
        Visitor(country="DE"),
        [
            Vital(
                "shop",
                NOW_MS,
                "CLS",
                0.25,
                "/a",
                "https://shop.example/a",
                "anon_1",
                "sess_1",
                "e1",
            ),
            Vital("shop", NOW_MS - 1, "LCP", -1.0, "", anonymous_id="anon_day"),
        ],
        has_api_key=False,
    )


def test_error_report_becomes_an_error() -> None:
    full = ErrorReport(
        timestamp=1,
        path="/a",
        message="boom",
        filename="app.js",
        lineno=1.0,
        colno=2.5,
        stack="at f",
        error_type="TypeError",
        anonymous_id="anon_1",
        session_id="sess_1",
        level=Level.FATAL,
        event_id="e1",
        url="https://shop.example/a",
    )
    without_visitor = ErrorReport(timestamp=1, path="", message="")

    assert convert(IngestPath.ERRORS, full, without_visitor) == ErrorRecord(
        NOW_MS,
        UNKNOWN_VISITOR,
        [
            ErrorEvent(
                website_id="shop",
                time_ms=NOW_MS,
                message="boom",
                path="/a",
                level="fatal",
                error_type="TypeError",
                filename="app.js",
                url="https://shop.example/a",
                lineno=1.0,
                colno=2.5,
                stack="at f",
                anonymous_id="anon_1",
                session_id="sess_1",
                event_id="e1",
            ),
            ErrorEvent("shop", NOW_MS - 1, "", ""),
        ],
        has_api_key=False,
    )


def test_long_message_and_stack_are_truncated_by_code_points() -> None:
    item = ErrorReport(
        timestamp=1, path="", message="\U0001f600" * 4097, stack="\U0001f600" * 65_537
    )

    record = convert(IngestPath.ERRORS, item)

    assert record == ErrorRecord(
        NOW_MS,
        UNKNOWN_VISITOR,
        [ErrorEvent("shop", NOW_MS, "\U0001f600" * 4096, "", stack="\U0001f600" * 65_536)],
        has_api_key=False,
    )


@pytest.mark.parametrize("endpoint", [IngestPath.TRACK, IngestPath.BATCH])
def test_profile_ids_are_kept_of_the_events_that_have_one(endpoint: IngestPath) -> None:
    event = PageView if endpoint is IngestPath.BATCH else CustomEvent

    record = convert(endpoint, event(name="a", profile_id="account-17"), event(name="b"))

    decoded = decode_record(encode_record(record))
    assert isinstance(decoded, EventRecord)
    profile_ids = {item.name: item.profile_id for item in decoded.items}
    assert profile_ids == {"a": "account-17", "b": ""}


def test_every_endpoint_is_converted_to_its_event_kind() -> None:
    samples: dict[type[WireItem | NamedEvent], WireItem] = {
        CustomEvent: CustomEvent(name="a"),
        Engagement: CustomEvent(name="engagement"),
        Identification: CustomEvent(name="identify"),
        PageView: PageView(name="a"),
        WebVital: WebVital(timestamp=1, path="", metric_name=MetricName.LCP, metric_value=1.0),
        ErrorReport: ErrorReport(timestamp=1, path="", message=""),
    }

    event_kinds = {
        endpoint: convert(endpoint, samples[spec.item]).__struct_config__.tag
        for endpoint, spec in PATH_SPECS.items()
    }

    assert event_kinds == {endpoint: spec.event_kind.value for endpoint, spec in PATH_SPECS.items()}
