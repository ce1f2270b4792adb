"""Parse the datetimes of filters: ISO 8601 or epoch milliseconds."""

from datetime import UTC, datetime, timedelta

from headrace.base.clock import EPOCH, to_epoch_ms
from headrace.base.datetime_text import parse_iso_8601

_WALL_EPOCH = EPOCH.replace(tzinfo=None)
_EARLIEST_MS = to_epoch_ms(datetime.min.replace(tzinfo=UTC))
_LATEST_MS = to_epoch_ms(datetime.max.replace(tzinfo=UTC))


def parse_epoch_ms(number: float) -> int | None:
    """Return epoch milliseconds without the fraction; None outside of the years 1 to 9999."""
    return int(number) if _EARLIEST_MS <= number <= _LATEST_MS else None


def parse_iso_datetime(text: str) -> int | datetime | None:
    """Parse what `parse_iso_8601` accepts; None for any other text.

    With an offset the result is epoch milliseconds; without one a naive datetime, which the
    caller resolves in the query's timezone.
    """
    parsed = parse_iso_8601(text)
    if parsed is None:
        return None
    if parsed.offset_ms is None:
        return _WALL_EPOCH + timedelta(milliseconds=parsed.wall_ms)
    return parsed.epoch_ms
