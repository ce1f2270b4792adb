"""What is stored of each website and table, and what pruning deletes of it."""

from msgspec import Struct

from headrace.model.tenancy import WebsiteId


class StoredRows(Struct, frozen=True, kw_only=True):
    """The rows of one website and table.

    `rows` are those that answers see, bots included, and `expired` those before the cutoff that are
    still stored. `bytes` is their share of the table's size on disk. `oldest_ms` and `newest_ms`
    are the times of the first and last row that answers see, None without one.
    """

    website_id: WebsiteId
    table: str
    rows: int
    expired: int
    bytes: int
    oldest_ms: int | None
    newest_ms: int | None
    retain_days: int
    cutoff_ms: int | None


class ExpiredRows(Struct, frozen=True, kw_only=True):
    """The stored rows of one website and table before its cutoff."""

    website_id: WebsiteId
    table: str
    rows: int
    bytes: int
    cutoff_ms: int
