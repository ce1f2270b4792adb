"""Sends weeks of realistic traffic of a small shop to a service: for the pictures of the page.

Run: python -m testing.sample_shop URL KEY WEBSITE [--days 60] [--sessions 420]

Visits follow the hours of a day and the days of a week and grow slowly; visitors come back, some
buy, pages differ in speed, and one release brings an error. The same arguments give the same items.
"""

import argparse
import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeVar

import requests

Item = dict[str, Any]
_T = TypeVar("_T")

_DAY_S: Final = 86_400
_BATCH: Final = 5_000
_TIMEOUT_S: Final = 120

_ADDRESSES: Final = {  # one of each country, with the share of visitors
    "31.253.230.7": 26,
    "35.32.130.7": 21,
    "25.249.14.7": 12,
    "163.90.92.7": 8,
    "212.19.193.7": 7,
    "212.151.6.7": 5,
    "109.207.63.7": 4,
    "87.219.109.7": 4,
    "151.17.245.7": 3,
    "157.45.119.7": 3,
    "191.170.216.7": 2,
    "60.112.235.7": 2,
    "142.119.176.7": 2,
    "138.80.24.7": 1,
}
_WINDOWS = "Mozilla/5.0 (Windows NT 10.0; Win64; x64)"
_APPLE = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)"
_PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X)"
_ANDROID = "Mozilla/5.0 (Linux; Android 15; Pixel 9)"
_CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0"
_WEBKIT = "AppleWebKit/605.1.15 (KHTML, like Gecko)"
_AGENTS: Final = {
    f"{_WINDOWS} {_CHROME} Safari/537.36": 26,
    f"{_ANDROID} {_CHROME} Mobile Safari/537.36": 24,
    f"{_PHONE} {_WEBKIT} Version/18.1 Mobile/15E148 Safari/604.1": 22,
    f"{_APPLE} {_CHROME} Safari/537.36": 9,
    f"{_APPLE} {_WEBKIT} Version/18.1 Safari/605.1.15": 8,
    f"{_WINDOWS} {_CHROME} Safari/537.36 Edg/142.0.0.0": 7,
    "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0": 4,
}
_REFERRERS: Final = {
    "": 44,
    "https://www.google.com/": 31,
    "https://www.instagram.com/": 7,
    "https://duckduckgo.com/": 5,
    "https://www.bing.com/": 4,
    "https://news.ycombinator.com/": 3,
    "https://coffee.example.org/best-roasters": 3,
    "https://www.reddit.com/r/coffee/": 3,
}
_CAMPAIGNS: Final = {
    ("", "", ""): 82,
    ("newsletter", "email", "autumn-roast"): 8,
    ("google", "cpc", "espresso-beans"): 6,
    ("instagram", "social", "cold-brew"): 4,
}
_PRODUCTS: Final = {
    "/beans/ethiopia-guji": 18,
    "/beans/colombia-huila": 14,
    "/beans/house-espresso": 12,
    "/beans/decaf-mountain-water": 6,
    "/gear/hand-grinder": 9,
    "/gear/pour-over-kettle": 7,
    "/gear/paper-filters": 4,
    "/subscription": 8,
}
_LANDINGS: Final = {
    "/": 40,
    "/beans": 14,
    "/blog/how-to-dial-in-espresso": 16,
    "/blog/cold-brew-ratios": 9,
    "/gear": 7,
    **{path: weight / 6 for path, weight in _PRODUCTS.items()},
}
_VITALS: Final = {  # the median of a fast page, and how far it spreads
    "LCP": (1500, 0.5),
    "FCP": (900, 0.45),
    "TTFB": (280, 0.6),
    "INP": (95, 0.7),
    "CLS": (0.03, 1.1),
}
_FAULTS: Final = (
    (5, "TypeError", "Cannot read properties of undefined (reading 'price')", "cart.js"),
    (3, "NetworkError", "Failed to fetch https://pay.example/v2/intents/8f31", "checkout.js"),
    (2, "RangeError", "Invalid time value", "delivery.js"),
    (1, "SyntaxError", "Unexpected token '<', \"<!doctype \"... is not valid JSON", "search.js"),
)


class Visitor(NamedTuple):
    """Somebody who comes once or several times."""

    id: str
    ip: str
    user_agent: str
    slowness: float


class Traffic(NamedTuple):
    """Items by the path that takes them, in order of time within each."""

    track: list[Item]
    vitals: list[Item]
    errors: list[Item]


def shop_traffic(
    *, days: int, sessions_a_day: int, now: datetime | None = None, seed: int = 7
) -> Traffic:
    """Return the items of some days up to now; about four and a half events a session."""
    rng = random.Random(seed)  # noqa: S311 - nothing of it is secret
    end_s = (now or datetime.now(UTC)).timestamp()
    visitors: list[Visitor] = []
    traffic = Traffic([], [], [])
    for start_s in sorted(_session_starts(rng, end_s, days, sessions_a_day)):
        visitor = _draw_visitor(rng, visitors)
        for kind, item in _session(rng, visitor, start_s, is_late=start_s > end_s - 9 * _DAY_S):
            if item["timestamp"] <= end_s * 1000:
                getattr(traffic, kind).append(item)
    return traffic


