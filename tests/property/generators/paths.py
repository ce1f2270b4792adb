"""Data and bodies for funnels and retention: few people, few events, and many equal timestamps."""

from typing import Any

from tests.oracle.rows import Row, Stored
from tests.oracle.stored import event_row
from tests.property.generators.chances import SeededRandom, random_strategy

Body = dict[str, Any]

NAMES = ("a", "b", "c", "d")
_ZONES = ("UTC", "Europe/Berlin", "America/St_Johns", "America/Nuuk", "Asia/Kathmandu")
_HOUR_MS = 3_600_000
_START_MS = 1_761_264_000_000  # 2025-10-24T00:00Z; clocks go back in Berlin on the 26th
_IDS = ("anonymous_id", "session_id", "profile_id")
_WINDOWS = (1, 2, 10, 60, 3600, 86_400, 259_200)
_STEPS_MS = (
    *(0, 0, 0, 1, 999, 1000, 1001, 2000, 10_000, 60_000, _HOUR_MS),
    *(24 * _HOUR_MS, 31 * 24 * _HOUR_MS),
)
_OTHER_FILTERS: tuple[Body, ...] = (
    {"field": "time", "operator": "gte", "value": "2025-10-26T02:30"},  # twice in Berlin
    {"field": "time", "operator": "lt", "value": "2025-10-26"},
    {"field": "properties.k", "operator": "ne", "value": "x"},
    {"field": "properties.k", "operator": "not_in", "value": ["x", 2.5, True]},
    {"field": "properties.n", "operator": "is_set"},
    {"field": "value", "operator": "not_in", "value": [1]},
    {"field": "path", "operator": "matches", "value": "^/.?$"},
    {"field": "profile_id", "operator": "is_not_set"},
)
"""Each has a form of its own in SQL: a timezone, a missing value, a pattern, a property."""

_GROUPS = ("path", "properties.n", "value", "is_bot", "country", "time", "properties.k")


def _event(random_source: SeededRandom, arrival: int, timestamp_ms: int) -> Row:
    item = {
        "name": random_source.choice(NAMES),
        "timestamp": timestamp_ms,
        "anonymousId": random_source.choice(("u1", "u2", "u3", "u4", "")),
        "sessionId": random_source.choice(("s1", "s2", None)),
        "profileId": random_source.choice(("p1", "p2", None)),
        "path": random_source.choice(("/", "/a")),
        "properties": {
            "n": random_source.choice((1, 2, "1", None)),
            "k": random_source.choice(("x", True, [1], 2.5)),
            "value": random_source.choice((1, 2.5, None)),
        },
    }
    return event_row(item, arrival=arrival, visitor={"is_bot": random_source.has_probability(0.1)})


def draw_path_data(random_source: SeededRandom) -> Stored:
    """Draw the events of a few people."""
    timestamp_ms = _START_MS + random_source.integer(0, 48) * _HOUR_MS
    events: list[Row] = []
    for arrival in range(random_source.integer(0, 40)):
        if random_source.has_probability(0.9):
            timestamp_ms += random_source.choice(_STEPS_MS)
        early_ms = random_source.choice((0, 0, 0, 1000, 86_400_000))
        events.append(_event(random_source, arrival, timestamp_ms - early_ms))
    return Stored(events=events)


def _filters(random_source: SeededRandom) -> list[Body]:
    filters: list[Body] = []
    if random_source.has_probability(0.9):
        names = random_source.sample(NAMES, 1, 2)
        filters.append({"field": "event_name", "operator": "in", "value": names})
    if random_source.has_probability(0.2):
        one = {"field": "properties.n", "operator": "eq", "value": 1}
        other = {"field": "path", "operator": "eq", "value": "/a"}
        filters.append({"or": [one, other]})
    if random_source.has_probability(0.3):
        other = random_source.choice(_OTHER_FILTERS)
        filters.append({"or": [other]} if random_source.has_probability(0.3) else other)
    if random_source.has_probability(0.15):
        filters.append({"field": "is_bot", "operator": "in", "value": [True, False]})
    return filters


def days(random_source: SeededRandom) -> Body:
    """Draw a range; most contain most events."""
    start = random_source.choice((24, 24, 24, 25, 26))
    return {
        "startDate": f"2025-10-{start}",
        "endDate": f"2025-10-{random_source.integer(start, 31)}",
        "timezone": random_source.choice(_ZONES),
    }


def draw_funnel(random_source: SeededRandom) -> Body:
    """Draw a valid funnel."""
    steps = [
        {"filters": _filters(random_source), "name": random_source.choice((None, "step"))}
        for _ in range(random_source.choice((2, 2, 3, 3, 4, 10)))
    ]
    body = {"steps": steps, **days(random_source)}
    if random_source.has_probability(0.8):
        body["window"] = random_source.choice(_WINDOWS)
    if random_source.has_probability(0.3):
        body["by"] = random_source.choice(_IDS)
    if random_source.has_probability(0.4):
        body["groupBy"] = random_source.choice(_GROUPS)
    return body


def draw_retention(random_source: SeededRandom) -> Body:
    """Draw a valid retention query."""
    body = {
        "first": {"filters": _filters(random_source)},
        "return": {"filters": _filters(random_source)},
        "granularity": random_source.choice(("daily", "daily", "weekly", "monthly")),
        "periods": random_source.choice((1, 2, 3, 10, 60)),
        **days(random_source),
    }
    if random_source.has_probability(0.3):
        body["by"] = random_source.choice(_IDS)
    return body


path_data = random_strategy(draw_path_data)
funnels = random_strategy(draw_funnel)
retentions = random_strategy(draw_retention)
