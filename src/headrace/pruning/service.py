"""The steps of pruning: find the expired rows, begin to delete them, see whether they are gone."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from headrace.base.clock import Clock
from headrace.base.errors import StoreUnavailable
from headrace.model.catalog import STORED_TABLES
from headrace.model.stored_rows import ExpiredRows
from headrace.model.tenancy import WebsiteId
from headrace.ports.rows.deletion import DeletionWatch, RowDeleter
from headrace.pruning.description import StorageDescriber
from headrace.pruning.statements import deletions

DELETION_PATIENCE_S: Final = 60.0
"""Deletions may wait so long before a prune ends without them."""


class PruneSteps:
    """Blocking, used from one thread at a time.

    All methods raise `StoreUnavailable`. Rows that were received within `min_age_ms` are not
    deleted: another machine may be about to store their batch once more.
    """

    def __init__(
        self,
        describer: StorageDescriber,
        deleter: RowDeleter,
        *,
        clock: Clock,
        min_age_ms: int = 0,
    ) -> None:
        self._describer = describer
        self._deleter = deleter
        self._clock = clock
        self._min_age_ms = min_age_ms
        self._watch = DeletionWatch(clock, patience_s=DELETION_PATIENCE_S)

    def find_expired(self) -> tuple[ExpiredRows, ...]:
        """Return the expired rows of the websites of the directory that a prune deletes now.

        Also raises `OperatorError` where the directory cannot be read.
        """
        return tuple(
            ExpiredRows(
                website_id=stored.website_id,
                table=stored.table,
                rows=stored.expired,
                bytes=stored.bytes * stored.expired // (stored.rows + stored.expired),
                cutoff_ms=stored.cutoff_ms,
            )
            for stored in self._describer.describe(received_before_ms=self._received_before_ms())
            if stored.expired and stored.cutoff_ms is not None
        )

    def begin(self, expired: Sequence[ExpiredRows]) -> int:
        """Begin to delete rows. No batch may be pending; see `RowDeleter.begin`.

        Returns how many deletions were lost before. `is_deleting` then tells nothing of what
        waited before.
        """
        lost_before = self._deleter.lost_deletions()
        self._watch = DeletionWatch(self._clock, patience_s=DELETION_PATIENCE_S)
        cutoffs_ms: defaultdict[str, dict[WebsiteId, int]] = defaultdict(dict)
        for rows in expired:
            cutoffs_ms[rows.table][rows.website_id] = rows.cutoff_ms
        received_before_ms = self._received_before_ms()
        for table in STORED_TABLES:
            for condition in deletions(
                cutoffs_ms[table.name], received_before_ms=received_before_ms
            ):
                self._deleter.begin(table, condition)
        return lost_before

    def is_deleting(self, lost_before: int | None = None) -> bool:
        """Return whether rows that are being deleted may still be in parts that are read.

        Also raises `StoreUnavailable` while the store deletes nothing, which it keeps retrying, and
        where it has lost a deletion since a prune, whose `begin` returned `lost_before`: the next
        prune deletes the rows.
        """
        states = {table.name: self._deleter.state(table) for table in STORED_TABLES}
        if lost_before not in (None, self._deleter.lost_deletions()):
            raise StoreUnavailable("a deletion was lost; the next prune deletes its rows")
        self._watch.check(states)
        return any(state.parts_left for state in states.values())

    def _received_before_ms(self) -> int | None:
        return self._clock.now_ms() - self._min_age_ms if self._min_age_ms else None
