"""Describes what is stored of each website and table."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from headrace.base.clock import Clock
from headrace.model.catalog import STORED_TABLES, Table
from headrace.model.data_retention import NO_CUTOFFS, Cutoffs, RetentionPolicy
from headrace.model.stored_rows import StoredRows
from headrace.model.tenancy import Website, WebsiteId
from headrace.ports.rows.deletion import RowDeleter, TableSize
from headrace.ports.rows.erasure import RowFinder
from headrace.pruning.statements import describe_rows

ReadWebsites = Callable[[], Sequence[Website]]
"""Reads all websites from the directory. Raises `OperatorError`."""


class _Counts(NamedTuple):
    rows: int = 0
    expired: int = 0
    first_ms: int = 0
    last_ms: int = 0


class _Retention(NamedTuple):
    """The days of a website, and the cutoffs that follow."""

    days: Mapping[str, int]
    cutoffs: Cutoffs


_KEPT_FOR_EVER = _Retention({table.name: 0 for table in STORED_TABLES}, NO_CUTOFFS)
"""Rows of a website that is not in the directory stay until they are erased."""


class StorageDescriber:
    """Blocking, used from one thread at a time."""

    def __init__(
        self,
        *,
        finder: RowFinder,
        deleter: RowDeleter,
        read_websites: ReadWebsites,
        policy: RetentionPolicy,
        clock: Clock,
    ) -> None:
        self._finder = finder
        self._deleter = deleter
        self._read_websites = read_websites
        self._policy = policy
        self._clock = clock

    def describe(
        self, website_id: WebsiteId | None = None, *, received_before_ms: int | None = None
    ) -> tuple[StoredRows, ...]:
        """Return the rows of one website, or of all, in the order of the directory.

        Websites that are not in the directory follow. With `received_before_ms`, expired rows that
        were received later are not counted. Raises `StoreUnavailable`, or `OperatorError` where the
        directory cannot be read.
        """
        retentions = {
            website.id: self._retention_of(website)
            for website in self._read_websites()
            if website_id is None or website.id == website_id
        }
        counts = {
            table.name: self._count(table, retentions, website_id, received_before_ms)
            for table in STORED_TABLES
        }
        sizes = {table.name: self._deleter.size(table) for table in STORED_TABLES}
        unknown = {name for found in counts.values() for name in found} - retentions.keys()
        return tuple(
            _stored_rows(
                name,
                table.name,
                counts[table.name].get(name, _Counts()),
                sizes[table.name],
                retentions.get(name, _KEPT_FOR_EVER),
            )
            for name in (*retentions, *sorted(unknown))
            for table in STORED_TABLES
        )

    def _retention_of(self, website: Website) -> _Retention:
        days = {
            table.name: self._policy.days_of(website.retention, table) for table in STORED_TABLES
        }
        return _Retention(days, self._policy.cutoffs(website.retention, self._clock.now_ms()))

    def _count(
        self,
        table: Table,
        retentions: Mapping[WebsiteId, _Retention],
        website_id: WebsiteId | None,
        received_before_ms: int | None,
    ) -> Mapping[WebsiteId, _Counts]:
        """Return the counts of the websites that have rows in a table."""
        cutoffs_ms = {
            name: cutoff_ms
            for name, retention in retentions.items()
            if (cutoff_ms := retention.cutoffs.of_table(table)) is not None
        }
        found = self._finder.select(
            describe_rows(table, cutoffs_ms, website_id, received_before_ms=received_before_ms)
        )
        return {WebsiteId(name): _Counts(*map(int, counts)) for name, *counts in found}


def _stored_rows(
    website_id: WebsiteId, table: str, counts: _Counts, size: TableSize, retention: _Retention
) -> StoredRows:
    return StoredRows(
        website_id=website_id,
        table=table,
        rows=counts.rows,
        expired=counts.expired,
        bytes=size.share_of(counts.rows + counts.expired),
        oldest_ms=counts.first_ms if counts.rows else None,
        newest_ms=counts.last_ms if counts.rows else None,
        retain_days=retention.days[table],
        cutoff_ms=retention.cutoffs.of_stored_table(table),
    )
