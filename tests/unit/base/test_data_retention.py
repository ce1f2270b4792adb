"""Retention: the days of a website, a table and the service, and the cutoffs that follow."""

import pytest

from headrace.model.catalog import ERRORS, EVENTS, PERFORMANCE, PROFILES, SESSIONS, Table
from headrace.model.data_retention import (
    NO_CUTOFFS,
    NO_RETENTION,
    Cutoffs,
    DataRetention,
    RetentionPolicy,
)

MIDNIGHT = 1_714_521_600_000  # 2024-05-01T00:00:00Z
DAY = 86_400_000


@pytest.mark.parametrize("now_ms", [MIDNIGHT, MIDNIGHT + 1, MIDNIGHT + DAY - 1])
def test_cutoff_is_the_beginning_of_the_utc_day_so_many_days_ago(now_ms: int) -> None:
    cutoffs = RetentionPolicy(default_days=30).cutoffs(DataRetention(errors=0, events=1), now_ms)
    assert cutoffs == Cutoffs(events=MIDNIGHT - DAY, errors=None, performance=MIDNIGHT - 30 * DAY)


@pytest.mark.parametrize(
    ("retention", "table", "days"),
    [
        (NO_RETENTION, EVENTS, 90),
        (DataRetention(days=30), EVENTS, 30),
        (DataRetention(days=30, errors=7), ERRORS, 7),
        (DataRetention(days=30, errors=7), PERFORMANCE, 30),
        (DataRetention(errors=7), EVENTS, 90),
        (DataRetention(days=30, events=0), EVENTS, 0),
        (DataRetention(days=0), ERRORS, 0),
    ],
)
def test_days_of_a_table_win_over_those_of_its_website_and_these_over_the_default(
    retention: DataRetention, table: Table, days: int
) -> None:
    assert RetentionPolicy(default_days=90).days_of(retention, table) == days


def test_without_days_there_is_no_cutoff() -> None:
    assert RetentionPolicy().cutoffs(NO_RETENTION, MIDNIGHT) == NO_CUTOFFS


@pytest.mark.parametrize("table", [EVENTS, SESSIONS, PROFILES], ids=lambda table: table.name)
def test_cutoff_of_sessions_and_profiles_is_that_of_events(table: Table) -> None:
    assert Cutoffs(events=1, errors=2, performance=3).of_table(table) == 1
