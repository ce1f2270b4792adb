"""The rows that queries are asked over: data sets whose values come from small pools.

So filters find rows, groups have several, and moments meet the ends of buckets and ranges. Nearly
all numbers are sums of few powers of two: their sums are exact, whatever the order of addition.
"""

from datetime import datetime
from itertools import chain
from typing import Any
from zoneinfo import ZoneInfo

from tests.property.chances import Chance, drawn

Item = dict[str, Any]

DAY_MS = 86_400_000
FIRST_DAY_MS = 1_761_264_000_000  # 2025-10-24; clocks go back in Europe on the 26th
MIDNIGHTS = ("2025-10-22", "2025-10-25", "2025-10-26", "2025-10-27", "2025-11-02", "2025-11-06")
"""Where the ranges that are asked most begin or end."""

ZONES = (
    *("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Asia/Kathmandu"),
    *("Australia/Lord_Howe", "Pacific/Kiritimati", "America/St_Johns", "Etc/GMT+12"),
)
BUSY_ZONES = ("UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns")
CHANGES_MS = (1_761_440_400_000, 1_762_063_200_000)  # Berlin 10-26T01:00Z, New York 11-02T06:00Z
FAR_CHANGES_MS = (
    1_743_296_400_000,  # 2025-03-30T01:00Z, clocks go forward in Berlin
    1_289_097_060_000,  # 2010-11-07T02:31Z, they go back across midnight in St. John's
    1_325_239_200_000,  # 2011-12-30T10:00Z, Apia leaves that day out
)
_STEPS_MS = (-3_600_000, -1_800_000, -60_001, -1, 0, 1, 59_999, 1_800_000, 3_600_000)

TEXTS = (
    *("a", "a ", "a!", "b", "B", "ä", "a_b", "100%", "\\", "it's", "a\tc\n", '"'),
    *("🦆", "\uff21", "5", "-0", "true", "null", "[]", '{"b":1}'),
)
FEW_TEXTS = ("a", "ab", "B", "ä_b")
PATHS = ("/", "/a", "/a_b", "/aXb", "/A", "/ü/🦆", "/a%20b", "/'", "/\\n")
NUMBERS = (0, 1, -1, 2, 3, 5, 2.5, -0.25, 1e6, 1_048_576.5, -123_456.75, 2**40, 10, 5.0, -0.0)
LONG_NUMBERS = (2**53 + 1, -(2**63), 2**63, 2**64, 2**64 + 1, 10**19, -(10**25))
EVENT_NAMES = ("screen_view", "pageview", "page_view", "click", "page_exit", "Kauf 🛒")
PEOPLE = ("u1", "u2", "u3", "ü🦆", "it's")
SESSIONS = ("s1", "s2", "s3", "s4", "ß", "s\\")
LEVELS = ("error", "warning", "fatal")
METRICS = ("FCP", "LCP", "CLS")
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
"""What an item says of its visitor, and what is then stored. Bots come without a key, and
as one who is also known as a person."""

SENT_KEYS = ("k", "n", "a.b", "a", "a.b.c", "value", "ключ", 'k"', "],", "long")
PROPERTY_KEYS = (*SENT_KEYS, "b")
_OTHER_JSON: tuple[Any, ...] = (
    *(True, False, None, "", [], {}, [1, "x", None], {"b": 1}, {"b": "ä", "c": [2]}, 1e21, 0.1),
    *({"b": {"c": 5}}, {"b": {"c": "a"}}, {"b": None}, {"b.c": 1}, '":', "],"),
    *([{"k": 5}], [1, {"n": 7}], {"k": "a"}, {"n": 3}),
)
_LIFTED: dict[str, tuple[Any, ...]] = {
    "path": (*PATHS, 5),
    "referrer": (*FEW_TEXTS, "", 5, None),
    "utm_source": (*FEW_TEXTS, "", True),
    "utm_term": (*FEW_TEXTS, ""),
    "language": ("de", "en", "", []),
    "load_time": (*NUMBERS, "5", True, None),
    "scroll_depth": NUMBERS,
}


_LABELS = ("utm_source", "utm_term", "language")


