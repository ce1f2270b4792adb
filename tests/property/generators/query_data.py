"""The rows that queries read: data sets whose values come from small pools.

Small pools let filters match rows, give groups several rows, and put timestamps on the bounds of
buckets and ranges. Nearly all numbers are sums of a few powers of two, so their sums are exact in
any order of addition.
"""

from datetime import datetime
from itertools import chain
from typing import Any
from zoneinfo import ZoneInfo

from tests.property.generators.chances import SeededRandom, random_strategy

Item = dict[str, Any]

DAY_MS = 86_400_000
FIRST_DAY_MS = 1_761_264_000_000  # 2025-10-24; clocks go back in Europe on the 26th
MIDNIGHTS = ("2025-10-22", "2025-10-25", "2025-10-26", "2025-10-27", "2025-11-02", "2025-11-06")
"""The most frequent bounds of query ranges."""

ZONES = (
    *("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Asia/Kathmandu"),
    *("Australia/Lord_Howe", "Pacific/Kiritimati", "America/St_Johns", "Etc/GMT+12"),
    *("America/Nuuk", "Africa/Cairo", "America/Havana", "Antarctica/Troll", "Pacific/Chatham"),
)
"""In Nuuk, Cairo and Havana clocks go back at or across midnight within the data."""
FREQUENT_ZONES = ("UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns", "America/Nuuk")
CHANGES_MS = (
    1_761_440_400_000,  # 2025-10-26T01:00Z, clocks go back in Berlin, Nuuk and Troll
    1_761_858_000_000,  # 2025-10-30T21:00Z, in Cairo
    1_762_063_200_000,  # 2025-11-02T06:00Z, in New York
)
FAR_CHANGES_MS = (
    1_743_296_400_000,  # 2025-03-30T01:00Z, clocks go forward in Berlin
    1_289_097_060_000,  # 2010-11-07T02:31Z, clocks go back across midnight in St. John's
    1_325_239_200_000,  # 2011-12-30T10:00Z, Apia skips that day
)
_STEPS_MS = (-3_600_000, -1_800_000, -60_001, -1, 0, 1, 59_999, 1_800_000, 3_600_000)

TEXTS = (
    *("a", "a ", "a!", "b", "B", "ä", "a_b", "100%", "\\", "it's", "a\tc\n", '"'),
    *("🦆", "\uff21", "5", "-0", "true", "null", "[]", '{"b":1}'),
)
REPEATED_TEXTS = ("a", "ab", "B", "ä_b")
PATHS = ("/", "/a", "/a_b", "/aXb", "/A", "/ü/🦆", "/a%20b", "/'", "/\\n")
NUMBERS = (0, 1, -1, 2, 3, 5, 2.5, -0.25, 1e6, 1_048_576.5, -123_456.75, 2**40, 10, 5.0, -0.0)
LONG_NUMBERS = (2**53 + 1, -(2**63), 2**63, 2**64, 2**64 + 1, 10**19, -(10**25))
EVENT_NAMES = ("screen_view", "pageview", "page_view", "click", "page_exit", "Kauf 🛒")
ANONYMOUS_IDS = ("u1", "u2", "u3", "ü🦆", "it's")
PROFILE_IDS = ("p1", "p2", "P1", "profil ß")
SESSIONS = ("s1", "s2", "s3", "s4", "ß", "s\\")
LEVELS = ("error", "warning", "fatal")
ERROR_MESSAGES = (
    *("x is undefined", "order 17 not found", "order A-18 not found", "Can't read 'it's' of \"y\""),
    *("GET https://a.example/1?b=2 failed", "GET http://b.example/ failed", "took 1.5 s, not 2"),
)
STACKS = (
    "Error: x\n    at pay (https://a.example/app.js:1:22)\n    at go (https://a.example/app.js:3:4)",
    "Error: x\n    at pay (https://a.example/app.js:1:22)",
    "pay@https://a.example/app.js:1:22\n@https://a.example/app.js:3:4\n",
    "no frame of a@b.example: 5",
)
METRICS = ("FCP", "LCP", "CLS")
THRESHOLDS = (1800, 2500, 3000, 4000, 0.25)
"""Of METRICS, without one that is no sum of powers of two."""
CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)"
    " Chrome/126.0.0.0 Safari/537.36"
)
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
_DESKTOP = {"device_type": "desktop"}
VISITORS: tuple[tuple[Item, Item], ...] = (
    ({}, {}),
    ({"ip": "8.8.8.8"}, {"country": "US"}),
    ({"userAgent": FIREFOX}, {"browser_name": "Firefox", "os_name": "Linux", **_DESKTOP}),
    (
        {"ip": "1.1.1.1", "userAgent": CHROME},
        {"country": "AU", "browser_name": "Chrome", "os_name": "Windows", **_DESKTOP},
    ),
    (
        {"anonymousId": "u1"},
        {"is_bot": True, "anonymous_id": "u1", "browser_name": "Googlebot", "device_type": "bot"},
    ),
)
"""The visitor fields of an item, and the stored columns. The bot sends no key and has the
anonymous id of a human visitor."""

