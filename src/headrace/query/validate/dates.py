"""Check startDate, endDate and timezone of a request."""

import re
from datetime import date
from zoneinfo import ZoneInfo

from headrace.base.closest_match import closest_match
from headrace.base.errors import InvalidQuery, QueryErrorCode
from headrace.model.catalog import QUERY_LIMITS
from headrace.query.validate.suggest import quote_json, suggestion
from headrace.query.validate.timezones import find_zone, zone_names

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DEFAULT_ZONE = "UTC"
_MIN_ZONE_SIMILARITY = 0.85  # names of one continent share half of their letters


def check_dates(start: object, end: object) -> tuple[date, date]:
    """Return both dates. Raises `InvalidQuery`: `Invalid startDate` or `Invalid endDate`."""
    first = _check_date(start, QueryErrorCode.INVALID_START_DATE)
    last = _check_date(end, QueryErrorCode.INVALID_END_DATE)
    maximum = QUERY_LIMITS["maxRangeYears"]
    if last < first:
        raise _invalid_end_date(last, "must not be before startDate")
    if (last.year, last.month, last.day) >= (first.year + maximum, first.month, first.day):
        raise _invalid_end_date(last, f"the range must be shorter than {maximum} years")
    return first, last


def check_timezone(name: object) -> ZoneInfo:
    """Return the zone, UTC by default. Raises `InvalidQuery`: `Invalid timezone`."""
    if name is None:
        name = _DEFAULT_ZONE
    if not isinstance(name, str):
        raise InvalidQuery(QueryErrorCode.INVALID_TIMEZONE, ": must be an IANA name in a string")
    zone = find_zone(name)
    if zone is None:
        raise InvalidQuery(
            QueryErrorCode.INVALID_TIMEZONE, f" {quote_json(name)}{suggestion(_closest_zone(name))}"
        )
    return zone


def _closest_zone(name: str) -> str | None:
    """Return the zone of a city (`Berlin`), else the one whose name differs in a letter or two."""
    zones = sorted(zone_names())
    cities = {zone.rpartition("/")[2].lower(): zone for zone in zones if "/" in zone}
    return cities.get(name.lower()) or closest_match(
        name, zones, min_similarity=_MIN_ZONE_SIMILARITY
    )


def _invalid_end_date(last: date, reason: str) -> InvalidQuery:
    return InvalidQuery(
        QueryErrorCode.INVALID_END_DATE, f" {quote_json(last.isoformat())}: {reason}"
    )


def _check_date(value: object, code: QueryErrorCode) -> date:
    if value is None:
        raise InvalidQuery(code, ": a date such as 2026-01-31 is required")
    if not isinstance(value, str):
        raise InvalidQuery(code, ": must be a date in a string, such as 2026-01-31")
    try:
        if _DATE.fullmatch(value):
            return date.fromisoformat(value)
    except ValueError:
        raise InvalidQuery(code, f" {quote_json(value)}: there is no such day") from None
    raise InvalidQuery(code, f" {quote_json(value)}: must be a date such as 2026-01-31")
