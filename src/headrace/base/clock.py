"""The only place that reads the time."""

import time
from datetime import UTC, datetime
from typing import Protocol

MILLISECONDS_PER_DAY = 86_400_000


class Clock(Protocol):
    """Wall time for stamps, monotonic time for durations."""

    def now_ms(self) -> int:
        """Return Unix epoch milliseconds."""
        ...

    def monotonic_s(self) -> float:
        """Return seconds since an arbitrary moment; never goes back."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Return Unix epoch milliseconds."""
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        """Return seconds since an arbitrary moment; never goes back."""
        return time.monotonic()


class FixedClock:
    """A clock that stands still until it is moved; for tests and replays."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        """Return the time that was set last."""
        return self._now_ms

    def monotonic_s(self) -> float:
        """Return the set time in seconds."""
        return self._now_ms / 1000

    def advance(self, milliseconds: int) -> None:
        """Move the clock on."""
        self._now_ms += milliseconds


def utc_datetime(epoch_ms: int) -> datetime:
    """Turn epoch milliseconds into an aware UTC datetime, exactly."""
    seconds, milliseconds = divmod(epoch_ms, 1000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=milliseconds * 1000)


def utc_day(epoch_ms: int) -> str:
    """Return the UTC day of a moment as YYYY-MM-DD."""
    return utc_datetime(epoch_ms).date().isoformat()
