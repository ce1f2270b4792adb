"""The guarantees of the store on replicated shards when servers, Keeper and machines fail."""

import signal
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from headrace.adapters.store.clickhouse.address import ClickHouseAddress, parse_address
from headrace.adapters.store.clickhouse.check import check_clickhouse
from headrace.adapters.store.clickhouse.row_deletion import ClickHouseRowDeleter
from headrace.adapters.store.clickhouse.row_finder import ClickHouseRowFinder
from headrace.adapters.store.clickhouse.writer import ClickHouseWriter
from headrace.adapters.store.dialect.reports import ExpectedRows
from headrace.base.errors import OperatorError, StoreUnavailable
from headrace.formats.row_ids import log_number
from headrace.model.catalog import EVENTS
from headrace.model.plan import CompiledQuery
from headrace.model.storage import StoredTable
from testing.chdb import arrow_stream
from testing.servers.clickhouse import ClickHouseServer, ClickHouseTables, address_of, new_database
from testing.servers.clickhouse_configuration import CLUSTER
from testing.servers.replicas import REPLICAS, ReplicatedServers, fetches_stopped
from testing.service import wait_until

pytestmark = pytest.mark.clickhouse

TIMEOUT_S = 600


def stream(first: int, count: int = 10) -> bytes:
    """Return a batch whose row ids are consecutive numbers from `first`."""
    return arrow_stream(
        EVENTS,
        [
            {"id": number.to_bytes(16, "big"), "website_id": "web_1", "time": 1_700_000_000_000}
            for number in range(first, first + count)
        ],
    )


@pytest.fixture
def tables(replicated_servers: ReplicatedServers) -> Iterator[ClickHouseTables]:
    """Empty tables; an insert needs one replica of its shard."""
    made = ClickHouseTables(replicated_servers.servers, cluster=CLUSTER)
    yield made
    made.close()


def rows_on(server: ClickHouseServer, tables: ClickHouseTables) -> tuple[int, int]:
    """Return the rows and the distinct ones that a server has itself."""
    table = f"`{tables.address.local_database}`.events"
    rows, distinct = server.execute(f"SELECT count(), uniqExact(id) FROM {table}").split()
    return int(rows), int(distinct)


def remaining_rows(
    servers: ReplicatedServers, tables: ClickHouseTables, away: ClickHouseServer
) -> int:
    """Return the rows of all shards, each of its first replica that is not away."""
    first = [next(one for one in shard if one is not away) for shard in servers.shards]
    return sum(rows_on(server, tables)[0] for server in first)


def wait_for_rows(servers: ReplicatedServers, tables: ClickHouseTables, count: int) -> None:
    """Wait until the replicas of each shard have the same rows, `count` in all, each once."""

    def is_caught_up() -> bool:
        shards = [{rows_on(server, tables) for server in shard} for shard in servers.shards]
        if any(len(rows) != 1 for rows in shards):
            return False
        totals = [sum(column) for column in zip(*(rows.pop() for rows in shards), strict=True)]
        return totals == [count, count]

    wait_until(is_caught_up, "every replica has every row of its shard once", timeout_s=TIMEOUT_S)


def wait_for_end_of_session(remaining: ClickHouseServer, tables: ClickHouseTables) -> None:
    """Wait until Keeper knows that the other replica of a shard was killed."""
    active = (
        f"SELECT active_replicas FROM system.replicas WHERE table = 'events' "
        f"AND database = '{tables.address.local_database}'"
    )
    wait_until(lambda: remaining.execute(active) == "1\n", "the session with Keeper has ended")


def insert_when_possible(writer: ClickHouseWriter, batches: Mapping[str, bytes]) -> None:
    """Insert batches by token as the load loop does: again after each failure."""

    def is_stored() -> bool:
        try:
            for token, batch in batches.items():
                writer.insert(EVENTS, batch, token=token)
        except StoreUnavailable:
            return False
        return True

    wait_until(is_stored, "the batches are stored", timeout_s=TIMEOUT_S)


def test_batches_are_stored_without_a_replica_of_each_shard_which_then_catches_up(
    replicated_servers: ReplicatedServers, tables: ClickHouseTables
) -> None:
    batches = {str(number): stream(number * 10) for number in range(6)}
    away = [shard[-1] for shard in replicated_servers.shards]
    for server in away:
        server.kill()
    try:
        insert_when_possible(tables.writer, batches)
    finally:
        for server in away:
            server.start()
    insert_when_possible(tables.writer, batches)
    wait_for_rows(replicated_servers, tables, 60)


