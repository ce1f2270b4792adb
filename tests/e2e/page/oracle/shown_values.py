"""The texts that the page makes of values, restated: numbers, shares, durations, dates."""

from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any
from zoneinfo import ZoneInfo

NOTHING = "\N{EN DASH}"
COUNTRY_NAMES = {
    "DE": "Germany",
    "US": "United States",
    "GB": "United Kingdom",
    "FR": "France",
    "NL": "Netherlands",
    "SE": "Sweden",
    "PL": "Poland",
    "ES": "Spain",
    "IT": "Italy",
    "IN": "India",
    "BR": "Brazil",
    "JP": "Japan",
}
LIMITS = {
    "LCP": (2500, 4000),
    "INP": (200, 500),
    "CLS": (0.1, 0.25),
    "FCP": (1800, 3000),
    "TTFB": (800, 1800),
}
"""Where a web vital ends to be good, and where it begins to be poor."""


def _rounded(value: float, digits: int) -> Decimal:
    """Round the shortest decimal of a number, ties away from zero, as `Intl.NumberFormat` does."""
    return Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


def exact(value: float | None) -> str:
    """Return a number with at most three decimals."""
    if value is None:
        return NOTHING
    text = f"{_rounded(value, 3):,f}".rstrip("0").rstrip(".")
    return text.removeprefix("-") if text == "-0" else text


def short(value: float | None) -> str:
    """Return a number below 10,000 with four digits, a higher one with three and a letter."""
    if value is None:
        return NOTHING
    if abs(value) < 10_000:
        return exact(value if value == int(value) else _significant(value, 4))
    power = 2 if abs(value) >= 999_500 else 1
    return f"{_significant(value / 1000**power, 3):g}{'KM'[power - 1]}"


def _significant(value: float, digits: int) -> float:
    """Round to a number of digits, ties away from zero."""
    number = Decimal(value)
    return float(number.quantize(Decimal(1).scaleb(number.adjusted() + 1 - digits), ROUND_HALF_UP))


def percent(share: float | None) -> str:
    """Return a share with one decimal, none and all of them without; none is not a small one."""
    if share is None:
        return NOTHING
    if share in (0, 1):
        return f"{100 * share:.0f}%"
    if 0 < share < 0.0005:
        return "<0.1%"
    return f"{Decimal(repr(share)).scaleb(2).quantize(Decimal('0.1'), ROUND_HALF_UP)}%"


def duration(seconds: float | None) -> str:
    """Return seconds in the two units that fit."""
    if seconds is None:
        return NOTHING
    if 0 < seconds < 1:
        return f"{_half_up(seconds * 1000)} ms"
    minutes, rest = divmod(_half_up(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours_of_day = divmod(hours, 24)
    if days:
        return f"{days}d {hours_of_day}h"
    if hours:
        return f"{hours}h {minutes}m"
    return f"{minutes}m {rest:02}s" if minutes else f"{rest}s"


def _half_up(value: float) -> int:
    """Round as `Math.round` does."""
    return int(value + 0.5)


def change(now: float | None, before: float | None, shown: str) -> str:
    """Return the line below a total: how it differs from the one before, which `shown` is."""
    if before is None:
        return "none before"
    if now is None or before == 0:
        return f"was {shown}"
    relative = (now - before) / before
    sign = "\N{BLACK UP-POINTING TRIANGLE}" if relative > 0 else "\N{BLACK DOWN-POINTING TRIANGLE}"
    sign = "=" if abs(relative) <= 0.0005 else sign
    return f"{sign} {'down' if relative < 0 else 'up'} {percent(abs(relative))} from {shown}"


def vital(metric: str, value: float | None) -> str:
    """Return a web vital in its unit."""
    if value is None:
        return NOTHING
    if metric == "FPS":
        return f"{_half_up(value)} fps"
    if metric == "CLS":
        return exact(float(Decimal(value).quantize(Decimal("0.001"), ROUND_HALF_UP)))
    seconds = Decimal(value / 1000).quantize(Decimal("0.01"), ROUND_HALF_UP)
    return f"{seconds} s" if value >= 1000 else f"{_half_up(value)} ms"


def rating(metric: str, value: float | None) -> str:
    """Return the word for a web vital, "" without one."""
    if value is None or metric not in LIMITS:
        return ""
    good, poor = LIMITS[metric]
    return "Good" if value <= good else "Needs improvement" if value <= poor else "Poor"


def rated_vital(metric: str, value: float | None) -> str:
    """Return the word for a web vital and the vital."""
    return f"{rating(metric, value)} {vital(metric, value)}".strip()


def bucket(label: str, granularity: str) -> str:
    """Return the name of a bucket."""
    day = date.fromisoformat(label[:10])
    match granularity:
        case "monthly":
            return f"{day:%B %Y}"
        case "weekly":
            return f"Week of {day.day} {day:%b %Y}"
        case "hourly":
            return f"{day.day} {day:%b %Y}, {label[11:16]}"
        case _:
            return f"{day:%a}, {day.day} {day:%b %Y}"


def instant(value: str, zone: ZoneInfo) -> str:
    """Return a datetime of an answer in a time zone."""
    local = datetime.fromisoformat(value).astimezone(zone)
    return f"{local.day} {local:%b %Y, %H:%M:%S}"


def country(code: str) -> str:
    """Return the name of a country."""
    return COUNTRY_NAMES.get(code, code)


def referrer(url: str) -> str:
    """Return a referrer without what all have."""
    for prefix in ("https://", "http://"):
        if url.startswith(prefix):
            url = url.removeprefix(prefix).removeprefix("www.")
    return url.removesuffix("/")


def cell(value: Any) -> str:
    """Return a value that rows are grouped by as a cell of a table has it, with all its digits."""
    if value is None:
        return "not set"
    if value == "":
        return "empty"
    return str(value).lower() if isinstance(value, bool) else str(value)


def group(column: str, value: Any) -> str:
    """Return a value that rows are grouped by, as a bar or a headline has it."""
    if value is None or value == "":
        return f"({cell(value)})"
    return country(value) if column == "country" else cell(value)


def counted(count: int, word: str) -> str:
    """Return a count and what it counts."""
    return f"{exact(count)} {word}{'' if count == 1 else 's'}"


def size(count: int) -> str:
    """Return bytes in the unit that fits, with three digits."""
    units = ("B", "KiB", "MiB", "GiB")
    power = next(at for at in range(len(units) - 1, -1, -1) if count >= 1024**at or at == 0)
    return f"{exact(_significant(count / 1024**power, 3) if power else count)} {units[power]}"
