"""PostHog, Mixpanel, Amplitude: what becomes of the events of a sample file."""

import json
from typing import Any

import pytest

from headrace.ingest.receive.decoding.validation_errors import INVALID_CHARACTER, TOO_DEEP
from headrace.model.imports import ImportFormat, LineChunk
from testing.imports import NOW_MS, decode_sample, decoder_of, refusals, rows_of

KEYS = ("id", "website_id", "time", "received_at")
SAMPLES = {
    ImportFormat.POSTHOG: "posthog.jsonl",
    ImportFormat.MIXPANEL: "mixpanel.jsonl",
    ImportFormat.AMPLITUDE: "amplitude.jsonl",
}


def rows_and_refusals(import_format: ImportFormat) -> tuple[list[Any], dict[int, str]]:
    chunk = decode_sample(import_format, SAMPLES[import_format])
    rows = [
        {**row, "properties": json.loads(row.get("properties", "null"))}
        for row in rows_of(chunk.items)
    ]
    assert chunk.lines == len(chunk.items) + len(chunk.refused)
    return rows, refusals(chunk)


def without_keys(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in KEYS}


def test_posthog_events_become_rows() -> None:
    (view, checkout), refused = rows_and_refusals(ImportFormat.POSTHOG)
    assert view["time"].isoformat() == "2026-01-15T12:00:00.123000+00:00"
    properties = view.pop("properties")
    assert "$ip" not in properties
    assert properties["$lib"] == "web"
    assert without_keys(view) == {
        "event_name": "screen_view",
        "anonymous_id": "018f4d2a-7b00-7aaa-8bbb-0123456789ab",
        "session_id": "018f4d2a-7b01-7ccc-8ddd-0123456789ab",
        "url": "https://shop.example/pricing?utm_source=news&utm_medium=email",
        "path": "/pricing",
        "title": "Pricing",
        "referrer": "https://news.example/",
        "country": "DE",
        "region": "Land Berlin",
        "city": "Berlin",
        "browser_name": "Chrome",
        "browser_version": "124",
        "os_name": "macOS",
        "os_version": "10.15.7",
        "device_type": "desktop",
        "language": "en-GB",
        "timezone": "Europe/Berlin",
        "screen_resolution": "1920x1080",
        "viewport_size": "1280x720",
        "utm_source": "news",
        "utm_medium": "email",
    }
    assert without_keys(checkout) == {
        "event_name": "checkout completed",
        "anonymous_id": "customer 7",
        "currency": "EUR",
        "value": 49.5,
        "properties": {"value": 49.5, "currency": "EUR", "items": ["a", "b"]},
    }
    assert refused == {3: "it has no id of the event", 4: "timestamp is required"}


def test_mixpanel_events_become_rows() -> None:
    (view, signup), refused = rows_and_refusals(ImportFormat.MIXPANEL)
    assert view["time"].isoformat() == "2026-01-15T12:00:00+00:00"
    assert signup["time"].isoformat() == "2026-01-15T12:01:00.250000+00:00"
    assert view.pop("properties")["mp_lib"] == "web"
    assert without_keys(view) == {
        "event_name": "screen_view",
        "anonymous_id": "$device:18f4d2a7c11",
        "url": "https://shop.example/a?b=1",
        "path": "/a",
        "title": "A",
        "country": "FR",
        "region": "Auvergne-Rhône-Alpes",
        "city": "Lyon",
        "browser_name": "Firefox",
        "browser_version": "122",
        "os_name": "Windows",
        "screen_resolution": "1536x864",
    }
    assert without_keys(signup) == {
        "event_name": "Signed up",
        "anonymous_id": "4711",
        "value": 12.0,
        "properties": {"plan": "pro", "value": 12},
    }
    reason = "timestamp must be epoch milliseconds, an ISO 8601 date or time, or an RFC 2822 date"
    assert refused == {3: reason}


