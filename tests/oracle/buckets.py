"""The time buckets of a range, by a walk through it."""

from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

MOST_FILLED_ROWS = 10_000

_LABELS = {
    "hourly": "%Y-%m-%d %H:00:00",
    "daily": "%Y-%m-%d",
    "weekly": "%Y-%m-%d",
    "monthly": "%Y-%m-01",
}


def bucket_of(local: datetime, granularity: str) -> str:
    """Return the label of the bucket of a local time."""
    if granularity == "weekly":
        local -= timedelta(days=local.weekday())
    return local.strftime(_LABELS[granularity])


def has_too_many_hours(start: date, end: date, granularity: str | None) -> bool:
    """Return whether a range has too many hours, without a walk: a day has at least 23 hours."""
    return granularity == "hourly" and (end - start).days * 23 > MOST_FILLED_ROWS


@lru_cache(maxsize=1000)
def buckets_of(start: date, end: date, zone: ZoneInfo, granularity: str) -> frozenset[str]:
    """Walk the range in quarter hours; nearly every UTC offset is a multiple of one.

    Daily buckets are walked in quarter days. A walk takes up to a tenth of a second, and a query
    needs the same one several times.
    """
    step = timedelta(minutes=15) if granularity == "hourly" else timedelta(hours=6)
    at = datetime.combine(start, time(), UTC) - timedelta(days=1)
    buckets: set[str] = set()
    while at.date() <= end + timedelta(days=1):
        local = at.astimezone(zone)
        if start <= local.date() <= end:
            buckets.add(bucket_of(local, granularity))
        at += step
    return frozenset(buckets)


def exceeds_filled_rows(start: date, end: date, zone: ZoneInfo, granularity: str) -> bool:
    """Return whether the range has more buckets than a filled result may have rows."""
    return has_too_many_hours(start, end, granularity) or (
        granularity == "hourly"  # ten years have fewer days than that
        and len(buckets_of(start, end, zone, granularity)) > MOST_FILLED_ROWS
    )
