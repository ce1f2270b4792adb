"""Fields of the three kinds of records: required or optional, their types and their columns."""

from collections.abc import Iterator

import pytest

from testing.service import Json, Row, Service, bearer
from tests.e2e.envelopes import (
    ENDPOINTS,
    ITEMS,
    TABLES,
    TIMESTAMP,
    TIMESTAMP_MS,
    field_errors,
    outcome,
    success,
)

JSON = {"Content-Type": "application/json"}

TEXT, NUMBER, TRUE, ARRAY, OBJECT = "text", 5, True, ["a"], {"a": 1}
WRONG_TEXTS = (NUMBER, 1.5, TRUE, ARRAY, OBJECT)
WRONG_NUMBERS = (TEXT, "5", TRUE, ARRAY, OBJECT)
WRONG_TIMES = (TRUE, ARRAY, OBJECT)

COMMON = dict.fromkeys(["anonymousId", "sessionId", "websiteId", "eventId", "url"], WRONG_TEXTS)
CUSTOM = {
    **COMMON,
    "name": WRONG_TEXTS,
    "properties": (TEXT, NUMBER, TRUE, ARRAY),
    "timestamp": WRONG_TIMES,
    "namespace": WRONG_TEXTS,
    "source": WRONG_TEXTS,
    "path": WRONG_TEXTS,
}
WRONG_TYPES: dict[str, dict[str, tuple[Json, ...]]] = {
    "/track": CUSTOM,
    "/vitals": {
        **COMMON,
        "timestamp": WRONG_TIMES,
        "path": WRONG_TEXTS,
        "metricName": WRONG_TEXTS,
        "metricValue": WRONG_NUMBERS,
    },
    "/errors": {
        **COMMON,
        "timestamp": WRONG_TIMES,
        "path": WRONG_TEXTS,
        "message": WRONG_TEXTS,
        "filename": WRONG_TEXTS,
        "lineno": WRONG_NUMBERS,
        "colno": WRONG_NUMBERS,
        "stack": WRONG_TEXTS,
        "errorType": WRONG_TEXTS,
        "level": WRONG_TEXTS,
    },
}

REQUIRED = {
    "/track": ["name"],
    "/batch": ["name"],
    "/": ["name"],
    "/vitals": ["timestamp", "path", "metricName", "metricValue"],
    "/errors": ["timestamp", "path", "message"],
}
NULLABLE = {
    endpoint: sorted(set(fields) - set(REQUIRED[endpoint]))
    for endpoint, fields in {**WRONG_TYPES, "/batch": CUSTOM, "/": CUSTOM}.items()
}


def wrong_type_cases() -> Iterator[tuple[str, str, Json]]:
    for endpoint, fields in WRONG_TYPES.items():
        for field, values in fields.items():
            for value in values:
                yield endpoint, field, value


@pytest.mark.parametrize(
    ("endpoint", "field", "value"),
    list(wrong_type_cases()),
    ids=[f"{endpoint} {field} {value!r}" for endpoint, field, value in wrong_type_cases()],
)
def test_wrong_type_is_a_field_error_of_its_field(
    service: Service, quiet_website: str, endpoint: str, field: str, value: Json
) -> None:
    response = service.post(
        f"{endpoint}?client_id={quiet_website}", {**ITEMS[endpoint], field: value}
    )

    assert field_errors(response) == [(0, field)]
    assert service.count(quiet_website, TABLES[endpoint]) == 0


REQUIRED_FIELDS = [(endpoint, field) for endpoint in REQUIRED for field in REQUIRED[endpoint]]


