"""Rows before the cutoff are in no answer, from the moment at which a retention is set."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from headrace.base.clock import MILLISECONDS_PER_DAY, SystemClock
from headrace.model.data_retention import RetentionChange
from headrace.model.tenancy import WebsiteChange, WebsiteId
from testing.days import wait_for_new_day
from testing.service import Service, bearer
from tests.e2e.conftest import ServiceMaker

AGES = (0, 3, 10, 40)
"""How many days ago there is an event, an error and a vital."""

OWN_FIELDS: dict[str, dict[str, Any]] = {
    "/track": {"name": "a"},
    "/errors": {"message": "a", "path": "/"},
    "/vitals": {"metricName": "LCP", "metricValue": 1, "path": "/"},
}


def midnight_ms(days_ago: int) -> int:
    return (SystemClock().now_ms() // MILLISECONDS_PER_DAY - days_ago) * MILLISECONDS_PER_DAY


def retain(service: Service, website: str, **days: int | None) -> None:
    change = WebsiteChange(retention=RetentionChange(**days))
    service.directory.update_website(WebsiteId(website), change)


def send(service: Service, website: str, times_ms: Sequence[int]) -> None:
    """Send an event, an error and a vital of one visitor and session for each time."""
    common: list[dict[str, Any]] = [
        {"timestamp": time_ms, "anonymousId": "ann", "sessionId": "one"} for time_ms in times_ms
    ]
    for path, own in OWN_FIELDS.items():
        items = [{**item, **own} for item in common]
        response = service.post(
            f"{path}?website_id={website}", items, headers=bearer(service.master)
        )
        assert response.status_code == 200, response.text


def counts(service: Service, website: str) -> list[int]:
    return [service.count(website, table) for table in ("events", "errors", "performance")]


@pytest.fixture
def filled(service: Service, website: str) -> str:
    """A website whose rows are as old as `AGES`."""
    wait_for_new_day(45)
    send(service, website, [midnight_ms(age) for age in AGES])
    assert counts(service, website) == [4, 4, 4]
    return website


def test_rows_are_hidden_exactly_at_the_cutoff_and_shown_again(
    dedicated_service: ServiceMaker,
) -> None:
    wait_for_new_day(120)
    service = dedicated_service().start()  # too young to delete expired rows by itself
    website = service.website()
    cutoff_ms = midnight_ms(7)
    send(service, website, [cutoff_ms - 1, cutoff_ms])
    for days, left in ((7, 1), (8, 2), (6, 0), (0, 2), (7, 1), (None, 2)):
        retain(service, website, days=days)
        assert counts(service, website) == [left] * 3


def test_retention_of_a_table_wins_over_that_of_its_website(service: Service, filled: str) -> None:
    retain(service, filled, days=10, errors=3, performance=0)
    assert counts(service, filled) == [3, 2, 4]
    retain(service, filled, days=2)
    assert counts(service, filled) == [1, 2, 4]


def test_sessions_and_profiles_are_made_of_the_rows_that_remain(
    service: Service, filled: str
) -> None:
    query = {"selects": [{"field": "event_count", "aggregate": "sum", "alias": "n"}]}
    for days, left in ((0, 4), (10, 3), (3, 2), (1, 1)):
        retain(service, filled, days=days)
        for table in ("sessions", "profiles"):
            assert service.answer(filled, {"table": table, **query}) == [{"n": left}]
    send(service, filled, [midnight_ms(1) + 1])
    starts = {
        "table": "sessions",
        "selects": [{"field": "duration", "aggregate": "max", "alias": "n"}],
    }
    started_ms = midnight_ms(1) + 1
    assert service.answer(filled, starts) == [{"n": (midnight_ms(0) - started_ms) / 1000}]


def test_export_has_no_expired_rows(service: Service, filled: str) -> None:
    retain(service, filled, events=5)
    manager = service.key("manage:data")
    response = service.get(
        f"/v1/export?website_id={filled}&table=events&format=ndjson", headers=bearer(manager)
    )
    assert [row["event_name"] for row in map(json.loads, response.text.splitlines())] == ["a", "a"]
