"""The contract of every tenancy source: a snapshot without I/O that tracks the directory."""

import asyncio
import secrets
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
from structlog.testing import CapturedCall, CapturingLogger

from headrace.adapters.directory.connection import open_database
from headrace.adapters.directory.directory_cutoffs import DirectoryCutoffs
from headrace.adapters.directory.schema import migrate_schema
from headrace.adapters.directory.sql_directory import SqlDirectory
from headrace.adapters.directory.tenancy_source import PollingTenancySource
from headrace.adapters.directory.transactions import Author
from headrace.base.clock import MILLISECONDS_PER_DAY, FixedClock, SystemClock
from headrace.base.errors import DirectoryUnavailable, OperatorError
from headrace.base.logs import Logger
from headrace.model.data_retention import Cutoffs, RetentionChange, RetentionPolicy
from headrace.model.tenancy import Scope, TenancySnapshot, WebsiteId
from headrace.ports.directory import TenancySource
from testing.servers.shared_state import PostgreSQL

pytestmark = pytest.mark.asyncio

Location = str | Path

NEVER_S = 3600.0
TIMEOUT_S = 20.0


class WatchedDirectory(SqlDirectory):
    """A real directory that records its reads; a test can block reads or make them fail."""

    def __init__(self, location: Location) -> None:
        database = open_database(location)
        migrate_schema(database)
        super().__init__(database, Author("tests", SystemClock(), secrets.token_bytes))
        self.reads: list[str] = []
        self.entered = threading.Semaphore(0)
        self.open = threading.Event()
        self.open.set()
        self.fails = False
        self.error: Exception = OperatorError("the disk is gone")

    def revision(self) -> int:
        self.reads.append("revision")
        self.entered.release()
        self.open.wait(TIMEOUT_S)
        if self.fails:
            raise self.error
        return super().revision()

    def take_over(self, replica: SqlDirectory) -> None:
        """Read another database from now on."""
        self.close()
        self._database = replica._database

    def tenancy(self) -> TenancySnapshot:
        self.reads.append("tenancy")
        if self.fails:
            raise self.error
        return super().tenancy()


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    if request.param == "sqlite":
        return tmp_path / "directory.sqlite"
    server: PostgreSQL = request.getfixturevalue("postgresql")
    return server.new_database()


@pytest.fixture
def directory(location: Location) -> Iterator[WatchedDirectory]:
    watched = WatchedDirectory(location)
    yield watched
    watched.close()


@asynccontextmanager
async def following(
    directory: SqlDirectory,
    *,
    poll_interval_s: float = NEVER_S,
    refresh_timeout_s: float = TIMEOUT_S,
    max_staleness_s: float = NEVER_S,
    clock: FixedClock | None = None,
    log: CapturingLogger | None = None,
) -> AsyncGenerator[PollingTenancySource]:
    source = PollingTenancySource(
        directory,
        clock=clock or FixedClock(0),
        log=cast("Logger", log or CapturingLogger()),  # it takes any method, as loggers do
        max_staleness_s=max_staleness_s,
        poll_interval_s=poll_interval_s,
        refresh_timeout_s=refresh_timeout_s,
    )
    await source.start()
    try:
        yield source
    finally:
        await source.close()


def unstarted(directory: SqlDirectory) -> PollingTenancySource:
    log = cast("Logger", CapturingLogger())
    return PollingTenancySource(directory, clock=FixedClock(0), log=log, max_staleness_s=NEVER_S)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():  # noqa: ASYNC110 - the awaited change happens in another thread
            await asyncio.sleep(0.005)


async def entered(directory: WatchedDirectory) -> None:
    """Wait until a read has begun."""
    await asyncio.to_thread(directory.entered.acquire, timeout=TIMEOUT_S)


async def test_first_snapshot_is_available_after_start(directory: WatchedDirectory) -> None:
    directory.create_key(scopes=frozenset(Scope))
    directory.create_website(name="Blog")
    async with following(directory) as source:
        assert source.current() == SqlDirectory.tenancy(directory)
        assert directory.reads == ["tenancy"]


async def test_start_fails_with_the_reason_when_the_directory_cannot_be_read(
    directory: WatchedDirectory,
) -> None:
    directory.fails = True
    with pytest.raises(OperatorError, match="the disk is gone"):
        async with following(directory):
            pass


async def test_source_has_no_snapshot_before_start(directory: WatchedDirectory) -> None:
    source = unstarted(directory)
    with pytest.raises(RuntimeError, match="was not started"):
        source.current()
    await source.close()