def test_insert_without_keeper_fails_with_the_cause_and_succeeds_once_keeper_is_back(
    replicated_servers: ReplicatedServers,
    tables: ClickHouseTables,
    capfd: pytest.CaptureFixture[str],
) -> None:
    tables.writer.insert(EVENTS, stream(0), token="before")
    replicated_servers.keeper.server.kill()
    try:
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match=r"TABLE_IS_READ_ONLY|KEEPER_EXCEPTION"):
                tables.writer.insert(EVENTS, stream(10), token="t")
    finally:
        replicated_servers.keeper.server.start()
    assert "clickhouse_away" not in "".join(capfd.readouterr())
    insert_when_possible(tables.writer, {"t": stream(10)})
    wait_for_rows(replicated_servers, tables, 20)


def test_batches_are_stored_through_other_hosts_while_a_replica_is_read_only(
    replicated_servers: ReplicatedServers, tables: ClickHouseTables
) -> None:
    """Keeper has lost what it knew of the replica that is on the first host of the URL."""
    table = f"`{tables.address.local_database}`.events"
    (broken, intact), _ = replicated_servers.shards
    broken.kill()
    try:
        wait_for_end_of_session(intact, tables)
        intact.execute(f"SYSTEM DROP REPLICA 'r1' FROM TABLE {table}")
    finally:
        broken.start()
    insert_when_possible(tables.writer, {str(number): stream(number * 10) for number in range(6)})
    assert rows_on(broken, tables) == (0, 0)
    broken.execute(f"SYSTEM RESTORE REPLICA {table}")
    wait_for_rows(replicated_servers, tables, 60)


def test_rows_are_deleted_without_a_replica_which_deletes_them_when_it_is_back(
    replicated_servers: ReplicatedServers, tables: ClickHouseTables
) -> None:
    insert_when_possible(tables.writer, {str(number): stream(number * 10) for number in range(6)})
    wait_for_rows(replicated_servers, tables, 60)
    (away, remaining), _ = replicated_servers.shards
    deleter = ClickHouseRowDeleter(tables.address)
    away.kill()
    try:
        wait_for_end_of_session(remaining, tables)
        deleter.begin(EVENTS, f"id < unhex('{30:032x}')")
        with pytest.raises(StoreUnavailable, match="server of the ClickHouse cluster does not"):
            wait_until(lambda: not deleter.state(EVENTS).parts_left, "all have deleted the rows")
        assert remaining_rows(replicated_servers, tables, away) == 30
    finally:
        away.start()
    wait_for_rows(replicated_servers, tables, 30)
    # A part without a row to delete can be the last one that is rewritten.
    wait_until(lambda: not deleter.state(EVENTS).parts_left, "no part is left")
    deleter.close()


def test_check_finds_rows_that_a_replica_has_not_fetched_yet(
    replicated_servers: ReplicatedServers, tables: ClickHouseTables
) -> None:
    log = "worker-0"
    prefix = bytes(6) + log_number("this machine", log).to_bytes(2, "big")
    ids = [prefix + offset.to_bytes(8, "big") for offset in range(20)]
    writer = ClickHouseWriter(tables.address.rotated(1))
    writer.prepare()
    with fetches_stopped(tables, replicated_servers):
        for number, row_id in enumerate(ids[:-1]):
            row = {"id": row_id, "website_id": "web_1", "time": 1_700_000_000_000}
            writer.insert(EVENTS, arrow_stream(EVENTS, [row]), token=f"t{number}")
        reports = [
            check_clickhouse(
                tables.address,
                identity="this machine",
                expected=[ExpectedRows(log, "events", frozenset(expected))],
            )
            for expected in (ids[:-1], ids)
        ]
    writer.close()
    assert [report.issues for report in reports] == [
        (),
        (
            (
                "the table events lacks 1 of 20 rows that the ledger has noted as stored and that"
                f" are still in the log {log}"
            ),
        ),
    ]


