import json
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import Raw

from headrace.base.errors import FieldError, InvalidBody, PayloadTooLarge
from headrace.ingest.receive.decoding.decode import (
    ARRAY_NOT_ALLOWED,
    PATH_SPECS,
    IngestPath,
    WireItem,
    decode_items,
    list_field_errors,
)
from headrace.ingest.receive.decoding.timestamps import INVALID_TIMESTAMP
from headrace.ingest.receive.decoding.validation_errors import (
    INVALID_CHARACTER,
    MAX_FIELD_ERRORS,
    NOT_AN_OBJECT,
    NUMBER_OUT_OF_RANGE,
    REQUIRED,
    TOO_DEEP,
    Check,
)
from headrace.ingest.receive.enrich import ADDRESS_ERROR, USER_AGENT_ERROR, VISITOR_CHECKS
from headrace.model.wire import CustomEvent, ErrorReport, MetricName, PageView, WebVital

TRACK, VITALS, ERRORS, BATCH, PAGE, ENGAGEMENT, IDENTIFY = IngestPath
MAX_ITEMS = 20
TEXT_256 = "must be text of at most 256 characters"
TEXT_2048 = "must be text of at most 2048 characters"


def decode(endpoint: IngestPath, body: bytes) -> list[WireItem]:
    return list(decode_items(endpoint, body, max_items=MAX_ITEMS))


def field_errors(
    endpoint: IngestPath, body: bytes, checks: Mapping[str, Check] | None = None
) -> tuple[FieldError, ...]:
    with pytest.raises(InvalidBody) as rejection:
        decode_items(endpoint, body, max_items=MAX_ITEMS, checks=checks or {})
    return rejection.value.field_errors


FAR_TOO_DEEP = 1_000_000
"""Levels that no version of Python decodes: 3.14 takes as many as fit on the stack."""


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


