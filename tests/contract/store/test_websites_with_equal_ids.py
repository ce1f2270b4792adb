"""Two websites whose visitors and sessions have equal ids: no result mixes them."""

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.model.catalog import EVENTS
from testing.queries import COUNT, WEBSITE, query_body, query_rows, select
from testing.tables import EACH_QUERIED_STORE, Tables, made_tables

HOUR_MS = 3_600_000
JANUARY_5 = 1_767_571_200_000
NOVEMBER_6 = 1_289_001_600_000  # 2010; in St. John's that day begins at 02:30 UTC
VISITORS = select("anonymous_id", "uniq", "visitors")
EVENTS_AT: list[tuple[str, int, str]] = [
    (WEBSITE, JANUARY_5 + 12 * HOUR_MS, "u"),
    ("web_2", JANUARY_5 + 11 * HOUR_MS, "u"),
    ("web_2", JANUARY_5 + 13 * HOUR_MS, "u"),
    ("web_2", JANUARY_5 + 23 * HOUR_MS, "v"),
    (WEBSITE, NOVEMBER_6 + 2 * HOUR_MS, "u"),
    ("web_2", NOVEMBER_6 + 12 * HOUR_MS, "u"),
]


@pytest.fixture(scope="module", params=EACH_QUERIED_STORE)
def stored(request: pytest.FixtureRequest) -> Iterator[Tables]:
    """Tables with EVENTS_AT; the session of a visitor has the visitor's id."""
    rows: list[dict[str, Any]] = [
        {
            "id": number.to_bytes(16, "big"),
            "website_id": website,
            "event_name": "screen_view",
            "time": time_ms,
            "path": f"/{website}",
            "anonymous_id": visitor,
            "session_id": visitor,
        }
        for number, (website, time_ms, visitor) in enumerate(EVENTS_AT)
    ]
    with made_tables(request, request.param) as store:
        store.insert(EVENTS, rows)
        yield store


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_counts_of_whole_and_of_divided_days_are_of_one_website(stored: Tables, zone: str) -> None:
    body = query_body(COUNT, VISITORS, timezone=zone)
    assert query_rows(stored, body) == [{"n": 1, "visitors": 1}]
    body["endDate"] = "2026-01-05"
    assert query_rows(stored, body) == [{"n": 1, "visitors": 1}]
    body["startDate"] = body["endDate"] = "2026-01-06"
    assert query_rows(stored, body) == [{"n": 0, "visitors": 0}]


def test_session_is_made_of_the_events_of_one_website(stored: Tables) -> None:
    body = query_body(
        table="sessions",
        group_by=["entry_path", "duration", "event_count"],
        startDate="2026-01-05",
        endDate="2026-01-05",
    )
    assert query_rows(stored, body) == []  # it began in 2010
    body["startDate"] = body["endDate"] = "2010-11-06"
    duration = (JANUARY_5 + 10 * HOUR_MS - NOVEMBER_6) // 1000
    row = {"entry_path": "/web_1", "duration": duration, "event_count": 2, "n": 1}
    assert query_rows(stored, body) == [row]


def test_profile_is_made_of_the_events_of_one_website(stored: Tables) -> None:
    body = query_body(table="profiles", group_by=["anonymous_id", "event_count", "last_seen"])
    last = "2026-01-05T12:00:00.000Z"
    row = {"anonymous_id": "u", "event_count": 2, "last_seen": last, "n": 1}
    assert query_rows(stored, body) == [row]


def test_profile_is_not_active_through_an_event_of_another_website(stored: Tables) -> None:
    """Clocks go back across midnight at the end of that day, so the events show who was active."""
    day = {"startDate": "2010-11-06", "endDate": "2010-11-06", "timezone": "America/St_Johns"}
    assert query_rows(stored, query_body(table="profiles", **day)) == [{"n": 0}]
