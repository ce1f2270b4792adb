"""Parts of the store that cannot be read any more, met by a select."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from headrace.adapters.store.chdb.self_healing_reader import SelfHealingReader
from headrace.adapters.store.dialect.errors import BrokenPart
from headrace.adapters.store.dialect.parameters import EncodedParameters
from headrace.base.clock import FixedClock
from headrace.base.errors import QueryTooLarge, StoreUnavailable
from headrace.base.telemetry import get_logger
from headrace.model.catalog import EVENTS
from headrace.ports.store import QueryLimits
from testing.chdb import LIMITS, FreshStore

ALL = "SELECT count(), uniqExact(id), max(event_name) FROM events"


def truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def empty(file: Path) -> None:
    os.truncate(file, 0)


def merged_part(store: FreshStore) -> Path:
    """Store two batches, have them merged, and return the part's directory."""
    for batch in ("first", "second"):
        rows = [{"website_id": "web_a", "event_name": f"{batch} {n}"} for n in range(2_000)]
        store.insert(EVENTS, rows)
    store.engine.execute(f"OPTIMIZE TABLE {store.database}.events FINAL")
    path = (
        "SELECT path FROM system.parts WHERE active AND table = 'events' AND database = {d:String}"
    )
    ((merged,),) = store.rows(path, {"d": store.database})
    return Path(merged)


@pytest.mark.parametrize("damage", [truncate, empty, Path.unlink])
def test_broken_merge_is_undone_when_tables_are_reattached(
    chdb_store: FreshStore, damage: Callable[[Path], None]
) -> None:
    damage(merged_part(chdb_store) / "data.bin")
    with pytest.raises(BrokenPart, match="cannot read a part of the store"):
        chdb_store.rows(ALL)
    chdb_store.writer.reopen()
    assert chdb_store.rows(ALL) == [[4_000, 4_000, "second 999"]]


def test_corrupted_part_is_not_reported_as_a_query_error(chdb_store: FreshStore) -> None:
    file = merged_part(chdb_store) / "data.bin"
    file.write_bytes(os.urandom(file.stat().st_size))
    with pytest.raises(StoreUnavailable):
        chdb_store.rows(ALL)


class Selects:
    """Runs selects that meet what they are told to."""

    def __init__(self) -> None:
        self.meets: list[Exception] = []

    async def select(
        self, sql: str, parameters: EncodedParameters, limits: QueryLimits, query_id: str
    ) -> bytes:
        del sql, parameters, limits, query_id
        if self.meets:
            raise self.meets.pop(0)
        return b"rows"


class Harness:
    """Selects that mend, and how often they did."""

    def __init__(self, reopen_tables: Callable[[], None] | None = None) -> None:
        self.clock = FixedClock(0)
        self.runner = Selects()
        self.mended = 0
        self._mend = reopen_tables or (lambda: None)
        self.selects = SelfHealingReader(
            self.runner,
            reopen_tables=self._count,
            run_exclusive=self._between_loads,
            clock=self.clock,
            log=get_logger(),
        )

    async def select(self) -> bytes:
        return await self.selects.select("SELECT 1", EncodedParameters({}), LIMITS, "1")

    async def meet(self, *failures: Exception) -> None:
        """Run selects at once that meet these."""
        self.runner.meets = list(failures)
        await asyncio.gather(*(self.select() for _ in failures), return_exceptions=True)
        await self.selects.finish()

    def _count(self) -> None:
        self.mended += 1
        self._mend()

    async def _between_loads(self, work: Callable[[], None]) -> None:
        await asyncio.sleep(0)
        work()


async def test_select_that_reads_a_broken_part_fails_and_the_next_succeeds() -> None:
    harness = Harness()
    harness.runner.meets = [BrokenPart("broken")]
    with pytest.raises(BrokenPart):
        await harness.select()
    assert await harness.select() == b"rows"
    await harness.selects.finish()
    assert harness.mended == 1


async def test_concurrent_selects_reattach_tables_once() -> None:
    harness = Harness()
    await harness.meet(*(BrokenPart("broken") for _ in range(5)))
    assert harness.mended == 1


async def test_tables_are_reattached_again_after_the_cooldown() -> None:
    harness = Harness()
    for pause_s, mended in ((0, 1), (29, 1), (1, 2), (30, 3)):
        harness.clock.advance(pause_s * 1_000)
        await harness.meet(BrokenPart("broken"))
        assert harness.mended == mended


async def test_other_failures_do_not_reattach_tables() -> None:
    harness = Harness()
    await harness.meet(StoreUnavailable("busy"), QueryTooLarge())
    assert harness.mended == 0


async def test_failed_reattach_is_reported_and_retried() -> None:
    def fail() -> None:
        raise StoreUnavailable("the disk is full")

    harness = Harness(fail)
    with capture_logs() as lines:
        await harness.meet(BrokenPart("broken"))
    harness.clock.advance(30_000)
    await harness.meet(BrokenPart("broken"))
    assert [line["event"] for line in lines] == ["broken_part_met", "tables_not_opened"]
    assert harness.mended == 2
