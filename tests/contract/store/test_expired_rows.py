"""Queries over a real store that still has expired rows: which rows a cutoff leaves."""

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.model.catalog import ERRORS, EVENTS
from headrace.model.data_retention import Cutoffs
from testing.queries import COUNT, WEBSITE, query_body, run_query, select
from testing.tables import EACH_QUERIED_STORE, Tables, made_tables

CUTOFF_MS = 1_767_571_200_000  # 2026-01-05
CUTOFFS = Cutoffs(events=CUTOFF_MS, errors=CUTOFF_MS + MILLISECONDS_PER_DAY)
HOUR_MS = 3_600_000
OFFSETS_MS = (-HOUR_MS, -1, 0, 1, HOUR_MS, MILLISECONDS_PER_DAY)
"""When events and errors occurred, relative to the cutoff of events. All arrived long after it."""


@pytest.fixture(scope="module", params=EACH_QUERIED_STORE)
def stored(request: pytest.FixtureRequest) -> Iterator[Tables]:
    """Tables with a session that began before the cutoff, and with errors of the same times."""
    rows: list[dict[str, Any]] = [
        {
            "id": number.to_bytes(16, "big"),
            "website_id": WEBSITE,
            "time": CUTOFF_MS + offset_ms,
            "path": f"/{offset_ms}",
            "anonymous_id": "u",
            "session_id": "s",
        }
        for number, offset_ms in enumerate(OFFSETS_MS)
    ]
    late = {"received_at": CUTOFF_MS + 10 * MILLISECONDS_PER_DAY}
    with made_tables(request, request.param) as store:
        store.insert(EVENTS, [{**row, **late, "event_name": "screen_view"} for row in rows])
        store.insert(ERRORS, rows)
        yield store


def found(stored: Tables, *selects: Any, **parts: Any) -> list[Any]:
    return [list(row) for row in run_query(stored, query_body(*selects, **parts), CUTOFFS).rows]


def test_event_is_expired_by_when_it_happened_not_by_when_it_arrived(stored: Tables) -> None:
    paths = found(stored, COUNT, group_by=["path"], orderBy=[{"field": "path"}])
    assert paths == [["/0", 1], ["/1", 1], ["/3600000", 1], ["/86400000", 1]]


@pytest.mark.parametrize(
    ("zone", "before", "after"),
    [
        pytest.param("UTC", [0, 0], [4, 1], id="whole days"),
        pytest.param("America/New_York", [3, 1], [1, 1], id="the day of the cutoff is divided"),
        pytest.param("Europe/Berlin", [0, 0], [4, 1], id="the day before the cutoff is divided"),
    ],
)
def test_rows_of_the_rollup_are_those_that_remain(
    stored: Tables, zone: str, before: list[int], after: list[int]
) -> None:
    visitors = select("anonymous_id", "uniq", "visitors")
    ranges = {"endDate": "2026-01-04"}, {"startDate": "2026-01-05"}
    rows = [found(stored, COUNT, visitors, timezone=zone, **days) for days in ranges]
    assert rows == [[before], [after]]


def test_each_table_has_its_own_cutoff(stored: Tables) -> None:
    assert found(stored, COUNT, table="errors") == [[1]]
    assert found(stored, COUNT, table="performance") == [[0]]


def test_session_is_made_of_the_events_that_remain(stored: Tables) -> None:
    groups = ["entry_path", "start_time", "duration", "event_count"]
    assert found(stored, COUNT, table="sessions", group_by=groups) == [
        ["/0", "2026-01-05T00:00:00.000Z", 86_400, 4, 1]
    ]


def test_profile_is_made_of_the_events_that_remain(stored: Tables) -> None:
    groups = ["first_seen", "last_seen", "page_views"]
    assert found(stored, COUNT, table="profiles", group_by=groups) == [
        ["2026-01-05T00:00:00.000Z", "2026-01-06T00:00:00.000Z", 4, 1]
    ]
    before = {"startDate": "2026-01-01", "endDate": "2026-01-04"}
    assert found(stored, COUNT, table="profiles", **before) == [[0]]