def test_rows_to_erase_are_found_on_a_replica_that_is_up_to_date(
    replicated_servers: ReplicatedServers, tables: ClickHouseTables
) -> None:
    hosts = len(tables.address.hosts)
    finders = [ClickHouseRowFinder(tables.address.rotated(number)) for number in range(hosts)]

    def are_all_found() -> bool:
        query = CompiledQuery("SELECT count() FROM events", {}, ())
        return [finder.select(query) for finder in finders] == [[[60]]] * hosts

    writer = ClickHouseWriter(tables.address.rotated(1))
    with fetches_stopped(tables, replicated_servers):
        insert_when_possible(writer, {str(number): stream(number * 10) for number in range(6)})
        wait_until(are_all_found, "no host reads a replica that lacks rows", timeout_s=60)
    writer.close()
    for finder in finders:
        finder.close()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"replicated": 0}, "the URL must not say replicated=0"),
        ({"quorum": REPLICAS + 1}, "says quorum=3, but a shard of the cluster .* has replicas: 2"),
    ],
    ids=["replicated", "quorum"],
)
def test_a_url_that_contradicts_the_cluster_is_reported_and_creates_nothing(
    options: dict[str, int], reason: str, replicated_servers: ReplicatedServers
) -> None:
    servers, database = replicated_servers.servers, new_database()
    url = address_of(servers, database, cluster=CLUSTER, **options)
    with pytest.raises(OperatorError, match=reason):
        ClickHouseWriter(parse_address(url)).prepare()
    databases = servers[0].execute(f"SHOW DATABASES LIKE '{database}%'")
    assert databases == ""


def definitions_on(server: ClickHouseServer, tables: ClickHouseTables) -> str:
    """Return the statements that create the tables of a server."""
    return server.execute(
        "SELECT database, name, create_table_query FROM system.tables WHERE database IN "
        f"('{tables.database}', '{tables.address.local_database}') ORDER BY database, name"
    )


def drop_databases(server: ClickHouseServer, tables: ClickHouseTables) -> None:
    for database in (tables.database, tables.address.local_database):
        server.execute(f"DROP DATABASE `{database}` SYNC")


def test_nodes_without_tables_get_those_that_the_others_have(
    replicated_servers: ReplicatedServers, tables: ClickHouseTables
) -> None:
    """The second shard was added, and a replica of the first one has a new disk."""
    expected = definitions_on(replicated_servers.servers[0], tables)
    (_, replaced), added = replicated_servers.shards
    for server in (replaced, *added):
        drop_databases(server, tables)
    writer = ClickHouseWriter(tables.address)
    writer.prepare()
    for server in replicated_servers.servers:
        assert definitions_on(server, tables) == expected
    insert_when_possible(writer, {str(number): stream(number * 10) for number in range(6)})
    wait_for_rows(replicated_servers, tables, 60)
    writer.close()


def test_what_operators_created_in_the_databases_is_not_copied_to_other_nodes(
    replicated_servers: ReplicatedServers, tables: ClickHouseTables
) -> None:
    (first, replaced), added = replicated_servers.shards
    expected = definitions_on(first, tables)
    local = tables.address.local_database
    for statement in (
        "TABLE `{}`.a_table (id UInt64) ENGINE = MergeTree ORDER BY id",
        "MATERIALIZED VIEW `{}`.a_view TO `{}`.a_table AS SELECT 1 AS id FROM `{}`.events",
        "DICTIONARY `{}`.ids (id UInt64) PRIMARY KEY id SOURCE(NULL()) LAYOUT(FLAT()) LIFETIME(0)",
    ):
        first.execute(f"CREATE {statement.replace('{}', local)}")
    for server in (replaced, *added):
        drop_databases(server, tables)
    writer = ClickHouseWriter(tables.address)
    writer.prepare()
    for server in (replaced, *added):
        assert definitions_on(server, tables) == expected
    insert_when_possible(writer, {str(number): stream(number * 10) for number in range(6)})
    wait_for_rows(replicated_servers, tables, 60)
    writer.close()