def test_amplitude_events_become_rows() -> None:
    (view, played), refused = rows_and_refusals(ImportFormat.AMPLITUDE)
    assert view["time"].isoformat() == "2026-01-15T12:00:00.123000+00:00"
    assert without_keys(view) == {
        "event_name": "screen_view",
        "anonymous_id": "d-1",
        "session_id": "100000000007-1768478400000",
        "profile_id": "customer 7",
        "url": "https://shop.example/pricing?x=1",
        "path": "/pricing",
        "title": "Pricing",
        "referrer": "https://news.example/",
        "country": "CA",
        "region": "Ontario",
        "city": "Toronto",
        "browser_name": "Chrome",
        "browser_version": "120",
        "language": "English",
        "properties": {
            "user_id": "customer 7",
            "country": "Canada",
            "platform": "Web",
            "device_type": "Mac",
            "user_properties": {"plan": "pro"},
            "referrer": "https://news.example/",
        },
    }
    assert without_keys(played) == {
        "event_name": "Played",
        "anonymous_id": "d-2",
        "os_name": "iOS",
        "os_version": "17.2",
        "properties": {"platform": "iOS", "level": 3},
    }
    assert refused == {3: "name must be text of 1 to 256 characters"}


@pytest.mark.parametrize("import_format", SAMPLES)
def test_ids_are_the_same_in_every_run_and_differ_between_events(
    import_format: ImportFormat,
) -> None:
    first, second = (decode_sample(import_format, SAMPLES[import_format]) for _ in range(2))
    ids = [item.row_id for item in first.items]
    assert ids == [item.row_id for item in second.items]
    assert len(set(ids)) == len(ids) > 1


HOSTILE = (
    b"[]", b"{}", b"\xff", b'{"uuid":"\\u0000"}', b'{"uuid":"\\ud800"}', b"[" * 70, b"1", b"null",
    b'{"uuid":1,"event":[],"properties":[],"timestamp":{}}',
    b'{"uuid":"a","event":[],"properties":"{","distinct_id":{},"timestamp":true}',
    b'{"uuid":"a","event_type":3,"event_time":1e300,"session_id":true,"event_properties":7}',
    b'{"event":"a","properties":{"$insert_id":"a","time":true,"$browser_version":{},"$os":[]}}',
    b'{"event":"a","properties":{"$insert_id":"a","time":1e308,"$screen_width":"x"}}',
    b'{"uuid":"a","event":"a","timestamp":"2026-01-17T00:00:00Z"}',
)  # fmt: skip


@pytest.mark.parametrize("import_format", SAMPLES)
def test_hostile_lines_are_refused_with_a_reason(import_format: ImportFormat) -> None:
    chunk = decoder_of(import_format).decode(LineChunk("a", 1, HOSTILE), now_ms=NOW_MS)
    assert (chunk.items, len(chunk.refused)) == ([], len(HOSTILE))
    assert all(refusals(chunk).values())


TIME = "2026-01-15T12:00:00Z"
ENCODED: dict[str, tuple[str, str]] = {
    "NUL": (r'{"title":"\u0000"}', INVALID_CHARACTER),
    "nesting": ('{"a":' + "[" * 64 + "]" * 64 + "}", TOO_DEEP),
    "nesting without an end": ('{"a":' + "[" * 5000, TOO_DEEP),
}


@pytest.mark.parametrize(("properties", "reason"), ENCODED.values(), ids=ENCODED)
def test_properties_within_a_text_are_refused_as_others_are(properties: str, reason: str) -> None:
    event = {"uuid": "a", "event": "a", "timestamp": TIME, "properties": properties}
    chunk = decoder_of(ImportFormat.POSTHOG).decode(
        LineChunk("a", 1, [json.dumps(event).encode()]), now_ms=NOW_MS
    )
    assert (chunk.items, refusals(chunk)) == ([], {1: reason})


