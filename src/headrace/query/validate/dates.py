"""startDate, endDate and timezone of a request: two dates and a zone, or a refusal."""

import re
from datetime import date
from zoneinfo import ZoneInfo

from headrace.base.errors import InvalidQuery, QueryFault
from headrace.model.catalog import QUERY_LIMITS
from headrace.query.validate.suggest import likely_meant, quoted, suggestion
from headrace.query.validate.timezones import find_zone, zone_names

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DEFAULT_ZONE = "UTC"
_CLOSE_ZONE = 0.85  # zones of one continent are alike by half of their names


def check_dates(start: object, end: object) -> tuple[date, date]:
    """Return both days. Raises `InvalidQuery`: `Invalid startDate` or `Invalid endDate`."""
    first = _check_date(start, QueryFault.INVALID_START_DATE)
    last = _check_date(end, QueryFault.INVALID_END_DATE)
    most = QUERY_LIMITS["maxRangeYears"]
    if last < first:
        raise _bad_end(last, "it is before startDate")
    if (last.year, last.month, last.day) >= (first.year + most, first.month, first.day):
        raise _bad_end(last, f"a range is shorter than {most} years")
    return first, last


def check_timezone(name: object) -> ZoneInfo:
    """Return the zone, UTC by default. Raises `InvalidQuery`: `Invalid timezone`."""
    if name is None:
        name = _DEFAULT_ZONE
    if not isinstance(name, str):
        raise InvalidQuery(QueryFault.INVALID_TIMEZONE, ": an IANA name in a string is needed")
    zone = find_zone(name)
    if zone is None:
        raise InvalidQuery(
            QueryFault.INVALID_TIMEZONE, f" {quoted(name)}{suggestion(_likely_zone(name))}"
        )
    return zone


def _likely_zone(name: str) -> str | None:
    """Find a zone by its city (`Berlin`), else by a name that differs in a letter or two."""
    zones = sorted(zone_names())
    cities = {zone.rpartition("/")[2].lower(): zone for zone in zones if "/" in zone}
    return cities.get(name.lower()) or likely_meant(name, zones, close_enough=_CLOSE_ZONE)


def _bad_end(last: date, why: str) -> InvalidQuery:
    return InvalidQuery(QueryFault.INVALID_END_DATE, f" {quoted(last.isoformat())}: {why}")


def _check_date(value: object, fault: QueryFault) -> date:
    if value is None:
        raise InvalidQuery(fault, ": a date like 2026-01-31 is required")
    if not isinstance(value, str):
        raise InvalidQuery(fault, ": a date in a string, like 2026-01-31, is needed")
    try:
        if _DATE.fullmatch(value):
            return date.fromisoformat(value)
    except ValueError:
        raise InvalidQuery(fault, f" {quoted(value)}: there is no such day") from None
    raise InvalidQuery(fault, f" {quoted(value)}: a date like 2026-01-31 is needed")
