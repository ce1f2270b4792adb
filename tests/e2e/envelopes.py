"""Expected response bodies, and the items that produce them."""

import re
from collections.abc import Mapping
from typing import Any

import requests

Json = Any

TIMESTAMP_MS = 1_714_564_800_000
TIMESTAMP = "2024-05-01T12:00:00.000Z"

ENDPOINTS = ("/track", "/vitals", "/errors", "/batch", "/")
ITEMS: Mapping[str, Mapping[str, Json]] = {
    "/track": {"name": "signup"},
    "/vitals": {"timestamp": TIMESTAMP_MS, "path": "/", "metricName": "LCP", "metricValue": 1},
    "/errors": {"timestamp": TIMESTAMP_MS, "path": "/", "message": "boom"},
    "/batch": {"name": "screen_view"},
    "/": {"name": "screen_view"},
}
TABLES: Mapping[str, str] = {
    "/track": "events",
    "/vitals": "performance",
    "/errors": "errors",
    "/batch": "events",
    "/": "events",
}
_TYPES = {"/track": "custom_event", "/vitals": "web_vitals", "/errors": "error"}
_REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")

Refusal = tuple[int, dict[str, Json]]


def success(endpoint: str, count: int = 1, event_ids: tuple[str | None, ...] = ()) -> Json:
    """Return the whole body for an accepted request; `event_ids` applies to /batch only."""
    if endpoint == "/":
        return {"status": "success", "type": "track"}
    if endpoint == "/batch":
        ids = event_ids or (None,) * count
        results = [{"status": "success", "type": "track", "eventId": one} for one in ids]
        return {"status": "success", "batch": True, "processed": count, "results": results}
    return {"status": "success", "type": _TYPES[endpoint], "count": count}


def outcome(response: requests.Response) -> tuple[int, Json]:
    """Return the status and the whole body; check that the content type is JSON."""
    assert response.headers["Content-Type"].split(";")[0] == "application/json"
    return response.status_code, response.json()


def error_envelope(response: requests.Response) -> Refusal:
    """Return the status and the body without the requestId; check the format of the requestId."""
    status, body = outcome(response)
    request_id = body.pop("requestId")
    assert _REQUEST_ID.fullmatch(request_id), request_id
    return status, body


def field_errors(response: requests.Response) -> list[tuple[int, str]]:
    """Return (index, field) of each error in a rejected body; check the rest of the body."""
    status, body = error_envelope(response)
    listed = body.pop("errors")
    assert (status, body) == INVALID_BODY
    for field_error in listed:
        assert set(field_error) == {"index", "field", "message"}
        assert isinstance(field_error["message"], str)
        assert field_error["message"]
    return [(field_error["index"], field_error["field"]) for field_error in listed]


def _error(status: int, message: str, code: str) -> Refusal:
    return status, {"status": "error", "message": message, "code": code}


INVALID_BODY = _error(400, "Invalid request body", "INVALID_BODY")
MISSING_ORGANIZATION = _error(400, "Website missing organization", "WEBSITE_MISSING_ORGANIZATION")
UNAUTHORIZED = _error(401, "API key or website_id required", "UNAUTHORIZED")
INVALID_API_KEY = _error(401, "Invalid API key", "INVALID_API_KEY")
MISSING_SCOPE = _error(403, "API key missing track:events scope", "MISSING_SCOPE")
SCOPE_MISMATCH = _error(403, "Website scope mismatch", "SCOPE_MISMATCH")
ORIGIN_NOT_AUTHORIZED = _error(403, "Origin not authorized", "ORIGIN_NOT_AUTHORIZED")
WEBSITE_NOT_FOUND = _error(404, "Website not found", "WEBSITE_NOT_FOUND")
NOT_FOUND = _error(404, "Not found", "NOT_FOUND")
METHOD_NOT_ALLOWED = _error(405, "Method not allowed", "METHOD_NOT_ALLOWED")
INTERNAL = _error(500, "Internal server error", "INTERNAL")
PAYLOAD_TOO_LARGE = _error(413, "Payload too large", "PAYLOAD_TOO_LARGE")
UNAVAILABLE = _error(503, "Service unavailable", "UNAVAILABLE")