SENT_KEYS = ("k", "n", "a.b", "a", "a.b.c", "value", "ключ", 'k"', "],", "long")
PROPERTY_KEYS = (*SENT_KEYS, "b")
_OTHER_JSON: tuple[Any, ...] = (
    *(True, False, None, "", [], {}, [1, "x", None], {"b": 1}, {"b": "ä", "c": [2]}, 1e21, 0.1),
    *({"b": {"c": 5}}, {"b": {"c": "a"}}, {"b": None}, {"b.c": 1}, '":', "],"),
    *([{"k": 5}], [1, {"n": 7}], {"k": "a"}, {"n": 3}),
)
_LIFTED: dict[str, tuple[Any, ...]] = {
    "path": (*PATHS, 5),
    "referrer": (*REPEATED_TEXTS, "", 5, None),
    "utm_source": (*REPEATED_TEXTS, "", True),
    "utm_term": (*REPEATED_TEXTS, ""),
    "language": ("de", "en", "", []),
    "load_time": (*NUMBERS, "5", True, None),
    "scroll_depth": NUMBERS,
}


_LABELS = ("utm_source", "utm_term", "language")


def random_timestamp(random_source: SeededRandom) -> int:
    """Draw a timestamp: any, or one near a midnight, a quarter of an hour or a clock change."""
    match random_source.integer(0, 7):
        case 0 | 1:
            return FIRST_DAY_MS + random_source.integer(-DAY_MS, 11 * DAY_MS)
        case 2:
            quarter = random_source.integer(-96, 10 * 96)
            return FIRST_DAY_MS + quarter * 900_000 + random_source.choice((-1, 0, 1))
        case 3 | 4:
            midnight = datetime.fromisoformat(random_source.choice(MIDNIGHTS))
            zone = ZoneInfo(random_source.choice(FREQUENT_ZONES))
            return round(midnight.replace(tzinfo=zone).timestamp() * 1000) + random_source.choice(
                (-1, 0, 0)
            )
        case 5 | 6:
            return random_source.choice(CHANGES_MS) + random_source.choice(_STEPS_MS)
        case _:
            return random_source.choice(FAR_CHANGES_MS) + random_source.choice(_STEPS_MS)


def _maybe(random_source: SeededRandom, values: tuple[Any, ...]) -> Any:
    return (
        random_source.choice(values)
        if random_source.has_probability(0.7)
        else random_source.choice((None, ""))
    )


def _json(random_source: SeededRandom) -> Any:
    return random_source.choice(random_source.choice((NUMBERS, TEXTS, _OTHER_JSON)))


