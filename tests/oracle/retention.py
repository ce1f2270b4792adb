"""A reference evaluator of retention queries: everybody's events are walked one by one."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from tests.oracle.evaluate import matching_rows
from tests.oracle.funnel import histories, query_of
from tests.oracle.rows import Row, Stored


def evaluate_retention(body: Mapping[str, Any], stored: Stored, now_ms: int) -> list[Row]:
    """Return the rows of a valid retention query. Returns may lie after its range."""
    zone, size = ZoneInfo(body.get("timezone") or "UTC"), body["granularity"]
    firsts = {id(row) for row in matching_rows(query_of(body["first"], body), stored)}
    # Not by a later date of the body: with that a range may be longer than a query's.
    later = replace(query_of(body["return"], body), end=date.max)
    returns = {id(row) for row in matching_rows(later, stored)}
    cohorts: dict[int, list[set[int]]] = {}
    for events in histories(body.get("by") or "anonymous_id", stored):
        positions = [number for number, event in enumerate(events) if id(event) in firsts]
        if positions:
            first, *after = events[positions[0] :]
            cohort = _bucket(_local_date(first["time"], zone), size)
            came_back = [event for event in after if id(event) in returns]
            cohorts.setdefault(cohort, []).append(
                {_bucket(_local_date(event["time"], zone), size) - cohort for event in came_back}
            )
    now = _bucket(_local_date(now_ms, zone), size)
    return [
        {
            "date": _label(cohort, size),
            "size": len(ids),
            "returned": [
                None if cohort + number > now else sum(number in one for one in ids)
                for number in range(body["periods"])
            ],
        }
        for cohort, ids in sorted(cohorts.items())
    ]


def _local_date(epoch_ms: int, zone: ZoneInfo) -> date:
    return (
        (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=epoch_ms))
        .astimezone(zone)
        .date()
    )


def _bucket(day: date, size: str) -> int:
    match size:
        case "daily":
            return day.toordinal()
        case "weekly":
            return (day - timedelta(days=day.weekday())).toordinal() // 7
        case _:
            return day.year * 12 + day.month - 1


def _label(bucket: int, size: str) -> str:
    match size:
        case "daily":
            day = date.fromordinal(bucket)
        case "weekly":
            day = date.fromordinal(bucket * 7 + 1)  # 0001-01-01 was a Monday
        case _:
            day = date(bucket // 12, bucket % 12 + 1, 1)
    return day.isoformat()
