"""Request bodies: valid ones of every endpoint, and mutations of their JSON values and bytes."""

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Final, TypeAlias

Json: TypeAlias = "dict[str, Json] | list[Json] | str | float | bool | None"

_EVENT: Final[dict[str, Json]] = {
    "name": "checkout",
    "properties": {"plan": "pro", "value": 49.5, "tags": ["a", {"b": None}]},
    "anonymousId": "anon_1",
    "sessionId": "sess_1",
    "timestamp": 1_767_607_200_000,
    "namespace": "shop",
    "source": "fuzz",
    "path": "https://shop.example/cart?utm_source=x",
    "profileId": "profile_1",
}
_VITAL: Final[Json] = {
    "timestamp": 1_767_607_200_000,
    "path": "/",
    "metricName": "LCP",
    "metricValue": 1200.5,
}
_ERROR: Final[Json] = {
    "timestamp": "2026-01-05T10:00:00Z",
    "path": "/",
    "message": "x is undefined",
    "stack": "Error\n at a.js:1",
    "lineno": 1,
    "errorType": "TypeError",
}
_QUERY: Final[Json] = {
    "query": {
        "table": "events",
        "selects": [
            {"field": "*", "aggregate": "count", "alias": "n"},
            {"field": "properties.value", "aggregate": "sum"},
        ],
        "filters": [{"field": "path", "operator": "starts_with", "value": "/"}],
        "groupBy": ["country", "properties.plan"],
    },
    "startDate": "2026-01-01",
    "endDate": "2026-01-31",
    "timezone": "Europe/Berlin",
    "granularity": "daily",
    "limit": 10,
}
_STANDARD: Final[Json] = {
    "types": ["summary", "timeseries", "pages", "countries", "referrers", "online"],
    "filters": [{"or": [{"field": "country", "operator": "eq", "value": "DE"}]}],
    "startDate": "2026-01-01",
    "endDate": "2026-01-31",
    "timezone": "Europe/Berlin",
    "granularity": "weekly",
    "compare": "previous_period",
    "limit": 10,
}
BODIES: Final[Mapping[str, Json]] = {
    "/track": [_EVENT, _EVENT],
    "/vitals": [_VITAL],
    "/errors": [_ERROR],
    "/batch": [{**_EVENT, "title": "Cart", "type": "track"}],
    "/": {**_EVENT, "name": "screen_view"},
    "/v1/query/custom": _QUERY,
    "/v1/query/standard": _STANDARD,
}
"""A valid body for each endpoint that takes one."""

_SCALARS: Final[tuple[Json, ...]] = (
    *(None, True, False, 0, -1, 1.5, -0.0, 1e308, -1e-320, 2**53, 2**63, 2**64, -(2**63) - 1),
    *("", " ", "\0", "\ud800", "\U0010ffff", "é" * 300, "x" * 70_000, "../..", "'; DROP TABLE"),
    *("%s", "{{a}}", "1e400", "NaN", "2026-02-30", "9999-12-31", "0000-00-00", "properties."),
    *("$ref", "\r\nSet-Cookie: a=b", "=1+1", "_", "*", "events", "sessions", "profiles"),
)
_RAW_VALUES: Final[tuple[bytes, ...]] = (
    *(b"NaN", b"Infinity", b"1e999", b"-0", b"1" * 400, b"0.1e-400", b"[" * 70 + b"]" * 70),
    *(b"[" * 5_000, b'"\\ud800"', b'"\\u0000"', b'"\xff\xfe"', b"'a'", b"{,}", b"tru", b""),
)
_MARKER: Final = "\x7fplace\x7f"


def mutate_body(value: Json, random: Random) -> bytes:
    """Return a body with up to four mutations of its values, and sometimes of its bytes."""
    for _ in range(random.randrange(5)):
        value = _mutate_value(value, random)
    body = json.dumps(value, ensure_ascii=random.random() < 0.5).encode(errors="surrogatepass")
    # Copying a body of megabytes for each of its values would block the other connections.
    first, *others = body.split(json.dumps(_MARKER).encode())
    body = first + b"".join(random.choice(_RAW_VALUES) + other for other in others)
    if random.random() < 0.1:
        at = random.randrange(len(body) + 1)
        body = body[:at] + random.randbytes(random.randrange(4)) + body[at + random.randrange(3) :]
    return body


def _mutate_value(value: Json, random: Random) -> Json:
    """Return a copy with one mutation somewhere inside."""
    if isinstance(value, dict) and value and random.random() < 0.8:
        key = random.choice(list(value))
        return {**value, key: _mutate_value(value[key], random)}
    if isinstance(value, list) and value and random.random() < 0.8:
        at = random.randrange(len(value))
        return [*value[:at], _mutate_value(value[at], random), *value[at + 1 :]]
    return random.choice(_MUTATIONS)(value, random)


def _other_scalar(_value: Json, random: Random) -> Json:
    return random.choice(_SCALARS)


def _raw(_value: Json, _random: Random) -> Json:
    return _MARKER


def _nest(value: Json, random: Random) -> Json:
    for _ in range(random.choice((1, 10, 63, 64, 65, 200))):
        value = [value] if random.random() < 0.5 else {"a": value}
    return value


def _repeat(value: Json, random: Random) -> Json:
    return [value] * random.choice((0, 2, 11, 21, 200))


def _add_key(value: Json, random: Random) -> Json:
    key = random.choice(("eventId", "ip", "userAgent", "websiteId", "fill", "orderBy", "top", "é"))
    return {**value, key: random.choice(_SCALARS)} if isinstance(value, dict) else {key: value}


def _drop(value: Json, random: Random) -> Json:
    if not isinstance(value, dict | list) or not value:
        return None
    if isinstance(value, list):
        return value[1:]
    dropped = random.choice(list(value))
    return {key: each for key, each in value.items() if key != dropped}


_MUTATIONS: Final[tuple[Callable[[Json, Random], Json], ...]] = (
    _other_scalar,
    _other_scalar,
    _raw,
    _nest,
    _repeat,
    _add_key,
    _drop,
)
