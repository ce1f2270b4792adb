"""Check with which days a query compares its own."""

from datetime import date, timedelta

import msgspec

from headrace.base.errors import InvalidQuery, QueryErrorCode
from headrace.model import wire
from headrace.query.validate.dates import check_dates
from headrace.query.validate.suggest import did_you_mean_one_of, quote_json
from headrace.query.validate.synonyms import PERIOD_SYNONYMS

PREVIOUS_PERIOD = "previous_period"
PREVIOUS_YEAR = "previous_year"
PERIODS = (PREVIOUS_PERIOD, PREVIOUS_YEAR)


def check_compare(value: object, first: date, last: date) -> tuple[date, date] | None:
    """Return the first and the last day to compare with; None without a comparison.

    `first` and `last` are those of the query. Raises `InvalidQuery`: `Invalid compare`.
    """
    if value is None:
        return None
    if isinstance(value, str):
        return _check_period(value, first, last)
    try:
        days = msgspec.convert(value, wire.Compare)
    except msgspec.ValidationError:
        names = " or ".join(map(quote_json, PERIODS))
        raise _invalid_compare(f": must be {names}, or an object with dates") from None
    try:
        return check_dates(days.start_date, days.end_date)
    except InvalidQuery as error:
        raise _invalid_compare(f": {str(error).removeprefix('Invalid ')}") from None


def _check_period(name: str, first: date, last: date) -> tuple[date, date]:
    if name not in PERIODS:
        hint = did_you_mean_one_of(name, PERIODS, PERIOD_SYNONYMS)
        raise _invalid_compare(f" {quote_json(name)}{hint}")
    try:
        if name == PREVIOUS_YEAR:
            return _year_before(first), _year_before(last)
        days = timedelta((last - first).days + 1)
        return first - days, last - days
    except (OverflowError, ValueError):
        raise _invalid_compare(": there are no days before the year 1") from None


def _year_before(day: date) -> date:
    is_leap_day = (day.month, day.day) == (2, 29)
    return day.replace(year=day.year - 1, day=28 if is_leap_day else day.day)


def _invalid_compare(detail: str) -> InvalidQuery:
    return InvalidQuery(QueryErrorCode.INVALID_COMPARE, detail)
