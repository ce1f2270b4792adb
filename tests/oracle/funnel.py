"""A reference evaluator of funnels: every attempt of everybody is followed, one by one."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from tests.oracle.check import Query, check
from tests.oracle.evaluate import matching_rows, shown_value, sort_rows
from tests.oracle.rows import Row, Stored

Attempt = list[Row]
"""The event of each step that was reached."""


def evaluate_funnel(body: Mapping[str, Any], stored: Stored) -> list[Row]:
    """Return the rows of a valid funnel."""
    queries = [query_of(step, body) for step in body["steps"]]
    matches = [{id(row) for row in matching_rows(query, stored)} for query in queries]
    window_ms = (body.get("window") or 86_400) * 1000
    attempts = [
        best
        for events in histories(body.get("by") or "anonymous_id", stored)
        if (best := _best_attempt(events, matches, window_ms))
    ]
    column = body.get("groupBy")
    if column is None:
        return _steps(body, {}, attempts)
    return _grouped(body, queries[0], column, attempts)


def query_of(step: Mapping[str, Any], body: Mapping[str, Any]) -> Query:
    """Return a custom query with the filters of a step: it decides which events match."""
    query = {
        "table": "events",
        "selects": [{"field": "*", "aggregate": "count"}],
        "filters": step["filters"],
    }
    root = {key: body[key] for key in ("startDate", "endDate", "timezone") if key in body}
    return check({"query": query, **root})


def histories(by: str, stored: Stored) -> Iterator[list[Row]]:
    """Return all events of each id, by time, then by arrival."""
    events = sorted(stored.events, key=lambda event: event["time"])
    for one in {event[by] for event in events} - {""}:
        yield [event for event in events if event[by] == one]


def _best_attempt(events: list[Row], matches: Sequence[set[int]], window_ms: int) -> Attempt:
    """Return the attempt that gets furthest; `max` returns the first of several."""
    attempts = [
        _attempt(events[position:], matches, window_ms)
        for position, event in enumerate(events)
        if id(event) in matches[0]
    ]
    return max(attempts, key=len) if attempts else []


def _attempt(events: list[Row], matches: Sequence[set[int]], window_ms: int) -> Attempt:
    """Follow the attempt that begins with the first of these events."""
    reached = events[:1]
    for event in events[1:]:
        is_next = len(reached) < len(matches) and id(event) in matches[len(reached)]
        if is_next and event["time"] - events[0]["time"] <= window_ms:
            reached.append(event)
    return reached


def _grouped(
    body: Mapping[str, Any], query: Query, column: str, attempts: list[Attempt]
) -> list[Row]:
    groups: dict[Any, list[Attempt]] = {}
    for attempt in attempts:
        value = shown_value(query, attempt[0], column)
        groups.setdefault(
            (type(value).__name__ == "bool", type(value).__name__ == "JsonText", value), []
        ).append(attempt)
    heads = [
        {column: key[-1], "ids": len(found), "attempts": found} for key, found in groups.items()
    ]
    ordered = sort_rows(sort_rows(heads, column, descending=False), "ids", descending=True)
    return [
        row for head in ordered for row in _steps(body, {column: head[column]}, head["attempts"])
    ]


def _steps(body: Mapping[str, Any], group: Row, attempts: list[Attempt]) -> list[Row]:
    return [
        {
            **group,
            "step": number,
            "name": step.get("name"),
            "count": len(reached),
            "rate": len(reached) / len(attempts) if attempts else None,
            "medianSeconds": _median_s(reached, number) if number > 1 and reached else None,
        }
        for number, step in enumerate(body["steps"], start=1)
        for reached in [[attempt for attempt in attempts if len(attempt) >= number]]
    ]


def _median_s(attempts: list[Attempt], number: int) -> float:
    elapsed_ms = [attempt[number - 1]["time"] - attempt[0]["time"] for attempt in attempts]
    return float(median(elapsed_ms)) / 1000
