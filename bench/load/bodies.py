"""Request bodies of the load generators: realistic events, all different."""

import json
import random
from collections.abc import Sequence

SINGLE_BODIES = 512
BATCH_BODIES = 64
BATCH = 100
ID_PLACEHOLDER = "@ID@"
"""Placeholder for an event id, which the generator replaces for each event."""

_NAMES = ("purchase_completed", "button_click", "signup_completed", "search", "add_to_cart")
_PLANS = ("free", "pro", "team", "enterprise")
_SECTIONS = ("pricing", "products", "blog", "docs", "help")


def single_bodies() -> list[bytes]:
    """Return bodies of one event each, about 300 bytes."""
    return [_encode(event) for event in _events(SINGLE_BODIES)]


def batch_bodies() -> list[bytes]:
    """Return bodies of a hundred events each."""
    events = _events(BATCH_BODIES * BATCH)
    return [_encode(events[start : start + BATCH]) for start in range(0, len(events), BATCH)]


def with_event_ids(bodies: Sequence[bytes]) -> list[bytes]:
    """Return the same bodies with an id placeholder in every event."""
    prefix = f'{{"eventId":"{ID_PLACEHOLDER}","name":'.encode()
    return [body.replace(b'{"name":', prefix) for body in bodies]


def _events(count: int) -> list[dict[str, object]]:
    rng = random.Random(1)
    return [_event(rng) for _ in range(count)]


def _event(rng: random.Random) -> dict[str, object]:
    return {
        "name": rng.choice(_NAMES),
        "anonymousId": f"anon_{rng.randrange(50_000):08x}",
        "sessionId": f"sess_{rng.randrange(100_000):08x}",
        "namespace": "checkout",
        "path": f"/{rng.choice(_SECTIONS)}/item-{int(1000 * rng.random() ** 2)}",
        "properties": {
            "plan": rng.choice(_PLANS),
            "seats": rng.randrange(50),
            "currency": "EUR",
            "value": rng.randrange(40_000) / 100,
            "trial": rng.random() < 0.3,
            "coupon": f"AUTUMN{rng.randrange(100)}",
            "referrer": f"https://www.example.com/blog/{rng.randrange(200)}",
        },
    }


def _encode(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
