"""GET /v1/export: who may take rows out, which rows, and in what form."""

import json
import threading
from typing import Any

import pytest
import requests

from headrace.model.storage import STORAGE_TABLES
from testing.service import Service, bearer
from tests.e2e.export.exports import (
    FORMATS,
    NOON_MS,
    decode,
    events,
    request_export,
    send,
)

DAY_MS = 86_400_000
PROPERTIES = {"plan": "pro", "nested": {"a": [1, 2.50, None, "ü/\\\"'\n"]}, "big": 2**70}


def outcome(response: requests.Response) -> tuple[int, dict[str, Any]]:
    body = response.json()
    assert body.pop("requestId")
    return response.status_code, body


def rejection(status: int, code: str, error: str) -> tuple[int, dict[str, Any]]:
    return status, {"success": False, "error": error, "code": code}


@pytest.fixture(scope="module")
def exported(service: Service) -> str:
    """A website with one event of every kind, and one that a crawler sent."""
    website = service.website()
    event = {
        "name": "signup, done",
        "timestamp": NOON_MS + 7,
        "anonymousId": "anon_1",
        "path": "/pricing",
        "properties": PROPERTIES,
    }
    crawler = {"User-Agent": "Googlebot/2.1 (+http://www.google.com/bot.html)"}
    response = service.post(f"/track?website_id={website}", event, headers=crawler)
    assert response.status_code == 200
    send(service, website, [{"name": "bare", "timestamp": NOON_MS}])
    vital = {"timestamp": NOON_MS, "path": "/", "metricName": "LCP", "metricValue": 1830.5}
    send(service, website, [vital], "/vitals")
    error = {"timestamp": NOON_MS, "path": "/", "message": "a\tb", "lineno": 12}
    send(service, website, [error], "/errors")
    return website


def test_ndjson_has_every_stored_column_with_properties_as_they_were_sent(
    service: Service, exported: str
) -> None:
    names = [column.name for column in STORAGE_TABLES["events"].shown_columns]
    rows = decode(request_export(service, exported).content, "ndjson")
    assert [list(row) for row in rows] == [names, names]
    (bare, full) = sorted(rows, key=lambda row: row["time"])
    assert full["properties"] == PROPERTIES
    assert bare["properties"] is None
    assert (full["event_name"], full["anonymous_id"]) == ("signup, done", "anon_1")
    assert (full["time"], bare["time"]) == ("2026-01-05T10:00:00.007Z", "2026-01-05T10:00:00.000Z")
    assert (full["path"], full["currency"], full["scroll_depth"]) == ("/pricing", "", None)
    columns = ["website_id", "event_name", "time", "received_at", "is_bot", "scroll_depth"]
    queried = service.rows(exported, "events", columns)
    assert sorted(full["id"]) != sorted(bare["id"])
    assert sorted(queried, key=lambda row: row["time"]) == [
        {name: row[name] for name in columns} for row in (bare, full)
    ]


@pytest.mark.parametrize("format_name", FORMATS)
def test_every_format_has_the_same_values(
    service: Service, exported: str, format_name: str
) -> None:
    response = request_export(service, exported, format_name=format_name)
    (bare, full) = sorted(decode(response.content, format_name), key=lambda row: row["time"])
    texts = [column.name for column in STORAGE_TABLES["events"].shown_columns][:3]
    expected = sorted(
        decode(request_export(service, exported).content, "ndjson"), key=lambda row: row["time"]
    )
    assert [[row[name] for name in texts] for row in (bare, full)] == [
        [row[name] for name in texts] for row in expected
    ]
    times = {
        "ndjson": "2026-01-05T10:00:00.007Z",
        "csv": "2026-01-05T10:00:00.007Z",
    }
    assert full["time"] == times.get(format_name, NOON_MS + 7)
    if format_name in ("parquet", "arrow"):
        assert bare["properties"] is None
        assert full["properties"].startswith('{"plan":')
        assert (full["is_bot"], full["scroll_depth"]) == (True, None)
    if format_name == "csv":
        assert (bare["properties"], full["is_bot"], full["scroll_depth"]) == ("", "true", "")


def test_csv_has_a_header_lines_end_as_rfc_4180_says_and_null_is_an_empty_field(
    service: Service, exported: str
) -> None:
    content = request_export(service, exported, table="performance", format_name="csv").content
    names = [column.name for column in STORAGE_TABLES["performance"].shown_columns]
    header, row, end = content.split(b"\r\n")
    assert header.decode() == ",".join(f'"{name}"' for name in names)
    assert row.endswith(b",1830.5")
    assert end == b""