def nested_object(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


GOOD: dict[str, tuple[IngestPath, bytes, list[WireItem]]] = {
    "bare object": (TRACK, b'{"name":"a"}', [CustomEvent(name="a")]),
    "array": (
        TRACK,
        b' [ {"name":"a"} , {"name":"b"} ]\n',
        [CustomEvent(name="a"), CustomEvent(name="b")],
    ),
    "empty array": (TRACK, b"[]", []),
    "unknown keys": (TRACK, b'{"name":"a","userId":"p","x":{"y":[1]}}', [CustomEvent(name="a")]),
    "profile": (TRACK, b'{"name":"a","profileId":"p"}', [CustomEvent(name="a", profile_id="p")]),
    "engagement": (
        ENGAGEMENT,
        b'[{"timestamp":5,"path":"/a","exitType":"spa","clicks":3,"sessionId":"s","name":"n"},{}]',
        [
            CustomEvent(
                name="engagement",
                timestamp=5,
                path="/a",
                session_id="s",
                properties={"exitType": "spa", "clicks": 3, "name": "n"},
            ),
            CustomEvent(name="engagement", properties={}),
        ],
    ),
    "engagement in nested objects": (
        ENGAGEMENT,
        b'{"x":%b,"y":"\\ud83d\\ude00"}' % (b'{"a":' * 62 + b"1" + b"}" * 62),
        [CustomEvent(name="engagement", properties={"x": nested_object(62), "y": "\U0001f600"})],
    ),
    "identification": (
        IDENTIFY,
        b'{"profileId":"p","anonymousId":"a","traits":{"plan":"pro"},"ip":7}',
        [
            CustomEvent(
                name="identify",
                profile_id="p",
                anonymous_id="a",
                properties={"traits": {"plan": "pro"}},
                ip=7,
            )
        ],
    ),
    "null in every optional field": (
        TRACK,
        b'{"name":"a","properties":null,"anonymousId":null,"timestamp":null,"path":null,"ip":null}',
        [CustomEvent(name="a")],
    ),
    "repeated key, the last wins": (TRACK, b'{"name":"b","name":"a"}', [CustomEvent(name="a")]),
    "repeated key, the last is right": (TRACK, b'{"name":1,"name":"a"}', [CustomEvent(name="a")]),
    "escaped key": (TRACK, b'{"n\\u0061me":"a"}', [CustomEvent(name="a")]),
    "code points and not bytes are counted": (
        TRACK,
        json.dumps({"name": "\U0001f600" * 256}, ensure_ascii=False).encode(),
        [CustomEvent(name="\U0001f600" * 256)],
    ),
    "surrogate pair": (TRACK, b'{"name":"\\ud83d\\ude00"}', [CustomEvent(name="\U0001f600")]),
    "escaped backslash before u0000": (
        TRACK,
        b'{"name":"\\\\u0000"}',
        [CustomEvent(name="\\u0000")],
    ),
    "escaped backslash before ud800": (
        TRACK,
        b'{"name":"\\\\ud800"}',
        [CustomEvent(name="\\ud800")],
    ),
    "64 levels": (TRACK, b'[{"name":"a","x":%b}]' % nested(62), [CustomEvent(name="a")]),
    "brackets in texts are no nesting": (
        TRACK,
        b'{"name":"a","x":"\\"%b","y":"%b"}' % (b"[" * 99, b"{" * 99),
        [CustomEvent(name="a")],
    ),
    "many brackets side by side are no nesting": (
        TRACK,
        b'[{"name":"a","x":[%b]}]' % b",".join([b'["]","\\\\"]'] * 99),
        [CustomEvent(name="a")],
    ),
    "number out of range where nobody looks": (
        TRACK,
        b'{"name":"a","x":1e999,"ip":1e999,"userAgent":1e999}',
        [CustomEvent(name="a")],
    ),
    "vital": (
        VITALS,
        b'{"timestamp":1714564800000.5,"path":"","metricName":"CLS","metricValue":0.25}',
        [
            WebVital(
                timestamp=1714564800000.5,
                path="",
                metric_name=MetricName.CLS,
                metric_value=0.25,
            )
        ],
    ),
    "error": (
        ERRORS,
        b'{"timestamp":"2024-05-01","path":"/","message":"","lineno":7}',
        [ErrorReport(timestamp="2024-05-01", path="/", message="", lineno=7.0)],
    ),
    "page view": (
        PAGE,
        b'{"name":"screen_view","title":"Home","time_on_page":1.5,"anonymousId":"anon_1"}',
        [PageView(name="screen_view", title="Home", time_on_page=1.5, anonymous_id="anon_1")],
    ),
    "page view with wrong types to lift": (
        BATCH,
        b'[{"name":"screen_view","title":5,"referrer":[],"language":{},"load_time":"1"}]',
        [PageView(name="screen_view", title=5, referrer=[], language={}, load_time="1")],
    ),
    "page view with numbers out of range to lift": (
        BATCH,
        b'{"name":"a","title":1e999,"load_time":1e999,"value":%b}' % (b"9" * 5000),
        [PageView(name="a")],
    ),
}


@pytest.mark.parametrize(("endpoint", "body", "items"), GOOD.values(), ids=GOOD)
def test_good_body_is_decoded(endpoint: IngestPath, body: bytes, items: list[WireItem]) -> None:
    assert decode(endpoint, body) == items


NOT_JSON = {
    "empty": b"",
    "blank": b" \n",
    "words": b"hello",
    "cut off": b'{"name":"a"',
    "trailing comma": b'[{"name":"a"},]',
    "trailing characters": b'{"name":"a"} x',
    "two values": b'{"name":"a"},{"name":"b"}',
    "not a number": b'{"name":"a","x":NaN}',
    "single quotes": b"{'name':'a'}",
    "comment": b'{"name":"a"} // x',
    "byte order mark": b'\xef\xbb\xbf{"name":"a"}',
    "UTF-16": '{"name":"a"}'.encode("utf-16"),
    "not UTF-8": b'{"name":"\xff"}',
    "not UTF-8 in an unknown key": b'{"name":"a","\xff":1}',
    "not UTF-8 in an unknown value": b'{"name":"a","x":{"y":"\xff"}}',
    "surrogate in UTF-8": b'{"name":"a","x":"\xed\xa0\x80"}',
    "raw NUL": b'{"name":"\x00"}',
    "line feed in a text": b'{"name":"a\nb"}',
    "far too deep": nested(FAR_TOO_DEEP),
    "far too deep and open": b"[" * FAR_TOO_DEEP,
    "far too deep in an object": b'{"name":"a","x":%b}' % nested(FAR_TOO_DEEP),
}


@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON)
@pytest.mark.parametrize("endpoint", IngestPath, ids=lambda endpoint: endpoint.value)
def test_undecodable_body_is_rejected_without_field_errors(
    endpoint: IngestPath, body: bytes
) -> None:
    assert field_errors(endpoint, body) == ()


