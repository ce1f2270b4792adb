"""Answers that are kept, seen in the metrics and never in the rows."""

from collections.abc import Callable

import pytest

from tests.e2e.queries import event, query, rows_of, send
from tests.e2e.service import Service

ServiceMaker = Callable[..., Service]


def answers_by_source(service: Service) -> dict[str, int]:
    """Return how many selects were answered from where, over the service's life."""
    start = 'headrace_selects_total{source="'
    lines = service.get("/metrics").text.splitlines()
    found = [line.removeprefix(start).split('"} ') for line in lines if line.startswith(start)]
    return {source: int(float(count)) for source, count in found}


@pytest.mark.slow
def test_answers_are_kept_until_events_of_their_website_come(own_service: ServiceMaker) -> None:
    service = own_service(workers=2).start()
    busy, quiet = service.website(), service.website()
    send(service, quiet, event())
    for number in range(1, 11):
        send(service, busy, event())
        assert service.answer(busy, query()) == [{"n": number}]
        assert service.answer(quiet, query()) == [{"n": 1}]
    assert answers_by_source(service) == {"run": 11, "cached": 9}


@pytest.mark.slow
def test_kept_answer_is_told_as_if_it_was_new(own_service: ServiceMaker) -> None:
    service = own_service().start()
    website = service.website()
    send(service, website, event())
    first, second = (service.ask(website, query()) for _ in range(2))
    assert rows_of(second) == rows_of(first) == [{"n": 1}]
    assert second.json()["meta"].keys() == first.json()["meta"].keys()
    assert second.json()["meta"]["executionTime"] > 0
    assert first.json()["requestId"] != second.json()["requestId"]


@pytest.mark.slow
def test_nothing_is_kept_where_the_setting_says_so(own_service: ServiceMaker) -> None:
    service = own_service(settings={"HEADRACE_QUERY_CACHE_BYTES": "0"}).start()
    website = service.website()
    for _ in range(3):
        assert service.answer(website, query()) == [{"n": 0}]
    assert answers_by_source(service) == {"run": 3}


@pytest.mark.slow
def test_restart_forgets_what_was_kept(own_service: ServiceMaker) -> None:
    service = own_service().start()
    website = service.website()
    send(service, website, event())
    assert service.answer(website, query()) == [{"n": 1}]
    service.kill()
    service.restart()
    assert service.answer(website, query()) == [{"n": 1}]
    assert "cached" not in answers_by_source(service)
