"""Rows of an export whose datetimes another program has written in another form."""

import json

import pytest

from headrace.ingest.imports.exported_rows import ExportedRowDecoder
from headrace.ingest.receive.decoding.timestamps import INVALID_TIMESTAMP, SECONDS_HINT, TOO_EARLY
from headrace.model.imports import DecodedChunk, LineChunk
from headrace.model.log_records import EventKind

NOON_MS = 1_768_478_400_000
NOW_MS = NOON_MS + 86_400_000
ROW = {"id": f"{NOON_MS:012x}{1:020x}", "event_name": "visit"}


def decode(time: object, received_at: object) -> DecodedChunk:
    line = json.dumps({**ROW, "time": time, "received_at": received_at}).encode()
    decoder = ExportedRowDecoder(EventKind.EVENTS, "web_1")
    return decoder.decode(LineChunk("rows.ndjson", 1, [line]), now_ms=NOW_MS)


@pytest.mark.parametrize(
    "time",
    [
        pytest.param("2026-01-15T12:00:00.000Z", id="as exported"),
        pytest.param("2026-01-15T14:00:00+02:00", id="offset"),
        pytest.param("2026-01-15 12:00:00", id="no offset"),
        pytest.param("2026-01-15T14:00:00+0200", id="offset without a colon"),
        pytest.param("Thu, 15 Jan 2026 12:00:00 GMT", id="RFC 2822"),
        pytest.param(NOON_MS, id="epoch milliseconds"),
        pytest.param(NOON_MS + 0.5, id="fraction of a millisecond"),
    ],
)
def test_a_datetime_has_any_form_of_a_timestamp(time: str | float) -> None:
    for found in (decode(time, NOON_MS), decode("2026-01-15T12:00:00Z", time)):
        assert found.refused == []
        assert [(item.time_ms, item.received_ms) for item in found.items] == [(NOON_MS, NOON_MS)]


def test_a_date_alone_is_its_midnight() -> None:
    (item,) = decode("2026-01-15", NOON_MS).items
    assert item.time_ms == NOON_MS - 43_200_000


@pytest.mark.parametrize(
    ("time", "reason"),
    [
        ("noon", INVALID_TIMESTAMP),
        (True, INVALID_TIMESTAMP),
        (NOON_MS // 1000, SECONDS_HINT),
        ("1999-12-31", TOO_EARLY),
        ("1999-12-31T23:59:59.999Z", TOO_EARLY),
    ],
)
def test_another_time_is_refused_as_in_a_request(time: object, reason: str) -> None:
    (refused,) = decode(time, NOON_MS).refused
    assert refused.reason == f"time {reason}"


@pytest.mark.parametrize("time", [NOW_MS + 86_400_001, "2026-01-18"])
def test_a_time_that_is_ahead_is_refused(time: str | int) -> None:
    (refused,) = decode(time, NOON_MS).refused
    assert refused.reason == "time and received_at must not be more than 24 hours ahead"