FAULTY: dict[str, tuple[IngestPath, bytes, list[tuple[str, str]]]] = {
    "name missing": (TRACK, b"{}", [("name", REQUIRED)]),
    "name null": (TRACK, b'{"name":null}', [("name", REQUIRED)]),
    "name empty": (TRACK, b'{"name":""}', [("name", "must be text of 1 to 256 characters")]),
    "name of 257 characters": (
        TRACK,
        b'{"name":"%b"}' % (b"x" * 257),
        [("name", "must be text of 1 to 256 characters")],
    ),
    "wrong types": (
        TRACK,
        json.dumps(
            {
                "properties": [],
                "anonymousId": 5,
                "timestamp": True,
                "namespace": {},
                "source": False,
                "name": 5,
                "websiteId": 1,
                "eventId": 2,
                "path": 3,
                "url": 4,
                "sessionId": [],
            }
        ).encode(),
        [
            ("name", "must be text of 1 to 256 characters"),
            ("properties", "must be an object"),
            ("anonymousId", TEXT_256),
            ("sessionId", TEXT_256),
            ("timestamp", INVALID_TIMESTAMP),
            ("namespace", "must be text of at most 64 characters"),
            ("source", "must be text of at most 64 characters"),
            ("websiteId", "must be text of at most 255 characters"),
            ("eventId", "must be text of at most 512 characters"),
            ("path", TEXT_2048),
            ("url", TEXT_2048),
        ],
    ),
    "too long": (
        TRACK,
        json.dumps(
            {
                "name": "a",
                "anonymousId": "x" * 257,
                "namespace": "x" * 65,
                "websiteId": "x" * 256,
                "eventId": "x" * 513,
                "path": "x" * 2049,
            }
        ).encode(),
        [
            ("anonymousId", TEXT_256),
            ("namespace", "must be text of at most 64 characters"),
            ("websiteId", "must be text of at most 255 characters"),
            ("eventId", "must be text of at most 512 characters"),
            ("path", TEXT_2048),
        ],
    ),
    "vital of nothing": (
        VITALS,
        b"{}",
        [
            ("timestamp", REQUIRED),
            ("path", REQUIRED),
            ("metricName", REQUIRED),
            ("metricValue", REQUIRED),
        ],
    ),
    "vital of wrong types": (
        VITALS,
        b'{"timestamp":[],"path":null,"metricName":"lcp","metricValue":"1"}',
        [
            ("timestamp", INVALID_TIMESTAMP),
            ("path", REQUIRED),
            ("metricName", "must be one of FCP, LCP, CLS, INP, TTFB, FPS"),
            ("metricValue", "must be a finite number"),
        ],
    ),
    "vital that is a boolean": (
        VITALS,
        b'{"timestamp":1714564800000,"path":"/","metricName":"LCP","metricValue":true}',
        [("metricValue", "must be a finite number")],
    ),
    "vital out of range": (
        VITALS,
        b'{"timestamp":1714564800000,"path":"/","metricName":"LCP","metricValue":-1e999}',
        [("metricValue", "must be a finite number")],
    ),
    "error of wrong types": (
        ERRORS,
        json.dumps(
            {
                "timestamp": None,
                "path": 1,
                "filename": "x" * 2049,
                "lineno": "1",
                "colno": True,
                "stack": 5,
                "errorType": "x" * 129,
                "level": "warn",
            }
        ).encode(),
        [
            ("timestamp", REQUIRED),
            ("path", TEXT_2048),
            ("message", REQUIRED),
            ("filename", TEXT_2048),
            ("lineno", "must be a finite number"),
            ("colno", "must be a finite number"),
            ("stack", "must be text"),
            ("errorType", "must be text of at most 128 characters"),
            ("level", "must be one of debug, info, warning, error, fatal"),
        ],
    ),
    "NUL in an overridden value": (
        TRACK,
        b'{"name":"a\\u0000","name":"a"}',
        [("", INVALID_CHARACTER)],
    ),
    "lone surrogate in overridden properties": (
        TRACK,
        b'{"name":"a","properties":{"a":"\\ud800"},"properties":{}}',
        [("", INVALID_CHARACTER)],
    ),
    "NUL in an overridden value of an unknown key": (
        TRACK,
        b'{"name":"a","x":"\\u0000","x":1}',
        [("", INVALID_CHARACTER)],
    ),
    "overridden value that is too deep": (
        TRACK,
        b'{"name":"a","properties":{"a":%b},"properties":{}}' % nested(63),
        [("", TOO_DEEP)],
    ),
    "page view with long texts": (
        PAGE,
        b'{"name":"a","title":"%b","referrer":"%b"}' % (b"x" * 513, b"x" * 2049),
        [("title", "must be text of at most 512 characters"), ("referrer", TEXT_2048)],
    ),
    "identification without a profile": (IDENTIFY, b"{}", [("profileId", REQUIRED)]),
    "identification with wrong types": (
        IDENTIFY,
        b'{"profileId":"","path":1,"traits":[],"x":"\\u0000"}',
        [
            ("profileId", "must be text of 1 to 128 characters"),
            ("path", TEXT_2048),
            ("traits", NOT_AN_OBJECT),
            ("", INVALID_CHARACTER),
        ],
    ),
    "array to /identify": (IDENTIFY, b'[{"profileId":"p"}]', [("", ARRAY_NOT_ALLOWED)]),
    "engagement with a long profile": (
        ENGAGEMENT,
        b'{"profileId":"%b"}' % (b"x" * 129),
        [("profileId", "must be text of at most 128 characters")],
    ),
    "engagement with a number out of range": (
        ENGAGEMENT,
        b'{"clicks":1e999}',
        [("clicks", NUMBER_OUT_OF_RANGE)],
    ),
    "array to /": (PAGE, b'[{"name":"a"}]', [("", ARRAY_NOT_ALLOWED)]),
    "text": (TRACK, b'"name"', [("", NOT_AN_OBJECT)]),
    "null": (TRACK, b"null", [("", NOT_AN_OBJECT)]),
    "number": (TRACK, b"1", [("", NOT_AN_OBJECT)]),
    "array in an array": (TRACK, b'[[{"name":"a"}]]', [("", NOT_AN_OBJECT)]),
    "float out of range in properties": (
        TRACK,
        b'{"name":"a","properties":{"x":{"y":1e999}}}',
        [("properties", NUMBER_OUT_OF_RANGE)],
    ),
    "integer out of range in properties": (
        TRACK,
        b'{"name":"a","properties":{"x":%b}}' % (b"9" * 5000),
        [("properties", NUMBER_OUT_OF_RANGE)],
    ),
    "integer out of range as a time": (
        TRACK,
        b'{"name":"a","timestamp":%b}' % (b"9" * 5000),
        [("timestamp", INVALID_TIMESTAMP)],
    ),
    "NUL": (TRACK, b'{"name":"a\\u0000"}', [("name", INVALID_CHARACTER)]),
    "NUL behind an escaped backslash": (
        TRACK,
        b'{"name":"\\\\\\u0000"}',
        [("name", INVALID_CHARACTER)],
    ),
    "NUL in properties": (
        TRACK,
        b'{"name":"a","properties":{"x":[{"\\u0000":1}]}}',
        [("properties", INVALID_CHARACTER)],
    ),
    "NUL in an unknown value": (
        TRACK,
        b'{"name":"a","x":["\\u0000"]}',
        [("", INVALID_CHARACTER)],
    ),
    "NUL in an unknown key": (
        TRACK,
        b'{"name":"a","\\u0000":1}',
        [("", INVALID_CHARACTER)],
    ),
    "high surrogate alone": (TRACK, b'{"name":"\\ud800"}', [("name", INVALID_CHARACTER)]),
    "low surrogate alone": (TRACK, b'{"name":"x\\uDFFFx"}', [("name", INVALID_CHARACTER)]),
    "surrogates the wrong way round": (
        TRACK,
        b'{"name":"\\udc00\\ud800"}',
        [("name", INVALID_CHARACTER)],
    ),
    "surrogates everywhere": (
        TRACK,
        b'{"name":"a","properties":{"\\ud800":"\\ud83d\\ude00"},"x":"\\udbff","\\udc00":1}',
        [
            ("properties", INVALID_CHARACTER),
            ("", INVALID_CHARACTER),
            ("", INVALID_CHARACTER),
        ],
    ),
    "65 levels": (TRACK, b'{"name":"a","x":%b}' % nested(64), [("x", TOO_DEEP)]),
    "65 levels below a very long unknown key": (
        TRACK,
        b'{"name":"a","%b":%b}' % (b"x" * 257, nested(64)),
        [("", TOO_DEEP)],
    ),
    "65 levels in an array": (
        TRACK,
        b'[{"name":"a","properties":{"x":%b}}]' % nested(62),
        [("properties", TOO_DEEP)],
    ),
    "65 levels and brackets in texts": (
        TRACK,
        b'{"name":"]]\\"]]}","x":%b}' % nested(64).replace(b"[]", b'["]]]","}","\\\\"]'),
        [("x", TOO_DEEP)],
    ),
}


