"""Parts of the store that cannot be read any more, met by a select."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from headrace.adapters.store.chdb.self_healing_reader import MendingSelects
from headrace.adapters.store.dialect.errors import BrokenPart
from headrace.adapters.store.dialect.parameters import ParameterTexts
from headrace.base.clock import FixedClock
from headrace.base.errors import QueryTooLarge, StoreUnavailable
from headrace.base.telemetry import get_logger
from headrace.model.catalog import EVENTS
from headrace.ports.store import QueryGuards
from tests.chdb_fixture import GUARDS, FreshStore

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
def test_merge_that_broke_is_undone_when_the_tables_are_opened_anew(
    chdb_store: FreshStore, damage: Callable[[Path], None]
) -> None:
    damage(merged_part(chdb_store) / "data.bin")
    with pytest.raises(BrokenPart, match="a part of the store cannot be read"):
        chdb_store.rows(ALL)
    chdb_store.writer.reopen()
    assert chdb_store.rows(ALL) == [[4_000, 4_000, "second 999"]]


def test_part_whose_bytes_were_altered_is_no_fault_of_the_query(chdb_store: FreshStore) -> None:
    file = merged_part(chdb_store) / "data.bin"
    file.write_bytes(os.urandom(file.stat().st_size))
    with pytest.raises(StoreUnavailable):
        chdb_store.rows(ALL)


class Selects:
    """Runs selects that meet what they are told to."""

    def __init__(self) -> None:
        self.meets: list[Exception] = []

    async def select(
        self, sql: str, parameters: ParameterTexts, guards: QueryGuards, query_id: str
    ) -> bytes:
        del sql, parameters, guards, query_id
        if self.meets:
            raise self.meets.pop(0)
        return b"rows"


class Case:
    """Selects that mend, and how often they did."""

    def __init__(self, mend: Callable[[], None] | None = None) -> None:
        self.clock = FixedClock(0)
        self.runner = Selects()
        self.mended = 0
        self._mend = mend or (lambda: None)
        self.selects = MendingSelects(
            self.runner,
            mend=self._count,
            between_loads=self._between_loads,
            clock=self.clock,
            log=get_logger(),
        )

    async def select(self) -> bytes:
        return await self.selects.select("SELECT 1", ParameterTexts({}), GUARDS, "1")

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


async def test_select_that_meets_a_broken_part_fails_and_the_next_succeeds() -> None:
    case = Case()
    case.runner.meets = [BrokenPart("broken")]
    with pytest.raises(BrokenPart):
        await case.select()
    assert await case.select() == b"rows"
    await case.selects.finish()
    assert case.mended == 1


async def test_many_selects_at_once_have_the_tables_opened_once() -> None:
    case = Case()
    await case.meet(*(BrokenPart("broken") for _ in range(5)))
    assert case.mended == 1


async def test_tables_are_opened_again_after_a_pause() -> None:
    case = Case()
    for pause_s, mended in ((0, 1), (29, 1), (1, 2), (30, 3)):
        case.clock.advance(pause_s * 1_000)
        await case.meet(BrokenPart("broken"))
        assert case.mended == mended


async def test_other_failures_have_nothing_opened() -> None:
    case = Case()
    await case.meet(StoreUnavailable("busy"), QueryTooLarge())
    assert case.mended == 0


async def test_tables_that_cannot_be_opened_are_reported_and_tried_again() -> None:
    def fail() -> None:
        raise StoreUnavailable("the disk is full")

    case = Case(fail)
    with capture_logs() as lines:
        await case.meet(BrokenPart("broken"))
    case.clock.advance(30_000)
    await case.meet(BrokenPart("broken"))
    assert [line["event"] for line in lines] == ["broken_part_met", "tables_not_opened"]
    assert case.mended == 2
