"""A copy between real ClickHouse servers ends with equal rows on both, each row once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from headrace.adapters.store.clickhouse.writer import ClickHouseWriter
from headrace.adapters.store_migration.copy_stores import ClickHouseCopyStore
from headrace.adapters.store_migration.copying import StoreCopier
from headrace.adapters.store_migration.migration_state import Chunk, MigrationState
from headrace.adapters.store_migration.plan import ChunkLimits
from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.base.errors import OperatorError
from headrace.model.catalog import ERRORS, EVENTS, PERFORMANCE, Table
from headrace.model.migration import DayKey, Digest, MigrationTarget
from testing.chdb import arrow_stream
from testing.servers.clickhouse import ClickHouseServers, ClickHouseTables
from testing.servers.clickhouse_configuration import CLUSTER
from testing.servers.replicas import ReplicatedServers, fetches_stopped

pytestmark = pytest.mark.clickhouse

NOON_MS = 20_000 * MILLISECONDS_PER_DAY + MILLISECONDS_PER_DAY // 2
SMALL = ChunkLimits(rows=7)
TABLES = (EVENTS, ERRORS, PERFORMANCE)

MakeTables = Callable[[], ClickHouseTables]
Row = Mapping[str, Any]


class RecordedProgress:
    """A `CopyProgress` that keeps the last report."""

    def __init__(self) -> None:
        self.reported = (0, 0)

    def comparing(self) -> None:
        """Do nothing."""

    def copying(self, done: int, total: int) -> None:
        """Record the numbers."""
        self.reported = (done, total)


@pytest.fixture
def make(clickhouse_servers: ClickHouseServers) -> Iterator[MakeTables]:
    """Create empty tables on one server."""
    made: list[ClickHouseTables] = []

    def one() -> ClickHouseTables:
        made.append(ClickHouseTables(clickhouse_servers.servers[:1]))
        return made[-1]

    yield one
    for tables in made:
        tables.close()


@pytest.fixture
def replicas(replicated_servers: ReplicatedServers) -> Iterator[ClickHouseTables]:
    """Empty tables on two shards of two replicas; an insert needs one replica."""
    made = ClickHouseTables(replicated_servers.servers, cluster=CLUSTER)
    yield made
    made.close()


@pytest.fixture
def state(tmp_path: Path) -> MigrationState:
    (tmp_path / "moving").mkdir()
    made = MigrationState(tmp_path)
    made.start(MigrationTarget.CLICKHOUSE, "rows")
    return made


def copy_of(
    source: ClickHouseTables,
    target: ClickHouseTables,
    state: MigrationState,
    limits: ChunkLimits = SMALL,
    replication_timeout_s: float = 0,
) -> StoreCopier:
    return StoreCopier(
        source=ClickHouseCopyStore(source.address, replication_timeout_s=replication_timeout_s),
        target=ClickHouseCopyStore(target.address, replication_timeout_s=replication_timeout_s),
        journal=state,
        progress=RecordedProgress(),
        limits=limits,
    )


def rows(numbers: Sequence[int], *, apart_ms: int = 1000, website: str = "w") -> list[Row]:
    return [
        {
            "id": number.to_bytes(16, "big"),
            "website_id": website,
            "time": NOON_MS + number * apart_ms,
            "path": f"/Grüße {number}\0\t'\\",
        }
        for number in numbers
    ]


def everything(tables: ClickHouseTables, table: Table) -> list[list[Any]]:
    return tables.rows(f"SELECT hex(id), * EXCEPT id FROM `{table.name}` ORDER BY ALL")


def test_all_columns_of_all_tables_are_the_same_afterwards(
    make: MakeTables, state: MigrationState
) -> None:
    source, target = make(), make()
    for table in TABLES:
        source.insert(table, rows(range(30), apart_ms=3_600_000))
        source.insert(table, rows(range(30, 40), website="x"))
    numbered = {"value": 0.1, "scroll_depth": -0.0, "properties": b'{"a":"\xf0\x9f\x99\x82"}'}
    source.insert(EVENTS, [{**row, **numbered, "is_bot": True} for row in rows(range(50, 53))])
    copy = copy_of(source, target, state)
    assert len(copy.compare()) == 3 * 3
    copy.copy()
    assert (copy.copied, copy.compare()) == (123, [])
    for table in TABLES:
        assert everything(target, table) == everything(source, table)
    assert state.pending() is None


def test_only_late_rows_are_copied_into_days_that_were_copied(
    make: MakeTables, state: MigrationState
) -> None:
    source, target = make(), make()
    source.insert(EVENTS, rows(range(0, 40, 2)))
    copy_of(source, target, state).copy()
    source.insert(EVENTS, rows(range(1, 40, 8)))
    second = copy_of(source, target, state)
    second.copy()
    assert (second.copied, second.compare()) == (5, [])
    assert everything(target, EVENTS) == everything(source, EVENTS)


def test_more_rows_with_one_timestamp_than_fit_a_chunk_are_copied(
    make: MakeTables, state: MigrationState
) -> None:
    source, target = make(), make()
    source.insert(EVENTS, rows(range(50), apart_ms=0))
    target.insert(EVENTS, rows(range(10, 20), apart_ms=0))
    copy = copy_of(source, target, state)
    copy.copy()
    assert (copy.copied, copy.compare()) == (40, [])


def test_chunk_stored_before_the_command_was_killed_is_not_duplicated(
    make: MakeTables, state: MigrationState, tmp_path: Path
) -> None:
    class Killed(MigrationState):
        def end(self) -> None:
            raise KeyboardInterrupt

    source, target = make(), make()
    source.insert(EVENTS, rows(range(5)))
    with pytest.raises(KeyboardInterrupt):
        copy_of(source, target, Killed(tmp_path)).copy()
    source.insert(EVENTS, rows([9]))
    copy = copy_of(source, target, state)
    copy.resend_pending_chunk()
    copy.copy()
    assert (copy.copied, copy.compare()) == (1, [])


def test_chunk_not_sent_before_the_command_was_killed_is_sent_first(
    make: MakeTables, state: MigrationState, tmp_path: Path
) -> None:
    class Killed(MigrationState):
        def begin(self, table: str, stream: bytes) -> Chunk:
            super().begin(table, stream)
            raise KeyboardInterrupt

    source, target = make(), make()
    source.insert(EVENTS, rows(range(5)))
    with pytest.raises(KeyboardInterrupt):
        copy_of(source, target, Killed(tmp_path)).copy()
    assert everything(target, EVENTS) == []
    copy = copy_of(source, target, state)
    copy.resend_pending_chunk()
    assert everything(target, EVENTS) == everything(source, EVENTS)
    copy.copy()
    assert (copy.copied, copy.compare()) == (0, [])


def test_server_failure_is_reported_clearly(make: MakeTables, state: MigrationState) -> None:
    source, target = make(), make()
    source.insert(EVENTS, rows(range(5)))
    copy = copy_of(source, target, state)
    target.execute("DROP TABLE `{database}`.`events` SYNC")
    with pytest.raises(OperatorError, match=r"failed: .*UNKNOWN_TABLE.*; the copied rows stay"):
        copy.copy()


@pytest.mark.parametrize(
    ("existing_rows", "rows_in_target"),
    [
        pytest.param([*rows(range(5)), *rows([4])], 6, id="a row is there twice"),
        pytest.param(rows(range(6)), 6, id="a row of no source"),
        pytest.param([*rows(range(4)), {**rows([4])[0], "path": "/x"}], 5, id="a changed value"),
        pytest.param(
            [*rows(range(4)), {**rows([4])[0], "value": 0.0}], 5, id="a number in place of none"
        ),
    ],
)
def test_mismatch_that_copying_does_not_repair_is_reported_by_website_and_day(
    make: MakeTables, state: MigrationState, existing_rows: list[Row], rows_in_target: int
) -> None:
    source, target = make(), make()
    source.insert(EVENTS, rows(range(5)))
    target.insert(EVENTS, existing_rows)
    copy = copy_of(source, target, state)
    copy.copy()
    (difference,) = copy.compare()
    assert copy.copied == 0
    assert difference.day == DayKey("events", "w", 20_000)
    assert (difference.source.rows, difference.target.rows) == (5, rows_in_target)
    assert isinstance(difference.source, Digest)
    assert difference.source.checksum != difference.target.checksum


def insert_ahead(replicas: ClickHouseTables, batches: Sequence[Sequence[Row]]) -> None:
    """Store batches through the second replica of the first shard, which stores its share."""
    writer = ClickHouseWriter(replicas.address.rotated(1))
    writer.prepare()
    for number, batch in enumerate(batches):
        writer.insert(EVENTS, arrow_stream(EVENTS, batch), token=f"t{number}")
    writer.close()


def test_copy_from_replicas_waits_for_those_that_are_behind(
    replicas: ClickHouseTables,
    replicated_servers: ReplicatedServers,
    make: MakeTables,
    state: MigrationState,
) -> None:
    target = make()
    copy = copy_of(replicas, target, state)
    with fetches_stopped(replicas, replicated_servers):
        insert_ahead(replicas, [rows(range(first, first + 5)) for first in range(0, 20, 5)])
        with pytest.raises(
            OperatorError, match=r"of the table events in shard 1 r1 has 0 rows, r2 has"
        ):
            copy.wait_for_source()
    copy_of(replicas, target, state, replication_timeout_s=60).wait_for_source()
    copy.copy()
    assert (copy.copied, copy.compare()) == (20, [])


def test_copy_to_replicas_ends_equal_and_copies_nothing_twice(
    replicas: ClickHouseTables,
    replicated_servers: ReplicatedServers,
    make: MakeTables,
    state: MigrationState,
) -> None:
    source = make()
    source.insert(EVENTS, rows(range(40)))
    copy = copy_of(source, replicas, state, replication_timeout_s=60)
    with fetches_stopped(replicas, replicated_servers):
        copy.copy()
        copy.copy()
    assert (copy.copied, copy.compare()) == (40, [])
    assert everything(replicas, EVENTS) == everything(source, EVENTS)