@pytest.mark.parametrize(("endpoint", "body", "expected"), FAULTY.values(), ids=FAULTY)
def test_field_errors_are_listed_in_field_order(
    endpoint: IngestPath, body: bytes, expected: list[tuple[str, str]]
) -> None:
    assert field_errors(endpoint, body) == tuple(
        FieldError(0, field, text) for field, text in expected
    )


VISITOR_FIELDS = ("ip", "userAgent")
EVENT_FIELDS = (
    *("name", "properties", "anonymousId", "sessionId", "timestamp", "namespace", "source"),
    *("websiteId", "eventId", "profileId", "path", "url", *VISITOR_FIELDS),
)
PAGE_FIELDS = (
    *("title", "referrer", "language", "timezone", "screen_resolution", "viewport_size"),
    *("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content", "time_on_page"),
    *("scroll_depth", "interaction_count", "page_count", "load_time", "dom_ready_time"),
    *("dom_interactive", "ttfb", "render_time", "value", "currency"),
)
NAMED_EVENT_FIELDS = (
    *("anonymousId", "sessionId", "timestamp", "websiteId", "eventId", "profileId", "path", "url"),
    *VISITOR_FIELDS,
)
FIELDS_IN_ORDER = {
    TRACK: EVENT_FIELDS,
    VITALS: (
        *("timestamp", "path", "metricName", "metricValue", "anonymousId", "sessionId"),
        *("websiteId", "eventId", "url", *VISITOR_FIELDS),
    ),
    ERRORS: (
        *("timestamp", "path", "message", "filename", "lineno", "colno", "stack", "errorType"),
        *("anonymousId", "sessionId", "websiteId", "eventId", "url", "level", *VISITOR_FIELDS),
    ),
    BATCH: (*EVENT_FIELDS, *PAGE_FIELDS),
    PAGE: (*EVENT_FIELDS, *PAGE_FIELDS),
    ENGAGEMENT: NAMED_EVENT_FIELDS,
    IDENTIFY: (*NAMED_EVENT_FIELDS, "traits"),
}


