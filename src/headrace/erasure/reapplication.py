"""Erases again, in a store to which rows are copied, what was erased elsewhere meanwhile."""

import time
from collections.abc import Callable, Collection, Sequence
from typing import Final

from msgspec.structs import replace

from headrace.base.clock import Clock
from headrace.erasure.planning import ErasurePlanner
from headrace.erasure.statements import deletions
from headrace.model.catalog import STORED_TABLES
from headrace.ports.quarantine import QuarantineEntry
from headrace.ports.rows.deletion import DeletionLost, DeletionWatch, RowDeleter
from headrace.ports.rows.erasure import Erasure, ErasureStore, RowFinder
from headrace.ports.store import Dialect

_POLL_S: Final = 0.1
_PATIENCE_S: Final = 60.0
"""Deletions may wait so long, as in a prune."""

_TABLES: Final = {table.name: table for table in STORED_TABLES}


class Reapplication:
    """Blocking. Nothing else may write to the store.

    Raises `StoreUnavailable`, also where the store deletes nothing: then call it again.

    `finder` and `deleter` are those of the store, which may have rows from before the erasures.
    """

    def __init__(
        self,
        erasures: ErasureStore,
        *,
        finder: RowFinder,
        deleter: RowDeleter,
        dialect: Dialect,
        clock: Clock,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._erasures = erasures
        self._planner = ErasurePlanner(finder=finder, entries=_NoEntries(), dialect=dialect)
        self._deleter = deleter
        self._watch = DeletionWatch(clock, patience_s=_PATIENCE_S)
        self._sleep = sleep

    def run(self) -> int:
        """Erase all that was erased once; return the rows, when no part that is read has them.

        An erasure that had rows is pending again: files of the store may have them for a while.
        """
        return sum(self._erase(erasure) for erasure in self._erasures.all())

    def _erase(self, erasure: Erasure) -> int:
        selectors = self._planner.resolve(erasure, self._erasures.key(), lambda: ())
        plan = self._planner.plan(
            erasure.website_id, selectors, {}, received_until_ms=erasure.requested_ms
        )
        if not plan.tables:
            return 0
        self._erasures.put(replace(erasure, done_ms=0))
        lost_before = self._deleter.lost_deletions()
        for rows in plan.tables:
            for condition in deletions(erasure.website_id, rows):
                self._deleter.begin(_TABLES[rows.table], condition)
        while self._is_deleting(lost_before):
            self._sleep(_POLL_S)
        return sum(rows.rows for rows in plan.tables)

    def _is_deleting(self, lost_before: int) -> bool:
        states = {table.name: self._deleter.state(table) for table in STORED_TABLES}
        if self._deleter.lost_deletions() != lost_before:
            raise DeletionLost("a deletion was lost; the next call begins it again")
        self._watch.check(states)
        return any(state.parts_left for state in states.values())


class _NoEntries:
    """An `ErasableEntries` without entries: a store has no quarantine."""

    def find(self, matches: Callable[[QuarantineEntry | bytes], bool]) -> Sequence[str]:
        """Return nothing."""
        del matches
        return ()

    def remove(self, ids: Collection[str]) -> None:
        """Do nothing."""
        del ids
