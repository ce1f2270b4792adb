"""Checks the parameters of an export."""

from collections.abc import Sequence
from datetime import date

from headrace.base.clock import MILLISECONDS_PER_DAY, days_since_epoch
from headrace.base.errors import InvalidQuery, QueryErrorCode
from headrace.model.catalog import STORED_TABLES
from headrace.model.export import END_OF_TIME_MS, FIRST_TIME_MS, ExportFormat, ExportRequest
from headrace.model.tenancy import WebsiteId
from headrace.query.validate.dates import check_date
from headrace.query.validate.suggest import did_you_mean_one_of, quote_json

EXPORT_PARAMETERS = ("website_id", "table", "format", "from", "to")
FORMAT_NAMES = tuple(one.value for one in ExportFormat)
TABLE_NAMES = tuple(table.name for table in STORED_TABLES)


def check_export(
    website_id: WebsiteId,
    *,
    table: str | None,
    format_name: str | None,
    first_day: str | None,
    last_day: str | None,
) -> ExportRequest:
    """Return the request. Days are of UTC, and both are included; None is without a bound.

    Raises `InvalidQuery`: `Invalid table`, `Invalid format`, `Invalid from` or `Invalid to`.
    """
    checked_table = _check_name(table, TABLE_NAMES, QueryErrorCode.INVALID_TABLE)
    checked_format = _check_name(format_name, FORMAT_NAMES, QueryErrorCode.INVALID_FORMAT)
    first = None if first_day is None else check_date(first_day, QueryErrorCode.INVALID_FROM)
    last = None if last_day is None else check_date(last_day, QueryErrorCode.INVALID_TO)
    if first is not None and last is not None and last < first:
        raise InvalidQuery(
            QueryErrorCode.INVALID_TO, f" {quote_json(last.isoformat())}: must not be before from"
        )
    return ExportRequest(
        website_id=website_id,
        table=checked_table,
        format=ExportFormat(checked_format),
        start_ms=FIRST_TIME_MS if first is None else _midnight_ms(first),
        end_ms=END_OF_TIME_MS if last is None else _midnight_ms(last, days_later=1),
    )


def _check_name(name: str | None, known: Sequence[str], code: QueryErrorCode) -> str:
    if name is None:
        raise InvalidQuery(code, f": one of {', '.join(known)} is required")
    if name not in known:
        raise InvalidQuery(code, f" {quote_json(name)}{did_you_mean_one_of(name, known)}")
    return name


def _midnight_ms(day: date, *, days_later: int = 0) -> int:
    """Return the beginning of a UTC day, within the times that rows can have."""
    midnight_ms = (days_since_epoch(day) + days_later) * MILLISECONDS_PER_DAY
    return min(max(midnight_ms, FIRST_TIME_MS), END_OF_TIME_MS)
