"""Traffic whose totals are known: what is sent, and the rows that the oracle has of it.

Five weeks around the end of summer time, and items at the edges: the first and the last millisecond
of a range, an hour that occurs twice, bots, missing values, hostile names, one error with several
messages. The same items at every run.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from testing.browsers.page import HOSTILE_NAMES
from testing.service import Service, bearer
from tests.oracle import Stored
from tests.oracle.stored import error_row, event_row, vital_row

Item = dict[str, Any]

ZONE: Final = ZoneInfo("America/St_Johns")
"""Half an hour beside the whole hours of UTC; its summer time ended on 2 November 2025."""

FIRST_DAY: Final = datetime(2025, 10, 6, tzinfo=ZONE)
DAYS: Final = 35
START, END = "2025-10-27", "2025-11-09"

_COUNTRIES: Final = {
    "91.12.3.4": "DE",
    "35.32.130.7": "US",
    "25.249.14.7": "GB",
    "163.90.92.7": "FR",
    "212.19.193.7": "NL",
    "212.151.6.7": "SE",
    "109.207.63.7": "PL",
    "87.219.109.7": "ES",
    "151.17.245.7": "IT",
    "157.45.119.7": "IN",
    "191.170.216.7": "BR",
    "60.112.235.7": "JP",
    "192.0.2.1": "",
}
_CHROME: Final = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0"
_WEBKIT: Final = "AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1"
_BROWSERS: Final = {
    f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {_CHROME} Safari/537.36": (
        *("Chrome", "Windows", "desktop"),
    ),
    f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {_CHROME} Safari/537.36 Edg/142.0.0.0": (
        *("Edge", "Windows", "desktop"),
    ),
    f"Mozilla/5.0 (Linux; Android 15; Pixel 9) {_CHROME} Mobile Safari/537.36": (
        *("Chrome", "Android", "mobile"),
    ),
    f"Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) {_WEBKIT} Mobile/1 Safari/604.1": (
        *("Safari", "iOS", "mobile"),
    ),
    f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {_WEBKIT} Safari/605.1.15": (
        *("Safari", "macOS", "desktop"),
    ),
    "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0": (
        *("Firefox", "Linux", "desktop"),
    ),
    "": ("", "", ""),
}
_BOT: Final = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
_PATHS: Final = (
    *("/", "/beans", "/beans/guji", "/gear", "/cart", "/checkout", "/blog/Crème brûlée?", "/a,b"),
    *("/very/long/" + "x" * 180, "/سلة", "/🏕️", "/beans/huila", "/jobs", ""),
)
_REFERRERS: Final = (
    *("", "", "https://www.google.com/", "https://example.org/a", "http://www.bing.com"),
    *("https://duckduckgo.com/", "android-app://reader", "https://example.org/b?c=d"),
)
_CAMPAIGNS: Final[tuple[Item, ...]] = (
    {},
    {},
    {"utm_source": "letter"},
    {"utm_source": "ads", "utm_medium": "cpc"},
)
_NAMES: Final = ("screen_view", "page_view", "pageview", "search", "add_to_cart", "purchase")
_VITALS: Final = {"LCP": 2400, "INP": 190, "CLS": 0.09, "FCP": 1700, "TTFB": 700, "FPS": 50}
_MESSAGES: Final = (
    ("TypeError", "x is undefined", "    at render (https://shop.example/a.js:41:9)"),
    ("TypeError", "y is undefined", "    at render (https://shop.example/a.js:41:9)"),
    ("NetworkError", "No answer from https://pay.example/{}", "pay@https://shop.example/b.js:7:1"),
    ("", "Item {} is gone", ""),
    ("RangeError", HOSTILE_NAMES[0], ""),
)
_VALUES: Final = (5, 5.5, "5", "large", True, None, {"a": [1]}, 12_345.678, 0)


@dataclass
class Traffic:
    """Items by the path that takes them, each with what its address and User-Agent become."""

    track: list[tuple[Item, Mapping[str, str]]] = field(default_factory=list[Any])
    vitals: list[tuple[Item, Mapping[str, str]]] = field(default_factory=list[Any])
    errors: list[tuple[Item, Mapping[str, str]]] = field(default_factory=list[Any])


def known_traffic() -> Traffic:
    """Return some thousand items, always the same."""
    rng = random.Random(17)  # noqa: S311 - nothing of it is secret
    clients = [(rng.choice([*_COUNTRIES]), rng.choice([*_BROWSERS])) for _ in range(90)]
    traffic = Traffic()
    for day in range(DAYS):
        for number in range(rng.randrange(5, 14)):
            visitor = int(len(clients) * rng.random() ** 2)
            client = clients[visitor]
            for path, item in _session(rng, visitor, f"s{day}-{number}", day):
                sent = {**item, "ip": client[0], "userAgent": client[1]}
                getattr(traffic, path).append((sent, _client_columns(*client)))
    traffic.track.extend((item, _client_columns("", "")) for item in _edges())
    return traffic


def _client_columns(address: str, user_agent: str) -> dict[str, str]:
    names = ("browser_name", "os_name", "device_type")
    country = _COUNTRIES.get(address, "")
    return {"country": country, **dict(zip(names, _BROWSERS[user_agent], strict=True))}


def _session(
    rng: random.Random, visitor: int, session: str, day: int
) -> Iterator[tuple[str, Item]]:
    """Return the items of a session; the last ones of a day go on after midnight."""
    time_ms = _epoch_ms(FIRST_DAY + timedelta(days=day, minutes=rng.randrange(1440)))
    known = {"anonymousId": f"visitor {visitor}", "sessionId": session}
    origin = {"referrer": rng.choice(_REFERRERS), **rng.choice(_CAMPAIGNS)}
    for step in range(rng.choice((1, 1, 2, 3, 4, 6, 9))):
        item = {**known, "timestamp": time_ms, "path": rng.choice(_PATHS)}
        own = {"value": rng.choice((3, 12.5, 999)), "size": rng.choice(_VALUES)}
        name = _NAMES[min(len(_NAMES) - 1, int(rng.expovariate(0.5)))]
        properties = {**(origin if step == 0 else {}), **(own if name == "purchase" else {})}
        yield "track", {**item, "name": name, "properties": properties}
        if rng.random() < 0.3:
            yield from _measurements(rng, item)
        if rng.random() < 0.15:
            yield "errors", {**item, **_failure(rng)}
        time_ms += rng.choice((0, 1, 4_000, 9_999, 31_000, 700_000))


def _measurements(rng: random.Random, item: Item) -> Iterator[tuple[str, Item]]:
    for metric, usual in _VITALS.items():
        value = usual * rng.choice((0.5, 1, 1.05, 1.4, 2.6)) * rng.uniform(0.9, 1.1)
        digits = 3 if metric == "CLS" else rng.choice((0, 1))
        yield "vitals", {**item, "metricName": metric, "metricValue": round(value, digits)}


def _failure(rng: random.Random) -> Item:
    kind, message, stack = rng.choice(_MESSAGES)
    text = message.format(rng.randrange(10, 14))
    return {"errorType": kind, "message": text, "filename": "a.js", "lineno": 41, "stack": stack}


def _edges() -> Iterator[Item]:
    """Return events at the ends of ranges, in the hour that occurs twice, and with a name alone."""
    midnights = [
        _epoch_ms(datetime.fromisoformat(day).replace(tzinfo=ZONE)) for day in (START, END)
    ]
    times = [
        midnights[0] - 1,
        midnights[0],
        midnights[1] + 86_400_000 - 1,
        midnights[1] + 86_400_000,
    ]
    twice = datetime(2025, 11, 2, 1, 30, tzinfo=ZONE)
    times += [_epoch_ms(twice.replace(fold=fold)) for fold in (0, 1)]
    for number, time_ms in enumerate(times):
        yield {
            "name": "screen_view",
            "path": "/edge",
            "timestamp": time_ms,
            "anonymousId": f"edge {number}",
            "sessionId": f"edge {number}",
        }
    for name in HOSTILE_NAMES:
        yield {"name": name, "timestamp": midnights[0] + 1}


def _epoch_ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def send_traffic(service: Service, website: str) -> Stored:
    """Send the traffic, and bots that no answer counts; return the rows of the oracle."""
    traffic, stored = known_traffic(), Stored()
    for path, make_row, rows in (
        ("track", event_row, stored.events),
        ("vitals", vital_row, stored.performance),
        ("errors", error_row, stored.errors),
    ):
        sent: list[tuple[Item, Mapping[str, str]]] = getattr(traffic, path)
        _post(service, f"/{path}?website_id={website}", [item for item, _ in sent])
        rows += [make_row(item, arrival=len(rows), visitor=client) for item, client in sent]
    bots = [item | {"name": "screen_view"} for item, _ in traffic.track[:50]]
    response = service.post(f"/track?client_id={website}", bots, headers={"User-Agent": _BOT})
    assert response.status_code == 200, response.text
    return stored


def _post(service: Service, path: str, items: list[Item]) -> None:
    response = service.post(path, items, headers=bearer(service.master))
    assert (response.status_code, response.json().get("count")) == (200, len(items)), response.text