def _properties(random_source: SeededRandom) -> Item | None:
    if random_source.has_probability(0.1):
        return None
    random_strategy = {key: _json(random_source) for key in SENT_KEYS}
    random_strategy["n"] = (
        random_source.choice(NUMBERS)
        if random_source.has_probability(0.8)
        else _json(random_source)
    )
    random_strategy["long"] = random_source.choice(
        (*LONG_NUMBERS, *map(str, LONG_NUMBERS), 5, None)
    )
    random_strategy |= {name: random_source.choice(values) for name, values in _LIFTED.items()}
    return {
        key: random_strategy[key]
        for key in random_source.sample(list(random_strategy), 0, len(random_strategy))
    }


def _common(random_source: SeededRandom) -> Item:
    return {
        "timestamp": random_timestamp(random_source),
        "anonymousId": _maybe(random_source, ANONYMOUS_IDS),
        "sessionId": _maybe(random_source, SESSIONS),
        "profileId": _maybe(random_source, PROFILE_IDS),
        "visitor": random_source.choice(VISITORS),
    }


def _event(random_source: SeededRandom) -> Item:
    return {
        **_common(random_source),
        "name": random_source.choice(EVENT_NAMES),
        "namespace": _maybe(random_source, REPEATED_TEXTS),
        "source": _maybe(random_source, ("web", "app")),
        "path": random_source.choice((*PATHS, None)),
        "properties": _properties(random_source),
    }


def _vital(random_source: SeededRandom) -> Item:
    return {
        **_common(random_source),
        "path": random_source.choice(PATHS),
        "metricName": random_source.choice(METRICS),
        "metricValue": random_source.choice((*NUMBERS, *THRESHOLDS * 2)),
    }


def _error(random_source: SeededRandom) -> Item:
    return {
        **_common(random_source),
        "path": random_source.choice(PATHS),
        "message": random_source.choice(("", *TEXTS, *ERROR_MESSAGES * 3)),
        "stack": _maybe(random_source, STACKS),
        "level": random_source.choice((None, *LEVELS[1:])),
        "errorType": _maybe(random_source, ("TypeError",)),
        "lineno": random_source.choice((None, *NUMBERS)),
    }


def _short_session(random_source: SeededRandom) -> list[Item]:
    """Draw a few events of one profile; some share a timestamp, some lie at the bounce limit.

    The store aggregates events with the same labels into one daily rollup, so most of these events
    have the same labels.
    """
    session_fields: Item = {
        "sessionId": f"v{random_source.integer(0, 99)}",
        "anonymousId": f"p{random_source.integer(0, 99)}",
    }
    start, steps = random_timestamp(random_source), (0, 0, 0, 1, 9_999, 10_000, 10_000, 3_600_000)
    timestamps = [
        start,
        *(start + random_source.choice(steps) for _ in range(random_source.integer(0, 2))),
    ]
    if random_source.has_probability(0.5):
        session_fields["name"] = "click"
    if random_source.has_probability(0.8):
        session_fields["visitor"] = random_source.choice(VISITORS)
    labels = {
        name: random_source.choice(_LIFTED[name])
        for name in _LABELS
        if random_source.has_probability(0.5)
    }
    random_strategy = [
        _event(random_source) | session_fields | {"timestamp": at} for at in timestamps
    ]
    return [event | {"properties": _without_labels(event) | labels} for event in random_strategy]


def _without_labels(event: Item) -> Item:
    properties: Item = event["properties"] or {}
    return {name: value for name, value in properties.items() if name not in _LABELS}


def _events(random_source: SeededRandom) -> list[Item]:
    if random_source.has_probability(0.1):
        return random_source.times(0, 5, _event)
    sessions = chain.from_iterable(random_source.times(3, 12, _short_session))
    return [*random_source.times(20, 40, _event), *sessions]


def draw_data_set(random_source: SeededRandom) -> dict[str, list[Item]]:
    """Draw the items of each table."""
    return {
        "events": _events(random_source),
        "performance": random_source.times(5, 20, _vital),
        "errors": random_source.times(5, 20, _error),
    }


data_sets = random_strategy(draw_data_set)
