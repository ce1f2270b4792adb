"""Ranges of whole days, hour and day buckets across changes of summer time, and gap filling."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from testing.service import Json, Row, Service, bearer
from tests.e2e.query.queries import COUNT, body, event, query, rows_of, select, send

RunQuery = Callable[..., list[Row]]
QUARTER = timedelta(minutes=15)

# Days (in UTC) with an event every fifteen minutes.
TICKING_DAYS = [
    ("2025-03-29", 3),  # Berlin springs forward on the 30th at 02:00
    ("2025-10-25", 3),  # Berlin falls back on the 26th at 03:00
    ("2025-10-04", 2),  # Lord Howe springs forward by half an hour on the 5th at 02:00
    ("2025-04-05", 2),  # Lord Howe falls back by half an hour on the 6th at 02:00
    ("2018-11-03", 3),  # São Paulo springs forward on the 4th at midnight
    ("2011-12-29", 3),  # Apia has no 30th
]


def ticks() -> list[datetime]:
    """Return all timestamps of TICKING_DAYS."""
    starts = [(datetime.fromisoformat(day).replace(tzinfo=UTC), days) for day, days in TICKING_DAYS]
    return [start + QUARTER * n for start, days in starts for n in range(96 * days)]


@pytest.fixture(scope="module")
def run_query(service: Service) -> RunQuery:
    """Queries a website that has an event every fifteen minutes of TICKING_DAYS."""
    website = service.website()
    send(service, website, *(event(at=timestamp.isoformat()) for timestamp in ticks()))

    def run_query(start: str, end: str, timezone: str, **root: Any) -> list[Row]:
        query_body = root.pop("query", None) or query()
        sent = body(query_body, startDate=start, endDate=end, timezone=timezone, **root)
        path = f"/v1/query/custom?website_id={website}"
        return rows_of(service.post(path, sent, headers=bearer(service.master)))

    return run_query


def hours(day: str, counts: dict[int, int]) -> list[Row]:
    return [{"date": f"{day} {hour:02}:00:00", "n": n} for hour, n in counts.items()]


SPRING = {hour: 4 for hour in range(24) if hour != 2}
AUTUMN = dict.fromkeys(range(24), 4) | {2: 8}
DAYS_OF_CHANGE = [
    pytest.param("Europe/Berlin", "2025-03-30", SPRING, id="23 hours"),
    pytest.param("Europe/Berlin", "2025-10-26", AUTUMN, id="25 hours in 24 rows"),
    pytest.param(
        "Australia/Lord_Howe",
        "2025-10-05",
        dict.fromkeys(range(24), 4) | {2: 2},
        id="half an hour is missing",
    ),
    pytest.param(
        "Australia/Lord_Howe",
        "2025-04-06",
        dict.fromkeys(range(24), 4) | {1: 6},
        id="half an hour comes twice",
    ),
    pytest.param(
        "America/Sao_Paulo", "2018-11-04", dict.fromkeys(range(1, 24), 4), id="no midnight"
    ),
    pytest.param("Asia/Kolkata", "2025-03-30", dict.fromkeys(range(24), 4), id="half-hour zone"),
    pytest.param("Asia/Kathmandu", "2025-03-30", dict.fromkeys(range(24), 4), id="quarter-hour"),
    pytest.param("UTC", "2025-03-30", dict.fromkeys(range(24), 4), id="UTC"),
]


@pytest.mark.parametrize("fill", [False, True])
@pytest.mark.parametrize(("timezone", "day", "counts"), DAYS_OF_CHANGE)
def test_hours_are_in_local_time(
    run_query: RunQuery, timezone: str, day: str, counts: dict[int, int], fill: bool
) -> None:
    answer = run_query(day, day, timezone, granularity="hourly", fill=fill)
    assert answer == hours(day, counts)


@pytest.mark.parametrize(("timezone", "day", "counts"), DAYS_OF_CHANGE)
def test_day_has_the_sum_of_its_hours(
    run_query: RunQuery, timezone: str, day: str, counts: dict[int, int]
) -> None:
    total = sum(counts.values())
    assert run_query(day, day, timezone, granularity="daily") == [{"date": day, "n": total}]
    assert run_query(day, day, timezone) == [{"n": total}]


@pytest.mark.parametrize("first", ["2025-01-01", "2024-01-01", "2023-01-01", "2017-01-01"])
@pytest.mark.parametrize("timezone", ["Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe"])
def test_hours_are_in_local_time_across_many_clock_changes(
    run_query: RunQuery, timezone: str, first: str
) -> None:
    on_the_wall = [
        f"{timestamp.astimezone(ZoneInfo(timezone)):%Y-%m-%d %H:00:00}" for timestamp in ticks()
    ]
    expected = Counter(hour for hour in on_the_wall if "2025-12-31 23:00:00" >= hour >= first)
    answer = run_query(first, "2025-12-31", timezone, granularity="hourly", limit=10_000)
    assert answer == [{"date": hour, "n": expected[hour]} for hour in sorted(expected)]


@pytest.mark.parametrize("fill", [False, True])
def test_skipped_day_has_no_row(run_query: RunQuery, fill: bool) -> None:
    answer = run_query("2011-12-29", "2011-12-31", "Pacific/Apia", granularity="daily", fill=fill)
    assert answer == [{"date": "2011-12-29", "n": 96}, {"date": "2011-12-31", "n": 96}]


def test_date_is_the_first_key_of_a_row(run_query: RunQuery) -> None:
    query_body = query(select("*", "count"), group_by=["event_name"])
    [row] = run_query("2025-03-30", "2025-03-30", "UTC", granularity="daily", query=query_body)
    assert list(row) == ["date", "event_name", "count_all"]


@pytest.mark.parametrize(
    ("timezone", "first", "last"),
    [
        ("UTC", "2025-03-10T00:00:00.000Z", "2025-03-11T23:59:59.999Z"),
        ("Europe/Berlin", "2025-03-09T23:00:00.000Z", "2025-03-11T22:59:59.999Z"),
        ("America/Los_Angeles", "2025-03-10T07:00:00.000Z", "2025-03-12T06:59:59.999Z"),
        ("Pacific/Kiritimati", "2025-03-09T10:00:00.000Z", "2025-03-11T09:59:59.999Z"),
        ("Asia/Kathmandu", "2025-03-09T18:15:00.000Z", "2025-03-11T18:14:59.999Z"),
    ],
)
def test_range_is_whole_days_of_the_timezone_both_ends_included(
    service: Service, website: str, timezone: str, first: str, last: str
) -> None:
    millisecond = timedelta(milliseconds=1)
    inside = [datetime.fromisoformat(timestamp) for timestamp in (first, last)]
    outside = [inside[0] - millisecond, inside[1] + millisecond]
    send(service, website, *(event("in", at=at.isoformat()) for at in inside))
    send(service, website, *(event("out", at=at.isoformat()) for at in outside))
    root = {"start": "2025-03-10", "end": "2025-03-11", "timezone": timezone}
    assert service.answer(website, query(group_by=["event_name"]), **root) == [
        {"event_name": "in", "n": 2}
    ]
    assert service.answer(website, query(), granularity="daily", **root) == [
        {"date": "2025-03-10", "n": 1},
        {"date": "2025-03-11", "n": 1},
    ]


# Gap filling and pages.

SPARSE = [
    event("a", at="2025-03-10T01:30:00Z", path="/x", properties={"value": 2}),
    event("b", at="2025-03-12T22:15:00Z", path="/y", properties={"value": 3}),
    event("b", at="2025-03-12T22:45:00Z", path="/y"),
]
EVERYTHING = [
    COUNT,
    select("path", "uniq", "uniq"),
    select("value", "sum", "sum"),
    select("value", "avg", "avg"),
    select("value", "max", "max"),
    select("value", "p90", "p90"),
]


@pytest.fixture(scope="module")
def sparse(service: Service) -> RunQuery:
    """Queries a website that has the three events of SPARSE; the default is 10 to 13 March."""
    website = service.website()
    send(service, website, *SPARSE)

    def run_query(query_body: Json = None, **root: Any) -> list[Row]:
        days = {"start": "2025-03-10", "end": "2025-03-13"}
        return service.answer(website, query_body or query(), **{**days, **root})

    return run_query


def test_without_fill_empty_buckets_are_left_out(sparse: RunQuery) -> None:
    assert sparse(granularity="daily") == [
        {"date": "2025-03-10", "n": 1},
        {"date": "2025-03-12", "n": 2},
    ]


def test_fill_adds_empty_buckets_with_0_for_counts_and_sums_and_null_for_the_rest(
    sparse: RunQuery,
) -> None:
    empty = {"n": 0, "uniq": 0, "sum": 0, "avg": None, "max": None, "p90": None}
    assert sparse(query(*EVERYTHING), granularity="daily", fill=True) == [
        {"date": "2025-03-10", "n": 1, "uniq": 1, "sum": 2, "avg": 2, "max": 2, "p90": 2},
        {"date": "2025-03-11", **empty},
        {"date": "2025-03-12", "n": 2, "uniq": 1, "sum": 3, "avg": 3, "max": 3, "p90": 3},
        {"date": "2025-03-13", **empty},
    ]


def test_fill_with_groups_has_every_group_of_the_result_in_every_bucket(sparse: RunQuery) -> None:
    answer = sparse(
        query(group_by=["event_name"]), granularity="daily", fill=True, end="2025-03-12"
    )
    assert answer == [
        {"date": "2025-03-10", "event_name": "a", "n": 1},
        {"date": "2025-03-10", "event_name": "b", "n": 0},
        {"date": "2025-03-11", "event_name": "a", "n": 0},
        {"date": "2025-03-11", "event_name": "b", "n": 0},
        {"date": "2025-03-12", "event_name": "b", "n": 2},
        {"date": "2025-03-12", "event_name": "a", "n": 0},
    ]


def test_fill_over_no_groups_adds_nothing(sparse: RunQuery) -> None:
    root = {"granularity": "daily", "fill": True, "start": "2025-03-11", "end": "2025-03-11"}
    assert sparse(query(group_by=["event_name"]), **root) == []
    assert sparse(**root) == [{"date": "2025-03-11", "n": 0}]


def test_limit_and_offset_apply_after_filling(sparse: RunQuery) -> None:
    root = {"granularity": "daily", "fill": True}
    assert sparse(limit=2, offset=1, **root) == [
        {"date": "2025-03-11", "n": 0},
        {"date": "2025-03-12", "n": 2},
    ]
    order = [{"field": "n"}, {"field": "date", "direction": "desc"}]
    answer = sparse(orderBy=order, limit=3, **root)
    assert [row["date"] for row in answer] == ["2025-03-13", "2025-03-11", "2025-03-10"]


def test_filled_groups_over_ten_thousand_rows_are_rejected(service: Service, website: str) -> None:
    send(service, website, *(event(path=f"/{n}") for n in range(200)))
    root: dict[str, Any] = {"granularity": "daily", "fill": True, "start": "2025-03-01"}
    query_body = query(group_by=["path"])
    assert service.send_query(website, query_body, end="2025-04-19", **root).status_code == 200
    response = service.send_query(website, query_body, end="2025-04-20", **root)
    assert (response.status_code, response.json()["code"]) == (400, "INVALID_FILL")
    assert response.json()["error"].startswith("Invalid fill")


def test_rows_come_by_date_then_by_the_first_select(sparse: RunQuery) -> None:
    query_body = query(select("value", "sum", "s"), group_by=["path"])
    assert sparse(query_body, granularity="daily") == [
        {"date": "2025-03-10", "path": "/x", "s": 2},
        {"date": "2025-03-12", "path": "/y", "s": 3},
    ]


def test_order_by_may_put_the_latest_bucket_first(sparse: RunQuery) -> None:
    order = [{"field": "date", "direction": "desc"}]
    answer = sparse(granularity="hourly", timezone="Asia/Kolkata", orderBy=order)
    assert answer == [
        {"date": "2025-03-13 04:00:00", "n": 1},
        {"date": "2025-03-13 03:00:00", "n": 1},
        {"date": "2025-03-10 07:00:00", "n": 1},
    ]


def test_errors_and_vitals_have_buckets_too(service: Service, website: str) -> None:
    vital = {"timestamp": "2025-03-10", "path": "/", "metricName": "INP", "metricValue": 40}
    error = {"timestamp": "2025-03-10", "path": "/", "message": "m"}
    send(service, website, vital, path="/vitals")
    send(service, website, error, path="/errors")
    for table in ("errors", "performance"):
        answer = service.answer(website, query(table=table), granularity="hourly")
        assert answer == [{"date": "2025-03-10 00:00:00", "n": 1}]
