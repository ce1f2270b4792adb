"""Stored rows, and the rows that each table derives from them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.columns import is_object

Row = dict[str, Any]

PAGE_VIEWS = ("screen_view", "pageview", "page_view")
_UTM = ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content")
_VISITOR = ("country", "region", "city", "browser_name", "os_name", "device_type", "language")


@dataclass
class Stored:
    """The rows of one website in order of arrival.

    A row has every column by name: a missing text is "", a missing number is None, and times are
    epoch milliseconds. Events also have `properties`, the object as sent.
    """

    events: list[Row] = field(default_factory=list[Row])
    errors: list[Row] = field(default_factory=list[Row])
    performance: list[Row] = field(default_factory=list[Row])


def rows_of(table: str, stored: Stored, in_range: Callable[[int], bool]) -> list[Row]:
    """Return the rows of a table within a range, including bots if the table has `is_bot`."""
    human_events = [row for row in stored.events if not row["is_bot"]]
    match table:
        case "sessions":
            return [row for row in _sessions(human_events) if in_range(row["start_time"])]
        case "profiles":
            active_ids = {row["anonymous_id"] for row in human_events if in_range(row["time"])}
            return [row for row in _profiles(human_events) if row["anonymous_id"] in active_ids]
        case _:
            rows: list[Row] = getattr(stored, table)
            return [row for row in rows if in_range(row["time"])]


def time_column(table: str) -> str:
    """Return the column by which a table is restricted to ranges and grouped into buckets."""
    return "start_time" if table == "sessions" else "time"


def _by(column: str, events: list[Row]) -> list[list[Row]]:
    """Group events by a non-empty text; each group is ordered by time, then by arrival."""
    groups: dict[str, list[Row]] = {}
    for event in sorted(events, key=lambda event: event["time"]):
        if event[column]:
            groups.setdefault(event[column], []).append(event)
    return list(groups.values())


def _first(column: str, events: list[Row]) -> Any:
    return next((event[column] for event in events if event[column]), "")


def _last(column: str, events: list[Row]) -> Any:
    return _first(column, events[::-1])


def _page_views(events: list[Row]) -> int:
    return sum(event["event_name"] in PAGE_VIEWS for event in events)


def _sessions(events: list[Row]) -> list[Row]:
    return [_session(group) for group in _by("session_id", events)]


def _session(events: list[Row]) -> Row:
    start, end = events[0]["time"], events[-1]["time"]
    duration, page_views = (end - start) / 1000, _page_views(events)
    return {
        "session_id": events[0]["session_id"],
        "start_time": start,
        "end_time": end,
        "duration": duration,
        "page_views": page_views,
        "event_count": len(events),
        "is_bounce": page_views <= 1 and duration < 10,
        "entry_path": _first("path", events),
        "exit_path": _last("path", events),
        **{name: _first(name, events) for name in ("anonymous_id", "referrer", *_VISITOR, *_UTM)},
    }


def _profiles(events: list[Row]) -> list[Row]:
    return [_profile(group) for group in _by("anonymous_id", events)]


def _profile(events: list[Row]) -> Row:
    return {
        "anonymous_id": events[0]["anonymous_id"],
        "first_seen": events[0]["time"],
        "last_seen": events[-1]["time"],
        "session_count": len({event["session_id"] for event in events} - {""}),
        "event_count": len(events),
        "page_views": _page_views(events),
        **{name: _first(name, events) for name in ("referrer", *_UTM)},
        **{name: _last(name, events) for name in _VISITOR},
    }


def value_of(row: Row, name: str) -> Any:
    """Return a column's value; None (and "" of a text) is missing."""
    if not name.startswith("properties."):
        return row[name]
    key = name.removeprefix("properties.")
    properties: Row = row["properties"]
    return properties[key] if key in properties else _nested(properties, key.split("."))


def _nested(value: Any, parts: list[str]) -> Any:
    if not parts:
        return value
    return _nested(value.get(parts[0]), parts[1:]) if is_object(value) else None
