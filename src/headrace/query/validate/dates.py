"""Check startDate, endDate and timezone of a request."""

import re
from datetime import date, timedelta
from zoneinfo import ZoneInfo

from headrace.base.clock import utc_datetime
from headrace.base.closest_match import closest_match
from headrace.base.errors import InvalidQuery, QueryErrorCode
from headrace.model.catalog import QUERY_LIMITS
from headrace.query.validate.lengths import parse_whole_number
from headrace.query.validate.suggest import quote_json, suggestion
from headrace.query.validate.timezones import find_zone, zone_names

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_RELATIVE_DATE = re.compile(
    r"now.*|today|yesterday|(last|past|this|previous)[ _-]?\w.*"
    r"|[+-]?\d+[ _-]?([dwmy]|(day|week|month|year)s?)",
    re.IGNORECASE,
)
_NO_DATE = "must be a date such as 2026-01-31"
_OFFSET = re.compile(r"(?:UTC|GMT|Z)?\s*([+-])\s*(\d{1,2})(?::?00)?", re.IGNORECASE)
_DEFAULT_ZONE = "UTC"
_NO_ZONE = "must be an IANA name such as Europe/Berlin"
_MIN_ZONE_SIMILARITY = 0.85  # names of one continent share half of their letters


def check_dates(start: object, end: object) -> tuple[date, date]:
    """Return both dates. Raises `InvalidQuery`: `Invalid startDate` or `Invalid endDate`."""
    first = check_date(start, QueryErrorCode.INVALID_START_DATE)
    last = check_date(end, QueryErrorCode.INVALID_END_DATE)
    maximum = QUERY_LIMITS["maxRangeYears"]
    if last < first:
        raise _invalid_end_date(last, "must not be before startDate")
    # Ten years after a leap day there is no 29 February.
    day = 28 if (first.month, first.day) == (2, 29) else first.day
    if (last.year, last.month, last.day) >= (first.year + maximum, first.month, day):
        raise _invalid_end_date(last, f"the range must be shorter than {maximum} years")
    return first, last


def check_period(start: object, end: object, last_days: object) -> tuple[date, date] | int:
    """Return both dates, or the number of days up to today if `last_days` is in their place.

    Raises `InvalidQuery`: `Invalid lastDays`, `Invalid startDate` or `Invalid endDate`.
    """
    if last_days is None:
        try:
            return check_dates(start, end)
        except InvalidQuery as error:
            wrong = start if error.code is QueryErrorCode.INVALID_START_DATE else end
            if not isinstance(wrong, str) or not _RELATIVE_DATE.fullmatch(wrong):
                raise
            detail = (
                f" {quote_json(wrong)}: {_NO_DATE}; lastDays takes a number of days up to today"
            )
            raise InvalidQuery(error.code, detail) from None
    if start is not None or end is not None:
        detail = ": lastDays is in the place of startDate and endDate"
        raise InvalidQuery(QueryErrorCode.INVALID_START_DATE, detail)
    days, maximum = parse_whole_number(last_days), QUERY_LIMITS["maxLastDays"]
    if days is None or not 1 <= days <= maximum:
        detail = f": must be a whole number from 1 to {maximum}"
        raise InvalidQuery(QueryErrorCode.INVALID_LAST_DAYS, detail)
    return days


def resolve_period(
    period: tuple[date, date] | int, zone: ZoneInfo, now_ms: int
) -> tuple[date, date]:
    """Return the first and the last day; a number of days ends today in the zone."""
    if not isinstance(period, int):
        return period
    today = utc_datetime(now_ms).astimezone(zone).date()
    return today - timedelta(days=period - 1), today


def check_timezone(name: object) -> ZoneInfo:
    """Return the zone, UTC by default. Raises `InvalidQuery`: `Invalid timezone`."""
    if name is None:
        name = _DEFAULT_ZONE
    if not isinstance(name, str):
        raise InvalidQuery(QueryErrorCode.INVALID_TIMEZONE, ": must be an IANA name in a string")
    zone = find_zone(name)
    if zone is None:
        hint = _suggest_for_offset(name) or suggestion(_closest_zone(name)) or f": {_NO_ZONE}"
        raise InvalidQuery(QueryErrorCode.INVALID_TIMEZONE, f" {quote_json(name)}{hint}")
    return zone


def _suggest_for_offset(name: str) -> str:
    """Return what to write for an offset; their zones have the signs of POSIX, the other way."""
    found = _OFFSET.fullmatch(name)
    if found is None:
        return ""
    ahead, hours = found[1] == "+", int(found[2])
    zone = f"Etc/GMT{'-' if ahead else '+'}{hours}"
    if find_zone(zone) is None:
        return f": {_NO_ZONE}"
    return f": {_NO_ZONE}; {zone} is {hours} h {'ahead of' if ahead else 'behind'} UTC"


def _closest_zone(name: str) -> str | None:
    """Return the zone of a city (`Berlin`), else the one whose name differs in a letter or two."""
    zones = sorted(zone_names(), key=_zone_order)
    known = {zone.rpartition("/")[2].lower(): zone for zone in zones}
    return known.get(name.lower()) or closest_match(
        name, sorted(zones), min_similarity=_MIN_ZONE_SIMILARITY
    )


def _zone_order(zone: str) -> tuple[bool, bool, str]:
    """Return the key that sorts `Etc/UTC` before `UTC`, and `Singapore` before `Asia/Singapore`."""
    return not zone.startswith("Etc/"), "/" in zone, zone


def _invalid_end_date(last: date, reason: str) -> InvalidQuery:
    return InvalidQuery(
        QueryErrorCode.INVALID_END_DATE, f" {quote_json(last.isoformat())}: {reason}"
    )


def check_date(value: object, code: QueryErrorCode) -> date:
    """Return a date. Raises `InvalidQuery` with this code."""
    if value is None:
        raise InvalidQuery(code, ": a date such as 2026-01-31 is required")
    if not isinstance(value, str):
        raise InvalidQuery(code, ": must be a date in a string, such as 2026-01-31")
    try:
        if _DATE.fullmatch(value):
            return date.fromisoformat(value)
    except ValueError:
        raise InvalidQuery(code, f" {quote_json(value)}: there is no such day") from None
    raise InvalidQuery(code, f" {quote_json(value)}: {_NO_DATE}")