@pytest.mark.parametrize("absent", [True, False], ids=["absent", "null"])
@pytest.mark.parametrize(("endpoint", "field"), REQUIRED_FIELDS)
def test_required_field_absent_or_null_is_a_field_error(
    service: Service, quiet_website: str, endpoint: str, field: str, absent: bool
) -> None:
    item = {**ITEMS[endpoint], field: None}
    if absent:
        del item[field]

    response = service.post(f"{endpoint}?client_id={quiet_website}", item)

    assert field_errors(response) == [(0, field)]
    assert service.count(quiet_website, TABLES[endpoint]) == 0


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_null_in_every_optional_field_means_absent(
    service: Service, website: str, endpoint: str
) -> None:
    item = {**ITEMS[endpoint], **dict.fromkeys(NULLABLE[endpoint])}
    del_path = endpoint in {"/track", "/batch", "/"}

    response = service.post(f"{endpoint}?client_id={website}", item, headers=bearer(service.master))

    assert outcome(response) == (200, success(endpoint))
    row = service.row(website, TABLES[endpoint], ["anonymous_id", "session_id", "url", "path"])
    expected = {"anonymous_id": "", "session_id": "", "url": "", "path": "" if del_path else "/"}
    assert row == expected


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_empty_text_in_an_optional_identifier_means_absent(
    service: Service, website: str, endpoint: str
) -> None:
    empty = dict.fromkeys(["anonymousId", "sessionId", "websiteId", "eventId"], "")
    item = {**ITEMS[endpoint], **empty}

    for _ in range(2):  # an empty eventId is not deduplicated
        response = service.post(f"{endpoint}?client_id={website}", item)
        assert outcome(response) == (200, success(endpoint))

    rows = service.rows(website, TABLES[endpoint], ["anonymous_id", "session_id"])
    assert [row["session_id"] for row in rows] == ["", ""]
    assert all(row["anonymous_id"] for row in rows), "a visitor id is made"


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_unknown_keys_are_ignored(service: Service, website: str, endpoint: str) -> None:
    unknown: Json = {
        "unknown": 1,
        "Name": 2,
        "profileId": "p",
        "anonymizeVisitorIds": True,
        "type": [],
    }

    response = service.post(f"{endpoint}?client_id={website}", {**ITEMS[endpoint], **unknown})

    assert outcome(response) == (200, success(endpoint))
    assert service.count(website, TABLES[endpoint]) == 1


def test_ip_and_user_agent_are_unknown_keys_without_an_api_key(
    service: Service, website: str
) -> None:
    event = {"name": "a", "ip": "no address", "userAgent": 5}

    response = service.post(f"/track?website_id={website}", event)

    assert outcome(response) == (200, success("/track"))


@pytest.mark.parametrize("name", ["", "x" * 257], ids=["empty", "too long"])
@pytest.mark.parametrize("endpoint", ["/track", "/batch", "/"])
def test_name_of_a_wrong_length_is_a_field_error(
    service: Service, quiet_website: str, endpoint: str, name: str
) -> None:
    response = service.post(f"{endpoint}?client_id={quiet_website}", {"name": name})

    assert field_errors(response) == [(0, "name")]
    assert service.count(quiet_website, "events") == 0


@pytest.mark.parametrize(
    ("endpoint", "field"),
    [("/vitals", "path"), ("/errors", "path"), ("/errors", "message")],
)
def test_required_text_may_be_empty(
    service: Service, website: str, endpoint: str, field: str
) -> None:
    response = service.post(f"{endpoint}?client_id={website}", {**ITEMS[endpoint], field: ""})

    assert outcome(response) == (200, success(endpoint))
    assert service.row(website, TABLES[endpoint], [field]) == {field: ""}


@pytest.mark.parametrize("name", ["FCP", "LCP", "CLS", "INP", "TTFB", "FPS"])
def test_metric_name_is_stored(service: Service, website: str, name: str) -> None:
    response = service.post(
        f"/vitals?client_id={website}", [{**ITEMS["/vitals"], "metricName": name}]
    )

    assert outcome(response) == (200, success("/vitals"))
    assert service.row(website, "performance", ["metric_name"]) == {"metric_name": name}


@pytest.mark.parametrize("name", ["lcp", "Lcp", "FID", "", " LCP"])
def test_other_metric_name_is_a_field_error(
    service: Service, quiet_website: str, name: str
) -> None:
    item = {**ITEMS["/vitals"], "metricName": name}

    response = service.post(f"/vitals?client_id={quiet_website}", [item])

    assert field_errors(response) == [(0, "metricName")]
    assert service.count(quiet_website, "performance") == 0


@pytest.mark.parametrize("value", [0, 1, -1, 0.1, 2400.5, 1e308, -1e308, 5e-324, 2**53])
def test_metric_value_is_stored_exactly(service: Service, website: str, value: float) -> None:
    service.post(f"/vitals?client_id={website}", [{**ITEMS["/vitals"], "metricValue": value}])

    assert service.row(website, "performance", ["metric_value"]) == {"metric_value": value}