@pytest.mark.parametrize("endpoint", IngestPath, ids=lambda endpoint: endpoint.value)
def test_field_errors_are_in_the_order_of_the_documented_fields(endpoint: IngestPath) -> None:
    fields = FIELDS_IN_ORDER[endpoint]
    body = json.dumps({"unknown": "\0"} | dict.fromkeys(reversed(fields), "\0")).encode()

    assert field_errors(endpoint, body, VISITOR_CHECKS) == tuple(
        FieldError(0, field, INVALID_CHARACTER) for field in (*fields, "")
    )


@pytest.mark.parametrize("endpoint", IngestPath, ids=lambda endpoint: endpoint.value)
def test_visitor_fields_are_unknown_keys_without_a_key(endpoint: IngestPath) -> None:
    fields = FIELDS_IN_ORDER[endpoint]
    body = json.dumps(dict.fromkeys(fields, "\0")).encode()

    assert [field_error.field for field_error in field_errors(endpoint, body)] == [
        *(field for field in fields if field not in VISITOR_FIELDS),
        *[""] * len(VISITOR_FIELDS),
    ]


@pytest.mark.parametrize("deep_index", [0, 7, MAX_ITEMS - 1])
@pytest.mark.parametrize(
    "deep",
    [b'{"name":"deep","x":%b}', b'{"name":"deep","properties":{"x":%b}}'],
    ids=["in an unknown key", "in properties"],
)
def test_one_item_of_many_may_nest_as_deep_as_one_alone(deep_index: int, deep: bytes) -> None:
    levels_around = deep.count(b"{") + 1

    def batch(levels: int) -> bytes:
        items = [b'{"name":"a","properties":{"x":{"y":["}"]}}}'] * MAX_ITEMS
        items[deep_index] = deep % nested(levels - levels_around)
        return b"[" + b",".join(items) + b"]"

    assert len(decode(TRACK, batch(64))) == MAX_ITEMS
    assert [field_error.message for field_error in field_errors(TRACK, batch(65))] == [TOO_DEEP]
    assert [field_error.index for field_error in field_errors(TRACK, batch(65))] == [deep_index]


