"""A select that reads a broken part fails, and the tables are reattached to repair it."""

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
from headrace.base.logs import get_logger
from headrace.formats.rollup_columns import ROLLUP_PROJECTION, rollup_from_events
from headrace.model.catalog import EVENTS
from headrace.ports.store import QueryLimits
from testing.chdb import LIMITS, FreshStore

ALL = "SELECT count(), uniqExact(id), max(event_name) FROM events"


def truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def empty(file: Path) -> None:
    os.truncate(file, 0)


def merged_part(store: FreshStore) -> Path:
    """Store two batches, merge them, and return the directory of the merged part."""
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
    """Runs selects that fail with the given errors in order."""

    def __init__(self) -> None:
        self.failures: list[Exception] = []
        self.statements: list[str] = []

    async def select(
        self, sql: str, parameters: EncodedParameters, limits: QueryLimits, query_id: str
    ) -> bytes:
        del parameters, limits, query_id
        self.statements.append(sql)
        if self.failures:
            raise self.failures.pop(0)
        return b"rows"


class FakeRollup:
    """A rollup that is whole until its rebuilding is requested."""

    def __init__(self) -> None:
        self.is_whole = True

    def request_rebuild(self) -> None:
        self.is_whole = False


class Harness:
    """A self-healing reader that counts its repairs."""

    def __init__(self, reopen_tables: Callable[[], None] | None = None) -> None:
        self.clock = FixedClock(0)
        self.runner = Selects()
        self.repairs = 0
        self._reopen_tables = reopen_tables or (lambda: None)
        self.rollup = FakeRollup()
        self.selects = SelfHealingReader(
            self.runner,
            rollup=self.rollup,
            reopen_tables=self._count_repair,
            run_exclusive=self._run_exclusive,
            clock=self.clock,
            log=get_logger(),
        )

    async def select(self, sql: str = "SELECT 1") -> bytes:
        return await self.selects.select(sql, EncodedParameters({}), LIMITS, "1")

    async def fail_selects(self, *failures: Exception) -> None:
        """Run concurrent selects that fail with the given errors."""
        self.runner.failures = list(failures)
        await asyncio.gather(*(self.select() for _ in failures), return_exceptions=True)
        await self.selects.finish()

    def _count_repair(self) -> None:
        self.repairs += 1
        self._reopen_tables()

    async def _run_exclusive(self, work: Callable[[], None]) -> None:
        await asyncio.sleep(0)
        work()


async def test_select_that_reads_a_broken_part_fails_and_the_next_succeeds() -> None:
    harness = Harness()
    harness.runner.failures = [BrokenPart("broken")]
    with pytest.raises(BrokenPart):
        await harness.select()
    assert await harness.select() == b"rows"
    await harness.selects.finish()
    assert harness.repairs == 1


async def test_concurrent_selects_reattach_tables_once() -> None:
    harness = Harness()
    await harness.fail_selects(*(BrokenPart("broken") for _ in range(5)))
    assert harness.repairs == 1


async def test_tables_are_reattached_again_after_the_cooldown() -> None:
    harness = Harness()
    for pause_s, repairs in ((0, 1), (29, 1), (1, 2), (30, 3)):
        harness.clock.advance(pause_s * 1_000)
        await harness.fail_selects(BrokenPart("broken"))
        assert harness.repairs == repairs


async def test_other_failures_do_not_reattach_tables() -> None:
    harness = Harness()
    await harness.fail_selects(StoreUnavailable("busy"), QueryTooLarge())
    assert harness.repairs == 0


async def test_failed_reattach_is_reported_and_retried() -> None:
    def fail() -> None:
        raise StoreUnavailable("the disk is full")

    harness = Harness(fail)
    with capture_logs() as lines:
        await harness.fail_selects(BrokenPart("broken"))
    harness.clock.advance(30_000)
    await harness.fail_selects(BrokenPart("broken"))
    assert [line["event"] for line in lines] == ["broken_part_met", "tables_not_opened"]
    assert harness.repairs == 2


ROLLUP_SELECT = f"SELECT count() FROM {ROLLUP_PROJECTION} AS visit"


async def test_rollup_that_cannot_be_read_is_computed_from_the_events_and_rebuilt() -> None:
    harness = Harness()
    harness.runner.failures = [BrokenPart("broken")]
    assert [await harness.select(ROLLUP_SELECT) for _ in range(2)] == [b"rows", b"rows"]
    over_events = rollup_from_events(ROLLUP_SELECT)
    assert harness.runner.statements == [ROLLUP_SELECT, over_events, over_events]
    assert (harness.rollup.is_whole, harness.repairs) == (False, 0)


async def test_part_whose_events_cannot_be_read_either_is_repaired_too() -> None:
    harness = Harness()
    harness.runner.failures = [BrokenPart("rollup"), BrokenPart("events")]
    with pytest.raises(BrokenPart, match="events"):
        await harness.select(ROLLUP_SELECT)
    await harness.selects.finish()
    assert harness.repairs == 1


async def test_whole_rollup_is_read() -> None:
    harness = Harness()
    await harness.select(ROLLUP_SELECT)
    assert harness.runner.statements == [ROLLUP_SELECT]