@pytest.mark.parametrize("import_format", [ImportFormat.POSTHOG, ImportFormat.MIXPANEL])
def test_numbers_beyond_a_float_are_no_versions_and_sizes(import_format: ImportFormat) -> None:
    huge = dict.fromkeys(("$browser_version", "$screen_width", "$screen_height"), 10**400)
    event = {"uuid": "a", "event": "a", "timestamp": TIME}
    line = json.dumps({**event, "properties": {"time": TIME, "$insert_id": "a", **huge}})
    chunk = decoder_of(import_format).decode(LineChunk("a", 1, [line.encode()]), now_ms=NOW_MS)
    (row,) = rows_of(chunk.items)
    assert row.keys().isdisjoint({"browser_version", "screen_resolution"})
    assert json.loads(row["properties"]).items() >= huge.items()


@pytest.mark.parametrize(
    ("user_id", "profile_id"),
    [("customer 7", "customer 7"), (7, "7"), ("a" * 129, ""), ("", ""), (None, ""), (True, "")],
)
@pytest.mark.parametrize(
    ("import_format", "event", "where"),
    [
        (ImportFormat.POSTHOG, {"uuid": "a", "event": "a", "timestamp": TIME}, "$user_id"),
        (ImportFormat.MIXPANEL, {"event": "a"}, "$user_id"),
        (ImportFormat.AMPLITUDE, {"uuid": "a", "event_type": "a", "event_time": TIME}, "user_id"),
    ],
    ids=["posthog", "mixpanel", "amplitude"],
)
def test_users_who_are_identified_have_a_profile(
    import_format: ImportFormat,
    event: dict[str, Any],
    where: str,
    user_id: object,
    profile_id: str,
) -> None:
    user = {where: user_id}
    line = json.dumps({**event, **user, "properties": {"time": TIME, "$insert_id": "a", **user}})
    chunk = decoder_of(import_format).decode(LineChunk("a", 1, [line.encode()]), now_ms=NOW_MS)
    assert refusals(chunk) == {}
    (row,) = rows_of(chunk.items)
    assert row.get("profile_id", "") == profile_id
    assert json.loads(row.get("properties", "{}")).get(where) == user_id


@pytest.mark.parametrize(
    ("browser", "browser_name"),
    [
        ("Chrome", "Chrome"),
        ("Chrome iOS", "Chrome"),
        ("Firefox iOS", "Firefox"),
        ("Microsoft Edge", "Edge"),
        ("Mobile Safari", "Safari"),
        ("Samsung Internet", "Samsung Internet"),
        ("Internet Explorer Mobile", "Internet Explorer"),
    ],
)
@pytest.mark.parametrize(
    ("system", "os_name"),
    [("Mac OS X", "macOS"), ("iOS", "iOS"), ("Chrome OS", "ChromeOS"), ("android", "Android")],
)
@pytest.mark.parametrize("import_format", [ImportFormat.POSTHOG, ImportFormat.MIXPANEL])
def test_browsers_and_systems_have_the_names_that_those_of_requests_have(
    import_format: ImportFormat, browser: str, browser_name: str, system: str, os_name: str
) -> None:
    software = {"$browser": browser, "$os": system}
    event = {"uuid": "a", "event": "a", "timestamp": TIME}
    line = json.dumps({**event, "properties": {"time": TIME, "$insert_id": "a", **software}})
    chunk = decoder_of(import_format).decode(LineChunk("a", 1, [line.encode()]), now_ms=NOW_MS)
    (row,) = rows_of(chunk.items)
    assert (row["browser_name"], row["os_name"]) == (browser_name, os_name)
    properties = json.loads(row["properties"])
    assert {name: properties[name] for name in software} == software


def test_addresses_and_user_agents_are_forgotten() -> None:
    line = json.dumps(
        {
            "uuid": "a",
            "event": "a",
            "timestamp": "2026-01-15T12:00:00Z",
            "properties": {"$ip": "192.0.2.99", "$raw_user_agent": "Googlebot/2.1", "kept": 1},
        }
    )
    chunk = decoder_of(ImportFormat.POSTHOG).decode(
        LineChunk("a", 1, [line.encode()]), now_ms=NOW_MS
    )
    (row,) = rows_of(chunk.items)
    assert (row["country"], row["is_bot"], row["properties"]) == ("CA", True, b'{"kept":1}')


