"""The bounds of a body's JSON: objects and arrays, keys; what is at the bound is stored."""

import pytest

from testing.service import Service, empty_counts
from tests.e2e.envelopes import PAYLOAD_TOO_LARGE, error_envelope, outcome, success

JSON = {"Content-Type": "application/json"}
MAX_OBJECTS = 100_000
MAX_KEYS = 1_000_000


def event_with_objects(count: int) -> bytes:
    """Return an event with so many objects and arrays in all."""
    return b'{"name":"a","properties":{"x":[' + b"{}," * (count - 4) + b"[]]}}"


def event_with_keys(count: int) -> bytes:
    """Return an event with so many keys in all, on two levels."""
    return b'{"name":"a","properties":{' + b'"k":0,' * (count - 3) + b'"last":1}}'


OVER = {
    "objects and arrays": event_with_objects(MAX_OBJECTS + 1),
    "keys": event_with_keys(MAX_KEYS + 1),
    "nesting": b'{"name":"a","properties":{"x":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}}",
}


@pytest.mark.parametrize("identifier", ["known", "unknown", ""])
@pytest.mark.parametrize("body", OVER.values(), ids=OVER)
def test_more_than_the_bound_is_413_whatever_the_credentials(
    service: Service, quiet_website: str, body: bytes, identifier: str
) -> None:
    website = {"known": quiet_website, "unknown": "web_unknown", "": ""}[identifier]
    with empty_counts(service, quiet_website):
        response = service.post(f"/track?website_id={website}", data=body, headers=JSON)

        assert error_envelope(response) == PAYLOAD_TOO_LARGE


@pytest.mark.parametrize(
    "body",
    [event_with_objects(MAX_OBJECTS), event_with_keys(MAX_KEYS)],
    ids=["objects and arrays", "keys"],
)
def test_as_much_as_the_bound_is_stored(service: Service, website: str, body: bytes) -> None:
    response = service.post(f"/track?website_id={website}", data=body, headers=JSON)

    assert outcome(response) == (200, success("/track"))
    assert service.count(website, "events") == 1


def test_brackets_and_colons_in_a_text_do_not_count(service: Service, website: str) -> None:
    text = b'[{\\":[' * 1_000_000

    response = service.post(
        f"/track?website_id={website}",
        data=b'{"name":"a","properties":{"x":"' + text + b'"}}',
        headers=JSON,
    )

    assert outcome(response) == (200, success("/track"))
    assert service.count(website, "events") == 1