async def test_changes_by_another_process_are_polled(
    directory: WatchedDirectory, location: Location
) -> None:
    other = WatchedDirectory(location)
    async with following(directory, poll_interval_s=0.01) as source:
        key, _ = other.create_key(scopes=frozenset(Scope))
        await until(lambda: key.secret_hash in source.current().keys)
        other.revoke_key(key.id)
        await until(lambda: key.secret_hash not in source.current().keys)
        other.delete_organization(key.organization_id)
        await until(lambda: source.current().revision == other.revision())
    other.close()


async def test_only_the_revision_is_read_while_nothing_changes(
    directory: WatchedDirectory,
) -> None:
    async with following(directory, poll_interval_s=0.001) as source:
        first = source.current()
        await until(lambda: directory.reads.count("revision") > 5)
        assert source.current() is first
        assert directory.reads.count("tenancy") == 1


async def test_refreshed_snapshot_has_every_change_before_the_refresh(
    directory: WatchedDirectory, location: Location
) -> None:
    other = WatchedDirectory(location)
    async with following(directory) as source:
        for count in range(1, 4):
            other.create_website(name="Blog")
            assert len(source.current().websites) == count - 1
            assert len((await source.refreshed()).websites) == count
            assert len(source.current().websites) == count
    other.close()


async def test_latest_snapshot_has_the_changes_of_this_machine_and_reads_only_after_one(
    tmp_path: Path,
) -> None:
    directory, other = (WatchedDirectory(tmp_path / "directory.sqlite") for _ in range(2))
    async with following(directory) as source:
        for count in range(1, 4):
            other.create_website(name="Blog")
            for _ in range(3):
                assert len((await source.latest()).websites) == count
        assert directory.reads == ["tenancy", *("revision", "tenancy") * 3]
    other.close()
    directory.close()


async def test_latest_snapshot_is_the_last_one_while_the_directory_cannot_be_read(
    tmp_path: Path,
) -> None:
    directory, other = (WatchedDirectory(tmp_path / "directory.sqlite") for _ in range(2))
    async with following(directory) as source:
        other.create_website(name="Blog")
        directory.fails = True
        assert (await source.latest()).websites == {}
        directory.fails = False
        assert len((await source.latest()).websites) == 1
    other.close()
    directory.close()


async def test_latest_snapshot_of_a_database_server_is_the_polled_one(
    postgresql: PostgreSQL,
) -> None:
    directory = WatchedDirectory(postgresql.new_database())
    async with following(directory) as source:
        directory.create_website(name="Blog")
        assert await source.latest() is source.current()
        assert directory.reads == ["tenancy"]
    directory.close()


async def test_concurrent_callers_share_one_read(directory: WatchedDirectory) -> None:
    async with following(directory) as source:
        website = directory.create_website(name="Blog")
        snapshots = await asyncio.gather(*(source.refreshed() for _ in range(50)))
        assert {website.id in snapshot.websites for snapshot in snapshots} == {True}
        assert directory.reads == ["tenancy", "revision", "tenancy"]


async def test_callers_during_a_read_share_the_following_one(directory: WatchedDirectory) -> None:
    async with following(directory) as source:
        directory.open.clear()
        first = asyncio.create_task(source.refreshed())
        await entered(directory)
        later = [asyncio.create_task(source.refreshed()) for _ in range(50)]
        await asyncio.sleep(0)
        directory.open.set()
        await asyncio.gather(first, *later)
        assert directory.reads == ["tenancy", "revision", "revision"]


async def test_cancelled_caller_does_not_cancel_the_shared_read(
    directory: WatchedDirectory,
) -> None:
    async with following(directory) as source:
        website = directory.create_website(name="Blog")
        directory.open.clear()
        cancelled_caller = asyncio.create_task(source.refreshed())
        other_caller = asyncio.create_task(source.refreshed())
        await entered(directory)
        cancelled_caller.cancel()
        directory.open.set()
        assert website.id in (await other_caller).websites
        assert directory.reads == ["tenancy", "revision", "tenancy"]


async def test_old_snapshot_stays_while_the_directory_is_unavailable(
    directory: WatchedDirectory,
) -> None:
    log = CapturingLogger()
    async with following(directory, log=log) as source:
        before = source.current()
        website = directory.create_website(name="Blog")
        directory.fails = True
        for _ in range(3):
            with pytest.raises(DirectoryUnavailable, match="cannot be looked up now"):
                await source.refreshed()
            assert source.current() is before
        directory.fails = False
        assert website.id in (await source.refreshed()).websites
    assert log.calls == [
        CapturedCall("error", ("directory_unreadable",), {"reason": "the disk is gone"}),
        CapturedCall("info", ("directory_readable_again",), {}),
    ]


