"""What pruning finds and deletes, and what is described as stored, over each store."""

import time
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from headrace.adapters.store.chdb.row_deletion import ChdbRowDeleter
from headrace.adapters.store.chdb.row_finder import ChdbRowFinder
from headrace.adapters.store.clickhouse.row_finder import ClickHouseRowFinder
from headrace.base.clock import MILLISECONDS_PER_DAY, FixedClock
from headrace.base.errors import StoreUnavailable
from headrace.model.catalog import ERRORS, EVENTS, Table
from headrace.model.data_retention import DataRetention, RetentionPolicy
from headrace.model.stored_rows import ExpiredRows, StoredRows
from headrace.model.tenancy import Website, WebsiteId
from headrace.ports.rows.deletion import DeletionState, RowDeleter
from headrace.ports.rows.erasure import RowFinder
from headrace.pruning.description import StorageDescriber
from headrace.pruning.service import PruneSteps
from testing.chdb import FreshStore, cut_off_newest_mutation
from testing.servers.clickhouse import ClickHouseTables
from testing.tables import Tables
from testing.tenants import website
from tests.contract.store.test_row_deletion import deleter_of

TODAY = 20_000
NOON_MS = TODAY * MILLISECONDS_PER_DAY + MILLISECONDS_PER_DAY // 2
DEADLINE_S = 120.0
SHOP, BLOG, NEWS, GONE = map(WebsiteId, ("shop", "blog", "it's \\ n\u00e9ws", "gone"))


def midnight_ms(days_ago: int) -> int:
    return (TODAY - days_ago) * MILLISECONDS_PER_DAY


def finder_of(tables: Tables) -> RowFinder:
    if isinstance(tables, FreshStore):
        return ChdbRowFinder(tables.engine, database=tables.database)
    assert isinstance(tables, ClickHouseTables)
    return ClickHouseRowFinder(tables.address)


def keeping(name: WebsiteId, **days: int) -> Website:
    made = website(name)
    return Website(
        id=name,
        name=made.name,
        domain=made.domain,
        organization_id=made.organization_id,
        created_ms=made.created_ms,
        retention=DataRetention(**days),
    )


class Harness:
    """Pruning over the tables of a test; two websites expire rows, one is kept, one is unknown."""

    def __init__(self, tables: Tables, *, min_age_ms: int = 0) -> None:
        self.tables = tables
        self.deleter: RowDeleter = deleter_of(tables)
        self.finder = finder_of(tables)
        websites = (
            keeping(SHOP),
            keeping(BLOG, days=2, errors=0),
            keeping(NEWS, days=30),
        )
        clock = self.clock = FixedClock(NOON_MS)
        self.describer = StorageDescriber(
            finder=self.finder,
            deleter=self.deleter,
            read_websites=lambda: websites,
            policy=RetentionPolicy(5),
            clock=clock,
        )
        self.steps = PruneSteps(self.describer, self.deleter, clock=clock, min_age_ms=min_age_ms)

    def insert(self) -> None:
        for table in (EVENTS, ERRORS):
            self.tables.insert(
                table,
                [
                    {"id": _id(received_ms=time_ms), "website_id": name, "time": time_ms}
                    for name in (SHOP, BLOG, NEWS, GONE)
                    for days in (1, 2, 5, 6)
                    for time_ms in (midnight_ms(days) - 1, midnight_ms(days))
                ],
            )

    def prune(self) -> None:
        lost_before = self.steps.begin(self.steps.find_expired())
        deadline = time.monotonic() + DEADLINE_S
        while self.steps.is_deleting(lost_before):
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def rows(self, table: str) -> dict[str, int]:
        counted = self.tables.rows(f"SELECT website_id, count() FROM {table} GROUP BY website_id")
        return {name: int(rows) for name, rows in counted}

    def close(self) -> None:
        self.deleter.close()
        self.finder.close()


class StoppedDeleter(ChdbRowDeleter):
    """Reports deletions that do not go on, as on a full disk."""

    def state(self, table: Table) -> DeletionState:
        state = super().state(table)
        return replace(state, parts_left=1, is_waiting=True)


def test_a_prune_ends_where_the_store_does_not_go_on_for_a_minute(chdb_store: FreshStore) -> None:
    harness = Harness(chdb_store)
    harness.deleter = StoppedDeleter(chdb_store.engine, database=chdb_store.database)
    steps = PruneSteps(harness.describer, harness.deleter, clock=harness.clock)
    assert steps.is_deleting()
    harness.clock.advance(60_000)
    assert steps.is_deleting()
    harness.clock.advance(1)
    with pytest.raises(StoreUnavailable, match="the deletion waits in the store"):
        steps.is_deleting()
    steps.begin(())
    assert steps.is_deleting()  # another prune has the same patience
    harness.close()


class LossyDeleter(ChdbRowDeleter):
    """May have lost deletions."""

    lost = 0

    def lost_deletions(self) -> int:
        return self.lost