def _session_starts(
    rng: random.Random, end_s: float, days: int, sessions_a_day: int
) -> Iterator[float]:
    first = datetime.fromtimestamp(end_s, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for day in range(days):
        date = first - timedelta(days=days - 1 - day)
        growth = 0.72 + 0.5 * day / days
        rhythm = (1.02, 1.05, 1.06, 1.03, 0.98, 0.8, 0.86)[date.weekday()]
        for _ in range(round(sessions_a_day * growth * rhythm * rng.uniform(0.93, 1.07))):
            hour = min(23.99, max(0.0, rng.gauss(*rng.choice(((10.5, 2.6), (15, 3), (20.3, 1.9))))))
            yield date.timestamp() + hour * 3600


def _draw_visitor(rng: random.Random, known: list[Visitor]) -> Visitor:
    """Return a new visitor, or one who was there, more often one of the last."""
    if known and rng.random() < 0.46:
        return known[-1 - int(len(known) * rng.random() ** 2.4)]
    agent = _draw(rng, _AGENTS)
    slowness = rng.lognormvariate(0, 0.35) * (1.45 if "Mobile" in agent else 1)
    made = Visitor(f"visitor-{len(known) + 1:05}", _draw(rng, _ADDRESSES), agent, slowness)
    known.append(made)
    return made


def _session(
    rng: random.Random, visitor: Visitor, start_s: float, *, is_late: bool
) -> Iterator[tuple[str, Item]]:
    common = {
        "anonymousId": visitor.id,
        "sessionId": f"session-{rng.getrandbits(40):010x}",
        "ip": visitor.ip,
        "userAgent": visitor.user_agent,
    }
    source, medium, campaign = _draw(rng, _CAMPAIGNS)
    origin = {"referrer": "" if source == "newsletter" else _draw(rng, _REFERRERS)}
    if source:
        origin |= {"utm_source": source, "utm_medium": medium, "utm_campaign": campaign}
    time_s = start_s
    for name, path, own in _journey(rng):
        item = {**common, "timestamp": round(time_s * 1000), "path": path}
        is_view = name == "screen_view"
        properties = {**own, **(origin if time_s == start_s else {})}
        yield "track", {**item, "name": name, "properties": {"path": path, **properties}}
        if is_view and rng.random() < 0.22:
            yield from _measurements(rng, item, visitor.slowness)
        if rng.random() < (0.012 if is_late and path in ("/cart", "/checkout") else 0.003):
            yield "errors", {**item, **_fault(rng)}
        time_s += rng.lognormvariate(math.log(34 if is_view else 6), 0.8)


def _journey(rng: random.Random) -> Iterator[tuple[str, str, Item]]:
    """Return the steps of a session: name, path, and properties of its own."""
    landing = _draw(rng, _LANDINGS)
    yield "screen_view", landing, {}
    if rng.random() < 0.38:
        return
    product = landing
    for _ in range(rng.choice((1, 1, 2, 2, 3, 4))):
        product = _draw(rng, _PRODUCTS)
        yield "screen_view", product, {}
    if rng.random() < 0.18:
        yield "search", product, {"term": rng.choice(("decaf", "grinder", "filter", "gift"))}
    if rng.random() > 0.34:
        return
    price = rng.choice((12.5, 14.9, 16, 39, 89))
    yield "add_to_cart", product, {"sku": product.rsplit("/", 1)[-1], "price": price}
    yield "screen_view", "/cart", {}
    if rng.random() > 0.62:
        return
    yield "screen_view", "/checkout", {}
    if rng.random() < 0.7:
        yield "purchase", "/checkout", {"value": price * rng.choice((1, 1, 2)), "currency": "EUR"}
        yield "screen_view", "/thank-you", {}


def _measurements(rng: random.Random, item: Item, slowness: float) -> Iterator[tuple[str, Item]]:
    heavy = 1.7 if item["path"].startswith("/blog") else 1.25 if "/gear" in item["path"] else 1
    for metric, (median, spread) in _VITALS.items():
        value = median * slowness * heavy * rng.lognormvariate(0, spread)
        rounded = round(value, 3 if metric == "CLS" else 0)
        yield "vitals", {**item, "metricName": metric, "metricValue": rounded}


def _fault(rng: random.Random) -> Item:
    _, kind, message, file = rng.choices(_FAULTS, [weight for weight, *_ in _FAULTS])[0]
    source = f"https://shop.example/assets/{file}"
    frames = (("render", 41), ("update", 112), ("dispatch", 17))
    stack = "\n".join(f"    at {name} ({source}:{line}:9)" for name, line in frames)
    return {
        "errorType": kind,
        "message": message,
        "filename": source,
        "lineno": 41,
        "stack": f"{kind}: {message}\n{stack}",
    }


def _draw(rng: random.Random, weights: Mapping[_T, float]) -> _T:
    return rng.choices(tuple(weights), tuple(weights.values()))[0]


def send_traffic(url: str, key: str, website: str, traffic: Traffic) -> int:
    """Send all items in large batches and return their number. Raises `HTTPError` if refused."""
    with requests.Session() as session:
        session.trust_env = False
        session.headers["Authorization"] = f"Bearer {key}"
        session.headers["Content-Type"] = "application/json"
        for path, items in traffic._asdict().items():
            for batch in _batches(items):
                address = f"{url}/{path}?website_id={website}"
                session.post(address, json.dumps(batch), timeout=_TIMEOUT_S).raise_for_status()
    return sum(map(len, traffic))


def _batches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("key", help="with the scope track:events")
    parser.add_argument("website")
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--sessions", type=int, default=420, help="a day")
    options = parser.parse_args()
    traffic = shop_traffic(days=options.days, sessions_a_day=options.sessions)
    send_traffic(options.url, options.key, options.website, traffic)


if __name__ == "__main__":
    main()
