"""Maps an item, sent with a key, to its stored row; covers the columns that queries read."""

from collections.abc import Mapping
from typing import Any

from tests.oracle.columns import TABLES
from tests.oracle.fingerprint import fingerprint
from tests.oracle.rows import Row

PROMOTED_TEXTS = (
    *("url", "path", "title", "referrer", "language", "timezone", "screen_resolution"),
    *("viewport_size", "currency"),
    *("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content"),
)
PROMOTED_NUMBERS = (
    *("time_on_page", "scroll_depth", "interaction_count", "page_count", "load_time"),
    *("dom_ready_time", "dom_interactive", "ttfb", "render_time", "value"),
)


RECEIVED_MS = 4_102_444_800_000
"""The oracle's time of receipt of every item: later than any timestamp in a query."""


def event_row(sent: Mapping[str, Any], *, arrival: int, visitor: Mapping[str, Any]) -> Row:
    """Return the row of a /track item with a numeric timestamp; `visitor` is its enrichment."""
    properties: Row = sent.get("properties") or {}
    texts = {name: properties[name] for name in PROMOTED_TEXTS if _is_text(properties.get(name))}
    numbers = {name: properties[name] for name in PROMOTED_NUMBERS if _is_number(properties, name)}
    own = {
        "event_name": sent["name"],
        "namespace": sent.get("namespace"),
        "source": sent.get("source"),
        **_common(sent, arrival, visitor),
    }
    return _row("events", {**texts, **numbers, **own}) | {"properties": properties}


def vital_row(sent: Mapping[str, Any], *, arrival: int, visitor: Mapping[str, Any]) -> Row:
    """Return the row of an item of /vitals."""
    own = {"metric_name": sent["metricName"], "metric_value": sent["metricValue"]}
    return _row("performance", {**own, **_common(sent, arrival, visitor)})


def error_row(sent: Mapping[str, Any], *, arrival: int, visitor: Mapping[str, Any]) -> Row:
    """Return the row of an item of /errors."""
    own = {
        "level": sent.get("level") or "error",
        "error_type": sent.get("errorType"),
        **{name: sent.get(name) for name in ("message", "filename", "lineno", "colno", "stack")},
    }
    row = _row("errors", {**own, **_common(sent, arrival, visitor)})
    return row | {"fingerprint": fingerprint(row["error_type"], row["message"], row["stack"])}


def _common(sent: Mapping[str, Any], arrival: int, visitor: Mapping[str, Any]) -> Row:
    path = {"path": sent["path"]} if sent.get("path") else {}
    return {
        "id": f"row {arrival}",
        "website_id": "the website",
        "time": sent["timestamp"],
        "received_at": RECEIVED_MS,
        "anonymous_id": sent.get("anonymousId"),
        "session_id": sent.get("sessionId"),
        "profile_id": sent.get("profileId"),
        "is_bot": False,
        **path,
        **visitor,
    }


def _row(table: str, known: Mapping[str, Any]) -> Row:
    """Fill in every column: a missing text is empty, any other missing value is None."""
    return {
        name: (known.get(name) or "") if column.kind == "text" else known.get(name)
        for name, column in TABLES[table].items()
    }


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(properties: Row, name: str) -> bool:
    value = properties.get(name)
    return isinstance(value, int | float) and not isinstance(value, bool)
