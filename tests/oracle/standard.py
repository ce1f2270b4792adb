"""A reference of standard queries: each type by the custom query that the contract says it equals.

`run` evaluates a custom query, so the same definitions serve the oracle and the product.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.oracle.rows import Row

Body = Mapping[str, Any]
Run = Callable[[Body], list[Row]]

_VIEW = {
    "field": "event_name",
    "operator": "in",
    "value": ["page_view", "pageview", "screen_view"],
}
_SUMMARY = ("visitors", "sessions", "pageViews", "events", "bounceRate", "medianDuration")
_TABLES = {
    **dict.fromkeys(("pages", "events", "countries", "browsers", "systems", "devices"), "events"),
    **dict.fromkeys(("entry_pages", "exit_pages", "referrers", "campaigns"), "sessions"),
    "vitals": "performance",
    "errors": "errors",
}
_GROUPS = {
    "pages": ["path"],
    "events": ["event_name"],
    "countries": ["country"],
    "browsers": ["browser_name"],
    "systems": ["os_name"],
    "devices": ["device_type"],
    "entry_pages": ["entry_path"],
    "exit_pages": ["exit_path"],
    "referrers": ["referrer"],
    "campaigns": ["utm_source", "utm_medium", "utm_campaign"],
    "vitals": ["metric_name"],
    "errors": ["message"],
}
ALL_TYPES = ("summary", "timeseries", *_TABLES, "online")


def tables_of(name: str) -> tuple[str, ...]:
    """Return the tables that a type reads."""
    if name in ("summary", "timeseries"):
        return ("events", "sessions")
    return ("events",) if name == "online" else (_TABLES[name],)


def evaluate_standard(body: Body, run: Run, now_ms: int) -> Mapping[str, Any]:
    """Return `data` of a valid body."""
    return {name: _answer(name, body, run, now_ms) for name in body["types"]}


def _answer(name: str, body: Body, run: Run, now_ms: int) -> Any:
    match name:
        case "summary":
            return _summary(body, run)[0]
        case "timeseries":
            size = body.get("granularity") or "daily"
            return _summary(body, run, granularity=size, fill=True, limit=10_000)
        case "online":
            recent = [
                {"field": "time", "operator": "gt", "value": now_ms - 5 * 60 * 1000},
                {"field": "time", "operator": "lte", "value": now_ms},
            ]
            today = datetime.fromtimestamp(now_ms / 1000, UTC).date()
            ends = [str(today + timedelta(days=days)) for days in (-2, 2)]
            days = {"startDate": ends[0], "endDate": ends[1], "compare": None}
            return run(_custom("events", [_visitors()], body, recent) | days)[0]
        case _:
            limit = min(body.get("limit") or 10, 100)
            custom = _custom(_TABLES[name], _selects(name), body, _own_filters(name))
            custom["query"]["groupBy"] = _GROUPS[name]
            return run({**custom, "limit": limit})


def _custom(
    table: str, selects: list[Row], body: Body, own: list[Any], **root: Any
) -> dict[str, Any]:
    sent_filters: list[Any] = body.get("filters") or []
    filters = [*own, *sent_filters]
    names = ("startDate", "endDate", "timezone", "compare")
    sent = {name: body[name] for name in names if name in body}
    return {"query": {"table": table, "selects": selects, "filters": filters}, **sent, **root}


def _count(alias: str, *filters: Row) -> Row:
    return {"field": "*", "aggregate": "count", "alias": alias, "filters": list(filters)}


def _visitors() -> Row:
    return {"field": "anonymous_id", "aggregate": "uniq", "alias": "visitors"}


def _bounces() -> Row:
    return _count("bounces", {"field": "is_bounce", "operator": "eq", "value": True})


def _selects(name: str) -> list[Row]:
    match name:
        case "pages":
            return [_count("views"), _visitors()]
        case "events":
            return [_count("events"), _visitors()]
        case "errors":
            return [_count("errors"), _visitors()]
        case "vitals":
            shares = [
                {"field": "metric_value", "aggregate": one, "alias": one} for one in ("p75", "p50")
            ]
            return [*shares, _count("samples")]
        case _ if _TABLES[name] == "sessions":
            return [_count("sessions"), _visitors(), _bounces()]
        case _:
            return [_visitors(), _count("events")]


def _own_filters(name: str) -> list[Any]:
    are_set = [{"field": field, "operator": "ne", "value": ""} for field in _GROUPS[name]]
    match name:
        case "pages":
            return [_VIEW, *are_set]
        case "campaigns":
            return [{"or": are_set}]
        case "events" | "errors" | "vitals":
            return []
        case _:
            return are_set


def _summary(body: Body, run: Run, **root: Any) -> list[Row]:
    of_events = [_visitors(), _count("pageViews", _VIEW), _count("events")]
    duration = {"field": "duration", "aggregate": "p50", "alias": "medianDuration"}
    of_sessions = [_count("sessions"), _bounces(), duration]
    events = run(_custom("events", of_events, body, [], **root))
    sessions = run(_custom("sessions", of_sessions, body, [], **root))
    return [_joined(one, other) for one, other in zip(events, sessions, strict=True)]


def _joined(events: Row, sessions: Row) -> Row:
    every = {**events, **sessions}
    every["bounceRate"] = every["bounces"] / every["sessions"] if every["sessions"] else None
    row = {name: every[name] for name in ("date", *_SUMMARY) if name in every}
    if "previous" not in every:
        return row
    before, also = events["previous"], sessions["previous"]
    assert (before is None) == (also is None)
    return {**row, "previous": None if before is None else _joined(before, also)}
