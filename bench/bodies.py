"""What the load generators send: events as an application sends them, each other than the next."""

import json
import random
from collections.abc import Sequence

SINGLES = 512
BATCHES = 64
BATCH = 100
ID_PLACE = "@ID@"
"""Stands in bodies for an event id that the generator draws for each event."""

_NAMES = ("purchase_completed", "button_click", "signup_completed", "search", "add_to_cart")
_PLANS = ("free", "pro", "team", "enterprise")
_SECTIONS = ("pricing", "products", "blog", "docs", "help")


def single_bodies() -> list[bytes]:
    """Return bodies of one event each, about 300 bytes."""
    return [_encode(event) for event in _events(SINGLES)]


def batch_bodies() -> list[bytes]:
    """Return bodies of a hundred events each."""
    events = _events(BATCHES * BATCH)
    return [_encode(events[start : start + BATCH]) for start in range(0, len(events), BATCH)]


def with_event_ids(bodies: Sequence[bytes]) -> list[bytes]:
    """Return the same bodies with a place for an id in every event."""
    place = f'{{"eventId":"{ID_PLACE}","name":'.encode()
    return [body.replace(b'{"name":', place) for body in bodies]


def _events(count: int) -> list[dict[str, object]]:
    drawn = random.Random(1)
    return [_event(drawn) for _ in range(count)]


def _event(drawn: random.Random) -> dict[str, object]:
    return {
        "name": drawn.choice(_NAMES),
        "anonymousId": f"anon_{drawn.randrange(50_000):08x}",
        "sessionId": f"sess_{drawn.randrange(100_000):08x}",
        "namespace": "checkout",
        "path": f"/{drawn.choice(_SECTIONS)}/item-{int(1000 * drawn.random() ** 2)}",
        "properties": {
            "plan": drawn.choice(_PLANS),
            "seats": drawn.randrange(50),
            "currency": "EUR",
            "value": drawn.randrange(40_000) / 100,
            "trial": drawn.random() < 0.3,
            "coupon": f"AUTUMN{drawn.randrange(100)}",
            "referrer": f"https://www.example.com/blog/{drawn.randrange(200)}",
        },
    }


def _encode(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
