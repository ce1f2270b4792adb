"""When deletions that do not go on are reported: the store itself reports no error."""

import pytest
from msgspec.structs import replace

from headrace.base.clock import FixedClock
from headrace.base.errors import StoreUnavailable
from headrace.ports.rows.deletion import DeletionState, DeletionWatch

WAITING = DeletionState(parts_left=2, is_failing=False, is_waiting=True, replaced_parts=0)
GOING_ON = replace(WAITING, is_waiting=False)
ONE_LESS = replace(WAITING, parts_left=1)
COMPLETE = replace(GOING_ON, parts_left=0)
FAILING = replace(GOING_ON, is_failing=True)


def watch_of(clock: FixedClock) -> DeletionWatch:
    return DeletionWatch(clock, patience_s=3)


def test_a_deletion_that_waits_for_longer_than_the_patience_is_reported_until_it_goes_on() -> None:
    clock = FixedClock(0)
    watch = watch_of(clock)
    watch.check({"events": WAITING})
    clock.advance(3_000)
    watch.check({"events": WAITING})
    clock.advance(1)
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="the deletion waits in the store"):
            watch.check({"events": WAITING})
    for state in (GOING_ON, WAITING, ONE_LESS):
        watch.check({"events": state})


def test_the_deletions_of_each_table_are_watched_by_themselves() -> None:
    clock = FixedClock(0)
    watch = watch_of(clock)
    watch.check({"events": WAITING, "errors": GOING_ON})
    clock.advance(3_001)
    watch.check({"errors": WAITING})
    with pytest.raises(StoreUnavailable, match="waits"):
        watch.check({"events": WAITING})
    watch.check({"events": COMPLETE})


def test_a_deletion_that_fails_is_reported_at_once() -> None:
    with pytest.raises(StoreUnavailable, match="the store cannot delete rows now"):
        watch_of(FixedClock(0)).check({"events": FAILING})
