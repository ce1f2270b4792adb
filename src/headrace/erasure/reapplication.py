"""Erases again, in a store to which rows are copied, what was erased elsewhere meanwhile."""

import time
from collections.abc import Callable, Collection, Sequence
from typing import Final

from msgspec.structs import replace

from headrace.erasure.planning import ErasurePlanner
from headrace.erasure.statements import deletions
from headrace.model.catalog import STORED_TABLES
from headrace.ports.quarantine import QuarantineEntry
from headrace.ports.rows.deletion import RowDeleter
from headrace.ports.rows.erasure import Erasure, ErasureStore, RowFinder
from headrace.ports.store import Dialect

_POLL_S: Final = 0.1
_TABLES: Final = {table.name: table for table in STORED_TABLES}


class Reapplication:
    """Blocking. Raises `StoreUnavailable`. Nothing else may write to the store.

    `finder` and `deleter` are those of the store, which may have rows from before the erasures.
    """

    def __init__(
        self,
        erasures: ErasureStore,
        *,
        finder: RowFinder,
        deleter: RowDeleter,
        dialect: Dialect,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._erasures = erasures
        self._planner = ErasurePlanner(finder=finder, entries=_NoEntries(), dialect=dialect)
        self._deleter = deleter
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
        for rows in plan.tables:
            for condition in deletions(erasure.website_id, rows):
                self._deleter.begin(_TABLES[rows.table], condition)
        while any(self._deleter.state(table).parts_left for table in STORED_TABLES):
            self._sleep(_POLL_S)
        return sum(rows.rows for rows in plan.tables)


class _NoEntries:
    """An `ErasableEntries` without entries: a store has no quarantine."""

    def find(self, matches: Callable[[QuarantineEntry | bytes], bool]) -> Sequence[str]:
        """Return nothing."""
        del matches
        return ()

    def remove(self, ids: Collection[str]) -> None:
        """Do nothing."""
        del ids
