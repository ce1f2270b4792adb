"""Erasures in the target of a migration end where its store deletes nothing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from headrace.adapters.erasures.file_erasures import FileErasures
from headrace.base.clock import FixedClock
from headrace.base.errors import StoreUnavailable
from headrace.erasure.reapplication import Reapplication
from headrace.erasure.subjects import subject_of
from headrace.model.catalog import EVENTS, STORED_TABLES, Table
from headrace.model.erasure import WHOLE_WEBSITE
from headrace.model.plan import CompiledQuery
from headrace.model.tenancy import WebsiteId
from headrace.ports.rows.deletion import DeletionState, TableSize
from headrace.ports.rows.erasure import Erasure
from headrace.ports.store import CHDB_DIALECT

COMPLETE = DeletionState(parts_left=0, is_failing=False, is_waiting=False, replaced_parts=0)
GOING_ON = replace(COMPLETE, parts_left=1)
WAITING = replace(GOING_ON, is_waiting=True)


class TwoRows:
    """A `RowFinder` that counts two rows in each table."""

    def select(self, query: CompiledQuery) -> Sequence[Sequence[Any]]:
        del query
        return [[2]]

    def replaced_parts(self) -> frozenset[str]:
        return frozenset()

    def detached_parts(self) -> int | None:
        return 0

    def close(self) -> None:
        pass


class SlowDeleter:
    """A `RowDeleter` whose deletions of events are in these states, the last one for ever."""

    def __init__(self, *states: DeletionState, loses: bool = False) -> None:
        self._states = list(states)
        self._loses = loses
        self._begun = 0

    def begin(self, table: Table, condition: str) -> None:
        del table, condition
        self._begun += 1

    def state(self, table: Table) -> DeletionState:
        if table is not EVENTS:
            return COMPLETE
        return self._states.pop(0) if len(self._states) > 1 else self._states[0]

    def lost_deletions(self) -> int:
        return int(self._loses and self._begun == len(STORED_TABLES))

    def size(self, table: Table) -> TableSize:
        raise NotImplementedError

    def close(self) -> None:
        pass


def run(path: Path, deleter: SlowDeleter) -> int:
    """Erase the rows of a website again; each look at the deletions comes ten seconds later."""
    clock, erasures = FixedClock(0), FileErasures(path)
    website_id = WebsiteId("web_1")
    subject = subject_of(erasures.key(), website_id, WHOLE_WEBSITE)
    erasures.put(
        Erasure(
            id="era_1",
            website_id=website_id,
            kind=WHOLE_WEBSITE.kind,
            subjects=(subject,),
            by="cli ann",
            requested_ms=0,
        )
    )
    again = Reapplication(
        erasures,
        finder=TwoRows(),
        deleter=deleter,
        dialect=CHDB_DIALECT,
        clock=clock,
        sleep=lambda _seconds: clock.advance(10_000),
    )
    return again.run()


def test_rows_are_erased_when_no_part_has_them(tmp_path: Path) -> None:
    deleter = SlowDeleter(*[GOING_ON] * 20, *[WAITING] * 5, COMPLETE)
    assert run(tmp_path, deleter) == 2 * len(STORED_TABLES)


@pytest.mark.parametrize(
    ("deleter", "reason"),
    [
        (SlowDeleter(WAITING), "the deletion waits in the store, as on a full disk"),
        (SlowDeleter(replace(GOING_ON, is_failing=True)), "the store cannot delete rows now"),
        (SlowDeleter(GOING_ON, loses=True), "a deletion was lost; the next call begins it again"),
    ],
    ids=["waits", "fails", "is lost"],
)
def test_a_deletion_that_does_not_go_on_is_reported(
    tmp_path: Path, deleter: SlowDeleter, reason: str
) -> None:
    with pytest.raises(StoreUnavailable, match=reason):
        run(tmp_path, deleter)
