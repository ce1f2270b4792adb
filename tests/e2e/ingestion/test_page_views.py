"""/batch and /: page views of browser trackers."""

import pytest

from testing.service import Json, Service
from tests.e2e.envelopes import TIMESTAMP, TIMESTAMP_MS, field_errors, outcome, success

PAGE_VIEW: dict[str, Json] = {
    "eventId": "6f9619ff-8b86-4d01-b42d-00cf4fc964ff",
    "name": "screen_view",
    "path": "https://shop.example/pricing?utm_source=news#plans",
    "anonymousId": "anon_1b4e28ba-2fa1-4d2f-883f-0016d3cca427",
    "sessionId": "sess_9b2f1c60-7f0e-4a8f-8f4e-2d1d0a5b7c11",
    "timestamp": TIMESTAMP_MS,
    "referrer": "direct",
    "title": "Pricing",
    "screen_resolution": "1920x1080",
    "viewport_size": "1200x800",
    "language": "en-US",
    "timezone": "Europe/Berlin",
    "time_on_page": 12.5,
    "scroll_depth": 80,
    "interaction_count": 3,
    "page_count": 2,
    "utm_medium": "email",
    "utm_campaign": "spring",
    "utm_term": "shoes",
    "utm_content": "top",
    "load_time": 900,
    "dom_ready_time": 700,
    "dom_interactive": 600,
    "ttfb": 120,
    "render_time": 300,
    "value": 9.5,
    "currency": "EUR",
    "connection_type": "4g",
    "rtt": 50,
}
STORED: dict[str, Json] = {
    "event_name": "screen_view",
    "path": "/pricing",
    "url": "https://shop.example/pricing?utm_source=news#plans",
    "anonymous_id": "anon_1b4e28ba-2fa1-4d2f-883f-0016d3cca427",
    "session_id": "sess_9b2f1c60-7f0e-4a8f-8f4e-2d1d0a5b7c11",
    "time": TIMESTAMP,
    "referrer": "direct",
    "title": "Pricing",
    "screen_resolution": "1920x1080",
    "viewport_size": "1200x800",
    "language": "en-US",
    "timezone": "Europe/Berlin",
    "time_on_page": 12.5,
    "scroll_depth": 80,
    "interaction_count": 3,
    "page_count": 2,
    "utm_source": "news",
    "utm_medium": "email",
    "utm_campaign": "spring",
    "utm_term": "shoes",
    "utm_content": "top",
    "load_time": 900,
    "dom_ready_time": 700,
    "dom_interactive": 600,
    "ttfb": 120,
    "render_time": 300,
    "value": 9.5,
    "currency": "EUR",
}
NUMBERS = [name for name, value in STORED.items() if isinstance(value, int | float)]
TEXTS = [
    "language",
    "timezone",
    "screen_resolution",
    "viewport_size",
    "currency",
    "title",
    "referrer",
    "utm_medium",
    "utm_campaign",
    "utm_term",
    "utm_content",
]


@pytest.mark.parametrize("endpoint", ["/batch", "/"])
def test_full_page_view_is_stored(service: Service, website: str, endpoint: str) -> None:
    response = service.post(f"{endpoint}?client_id={website}", PAGE_VIEW)

    assert outcome(response) == (200, success(endpoint, event_ids=(PAGE_VIEW["eventId"],)))
    assert service.row(website, "events", list(STORED)) == STORED


def test_results_name_each_event_or_null(service: Service, website: str) -> None:
    batch = [{"name": "screen_view", "eventId": "a"}, {"name": "page_exit"}]
    batch.append({"name": "page_exit", "eventId": "b"})

    response = service.post(f"/batch?client_id={website}", batch)

    assert outcome(response) == (200, success("/batch", 3, ("a", None, "b")))
    assert service.counts(website, "events", "event_name") == {"screen_view": 1, "page_exit": 2}


@pytest.mark.parametrize("wrong", ["12", True, [1], {"a": 1}], ids=repr)
@pytest.mark.parametrize("endpoint", ["/batch", "/"])
def test_number_of_a_wrong_type_is_not_promoted_and_accepted(
    service: Service, website: str, endpoint: str, wrong: Json
) -> None:
    response = service.post(
        f"{endpoint}?client_id={website}", {"name": "page_exit", **dict.fromkeys(NUMBERS, wrong)}
    )

    assert outcome(response) == (200, success(endpoint))
    assert service.row(website, "events", NUMBERS) == dict.fromkeys(NUMBERS)


@pytest.mark.parametrize("wrong", [12, 1.5, True, ["a"], {"a": 1}], ids=repr)
@pytest.mark.parametrize("endpoint", ["/batch", "/"])
def test_text_of_a_wrong_type_is_not_promoted_and_accepted(
    service: Service, website: str, endpoint: str, wrong: Json
) -> None:
    response = service.post(
        f"{endpoint}?client_id={website}", {"name": "screen_view", **dict.fromkeys(TEXTS, wrong)}
    )

    assert outcome(response) == (200, success(endpoint))
    assert service.row(website, "events", TEXTS) == dict.fromkeys(TEXTS, "")


def test_fields_of_custom_events_are_stored_too(service: Service, website: str) -> None:
    event = {"name": "click", "namespace": "nav", "source": "web", "properties": {"x": 1}}

    service.post(f"/batch?client_id={website}", [event])

    columns = ["event_name", "namespace", "source", "properties.x"]
    expected = {"event_name": "click", "namespace": "nav", "source": "web", "properties.x": 1}
    assert service.row(website, "events", columns) == expected


def test_invalid_page_view_rejects_the_batch(service: Service, quiet_website: str) -> None:
    response = service.post(f"/batch?client_id={quiet_website}", [PAGE_VIEW, {"title": "no name"}])

    assert field_errors(response) == [(1, "name")]
    assert service.count(quiet_website, "events") == 0


@pytest.mark.parametrize("name", ["screen_view", "pageview", "page_view"])
def test_page_views_count_as_such_in_sessions(service: Service, website: str, name: str) -> None:
    batch = [{"name": name, "sessionId": "s"}, {"name": "click", "sessionId": "s"}]

    service.post(f"/batch?client_id={website}", batch)

    query = {
        "table": "sessions",
        "selects": [
            {"field": "page_views", "aggregate": "sum", "alias": "views"},
            {"field": "event_count", "aggregate": "sum", "alias": "events"},
        ],
    }
    assert service.answer(website, query) == [{"views": 1, "events": 2}]