def moment(chance: Chance) -> int:
    """Draw a moment: any, or one near a midnight, a quarter of an hour or a change of clocks."""
    match chance.whole(0, 7):
        case 0 | 1:
            return FIRST_DAY_MS + chance.whole(-DAY_MS, 11 * DAY_MS)
        case 2:
            quarter = chance.whole(-96, 10 * 96)
            return FIRST_DAY_MS + quarter * 900_000 + chance.one((-1, 0, 1))
        case 3 | 4:
            midnight = datetime.fromisoformat(chance.one(MIDNIGHTS))
            zone = ZoneInfo(chance.one(BUSY_ZONES))
            return round(midnight.replace(tzinfo=zone).timestamp() * 1000) + chance.one((-1, 0, 0))
        case 5 | 6:
            return chance.one(CHANGES_MS) + chance.one(_STEPS_MS)
        case _:
            return chance.one(FAR_CHANGES_MS) + chance.one(_STEPS_MS)


def _maybe(chance: Chance, values: tuple[Any, ...]) -> Any:
    return chance.one(values) if chance.is_so(0.7) else chance.one((None, ""))


def _json(chance: Chance) -> Any:
    return chance.one(chance.one((NUMBERS, TEXTS, _OTHER_JSON)))


def _properties(chance: Chance) -> Item | None:
    if chance.is_so(0.1):
        return None
    drawn = {key: _json(chance) for key in SENT_KEYS}
    drawn["n"] = chance.one(NUMBERS) if chance.is_so(0.8) else _json(chance)
    drawn["long"] = chance.one((*LONG_NUMBERS, *map(str, LONG_NUMBERS), 5, None))
    drawn |= {name: chance.one(values) for name, values in _LIFTED.items()}
    return {key: drawn[key] for key in chance.some(list(drawn), 0, len(drawn))}


def _common(chance: Chance) -> Item:
    return {
        "timestamp": moment(chance),
        "anonymousId": _maybe(chance, PEOPLE),
        "sessionId": _maybe(chance, SESSIONS),
        "visitor": chance.one(VISITORS),
    }


def _event(chance: Chance) -> Item:
    return {
        **_common(chance),
        "name": chance.one(EVENT_NAMES),
        "namespace": _maybe(chance, FEW_TEXTS),
        "source": _maybe(chance, ("web", "app")),
        "path": chance.one((*PATHS, None)),
        "properties": _properties(chance),
    }


def _vital(chance: Chance) -> Item:
    return {
        **_common(chance),
        "path": chance.one(PATHS),
        "metricName": chance.one(METRICS),
        "metricValue": chance.one(NUMBERS),
    }


def _error(chance: Chance) -> Item:
    return {
        **_common(chance),
        "path": chance.one(PATHS),
        "message": chance.one(("", *TEXTS)),
        "level": chance.one((None, *LEVELS[1:])),
        "errorType": _maybe(chance, ("TypeError",)),
        "lineno": chance.one((None, *NUMBERS)),
    }


def _short_session(chance: Chance) -> list[Item]:
    """Draw few events of one person, some at one moment, some as far on as tells a bounce.

    What the store gathers into one visit are events with the same labels: of most of these.
    """
    owner: Item = {"sessionId": f"v{chance.whole(0, 99)}", "anonymousId": f"p{chance.whole(0, 99)}"}
    start, steps = moment(chance), (0, 0, 0, 1, 9_999, 10_000, 10_000, 3_600_000)
    moments = [start, *(start + chance.one(steps) for _ in range(chance.whole(0, 2)))]
    if chance.is_so(0.5):
        owner["name"] = "click"
    if chance.is_so(0.8):
        owner["visitor"] = chance.one(VISITORS)
    labels = {name: chance.one(_LIFTED[name]) for name in _LABELS if chance.is_so(0.5)}
    drawn = [_event(chance) | owner | {"timestamp": at} for at in moments]
    return [event | {"properties": _without_labels(event) | labels} for event in drawn]


def _without_labels(event: Item) -> Item:
    properties: Item = event["properties"] or {}
    return {name: value for name, value in properties.items() if name not in _LABELS}


def _events(chance: Chance) -> list[Item]:
    if chance.is_so(0.1):
        return chance.times(0, 5, _event)
    sessions = chain.from_iterable(chance.times(3, 12, _short_session))
    return [*chance.times(20, 40, _event), *sessions]


def _data_set(chance: Chance) -> dict[str, list[Item]]:
    return {
        "events": _events(chance),
        "performance": chance.times(5, 20, _vital),
        "errors": chance.times(5, 20, _error),
    }


data_sets = drawn(_data_set)