@pytest.mark.parametrize("table", ["errors", "performance"])
@pytest.mark.parametrize("format_name", FORMATS)
def test_errors_and_performance_are_exported_too(
    service: Service, exported: str, table: str, format_name: str
) -> None:
    response = request_export(service, exported, table=table, format_name=format_name)
    (row,) = decode(response.content, format_name)
    assert list(row) == [column.name for column in STORAGE_TABLES[table].shown_columns]
    assert row.get("message", "a\tb") == "a\tb"


@pytest.mark.parametrize(
    ("format_name", "media_type"),
    [
        ("ndjson", "application/x-ndjson"),
        ("csv", "text/csv; charset=utf-8; header=present"),
        ("parquet", "application/vnd.apache.parquet"),
        ("arrow", "application/vnd.apache.arrow.stream"),
    ],
)
def test_response_names_its_type_and_a_file_and_is_sent_in_chunks(
    service: Service, exported: str, format_name: str, media_type: str
) -> None:
    headers = request_export(service, exported, format_name=format_name).headers
    assert headers["content-type"] == media_type
    assert headers["content-disposition"] == f'attachment; filename="events.{format_name}"'
    assert headers["cache-control"] == "no-store"
    assert headers["transfer-encoding"] == "chunked"
    assert "content-length" not in headers


@pytest.mark.parametrize("format_name", FORMATS)
def test_export_of_a_website_without_rows_is_an_empty_file_with_its_columns(
    service: Service, quiet_website: str, format_name: str
) -> None:
    response = request_export(service, quiet_website, format_name=format_name)
    assert response.status_code == 200
    assert decode(response.content, format_name) == []
    if format_name == "csv":
        assert response.content.count(b"\r\n") == 1


@pytest.mark.parametrize(
    ("first_day", "last_day", "expected"),
    [
        pytest.param("2026-01-06", "2026-01-07", [1, 2], id="both days are included"),
        pytest.param("2026-01-07", None, [2, 3], id="without an end"),
        pytest.param(None, "2026-01-05", [0], id="without a beginning"),
        pytest.param("2026-01-09", "2026-01-09", [], id="no rows"),
        pytest.param("0001-01-01", "9999-12-31", [0, 1, 2, 3], id="beyond all times"),
    ],
)
def test_days_are_of_utc_and_both_are_included(
    service: Service, first_day: str | None, last_day: str | None, expected: list[int]
) -> None:
    website = service.website()
    midnight_ms = NOON_MS - 10 * 3_600_000
    batch = [
        {"name": str(day), "timestamp": midnight_ms + day * DAY_MS + at_ms}
        for day in range(4)
        for at_ms in (0, DAY_MS - 1)
    ]
    send(service, website, batch)
    response = request_export(service, website, parameters={"from": first_day, "to": last_day})
    names = sorted(row["event_name"] for row in decode(response.content, "ndjson"))
    assert names == sorted(str(day) for day in expected for _ in range(2))


@pytest.mark.parametrize(
    ("parameters", "code", "error"),
    [
        (
            {"table": None},
            "INVALID_TABLE",
            "Invalid table: one of events, errors, performance is required",
        ),
        (
            {"table": "sessions"},
            "INVALID_TABLE",
            'Invalid table "sessions" (one of events, errors, performance)',
        ),
        (
            {"format": None},
            "INVALID_FORMAT",
            "Invalid format: one of ndjson, parquet, csv, arrow is required",
        ),
        (
            {"format": "parket"},
            "INVALID_FORMAT",
            'Invalid format "parket" (did you mean "parquet"?)',
        ),
        (
            {"from": "yesterday"},
            "INVALID_FROM",
            'Invalid from "yesterday": must be a date such as 2026-01-31',
        ),
        ({"to": "2026-02-30"}, "INVALID_TO", 'Invalid to "2026-02-30": there is no such day'),
        (
            {"from": "2026-02-02", "to": "2026-02-01"},
            "INVALID_TO",
            'Invalid to "2026-02-01": must not be before from',
        ),
        (
            {"form": "2026-02-01"},
            "INVALID_PARAMETER",
            'Invalid parameter "form" (did you mean "format"?)',
        ),
        (
            {"startDate": "2026-02-01"},
            "INVALID_PARAMETER",
            'Invalid parameter "startDate" (one of website_id, table, format, from, to)',
        ),
        ({"website_id": None}, "MISSING_WEBSITE_ID", "website_id is required"),
    ],
)
def test_parameters_are_checked(
    service: Service,
    quiet_website: str,
    parameters: dict[str, str | None],
    code: str,
    error: str,
) -> None:
    response = request_export(service, quiet_website, parameters=parameters)
    assert outcome(response) == rejection(400, code, error)


