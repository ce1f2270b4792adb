"""The timestamps that an item may have, and the forms it may write them in."""

import math
import re
from collections.abc import Sequence

from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.base.datetime_text import parse_iso_8601, parse_rfc_2822

EARLIEST_MS = 946_684_800_000
"""2000-01-01T00:00:00Z. Earlier timestamps are mistakes, mostly seconds for milliseconds."""

INVALID_TIMESTAMP = "must be epoch milliseconds, an ISO 8601 date or time, or an RFC 2822 date"
TOO_EARLY = "must not be before 2000-01-01"
SECONDS_HINT = f"{TOO_EARLY}; it looks like seconds: send milliseconds"

_LOOSE_ISO_8601 = re.compile(r"[0-9]{4}-.{5}(?:[Tt ][0-9]{2}:[0-9]{2}(?!:)|.*(?:,|z$))")
"""What the datetimes of queries allow and events do not: no seconds, a comma, a small z."""

_EARLIEST_S = EARLIEST_MS // 1000
_LATEST_LIKELY_S = 7_258_118_400  # the year 2200, in seconds


def parse_timestamps(sent: Sequence[float | str | None], *, received_ms: int) -> list[int]:
    """Return the timestamps of a batch in epoch milliseconds; a missing one is `received_ms`.

    Raises `ValueError` at the first invalid one.
    """
    if sent.count(None) == len(sent):  # as most senders do
        return [received_ms] * len(sent)
    latest_ms = received_ms + MILLISECONDS_PER_DAY
    return [
        received_ms
        if value is None
        else value
        if type(value) is int and EARLIEST_MS <= value <= latest_ms
        else parse_timestamp(value, received_ms=received_ms)
        for value in sent
    ]


def parse_timestamp(value: float | str, *, received_ms: int) -> int:
    """Return epoch milliseconds; `received_ms` where the timestamp is over 24 h ahead of it.

    Raises `ValueError` with the message for the field error.
    """
    timestamp_ms = parse_epoch_ms(value)
    return received_ms if timestamp_ms > received_ms + MILLISECONDS_PER_DAY else timestamp_ms


def parse_epoch_ms(value: float | str) -> int:
    """Return epoch milliseconds, however far ahead. Raises `ValueError` as `parse_timestamp`."""
    timestamp_ms = _parse_text(value) if isinstance(value, str) else _truncate_milliseconds(value)
    if timestamp_ms < EARLIEST_MS:
        is_number = not isinstance(value, str)
        looks_like_seconds = is_number and _EARLIEST_S <= timestamp_ms < _LATEST_LIKELY_S
        raise ValueError(SECONDS_HINT if looks_like_seconds else TOO_EARLY)
    return timestamp_ms


def _truncate_milliseconds(value: float) -> int:
    if isinstance(value, bool) or not (isinstance(value, int) or math.isfinite(value)):
        raise ValueError(INVALID_TIMESTAMP)
    return math.trunc(value)


def _parse_text(text: str) -> int:
    parsed = parse_iso_8601(text) or parse_rfc_2822(text)
    if parsed is None or _LOOSE_ISO_8601.match(text):
        raise ValueError(INVALID_TIMESTAMP)
    return parsed.epoch_ms