def test_copies_of_user_agents_in_what_posthog_says_of_persons_are_forgotten() -> None:
    agent = "Mozilla/5.0 (X11; Linux x86_64)"
    properties = {
        "$useragent": agent,
        "$set": {"plan": "pro", "$raw_user_agent": agent, "$ip": "192.0.2.99"},
        "$set_once": {"$initial_raw_user_agent": agent, "$initial_os": "Linux"},
        "kept": agent[:7],
    }
    event = {"uuid": "a", "event": "$identify", "timestamp": TIME}
    line = json.dumps({**event, "properties": properties}).encode()
    chunk = decoder_of(ImportFormat.POSTHOG).decode(LineChunk("a", 1, [line]), now_ms=NOW_MS)
    (row,) = rows_of(chunk.items)
    assert json.loads(row["properties"]) == {
        "$set": {"plan": "pro"},
        "$set_once": {"$initial_os": "Linux"},
        "kept": "Mozilla",
    }


@pytest.mark.parametrize("properties", ["{", "[1]", "text", '{"a":1e400}', 7, [1], True])
@pytest.mark.parametrize("import_format", SAMPLES)
def test_properties_that_are_no_object_are_refused(
    import_format: ImportFormat, properties: object
) -> None:
    event = {
        "uuid": "a",
        "event": "a",
        "event_type": "a",
        "timestamp": TIME,
        "event_time": TIME,
        "properties": properties,
        "event_properties": properties,
    }
    chunk = decoder_of(import_format).decode(
        LineChunk("a", 1, [json.dumps(event).encode()]), now_ms=NOW_MS
    )
    assert (chunk.items, refusals(chunk)) == ([], {1: "its properties are no JSON object"})


@pytest.mark.parametrize("properties", [None, "", "null", " {} ", {}, []])
def test_event_can_be_without_properties(properties: object) -> None:
    event = {"uuid": "a", "event": "a", "timestamp": TIME, "properties": properties}
    chunk = decoder_of(ImportFormat.POSTHOG).decode(
        LineChunk("a", 1, [json.dumps(event).encode()]), now_ms=NOW_MS
    )
    assert refusals(chunk) == {}
    assert "properties" not in rows_of(chunk.items)[0]


def test_ids_of_mixpanel_are_unique_with_event_and_visitor_alone() -> None:
    """Senders take the number of an order for all events of it, for example."""
    keys = [("ordered", "v"), ("paid", "v"), ("paid", "w"), ("paid", 7), ("paid", "w")]
    lines = [
        json.dumps(
            {
                "event": event,
                "properties": {"time": TIME, "$insert_id": "order 7", "distinct_id": visitor},
            }
        ).encode()
        for event, visitor in keys
    ]
    chunk = decoder_of(ImportFormat.MIXPANEL).decode(LineChunk("a", 1, lines), now_ms=NOW_MS)
    ids = [item.row_id for item in chunk.items]
    assert len(set(ids)) == 4
    assert ids[2] == ids[4]


@pytest.mark.parametrize(
    ("sent", "version"),
    [(124, "124"), (17.5, "17.5"), (20100101, "20100101"), ("1.2.3", "1.2.3"), (True, "")],
)
def test_versions_that_are_numbers_have_all_digits(sent: object, version: str) -> None:
    event = {"uuid": "a", "event": "a", "timestamp": TIME, "properties": {"$browser_version": sent}}
    chunk = decoder_of(ImportFormat.POSTHOG).decode(
        LineChunk("a", 1, [json.dumps(event).encode()]), now_ms=NOW_MS
    )
    assert rows_of(chunk.items)[0].get("browser_version", "") == version
