"""What programs get of stored and expired rows: the objects of `--json` and of GET /v1/storage."""

from msgspec import Struct

from headrace.base.datetime_text import format_iso
from headrace.model.stored_rows import ExpiredRows, StoredRows


class StorageObject(Struct, frozen=True, rename="camel"):
    """The rows of one website and table. Times are ISO 8601 in UTC, null without a row.

    `expired` rows are hidden by the cutoff and not deleted yet. `retain_days` is 0, and `cutoff`
    null, where rows are kept for ever.
    """

    website: str
    table: str
    rows: int
    expired: int
    bytes: int
    oldest: str | None
    newest: str | None
    retain_days: int
    cutoff: str | None


class PrunedObject(Struct, frozen=True, rename="camel"):
    """The expired rows of one website and table."""

    website: str
    table: str
    rows: int
    bytes: int
    cutoff: str


def storage_object(stored: StoredRows) -> StorageObject:
    """Return the object of stored rows."""
    return StorageObject(
        website=stored.website_id,
        table=stored.table,
        rows=stored.rows,
        expired=stored.expired,
        bytes=stored.bytes,
        oldest=_iso_or_none(stored.oldest_ms),
        newest=_iso_or_none(stored.newest_ms),
        retain_days=stored.retain_days,
        cutoff=_iso_or_none(stored.cutoff_ms),
    )


def pruned_object(expired: ExpiredRows) -> PrunedObject:
    """Return the object of expired rows."""
    return PrunedObject(
        website=expired.website_id,
        table=expired.table,
        rows=expired.rows,
        bytes=expired.bytes,
        cutoff=format_iso(expired.cutoff_ms),
    )


def _iso_or_none(epoch_ms: int | None) -> str | None:
    return None if epoch_ms is None else format_iso(epoch_ms)