@pytest.mark.parametrize(
    ("endpoint", "field"),
    [("/vitals", "metricValue"), ("/errors", "lineno"), ("/errors", "colno")],
)
@pytest.mark.parametrize("number", ["1e400", "-1e400"])
def test_infinite_number_is_a_field_error(
    service: Service, quiet_website: str, endpoint: str, field: str, number: str
) -> None:
    known = ",".join(f'"{k}":{v}' for k, v in QUOTED[endpoint].items() if k != field)
    body = f'{{{known},"{field}":{number}}}'

    response = service.post(f"{endpoint}?client_id={quiet_website}", data=body, headers=JSON)

    assert response.status_code == 400
    assert response.json()["message"] == "Invalid request body"
    assert service.count(quiet_website, TABLES[endpoint]) == 0


QUOTED = {
    "/vitals": {"timestamp": TIMESTAMP_MS, "path": '"/"', "metricName": '"LCP"', "metricValue": 1},
    "/errors": {"timestamp": TIMESTAMP_MS, "path": '"/"', "message": '"boom"'},
}


@pytest.mark.parametrize("number", [0, 1, 12.5, -3, 2**31, 2**53, 1e300])
def test_line_and_column_take_any_finite_number(
    service: Service, website: str, number: float
) -> None:
    item = {**ITEMS["/errors"], "lineno": number, "colno": number}

    response = service.post(f"/errors?client_id={website}", [item])

    assert outcome(response) == (200, success("/errors"))
    row = service.row(website, "errors", ["lineno", "colno"])
    assert row == {"lineno": number, "colno": number}


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error", "fatal"])
def test_level_is_stored(service: Service, website: str, level: str) -> None:
    service.post(f"/errors?client_id={website}", [{**ITEMS["/errors"], "level": level}])

    assert service.row(website, "errors", ["level"]) == {"level": level}


@pytest.mark.parametrize("level", ["critical", "ERROR", "warn", ""])
def test_other_level_is_a_field_error(service: Service, quiet_website: str, level: str) -> None:
    item = {**ITEMS["/errors"], "level": level}

    response = service.post(f"/errors?client_id={quiet_website}", [item])

    assert field_errors(response) == [(0, "level")]
    assert service.count(quiet_website, "errors") == 0


@pytest.mark.parametrize("address", ["nonsense", "", "256.1.1.1", "1.2.3", "::g", 5, ["1.1.1.1"]])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_invalid_ip_is_a_field_error_with_a_key(
    service: Service, quiet_website: str, endpoint: str, address: Json
) -> None:
    response = service.post(
        f"{endpoint}?client_id={quiet_website}",
        {**ITEMS[endpoint], "ip": address},
        headers=bearer(service.master),
    )

    assert field_errors(response) == [(0, "ip")]
    assert service.count(quiet_website, TABLES[endpoint]) == 0


@pytest.mark.parametrize("address", ["203.0.113.7", "2001:db8::1", "::ffff:203.0.113.7", None])
def test_valid_ip_is_accepted_with_a_key(
    service: Service, website: str, address: str | None
) -> None:
    response = service.post(
        f"/track?website_id={website}", {"name": "a", "ip": address}, headers=bearer(service.master)
    )

    assert outcome(response) == (200, success("/track"))


@pytest.mark.parametrize("value", WRONG_TEXTS, ids=repr)
def test_user_agent_of_a_wrong_type_is_a_field_error_with_a_key(
    service: Service, quiet_website: str, value: Json
) -> None:
    response = service.post(
        f"/track?website_id={quiet_website}",
        {"name": "a", "userAgent": value},
        headers=bearer(service.master),
    )

    assert field_errors(response) == [(0, "userAgent")]


NO_LOCATION: Row = {"country": "", "region": "", "city": ""}
UNKNOWN: Row = {
    **NO_LOCATION,
    "browser_name": "",
    "browser_version": "",
    "os_name": "",
    "os_version": "",
    "device_type": "",
    "is_bot": False,
}
EMPTY_EVENT: Row = {
    **dict.fromkeys(
        ["namespace", "source", "anonymous_id", "session_id", "url", "path", "title", "referrer"],
        "",
    ),
    **UNKNOWN,
    **dict.fromkeys(["language", "timezone", "screen_resolution", "viewport_size"], ""),
    **{f"utm_{part}": "" for part in ("source", "medium", "campaign", "term", "content")},
    "currency": "",
    **dict.fromkeys(["time_on_page", "scroll_depth", "interaction_count", "page_count"]),
    **dict.fromkeys(["load_time", "dom_ready_time", "dom_interactive", "ttfb", "render_time"]),
    "value": None,
}


