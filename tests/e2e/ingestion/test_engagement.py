"""A visit as newer browser trackers send it: /engagement, /identify and profile ids."""

from testing.service import Json, Service
from tests.e2e.envelopes import TIMESTAMP, TIMESTAMP_MS, field_errors, outcome

VISITOR: dict[str, Json] = {"anonymousId": "anon_1", "sessionId": "sess_1"}
STORED: dict[str, Json] = {"anonymous_id": "anon_1", "session_id": "sess_1", "time": TIMESTAMP}


def test_everything_that_newer_trackers_send_can_be_queried(service: Service, website: str) -> None:
    view = {**VISITOR, "eventId": "v1", "name": "screen_view", "path": "/", "profileId": "acc-1"}
    engagement = {
        **VISITOR,
        "timestamp": TIMESTAMP_MS,
        "path": "https://shop.example/pricing?x=1",
        "exitType": "hidden",
        "activeTime": 12_500,
        "maxScrollDepth": 80,
        "rageClicks": 0,
        "profileId": "acc-1",
    }
    identification = {
        **VISITOR,
        "timestamp": TIMESTAMP_MS,
        "profileId": "acc-1",
        "traits": {"plan": "pro"},
    }

    responses = [
        service.post(f"/batch?client_id={website}", [{**view, "timestamp": TIMESTAMP_MS}]),
        service.post(f"/engagement?client_id={website}", [engagement]),
        service.post(f"/identify?client_id={website}", identification),
    ]

    assert [outcome(response) for response in responses[1:]] == [
        (200, {"status": "success", "type": "engagement", "count": 1}),
        (200, {"status": "success", "type": "identify"}),
    ]
    assert service.counts(website, "events", "profile_id") == {"acc-1": 3}
    assert _row(service, website, "engagement", "path", "properties.exitType") == {
        **STORED,
        "path": "/pricing",
        "properties.exitType": "hidden",
    }
    assert _row(service, website, "identify", "profile_id", "properties.traits.plan") == {
        **STORED,
        "profile_id": "acc-1",
        "properties.traits.plan": "pro",
    }


def test_identification_without_a_profile_is_rejected(service: Service, website: str) -> None:
    response = service.post(f"/identify?client_id={website}", {**VISITOR, "traits": {}})

    assert field_errors(response) == [(0, "profileId")]


def _row(service: Service, website: str, event_name: str, *columns: str) -> dict[str, Json]:
    query: Json = {
        "table": "events",
        "selects": [{"field": "*", "aggregate": "count", "alias": "n"}],
        "filters": [{"field": "event_name", "operator": "eq", "value": event_name}],
        "groupBy": [*STORED, *columns],
    }
    (row,) = service.answer(website, query)
    return {name: value for name, value in row.items() if name != "n"}
