"""How long to wait before a request is repeated."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 60.0
_LONGEST_RETRY_AFTER_S = 600.0


class Backoff:
    """Doubles the pause with each failure in a row. The jitter keeps clients apart."""

    def __init__(self) -> None:
        self.failures = 0

    def next_pause_s(self, retry_after_s: float | None = None) -> float:
        """Count a failure and return the pause after it: what the service asked for, or longer.

        A service that asks for no pause, or for one until a time in the past, gets a growing one.
        """
        pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * (1 << min(self.failures, 10)))
        self.failures += 1
        if retry_after_s:
            return retry_after_s * random.uniform(1.0, 1.1)  # noqa: S311 - not for cryptography
        return pause_s * random.uniform(0.5, 1.5)  # noqa: S311 - as above

    def reset(self) -> None:
        """Forget the failures, after a success."""
        self.failures = 0


def retry_after_s(value: str | None, *, now: datetime | None = None) -> float | None:
    """Return the seconds of a Retry-After field: a number or a date, at most ten minutes."""
    if not value:
        return None
    text = value.strip()
    if text.isdecimal():
        return min(float(text), _LONGEST_RETRY_AFTER_S)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # the latter for a year of twenty digits
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=timezone.utc)
    seconds = (date - (now or datetime.now(timezone.utc))).total_seconds()
    return min(max(seconds, 0.0), _LONGEST_RETRY_AFTER_S)
