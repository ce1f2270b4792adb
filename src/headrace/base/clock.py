"""Clocks, and conversions between datetimes and Unix time. No other module reads the time."""

import time
from datetime import UTC, date, datetime, timedelta
from typing import Protocol

SECONDS_PER_DAY = 86_400
MILLISECONDS_PER_MINUTE = 60_000
MILLISECONDS_PER_DAY = 86_400_000

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = EPOCH.date()
_EPOCH_ORDINAL = _EPOCH_DAY.toordinal()
_MILLISECOND = timedelta(milliseconds=1)


class Clock(Protocol):
    """Wall-clock time for timestamps, monotonic time for durations, processor time for costs."""

    def now_ms(self) -> int:
        """Return Unix epoch milliseconds."""
        ...

    def monotonic_s(self) -> float:
        """Return seconds since an arbitrary start; never goes back."""
        ...

    def thread_cpu_s(self) -> float:
        """Return the seconds that the calling thread has had a processor."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Return Unix epoch milliseconds."""
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        """Return seconds since an arbitrary start; never goes back."""
        return time.monotonic()

    def thread_cpu_s(self) -> float:
        """Return the seconds that the calling thread has had a processor."""
        return time.thread_time()


class FixedClock:
    """A clock that only moves when `advance` is called; for tests and replays."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        """Return the time set last."""
        return self._now_ms

    def monotonic_s(self) -> float:
        """Return the set time in seconds."""
        return self._now_ms / 1000

    def thread_cpu_s(self) -> float:
        """Return the set time in seconds."""
        return self._now_ms / 1000

    def advance(self, milliseconds: int) -> None:
        """Move the clock forward."""
        self._now_ms += milliseconds


def utc_datetime(epoch_ms: int) -> datetime:
    """Convert epoch milliseconds to an aware UTC datetime, without rounding."""
    seconds, milliseconds = divmod(epoch_ms, 1000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=milliseconds * 1000)


def utc_day(epoch_ms: int) -> str:
    """Return the UTC day of a timestamp as YYYY-MM-DD."""
    return utc_datetime(epoch_ms).date().isoformat()


def to_epoch_ms(timestamp: datetime) -> int:
    """Convert an aware datetime to epoch milliseconds, rounding down."""
    return (timestamp - EPOCH) // _MILLISECOND


def days_since_epoch(day: date) -> int:
    """Return the number of days from 1970-01-01 to a day; negative before it."""
    return day.toordinal() - _EPOCH_ORDINAL


def date_from_days(days: int) -> date:
    """Return the date that many days after 1970-01-01. Raises `OverflowError` past year 9999."""
    return _EPOCH_DAY + timedelta(days=days)