async def test_a_directory_that_was_away_may_have_other_contents_at_the_same_revision(
    directory: WatchedDirectory, tmp_path: Path
) -> None:
    """A replica that took over lacks the last changes, and had others since."""
    replica = WatchedDirectory(tmp_path / "replica.sqlite")
    directory.create_website(name="Lost")
    website = replica.create_website(name="Blog")
    async with following(directory) as source:
        directory.fails = True
        with pytest.raises(DirectoryUnavailable):
            await source.refreshed()
        directory.fails = False
        directory.take_over(replica)
        assert list((await source.refreshed()).websites) == [website.id]
    replica.close()


async def test_a_directory_with_an_unexpected_error_is_unavailable(tmp_path: Path) -> None:
    directory, log = WatchedDirectory(tmp_path / "directory.sqlite"), CapturingLogger()
    async with following(directory, log=log) as source:
        directory.fails, directory.error = True, ValueError("no date")
        with pytest.raises(DirectoryUnavailable, match="cannot be looked up now"):
            await source.refreshed()
        directory.fails = False
        await source.refreshed()
    cause = {"reason": "ValueError", "exc_info": directory.error}
    assert log.calls == [
        CapturedCall("error", ("directory_unreadable",), cause),
        CapturedCall("info", ("directory_readable_again",), {}),
    ]
    directory.close()


async def test_snapshot_is_stale_after_the_configured_time_until_the_next_read(
    directory: WatchedDirectory,
) -> None:
    clock, log = FixedClock(0), CapturingLogger()
    async with following(
        directory, poll_interval_s=0.01, max_staleness_s=60, clock=clock, log=log
    ) as source:
        before = source.current()
        directory.fails = True
        await until(lambda: bool(log.calls))
        clock.advance(60_000)
        reads = len(directory.reads)
        await until(lambda: len(directory.reads) > reads + 2)
        assert source.current() is before
        clock.advance(1)
        await until(lambda: is_stale(source))
        directory.fails = False
        await until(lambda: not is_stale(source))
        assert source.current() is before
    assert [call.args for call in log.calls] == [
        ("directory_unreadable",),
        ("directory_stale",),
        ("directory_readable_again",),
    ]


def is_stale(source: TenancySource) -> bool:
    try:
        source.current()
    except DirectoryUnavailable:
        return True
    return False


async def test_refresh_times_out_while_the_read_continues(
    directory: WatchedDirectory,
) -> None:
    async with following(directory, refresh_timeout_s=0.01) as source:
        before = source.current()
        website = directory.create_website(name="Blog")
        directory.open.clear()
        with pytest.raises(DirectoryUnavailable):
            await source.refreshed()
        assert source.current() is before
        directory.open.set()
        await until(lambda: website.id in source.current().websites)


async def test_closing_waits_for_the_running_read_and_is_idempotent(
    directory: WatchedDirectory,
) -> None:
    source = unstarted(directory)
    await source.start()
    directory.open.clear()
    client = asyncio.create_task(source.refreshed())
    await entered(directory)
    closing = asyncio.create_task(source.close())
    await asyncio.sleep(0.01)
    assert not closing.done()
    directory.open.set()
    await closing
    await source.close()
    assert (await client) == source.current()


async def test_cutoffs_follow_the_retention_of_a_website_and_the_clock(
    directory: WatchedDirectory,
) -> None:
    own = directory.create_website(name="own", retention=RetentionChange(days=2, errors=0))
    default = directory.create_website(name="default")
    clock = FixedClock(5 * MILLISECONDS_PER_DAY + 1)
    async with following(directory, clock=clock) as source:
        cutoffs = DirectoryCutoffs(source, policy=RetentionPolicy(4), clock=clock)
        day_3, day_1 = 3 * MILLISECONDS_PER_DAY, MILLISECONDS_PER_DAY
        assert await cutoffs.cutoffs(own.id) == Cutoffs(events=day_3, performance=day_3)
        by_default = Cutoffs(events=day_1, errors=day_1, performance=day_1)
        assert await cutoffs.cutoffs(default.id) == by_default
        assert await cutoffs.cutoffs(WebsiteId("unknown")) == by_default