def test_field_errors_of_a_batch_are_listed_by_index() -> None:
    body = b'[{"name":"a"},{"name":""},5,{"name":"b"},{"name":1,"source":1}]'

    assert [
        (field_error.index, field_error.field) for field_error in field_errors(TRACK, body)
    ] == [
        (1, "name"),
        (2, ""),
        (4, "name"),
        (4, "source"),
    ]


def test_numbers_out_of_range_are_listed_for_all_items_of_engagement() -> None:
    body = b'[{"x":1e999,"y":[-1e999],"sessionId":5,"ip":1e999},{},{"%b":1e999,"z":"\\u0000"}]'

    assert field_errors(ENGAGEMENT, body % (b"k" * 257)) == (
        FieldError(0, "sessionId", TEXT_256),
        FieldError(0, "x", NUMBER_OUT_OF_RANGE),
        FieldError(0, "y", NUMBER_OUT_OF_RANGE),
        FieldError(2, "", NUMBER_OUT_OF_RANGE),
        FieldError(2, "", INVALID_CHARACTER),
    )


def test_numbers_out_of_range_are_listed_beside_a_check_that_fails() -> None:
    body = b'[{"x":1e999},{"timestamp":"b"}]'

    assert list_field_errors(ENGAGEMENT, body, checks={"timestamp": refuse_b}) == (
        FieldError(0, "x", NUMBER_OUT_OF_RANGE),
        FieldError(1, "timestamp", "must not be b"),
    )