def test_a_prune_ends_with_a_deletion_that_was_lost_since_it_began(chdb_store: FreshStore) -> None:
    harness = Harness(chdb_store)
    deleter = LossyDeleter(chdb_store.engine, database=chdb_store.database)
    steps = PruneSteps(harness.describer, deleter, clock=harness.clock)
    deleter.lost = 1  # before: what it was to delete is found again
    lost_before = steps.begin(())
    assert not steps.is_deleting(lost_before)
    deleter.lost = 2
    for _ in range(2):  # also where another caller has noticed it
        with pytest.raises(StoreUnavailable, match="a deletion was lost"):
            steps.is_deleting(lost_before)
    deleter.close()
    harness.close()


def test_a_prune_that_has_not_begun_has_lost_no_deletion(chdb_store: FreshStore) -> None:
    harness = Harness(chdb_store)
    deleter = LossyDeleter(chdb_store.engine, database=chdb_store.database)
    steps = PruneSteps(harness.describer, deleter, clock=harness.clock)
    deleter.lost = 1
    assert not steps.is_deleting()
    deleter.close()
    harness.close()


def _id(*, received_ms: int) -> bytes:
    return received_ms.to_bytes(6, "big") + bytes(10)


@pytest.fixture
def harness(tables: Tables) -> Iterator[Harness]:
    made = Harness(tables)
    yield made
    made.close()


def test_expired_rows_are_found_and_deleted_and_no_others(harness: Harness) -> None:
    assert harness.steps.find_expired() == ()
    harness.insert()
    found = {(one.website_id, one.table): one for one in harness.steps.find_expired()}
    assert {key: one.rows for key, one in found.items()} == {
        (SHOP, "events"): 3,
        (SHOP, "errors"): 3,
        (BLOG, "events"): 5,
    }
    assert all(one.bytes > 0 for one in found.values())
    assert found[BLOG, "events"] == ExpiredRows(
        website_id=BLOG,
        table="events",
        rows=5,
        bytes=found[BLOG, "events"].bytes,
        cutoff_ms=midnight_ms(2),
    )
    harness.prune()
    assert harness.rows("events") == {SHOP: 5, BLOG: 3, NEWS: 8, GONE: 8}
    assert harness.rows("errors") == {SHOP: 5, BLOG: 8, NEWS: 8, GONE: 8}
    assert harness.steps.find_expired() == ()


def test_rows_that_were_just_received_are_neither_counted_nor_deleted(tables: Tables) -> None:
    harness = Harness(tables, min_age_ms=NOON_MS - midnight_ms(5))
    harness.insert()
    found = {(one.website_id, one.table): one.rows for one in harness.steps.find_expired()}
    assert found == {(SHOP, "events"): 3, (SHOP, "errors"): 3, (BLOG, "events"): 3}
    harness.prune()
    assert harness.rows("events") == {SHOP: 5, BLOG: 5, NEWS: 8, GONE: 8}
    assert harness.steps.find_expired() == ()
    storage = {(one.website_id, one.table): one.expired for one in harness.describer.describe()}
    assert storage[BLOG, "events"] == 2
    harness.close()


def test_storage_describes_the_rows_of_each_website_and_table(harness: Harness) -> None:
    harness.insert()
    described = harness.describer.describe()
    assert [(one.website_id, one.table) for one in described] == [
        (name, table)
        for name in (SHOP, BLOG, NEWS, GONE)
        for table in ("events", "errors", "performance")
    ]
    by_key = {(one.website_id, one.table): one for one in described}
    blog = by_key[BLOG, "events"]
    assert blog == StoredRows(
        website_id=BLOG,
        table="events",
        rows=3,
        expired=5,
        bytes=blog.bytes,
        oldest_ms=midnight_ms(2),
        newest_ms=midnight_ms(1),
        retain_days=2,
        cutoff_ms=midnight_ms(2),
    )
    size = harness.deleter.size(EVENTS)
    total = sum(one.bytes for one in described if one.table == "events")
    assert 0 < total <= size.share_of(4 * 8) < total + 4
    assert by_key[SHOP, "performance"] == StoredRows(
        website_id=SHOP,
        table="performance",
        rows=0,
        expired=0,
        bytes=0,
        oldest_ms=None,
        newest_ms=None,
        retain_days=5,
        cutoff_ms=midnight_ms(5),
    )
    gone = by_key[GONE, "errors"]
    assert (gone.rows, gone.expired, gone.retain_days, gone.cutoff_ms) == (8, 0, 0, None)
    assert harness.describer.describe(BLOG) == tuple(
        one for one in described if one.website_id == BLOG
    )


def test_a_deletion_that_a_full_disk_cut_off_is_made_by_the_next_prune(
    chdb_store: FreshStore,
) -> None:
    harness = Harness(chdb_store)
    harness.insert()
    table = f"`{chdb_store.database}`.events"
    chdb_store.engine.execute(f"SYSTEM STOP MERGES {table}")
    lost_before = harness.steps.begin(harness.steps.find_expired())
    cut_off_newest_mutation(chdb_store, EVENTS)
    chdb_store.writer.reopen()

    with pytest.raises(StoreUnavailable, match="a deletion was lost; the next prune deletes"):
        harness.steps.is_deleting(lost_before)

    harness.prune()
    assert harness.steps.find_expired() == ()
    harness.close()