def test_full_row_of_an_event_with_every_field(service: Service, website: str) -> None:
    event = {
        "name": "purchase",
        "properties": {"plan": "pro", "seats": 3},
        "anonymousId": "anon_1",
        "sessionId": "sess_1",
        "timestamp": TIMESTAMP_MS,
        "namespace": "billing",
        "source": "backend",
        "websiteId": website,
        "eventId": "event_1",
        "path": "/checkout",
        "url": "https://shop.example/checkout?step=2",
    }

    service.post("/track", event, headers=bearer(service.master))

    expected = {
        **EMPTY_EVENT,
        "website_id": website,
        "event_name": "purchase",
        "properties.plan": "pro",
        "properties.seats": 3,
        "anonymous_id": "anon_1",
        "session_id": "sess_1",
        "time": TIMESTAMP,
        "namespace": "billing",
        "source": "backend",
        "path": "/checkout",
        "url": "https://shop.example/checkout?step=2",
    }
    assert service.row(website, "events", list(expected)) == expected


def test_full_row_of_an_event_with_only_a_name(service: Service, website: str) -> None:
    service.post(f"/track?website_id={website}", {"name": "a"}, headers=bearer(service.master))

    expected = {**EMPTY_EVENT, "website_id": website, "event_name": "a", "properties.a": None}
    row = service.row(website, "events", [*expected, "time", "received_at"])
    assert row.pop("time") == row.pop("received_at")
    assert row == expected


def test_full_row_of_a_vital_with_every_field(service: Service, website: str) -> None:
    vital = {
        "timestamp": TIMESTAMP_MS,
        "path": "/pricing",
        "metricName": "LCP",
        "metricValue": 2400.5,
        "anonymousId": "anon_1",
        "sessionId": "sess_1",
        "eventId": "event_1",
        "url": "https://shop.example/pricing",
    }

    service.post(f"/vitals?client_id={website}", [vital], headers=bearer(service.master))

    expected = {
        **UNKNOWN,
        "website_id": website,
        "metric_name": "LCP",
        "metric_value": 2400.5,
        "path": "/pricing",
        "url": "https://shop.example/pricing",
        "anonymous_id": "anon_1",
        "session_id": "sess_1",
        "time": TIMESTAMP,
    }
    assert service.row(website, "performance", list(expected)) == expected


def test_full_row_of_an_error_with_every_field(service: Service, website: str) -> None:
    error = {
        "timestamp": TIMESTAMP_MS,
        "path": "/pricing",
        "message": "x is undefined",
        "filename": "https://shop.example/app.js",
        "lineno": 12,
        "colno": 34,
        "stack": "TypeError: x is undefined\n    at app.js:12:34",
        "errorType": "TypeError",
        "anonymousId": "anon_1",
        "sessionId": "sess_1",
        "level": "fatal",
        "eventId": "event_1",
        "url": "https://shop.example/pricing",
    }

    service.post(f"/errors?client_id={website}", [error], headers=bearer(service.master))

    expected = {
        **UNKNOWN,
        "website_id": website,
        "message": "x is undefined",
        "level": "fatal",
        "error_type": "TypeError",
        "filename": "https://shop.example/app.js",
        "lineno": 12,
        "colno": 34,
        "stack": "TypeError: x is undefined\n    at app.js:12:34",
        "path": "/pricing",
        "url": "https://shop.example/pricing",
        "anonymous_id": "anon_1",
        "session_id": "sess_1",
        "time": TIMESTAMP,
    }
    assert service.row(website, "errors", list(expected)) == expected


def test_full_row_of_an_error_with_only_required_fields(service: Service, website: str) -> None:
    service.post(f"/errors?client_id={website}", [ITEMS["/errors"]], headers=bearer(service.master))

    expected = {
        **UNKNOWN,
        **dict.fromkeys(["error_type", "filename", "stack", "url", "anonymous_id"], ""),
        "session_id": "",
        "message": "boom",
        "level": "error",
        "lineno": None,
        "colno": None,
        "path": "/",
        "time": TIMESTAMP,
    }
    assert service.row(website, "errors", list(expected)) == expected