@pytest.mark.parametrize("number", ["1e999", "9" * 5000])
def test_number_out_of_range_is_rejected_only_where_the_field_is_checked(number: str) -> None:
    body = f'{{"name":"a","ip":{number},"userAgent":{number}}}'.encode()

    assert decode(TRACK, body) == [CustomEvent(name="a")]
    assert list_field_errors(TRACK, body, checks=VISITOR_CHECKS) == (
        FieldError(0, "ip", ADDRESS_ERROR),
        FieldError(0, "userAgent", USER_AGENT_ERROR),
    )


def test_at_most_fifty_field_errors_are_listed() -> None:
    body = json.dumps([{"timestamp": 1, "path": 5}] * MAX_ITEMS).encode()

    found = field_errors(VITALS, body)

    assert len(found) == MAX_FIELD_ERRORS
    assert (found[-1].index, found[-1].field) == (16, "metricName")


TOO_MANY = {
    "good items": b",".join([b'{"name":"a"}'] * (MAX_ITEMS + 1)),
    "bad items": b",".join([b"{}"] * (MAX_ITEMS + 1)),
    "no items at all": b",".join([b"0"] * (MAX_ITEMS + 1)),
    "bad items with many keys": b",".join([b'{"name":1,"a":1,"b":[1,2,3]}'] * (MAX_ITEMS + 1)),
    "far more": b",".join([b'{"name":"a"}'] * (MAX_ITEMS * 20)),
    "far more bad ones": b" , ".join([b'["\\ud800"]'] * (MAX_ITEMS * 20)),
}


@pytest.mark.parametrize("items", TOO_MANY.values(), ids=TOO_MANY)
def test_too_many_items_are_rejected_before_validation(items: bytes) -> None:
    with pytest.raises(PayloadTooLarge):
        decode(TRACK, b"[" + items + b"]")


@pytest.mark.parametrize("item", [b"{}", b'{"profileId":1}'], ids=["good", "bad"])
def test_engagement_of_more_than_a_hundred_pages_is_rejected(item: bytes) -> None:
    body = b"[" + b",".join([item] * 101) + b"]"

    with pytest.raises(PayloadTooLarge):
        decode_items(ENGAGEMENT, body, max_items=10_000)


def test_maximum_item_count_is_accepted_at_any_size() -> None:
    item = {"name": "a", "properties": {str(key): {"x": [1, 2]} for key in range(20)}}

    assert len(decode(TRACK, json.dumps([item] * MAX_ITEMS).encode())) == MAX_ITEMS


def refuse_b(value: str) -> None:
    if value == "b":
        raise ValueError("must not be b")


def test_custom_checks_are_listed_among_the_field_errors() -> None:
    body = b'[{"name":"b","source":5},{"name":"a"},{"name":"b","properties":5}]'

    assert field_errors(TRACK, body, {"name": refuse_b}) == (
        FieldError(0, "name", "must not be b"),
        FieldError(0, "source", "must be text of at most 64 characters"),
        FieldError(2, "name", "must not be b"),
        FieldError(2, "properties", "must be an object"),
    )


def test_checks_see_values_of_untyped_fields_undecoded_where_they_cannot_be_decoded() -> None:
    def reject(value: Any) -> None:
        sent = bytes(value).decode() if isinstance(value, Raw) else value
        raise ValueError(f"must not be {sent}")

    body = b'[{"name":"a","ip":5},{"name":"a","ip":null},{"name":"a","ip":1e999}]'

    assert list_field_errors(TRACK, body, checks={"ip": reject}) == (
        FieldError(0, "ip", "must not be 5"),
        FieldError(2, "ip", "must not be 1e999"),
    )


def test_every_endpoint_has_a_path_spec() -> None:
    assert set(PATH_SPECS) == set(IngestPath)