def test_machines_store_batches_while_tables_cannot_be_created_on_a_replica(
    replicated_servers: ReplicatedServers,
    tables: ClickHouseTables,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Keeper still knows the replica whose disk is new."""
    (_, replaced), _ = replicated_servers.shards
    database = tables.address.local_database
    replaced.execute(f"DETACH DATABASE `{database}`")
    try:
        writer = ClickHouseWriter(tables.address)
        insert_when_possible(writer, {str(number): stream(number * 10) for number in range(6)})
        writer.close()
    finally:
        replaced.execute(f"ATTACH DATABASE `{database}`")
    assert "clickhouse_tables_missing" in "".join(capfd.readouterr())
    wait_for_rows(replicated_servers, tables, 60)


def test_quorum_of_two_rejects_a_batch_while_a_replica_is_away(
    replicated_servers: ReplicatedServers,
) -> None:
    tables = ClickHouseTables(replicated_servers.servers, cluster=CLUSTER, quorum=REPLICAS)
    batches = {str(number): stream(number * 10) for number in range(6)}
    away = [shard[-1] for shard in replicated_servers.shards]
    for server in away:
        server.kill()
    try:
        for _ in range(2):
            for token, batch in batches.items():
                with pytest.raises(StoreUnavailable):
                    tables.writer.insert(EVENTS, batch, token=token)
    finally:
        for server in away:
            server.start()
    insert_when_possible(tables.writer, batches)
    wait_for_rows(replicated_servers, tables, 60)
    tables.close()


def test_machines_that_start_concurrently_create_the_replicated_tables_together(
    replicated_servers: ReplicatedServers,
) -> None:
    address = parse_address(address_of(replicated_servers.servers, new_database(), cluster=CLUSTER))
    writers = [ClickHouseWriter(address.rotated(number)) for number in range(3)]
    with ThreadPoolExecutor(len(writers)) as machines:
        stored = [
            machines.submit(insert_when_possible, writer, {str(number): stream(number * 10)})
            for number, writer in enumerate(writers)
        ]
        for each in stored:
            each.result()
    again = ClickHouseWriter(address)
    again.prepare()
    assert (again.is_prepared, again.current_statement) == (True, "")
    for writer in (*writers, again):
        writer.close()
    for server in replicated_servers.servers:
        for database in (address.database, address.local_database):
            server.execute(f"DROP DATABASE IF EXISTS `{database}` SYNC")


class StoppingWriter(ClickHouseWriter):
    """A writer whose host is stopped between the search for a batch and its insert."""

    def __init__(self, address: ClickHouseAddress, server: ClickHouseServer) -> None:
        super().__init__(address, read_timeout_s=2)
        self._server = server
        self.has_stopped = False

    def _insert(
        self,
        table: StoredTable,
        arrow_stream: bytes,
        settings: Mapping[str, Any],
        *,
        searched_ms: int,
    ) -> None:
        self._server.signal(signal.SIGSTOP)
        self.has_stopped = True
        super()._insert(table, arrow_stream, settings, searched_ms=searched_ms)


def test_insert_that_a_stopped_host_executes_later_than_any_token_lasts_stores_nothing(
    replicated_servers: ReplicatedServers, tables: ClickHouseTables
) -> None:
    """Another token stands for one that the window has forgotten meanwhile."""
    stopped, *others = replicated_servers.servers
    inserts = (
        "SELECT sum(value) FROM system.events WHERE event = 'InsertQuery'",
        "SELECT count() FROM system.processes WHERE query_kind = 'Insert'",
    )
    (before, _) = (int(stopped.execute(sql)) for sql in inserts)
    slow = StoppingWriter(
        parse_address(address_of([stopped], tables.database, cluster=CLUSTER)), stopped
    )

    def is_left_alone() -> bool:
        """On a busy machine even the search before the insert can take 2 s."""
        with pytest.raises(StoreUnavailable, match="took the request and sent nothing for 2 s"):
            slow.insert(EVENTS, stream(0), token="forgotten")
        return slow.has_stopped

    try:
        wait_until(is_left_alone, "the host has the insert and does not respond")
        quick = ClickHouseWriter(
            parse_address(address_of(others, tables.database, cluster=CLUSTER))
        )
        insert_when_possible(quick, {"t": stream(0)})
        quick.close()
    finally:
        stopped.signal(signal.SIGCONT)
    wait_until(
        lambda: int(stopped.execute(inserts[0])) > before and stopped.execute(inserts[1]) == "0\n",
        "the late insert has ended",
    )
    slow.close()
    wait_for_rows(replicated_servers, tables, 10)


def test_a_large_batch_is_one_part_on_each_replica_of_its_shard(
    replicated_servers: ReplicatedServers, tables: ClickHouseTables
) -> None:
    tables.writer.insert(EVENTS, stream(0, 70_000), token="t")
    wait_for_rows(replicated_servers, tables, 70_000)
    parts = (
        "SELECT count(), sum(rows) FROM system.parts WHERE active AND table = 'events' "
        f"AND database = '{tables.address.local_database}'"
    )
    found = sorted(server.execute(parts) for server in replicated_servers.servers)
    assert found == ["0\t0\n", "0\t0\n", "1\t70000\n", "1\t70000\n"]
