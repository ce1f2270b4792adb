"""The end of the UTC day, at which cutoffs move and salts change."""

import time

from headrace.base.clock import MILLISECONDS_PER_DAY, SystemClock


def wait_for_new_day(within_s: float) -> None:
    """Wait until the next UTC day has begun, where it begins within so many seconds.

    For a test that takes less time and whose expected values are those of one day.
    """
    left_s = (-SystemClock().now_ms() % MILLISECONDS_PER_DAY) / 1000
    if left_s < within_s:
        time.sleep(left_s + 1)