def test_only_a_key_with_manage_data_and_access_to_the_website_may_export(
    service: Service, exported: str
) -> None:
    public, other = service.website(public=True), service.website()
    query = {"table": "events", "format": "csv"}

    def status(website: str, key: str | None) -> tuple[int, dict[str, Any]]:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return outcome(
            service.get("/v1/export", params={**query, "website_id": website}, headers=headers)
        )

    no_credentials = rejection(401, "UNAUTHORIZED", "Authentication required")
    no_scope = rejection(403, "MISSING_SCOPE", "API key missing manage:data scope")
    not_found = rejection(404, "WEBSITE_NOT_FOUND", "Website not found")
    foreign = service.key("manage:data", organization=service.organization("others"))
    assert status(exported, None) == no_credentials
    assert status(public, None) == no_credentials
    assert status("web_unknown", None) == no_credentials
    assert status(exported, "hr_nobody") == rejection(401, "INVALID_API_KEY", "Invalid API key")
    assert status(exported, service.key("read:data").secret) == no_scope
    assert status(public, service.key("track:events", "read:data").secret) == no_scope
    assert status("web_unknown", service.key("manage:data").secret) == not_found
    assert status(exported, foreign.secret) == not_found
    assert status(public, foreign.secret) == not_found
    assert status(other, service.key("manage:data", websites=[exported]).secret) == not_found


def test_no_query_rate_counts_exports(service: Service, quiet_website: str) -> None:
    headers = request_export(service, quiet_website).headers
    assert not [name for name in headers if name.lower().startswith("x-ratelimit")]


def test_other_methods_are_405_in_the_envelope(service: Service) -> None:
    response = service.post("/v1/export", {}, headers=bearer(service.key("manage:data")))
    expected = rejection(405, "METHOD_NOT_ALLOWED", "Method not allowed")
    assert outcome(response) == expected
    assert response.headers["allow"] == "GET"


def test_export_has_every_event_that_was_acknowledged_before_it(
    service: Service, website: str
) -> None:
    for first in range(0, 400, 100):
        send(service, website, events(100, first=first))
        rows = decode(request_export(service, website).content, "ndjson")
        numbers = sorted(row["properties"]["number"] for row in rows)
        assert numbers == list(range(first + 100))


class Sender(threading.Thread):
    """Sends batches of ten numbered events, one after the other, until it is stopped."""

    def __init__(self, service: Service, website: str) -> None:
        super().__init__()
        self.acknowledged = 0
        self.stopping = threading.Event()
        self._service = service
        self._website = website

    def run(self) -> None:
        headers = bearer(self._service.master)
        url = f"{self._service.url}/track?website_id={self._website}"
        with Service.session() as session:
            while not self.stopping.is_set():
                batch = events(10, first=self.acknowledged)
                response = session.post(url, json=batch, headers=headers, timeout=60)
                assert response.status_code == 200
                self.acknowledged += 10


@pytest.mark.parametrize("format_name", ["ndjson", "parquet"])
def test_export_while_events_arrive_ends_exactly_at_one_of_them(
    service: Service, website: str, format_name: str
) -> None:
    """One sender waits for each acknowledgement, so every watermark is a prefix of its events."""
    sender = Sender(service, website)
    sender.start()
    try:
        for _ in range(5):
            before = sender.acknowledged
            content = request_export(service, website, format_name=format_name).content
            after = sender.acknowledged + 10
            rows = decode(content, format_name)
            numbers = sorted(_number(row["properties"]) for row in rows)
            assert numbers == list(range(len(numbers)))
            assert before <= len(numbers) <= after
            assert len(numbers) % 10 == 0
    finally:
        sender.stopping.set()
        sender.join()


def _number(properties: Any) -> int:
    found = json.loads(properties) if isinstance(properties, str) else properties
    number: int = found["number"]
    return number
