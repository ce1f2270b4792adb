"""Cached results have the rows of computed ones; only the metrics show the difference."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from testing.service import Service
from tests.e2e.query.queries import event, query, rows_of, selects_by_source, send

ServiceMaker = Callable[..., Service]


@pytest.mark.slow
def test_results_are_cached_until_events_of_their_website_arrive(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service(workers=2).start()
    busy, quiet = service.website(), service.website()
    send(service, quiet, event())
    for number in range(1, 11):
        send(service, busy, event())
        assert service.answer(busy, query()) == [{"n": number}]
        assert service.answer(quiet, query()) == [{"n": 1}]
    assert selects_by_source(service) == {"run": 11, "cached": 9}


@pytest.mark.slow
def test_cached_result_looks_like_a_fresh_one(dedicated_service: ServiceMaker) -> None:
    service = dedicated_service().start()
    website = service.website()
    send(service, website, event())
    sent_at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    first, second = (service.send_query(website, query()) for _ in range(2))
    assert rows_of(second) == rows_of(first) == [{"n": 1}]
    assert second.json()["meta"].keys() == first.json()["meta"].keys()
    assert second.json()["meta"]["executionTime"] > 0
    read = [
        tuple(one.json()["meta"][name] for name in ("cached", "rowsRead"))
        for one in (first, second)
    ]
    assert read == [(False, 1), (True, 0)]
    assert first.json()["meta"]["bytesRead"] > second.json()["meta"]["bytesRead"] == 0
    assert sent_at <= first.json()["meta"]["watermark"] <= second.json()["meta"]["watermark"]
    assert first.json()["requestId"] != second.json()["requestId"]


@pytest.mark.slow
def test_caching_can_be_disabled(dedicated_service: ServiceMaker) -> None:
    service = dedicated_service(settings={"HEADRACE_QUERY_CACHE_BYTES": "0"}).start()
    website = service.website()
    for _ in range(3):
        assert service.answer(website, query()) == [{"n": 0}]
    assert selects_by_source(service) == {"run": 3}


@pytest.mark.slow
def test_restart_clears_the_cache(dedicated_service: ServiceMaker) -> None:
    service = dedicated_service().start()
    website = service.website()
    send(service, website, event())
    assert service.answer(website, query()) == [{"n": 1}]
    service.kill()
    service.restart()
    assert service.answer(website, query()) == [{"n": 1}]
    assert "cached" not in selects_by_source(service)
