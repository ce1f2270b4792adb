"""Check the body of a retention query and make its plan; the first error rejects it."""

from datetime import date, timedelta
from typing import Final

from headrace.base.clock import date_from_days, days_since_epoch, utc_datetime
from headrace.base.errors import InvalidQuery, QueryErrorCode
from headrace.model import wire
from headrace.model.catalog import EVENTS, QUERY_LIMITS
from headrace.model.data_retention import NO_CUTOFFS, Cutoffs
from headrace.model.plan import Granularity
from headrace.model.tenancy import WebsiteId
from headrace.model.wire_analyses import RetentionEvent, RetentionRequest
from headrace.query.retention.plan import RetentionPlan
from headrace.query.validate.conditions.filters import check_filters, resolve_datetimes
from headrace.query.validate.dates import check_period, check_timezone, resolve_period
from headrace.query.validate.day_range import (
    bucket_of_day,
    first_date_of_month,
    first_date_of_week,
    range_of_days,
)
from headrace.query.validate.decode_body import BodyType, check_filter_keys, decode_body
from headrace.query.validate.identity import check_identity
from headrace.query.validate.lengths import parse_whole_number
from headrace.query.validate.suggest import did_you_mean_one_of, quote_json
from headrace.query.validate.synonyms import GRANULARITY_SYNONYMS

RETENTION = BodyType(
    RetentionRequest,
    {
        "first": RetentionEvent,
        "first.filters": wire.Filter,
        "return": RetentionEvent,
        "return.filters": wire.Filter,
    },
)

GRANULARITIES = (Granularity.DAILY, Granularity.WEEKLY, Granularity.MONTHLY)
"""The sizes of cohorts and periods."""

_LAST_READ: Final = date(9998, 12, 31)
"""A range may end in the year 9999, and its periods after what dates can hold."""


def decode_retention(body: bytes) -> RetentionRequest:
    """Decode a body. Raises `InvalidQuery`: `Invalid request body` with the error and its path."""
    request = decode_body(body, RETENTION)
    check_filter_keys(request.first.filters, "first.filters")
    check_filter_keys(request.returning.filters, "return.filters")
    return request


def check_retention(
    request: RetentionRequest,
    website_id: WebsiteId,
    *,
    now_ms: int,
    cutoffs: Cutoffs = NO_CUTOFFS,
) -> RetentionPlan:
    """Return the plan of a retention query over the rows that the cutoffs leave.

    Raises `InvalidQuery` for the first error.
    """
    first = check_filters(EVENTS, request.first.filters, "first.filters")
    returning = check_filters(EVENTS, request.returning.filters, "return.filters")
    granularity = _check_granularity(request.granularity)
    periods = _check_periods(request.periods)
    by = check_identity(request.by)
    period = check_period(request.start_date, request.end_date, request.last_days)
    zone = check_timezone(request.timezone)
    start, end = resolve_period(period, zone, now_ms)
    today = utc_datetime(now_ms).astimezone(zone).date()
    last_bucket = bucket_of_day(days_since_epoch(end), granularity) + periods - 1
    return RetentionPlan(
        website_id=website_id,
        first=resolve_datetimes(first, zone),
        returning=resolve_datetimes(returning, zone),
        granularity=granularity,
        periods=periods,
        by=by,
        range=range_of_days(start, end, zone),
        read_range=range_of_days(start, _last_date(last_bucket, granularity, end), zone),
        cutoff_ms=cutoffs.of_table(EVENTS),
        current_bucket=bucket_of_day(days_since_epoch(today), granularity),
    )


def _last_date(bucket: int, granularity: Granularity, end: date) -> date:
    """Return the last day of a bucket, or the last date there is, but none before `end`."""
    last_bucket = bucket_of_day(days_since_epoch(_LAST_READ), granularity)
    following = min(bucket, last_bucket) + 1
    match granularity:
        case Granularity.WEEKLY:
            first_after = first_date_of_week(following)
        case Granularity.MONTHLY:
            first_after = first_date_of_month(following)
        case _:
            first_after = date_from_days(following)
    return max(first_after - timedelta(days=1), end)


def _check_granularity(value: object) -> Granularity:
    names = [granularity.value for granularity in GRANULARITIES]
    if not isinstance(value, str):
        detail = f": must be one of {', '.join(names)}"
        raise InvalidQuery(QueryErrorCode.INVALID_GRANULARITY, detail)
    if value not in names:
        detail = f" {quote_json(value)}{did_you_mean_one_of(value, names, GRANULARITY_SYNONYMS)}"
        raise InvalidQuery(QueryErrorCode.INVALID_GRANULARITY, detail)
    return Granularity(value)


def _check_periods(value: object) -> int:
    periods, maximum = parse_whole_number(value), QUERY_LIMITS["maxPeriods"]
    if periods is None or not 1 <= periods <= maximum:
        detail = f": must be a whole number from 1 to {maximum}"
        raise InvalidQuery(QueryErrorCode.INVALID_PERIODS, detail)
    return periods
