"""Timestamps: accepted formats, rejected values, and when the time of receipt is used."""

import time

import pytest

from testing.service import Json, Service
from tests.e2e.envelopes import (
    ITEMS,
    TABLES,
    TIMESTAMP,
    error_envelope,
    field_errors,
    outcome,
    success,
)

STREAMS = ["/track", "/vitals", "/errors", "/batch"]
HOUR_MS = 3_600_000

UNDERSTOOD: dict[str, tuple[Json, str]] = {
    "milliseconds": (1_714_564_800_123, "2024-05-01T12:00:00.123Z"),
    "fraction of a millisecond is dropped": (1_714_564_800_123.9, "2024-05-01T12:00:00.123Z"),
    "exponent": (1.7145648e12, TIMESTAMP),
    "first moment": (946_684_800_000, "2000-01-01T00:00:00.000Z"),
    "date": ("2024-05-01", "2024-05-01T00:00:00.000Z"),
    "first date": ("2000-01-01", "2000-01-01T00:00:00.000Z"),
    "leap day": ("2024-02-29", "2024-02-29T00:00:00.000Z"),
    "T and Z": ("2024-05-01T12:00:00Z", TIMESTAMP),
    "lower case t": ("2024-05-01t12:00:00Z", TIMESTAMP),
    "blank": ("2024-05-01 12:00:00Z", TIMESTAMP),
    "no offset means UTC": ("2024-05-01T12:00:00", TIMESTAMP),
    "blank and no offset": ("2024-05-01 12:00:00", TIMESTAMP),
    "milliseconds of ISO": ("2024-05-01T12:00:00.123Z", "2024-05-01T12:00:00.123Z"),
    "one digit of a fraction": ("2024-05-01T12:00:00.1Z", "2024-05-01T12:00:00.100Z"),
    "fraction is cut": ("2024-05-01T12:00:00.1239999Z", "2024-05-01T12:00:00.123Z"),
    "nanoseconds": ("2024-05-01T12:00:00.123456789Z", "2024-05-01T12:00:00.123Z"),
    "fraction and no offset": ("2024-05-01T12:00:00.5", "2024-05-01T12:00:00.500Z"),
    "offset with a colon": ("2024-05-01T14:00:00+02:00", TIMESTAMP),
    "offset without a colon": ("2024-05-01T14:00:00+0200", TIMESTAMP),
    "offset behind UTC": ("2024-05-01T06:30:00-05:30", TIMESTAMP),
    "offset across a day": ("2024-05-02T01:00:00+13:00", TIMESTAMP),
    "fraction and offset": ("2024-05-01T14:00:00.25+02:00", "2024-05-01T12:00:00.250Z"),
    "RFC 2822": ("Wed, 01 May 2024 14:00:00 +0200", TIMESTAMP),
    "RFC 2822 in GMT": ("Wed, 01 May 2024 12:00:00 GMT", TIMESTAMP),
    "RFC 2822 with another weekday": ("Fri, 01 May 2024 12:00:00 GMT", TIMESTAMP),
    "RFC 2822 without a weekday": ("01 May 2024 12:00:00 +0000", TIMESTAMP),
}

REJECTED: dict[str, Json] = {
    "last moment before 2000": 946_684_799_999,
    "zero": 0,
    "negative": -1_714_564_800_000,
    "seconds": 1_714_564_800,
    "seconds with a fraction": 1_714_564_800.5,
    "date before 2000": "1999-12-31",
    "date-time before 2000": "1999-12-31T23:59:59.999Z",
    "before 2000 by its offset": "2000-01-01T00:00:00+01:00",
    "RFC 2822 before 2000": "Fri, 31 Dec 1999 23:59:59 GMT",
    "empty text": "",
    "words": "yesterday",
    "digits in a text": "1714564800000",
    "thirteenth month": "2024-13-01",
    "thirtieth of February": "2024-02-30",
    "leap day of another year": "2023-02-29",
    "hour 25": "2024-05-01T25:00:00Z",
    "minute 60": "2024-05-01T12:60:00Z",
    "second 60": "2024-05-01T12:00:60Z",
    "no seconds": "2024-05-01T12:00Z",
    "no minutes": "2024-05-01T12Z",
    "lower case z": "2024-05-01T12:00:00z",
    "comma before a fraction": "2024-05-01T12:00:00,5Z",
    "time alone": "12:00:00",
    "slashes": "2024/05/01",
    "text behind": "2024-05-01T12:00:00Z and more",
    "unknown zone": "2024-05-01T12:00:00 Mars/Phobos",
    "true": True,
    "array": [1_714_564_800_000],
    "object": {"ms": 1_714_564_800_000},
}


@pytest.mark.parametrize(("sent", "stored"), UNDERSTOOD.values(), ids=UNDERSTOOD)
def test_timestamp_is_parsed(service: Service, website: str, sent: Json, stored: str) -> None:
    response = service.post(f"/track?website_id={website}", {"name": "a", "timestamp": sent})

    assert outcome(response) == (200, success("/track"))
    day = stored[:10]
    assert service.row(website, "events", ["time"], start=day, end=day) == {"time": stored}


@pytest.mark.parametrize("sent", REJECTED.values(), ids=REJECTED)
@pytest.mark.parametrize("endpoint", STREAMS)
def test_timestamp_is_rejected(
    service: Service, quiet_website: str, endpoint: str, sent: Json
) -> None:
    response = service.post(
        f"{endpoint}?client_id={quiet_website}", [{**ITEMS[endpoint], "timestamp": sent}]
    )

    assert field_errors(response) == [(0, "timestamp")]
    assert service.count(quiet_website, TABLES[endpoint]) == 0


@pytest.mark.parametrize("sent", [1_714_564_800, 1_714_564_800.5], ids=["whole", "fraction"])
def test_timestamp_that_looks_like_seconds_gets_a_hint(service: Service, sent: float) -> None:
    _, body = error_envelope(service.post("/track", {"name": "a", "timestamp": sent}))

    assert "seconds" in body["errors"][0]["message"]
    assert "milliseconds" in body["errors"][0]["message"]


@pytest.mark.parametrize("endpoint", STREAMS)
def test_every_endpoint_accepts_numbers_and_texts(
    service: Service, website: str, endpoint: str
) -> None:
    timestamps: list[Json] = [1_714_564_800_000, "2024-05-01T12:00:00Z", "2024-05-01 14:00:00+0200"]
    timestamps.append("Wed, 01 May 2024 12:00:00 GMT")
    items = [{**ITEMS[endpoint], "timestamp": timestamp} for timestamp in timestamps]

    response = service.post(f"{endpoint}?client_id={website}", items)

    assert outcome(response) == (200, success(endpoint, 4))
    assert service.counts(website, TABLES[endpoint], "time") == {TIMESTAMP: 4}


@pytest.mark.parametrize("endpoint", ["/track", "/batch", "/"])
@pytest.mark.parametrize("item", [{}, {"timestamp": None}], ids=["absent", "null"])
def test_missing_timestamp_becomes_the_time_of_receipt(
    service: Service, website: str, endpoint: str, item: Json
) -> None:
    service.post(f"{endpoint}?client_id={website}", {**ITEMS[endpoint], **item})

    row = service.row(website, "events", ["time", "received_at"])
    assert row["time"] == row["received_at"]


@pytest.mark.parametrize(
    "sent",
    [
        8_640_000_000_000_000,
        1e300,
        2**63,
        253_402_300_800_000,
        "9999-12-31",
        "2199-01-01T00:00:00Z",
    ],
    ids=["last of JavaScript", "huge", "2 to the 63rd", "year 10000", "last date", "2199"],
)
def test_far_future_timestamp_becomes_the_time_of_receipt(
    service: Service, website: str, sent: Json
) -> None:
    response = service.post(f"/track?website_id={website}", {"name": "a", "timestamp": sent})

    assert outcome(response) == (200, success("/track"))
    row = service.row(website, "events", ["time", "received_at"])
    assert row["time"] == row["received_at"]


@pytest.mark.parametrize(("endpoint", "table"), [("/vitals", "performance"), ("/errors", "errors")])
def test_far_future_timestamp_becomes_the_time_of_receipt_on_other_endpoints(
    service: Service, website: str, endpoint: str, table: str
) -> None:
    service.post(f"{endpoint}?client_id={website}", {**ITEMS[endpoint], "timestamp": 4e12})

    assert service.row(website, table, ["time"])["time"] < "2090"


def test_timestamp_less_than_a_day_ahead_is_kept(service: Service, website: str) -> None:
    ahead_ms = int(time.time() * 1000) // HOUR_MS * HOUR_MS + 22 * HOUR_MS

    service.post(f"/track?website_id={website}", {"name": "a", "timestamp": ahead_ms})

    stored = service.row(website, "events", ["time"])["time"]
    assert stored == time.strftime("%Y-%m-%dT%H:00:00.000Z", time.gmtime(ahead_ms / 1000))


def test_timestamp_more_than_a_day_ahead_is_replaced(service: Service, website: str) -> None:
    ahead_ms = int(time.time() * 1000) // HOUR_MS * HOUR_MS + 26 * HOUR_MS

    service.post(f"/track?website_id={website}", {"name": "a", "timestamp": ahead_ms})

    row = service.row(website, "events", ["time", "received_at"])
    assert row["time"] == row["received_at"]
