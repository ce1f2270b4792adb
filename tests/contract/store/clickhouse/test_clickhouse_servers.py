"""The guarantees of the store on ClickHouse when servers, networks and grants fail."""

import asyncio
import contextlib
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from headrace.adapters.store.clickhouse.address import Host, parse_address
from headrace.adapters.store.clickhouse.connection import SyncClientPool, query_rows
from headrace.adapters.store.clickhouse.reader import ClickHouseReader
from headrace.adapters.store.clickhouse.row_finder import ClickHouseRowFinder
from headrace.adapters.store.clickhouse.wide_parameters import MAX_PIECE_CHARACTERS
from headrace.adapters.store.clickhouse.writer import ClickHouseWriter
from headrace.adapters.store.dialect.ddl import MIGRATIONS
from headrace.adapters.store.dialect.errors import ClickHouseError
from headrace.adapters.store.dialect.parameters import EncodedParameters
from headrace.adapters.store.dialect.results import decode_rows
from headrace.base.errors import OperatorError, QueryTimedOut, StoreUnavailable
from headrace.base.logs import get_logger
from headrace.erasure.statements import find_rows
from headrace.model.catalog import EVENTS
from headrace.model.erasure import Selector, SelectorKind
from headrace.ports.store import QueryLimits
from testing.chdb import ENDLESS, LIMITS, arrow_stream
from testing.servers.clickhouse import (
    ClickHouseServer,
    ClickHouseServers,
    ClickHouseTables,
    address_of,
    new_database,
    reading_address_of,
)
from testing.servers.clickhouse_configuration import CLUSTER
from testing.servers.forwarding import Forwarder
from testing.servers.ports import free_port
from testing.service import wait_until

pytestmark = pytest.mark.clickhouse

NO_PARTS = r"missing grant SELECT.* (?i:on) system\.parts$"
COUNT = "SELECT count(), uniqExact(id) FROM events"
DELETE_FIRST_ROWS = (
    "ALTER TABLE `{database}`.events DELETE WHERE id < unhex('0000000000000000000000000000000a') "
    "SETTINGS mutations_sync = 2"
)
SHARDS = {"cluster": CLUSTER, "replicated": 0}
LONG_TIMEOUT = QueryLimits(timeout_s=600, max_memory_bytes=1_000_000_000)


def rows(first: int, count: int = 10) -> list[dict[str, Any]]:
    """Return rows whose ids are consecutive numbers from `first`."""
    return [
        {"id": number.to_bytes(16, "big"), "website_id": "web_1", "time": 1_700_000_000_000}
        for number in range(first, first + count)
    ]


@pytest.fixture
def cluster(clickhouse_servers: ClickHouseServers) -> Iterator[ClickHouseTables]:
    """Empty tables on two shards."""
    made = ClickHouseTables(clickhouse_servers.servers, cluster=CLUSTER, replicated=0)
    yield made
    made.close()


@pytest.fixture
def dedicated_cluster(
    dedicated_shards: ClickHouseServers,
) -> Iterator[tuple[ClickHouseServers, ClickHouseTables]]:
    """Empty tables on two shards that the test may kill."""
    made = ClickHouseTables(dedicated_shards.servers, cluster=CLUSTER, replicated=0)
    yield dedicated_shards, made
    for server in dedicated_shards.servers:
        server.kill()
        server.start()
    made.close()


class CuttingProxy(Forwarder):
    """Forwards to a server; cuts requests after `most_sent` bytes or drops all responses.

    It withholds what contains an INSERT while `passes` is not set, and sets `withheld` then.
    """

    def __init__(self, port: int) -> None:
        self.most_sent: int | None = None
        self.drops_responses = False
        self.passes = threading.Event()
        self.passes.set()
        self.withheld = threading.Event()
        super().__init__(port)

    def pass_on(self, source: socket.socket, target: socket.socket, *, is_response: bool) -> None:
        if is_response:
            self._pass_responses(source, target)
        else:
            self._pass_requests(source, target)

    def _pass_responses(self, source: socket.socket, target: socket.socket) -> None:
        while (chunk := source.recv(65_536)) and not self.drops_responses:
            target.sendall(chunk)

    def _pass_requests(self, source: socket.socket, target: socket.socket) -> None:
        sent = 0
        while chunk := source.recv(65_536):
            if b"INSERT" in chunk and not self.passes.is_set():
                self.withheld.set()
                self.passes.wait()
            if self.most_sent is not None and sent + len(chunk) > self.most_sent:
                target.sendall(chunk[: max(self.most_sent - sent, 0)])
                return
            target.sendall(chunk)
            sent += len(chunk)


@pytest.fixture
def proxied(
    clickhouse_servers: ClickHouseServers,
) -> Iterator[tuple[CuttingProxy, ClickHouseTables, ClickHouseWriter]]:
    """Empty tables on one server, and a writer that connects through a proxy."""
    (server, _) = clickhouse_servers.servers
    made = ClickHouseTables([server])
    proxy = CuttingProxy(server.port)
    url = made.url.replace(f":{server.port}/", f":{proxy.port}/")
    writer = ClickHouseWriter(parse_address(url), read_timeout_s=60)
    writer.prepare()
    yield proxy, made, writer
    writer.close()
    proxy.close()
    made.close()


def drop_responses(proxy: CuttingProxy) -> None:
    proxy.drops_responses = True


def cut_requests(proxy: CuttingProxy) -> None:
    proxy.most_sent = 4_000


@pytest.mark.parametrize("failing", [drop_responses, cut_requests])
def test_a_batch_whose_request_or_response_was_lost_is_stored_once(
    failing: Callable[[CuttingProxy], None],
    proxied: tuple[CuttingProxy, ClickHouseTables, ClickHouseWriter],
) -> None:
    proxy, made, writer = proxied
    stream = arrow_stream(EVENTS, rows(0, 100))
    writer.insert(EVENTS, arrow_stream(EVENTS, rows(1000)), token="before")
    failing(proxy)
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            writer.insert(EVENTS, stream, token="t")
    proxy.drops_responses, proxy.most_sent = False, None
    for _ in range(2):
        writer.insert(EVENTS, stream, token="t")
    assert made.rows(COUNT) == [[110, 110]]


def test_a_batch_is_stored_however_many_of_its_tokens_are_known_without_its_rows(
    clickhouse_servers: ClickHouseServers,
) -> None:
    """As after crashes of a server without Keeper; each retry of a load begins with other rows."""
    made = ClickHouseTables(clickhouse_servers.servers[:1])
    stream, before = arrow_stream(EVENTS, rows(0)), arrow_stream(EVENTS, rows(1000))
    made.writer.insert(EVENTS, before, token="before")
    for _ in range(2):
        made.writer.insert(EVENTS, stream, token="t")
        made.execute(DELETE_FIRST_ROWS)
    with pytest.raises(StoreUnavailable, match="ClickHouse did not keep a batch of events"):
        made.writer.insert(EVENTS, stream, token="t")
    made.writer.insert(EVENTS, before, token="before")
    for _ in range(2):
        made.writer.insert(EVENTS, stream, token="t")
    assert made.rows(COUNT) == [[20, 20]]
    made.close()


def test_batches_wait_for_their_shard_and_are_stored_once(
    dedicated_cluster: tuple[ClickHouseServers, ClickHouseTables],
) -> None:
    running, made = dedicated_cluster
    away = running.servers[1]
    away.kill()
    streams = {str(n): arrow_stream(EVENTS, rows(n * 10)) for n in range(6)}
    for token, stream in streams.items():
        with pytest.raises(StoreUnavailable):
            made.writer.insert(EVENTS, stream, token=token)
    with pytest.raises(StoreUnavailable):
        made.rows(COUNT)
    away.start()
    for _ in range(2):
        for token, stream in streams.items():
            made.writer.insert(EVENTS, stream, token=token)
    assert made.rows(COUNT) == [[60, 60]]
    shards = "SELECT count() > 0 FROM events GROUP BY _shard_num"
    assert made.rows(shards) == [[1], [1]]


def test_a_retry_through_another_host_reaches_the_same_shard(cluster: ClickHouseTables) -> None:
    for host in range(2):
        writer = ClickHouseWriter(cluster.address.rotated(host))
        for number in range(4):
            stream = arrow_stream(EVENTS, rows(number * 10))
            writer.insert(EVENTS, stream, token=f"batch {number}")
        writer.close()
    assert cluster.rows(COUNT) == [[40, 40]]


def test_a_late_insert_and_its_retry_after_shards_were_added_are_stored_once(
    cluster: ClickHouseTables,
) -> None:
    """The first attempt began with one shard, and reaches it after the retry with two."""
    first, second = cluster.servers
    proxy = CuttingProxy(first.port)
    address = replace(
        cluster.address, hosts=(Host("127.0.0.1", proxy.port), Host(second.host, second.port))
    )
    late, retrying = ClickHouseWriter(address), ClickHouseWriter(cluster.address)
    late.prepare()
    batches = {f"batch {n}": arrow_stream(EVENTS, rows(n * 10)) for n in range(4)}
    for token, stream in batches.items():
        proxy.passes.clear()
        proxy.withheld.clear()
        with ThreadPoolExecutor(1) as machine:
            inserting = machine.submit(late.insert, EVENTS, stream, token=token, shards=1)
            assert proxy.withheld.wait(60)
            retrying.insert(EVENTS, stream, token=token, shards=1)
            proxy.passes.set()
            inserting.result()
    assert cluster.rows(COUNT) == [[40, 40]]
    retrying.insert(EVENTS, arrow_stream(EVENTS, rows(900)), token="batch 0", shards=9)
    assert cluster.rows(COUNT) == [[50, 50]]
    late.close()
    retrying.close()
    proxy.close()


def test_a_batch_is_one_part_of_one_shard(cluster: ClickHouseTables) -> None:
    cluster.insert(EVENTS, rows(0, 1000), token="t")
    parts = (
        "SELECT count(), sum(rows) FROM clusterAllReplicas('{c}', system.parts) "
        "WHERE active AND table = 'events' AND database = '{d}'"
    )
    text = parts.format(c=CLUSTER, d=cluster.address.local_database)
    assert cluster.servers[0].execute(text) == "1\t1000\n"


def test_machines_that_start_concurrently_create_the_tables_together(
    clickhouse_servers: ClickHouseServers,
) -> None:
    url = address_of(clickhouse_servers.servers, new_database(), cluster=CLUSTER, replicated=0)
    writers = [ClickHouseWriter(parse_address(url)) for _ in range(6)]
    with ThreadPoolExecutor(len(writers)) as machines:
        for preparing in [machines.submit(writer.prepare) for writer in writers]:
            preparing.result()
    for number, writer in enumerate(writers):
        writer.insert(EVENTS, arrow_stream(EVENTS, rows(number * 10)), token=str(number))
        writer.close()


@pytest.mark.parametrize("shards", [1, 2])
def test_up_to_date_tables_are_not_altered(
    shards: int, clickhouse_servers: ClickHouseServers
) -> None:
    options: dict[str, Any] = {"cluster": CLUSTER, "replicated": 0} if shards > 1 else {}
    made = ClickHouseTables(clickhouse_servers.servers[:shards], **options)
    again = ClickHouseWriter(made.address)
    again.prepare()
    assert (again.is_prepared, again.current_statement) == (True, "")
    again.close()
    made.close()


def test_a_distributed_table_that_lacks_a_column_is_recreated(cluster: ClickHouseTables) -> None:
    cluster.insert(EVENTS, rows(0))
    change = f"ALTER TABLE `{cluster.database}`.events DROP COLUMN path"
    cluster.servers[0].execute(change)
    writer = ClickHouseWriter(cluster.address)
    writer.prepare()
    writer.close()
    assert cluster.rows("SELECT DISTINCT path FROM events") == [[""]]


def test_a_projection_being_materialized_is_awaited_and_not_materialized_again(
    clickhouse_servers: ClickHouseServers,
) -> None:
    (server, _) = clickhouse_servers.servers
    address = parse_address(address_of([server], new_database()))
    older = ClickHouseWriter(address, migrations=MIGRATIONS[:1])
    older.insert(EVENTS, arrow_stream(EVENTS, rows(0)), token="t")
    older.close()
    server.execute(f"SYSTEM STOP MERGES `{address.database}`.events")  # also stops mutations
    filling = (
        f"SELECT count() FROM system.mutations WHERE database = '{address.database}' "
        "AND command LIKE '%MATERIALIZE PROJECTION%'"
    )
    short_timeout = ClickHouseWriter(address, prepare_timeout_s=1)

    def times_out_while_filling() -> bool:
        with pytest.raises(StoreUnavailable, match="no ClickHouse server responds"):
            short_timeout.prepare()
        return server.execute(filling) == "1\n"

    wait_until(times_out_while_filling, "the projection is being materialized")
    short_timeout.close()
    stopped = ClickHouseWriter(address)
    with ThreadPoolExecutor(1) as machine:
        preparing = machine.submit(stopped.prepare)
        wait_until(
            lambda: "MATERIALIZE" in stopped.current_statement, "the projection is waited for"
        )
        stopped.close()
        with pytest.raises(StoreUnavailable, match="the store is closing"):
            preparing.result()
    assert server.execute(filling) == "1\n"
    long_timeout = ClickHouseWriter(address)
    with ThreadPoolExecutor(1) as machine:
        preparing = machine.submit(long_timeout.prepare)
        wait_until(
            lambda: "MATERIALIZE" in long_timeout.current_statement, "the projection is waited for"
        )
        server.execute(f"SYSTEM START MERGES `{address.database}`.events")
        preparing.result()
    long_timeout.close()
    assert server.execute(f"SELECT sum(event_count) FROM `{address.database}`.visits") == "10\n"
    server.execute(f"DROP DATABASE `{address.database}` SYNC")


def test_an_unresponsive_server_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"clickhouse://127.0.0.1:{silent.getsockname()[1]}/test"
        writer = ClickHouseWriter(parse_address(url), prepare_timeout_s=1)
        with pytest.raises(StoreUnavailable):
            writer.prepare()
        writer.close()


def test_a_silent_server_fails_one_call_and_the_next_call_begins_with_another_host() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as first,
        socket.create_server(("127.0.0.1", 0)) as second,
    ):
        ports = [silent.getsockname()[1] for silent in (first, second)]
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        address = parse_address(f"clickhouse://{hosts}/test?cluster={CLUSTER}")
        writer = ClickHouseWriter(address, prepare_timeout_s=1)
        for silent in (first, second):
            silent.setblocking(False)
            with pytest.raises(BlockingIOError):
                silent.accept()
            with pytest.raises(StoreUnavailable, match=f":{silent.getsockname()[1]} took the"):
                writer.prepare()
            silent.accept()[0].close()
        writer.close()


def test_a_crashed_server_is_restarted(
    dedicated_shards: ClickHouseServers, capfd: pytest.CaptureFixture[str]
) -> None:
    dead = dedicated_shards.servers[1]
    dead.execute("CREATE DATABASE kept")
    os.kill(dead.pid, signal.SIGSEGV)
    wait_until(lambda: dead.is_dead, "the server has died")
    assert f"the server's exit code is {-signal.SIGSEGV}" in dedicated_shards.last_log_lines()
    assert dead.is_dead
    assert dead is dedicated_shards.servers[1]
    assert dead.execute("SELECT count() FROM system.databases WHERE name = 'kept'") == "1\n"
    assert f"the server's exit code is {-signal.SIGSEGV}" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("port", "beginning"),
    [
        ("port", b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 8\r\n\r\nSELECT"),
        ("native_port", b"\0"),
    ],
    ids=["http", "native"],
)
def test_a_server_outlives_a_client_that_resets_its_connection_within_a_request(
    port: str, beginning: bytes, clickhouse_servers: ClickHouseServers
) -> None:
    (server, _) = clickhouse_servers.servers

    def open_connections() -> int:
        return int(
            server.execute(
                "SELECT sum(value) FROM system.metrics WHERE metric ILIKE '%pconnection'"
            )
        )

    before = open_connections()
    client = socket.create_connection((server.host, getattr(server, port)))
    client.sendall(beginning)
    wait_until(lambda: open_connections() > before, "the server has accepted the connection")
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    wait_until(lambda: open_connections() <= before, "the server has noticed the reset")
    assert not server.is_dead, server.last_log_lines()


def test_an_unknown_cluster_is_reported_to_the_operator(
    clickhouse_servers: ClickHouseServers,
) -> None:
    url = address_of(
        clickhouse_servers.servers[:1], new_database(), cluster="elsewhere", replicated=0
    )
    with pytest.raises(OperatorError, match="elsewhere"):
        ClickHouseWriter(parse_address(url)).prepare()


def test_a_shard_that_the_url_does_not_list_is_reported_to_the_operator(
    clickhouse_servers: ClickHouseServers,
) -> None:
    url = address_of(clickhouse_servers.servers[:1], new_database(), **SHARDS)
    with pytest.raises(OperatorError) as refused:
        ClickHouseWriter(parse_address(url)).prepare()
    assert str(refused.value) == (
        f'the cluster "{CLUSTER}" of ClickHouse has 2 shards: with replicated=0 the URL must list '
        "a host of each, and lists 1"
    )


def test_a_server_that_is_too_old_is_refused(clickhouse_servers: ClickHouseServers) -> None:
    url = address_of(clickhouse_servers.servers[:1], new_database())
    writer = ClickHouseWriter(parse_address(url), oldest_version=(99, 1))
    with pytest.raises(OperatorError) as refused:
        writer.prepare()
    version = clickhouse_servers.servers[0].execute("SELECT version()").strip()
    assert str(refused.value) == (
        f"ClickHouse has the version {version}: Headrace needs 99.1 or newer"
    )


def test_a_response_needs_no_space_on_the_disk_of_the_server(
    dedicated_shards: ClickHouseServers,
) -> None:
    """On a full disk a server cuts off what it has written there, and reports success."""
    (server, *_) = dedicated_shards.servers
    temporary = server.data / "tmp"
    numbers = "SELECT repeat('0123456789', number) FROM numbers(1000)"  # 5 MB

    def count() -> int:
        return len(pool.run_on_any(lambda client: query_rows(client, numbers)))

    with (
        contextlib.closing(ClickHouseTables([server])) as made,
        contextlib.closing(SyncClientPool(made.address, read_timeout_s=60)) as pool,
    ):
        assert (len(made.rows(numbers)), count()) == (1000, 1000)  # opens the connections
        temporary.rmdir()
        temporary.touch()  # so that no file can be written in it
        assert (len(made.rows(numbers)), count()) == (1000, 1000)
        temporary.unlink()
        temporary.mkdir()


def test_a_server_whose_disk_takes_no_file_counts_as_away_for_new_connections(
    dedicated_shards: ClickHouseServers,
) -> None:
    (broken, _) = dedicated_shards.servers
    temporary = broken.data / "tmp"
    with contextlib.closing(ClickHouseTables(dedicated_shards.servers, **SHARDS)) as made:
        made.insert(EVENTS, rows(0))
        temporary.rmdir()
        temporary.touch()  # so that no file can be created in it
        try:
            with contextlib.closing(SyncClientPool(made.address, read_timeout_s=60)) as pool:
                assert pool.run_on_any(lambda client: query_rows(client, "SELECT 1")) == [[1]]
            assert made.rows(COUNT) == [[10, 10]]
            alone = replace(made.address, hosts=made.address.hosts[:1])
            with (
                contextlib.closing(SyncClientPool(alone, read_timeout_s=60)) as pool,
                pytest.raises(StoreUnavailable, match=r"no ClickHouse server responds \(.*CANNOT"),
            ):
                pool.run_on_any(lambda client: query_rows(client, "SELECT 1"))
        finally:
            temporary.unlink()
            temporary.mkdir()


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ({}, SHARDS, "has the tables of one server: with the option cluster"),
        (SHARDS, {}, "are distributed over a cluster: the URL needs the option cluster"),
    ],
    ids=["into a cluster", "out of it"],
)
def test_tables_keep_their_layout_whatever_the_url_says_later(
    before: dict[str, Any],
    after: dict[str, Any],
    reason: str,
    clickhouse_servers: ClickHouseServers,
) -> None:
    servers = clickhouse_servers.servers

    def hosts(options: dict[str, Any]) -> Sequence[ClickHouseServer]:
        return servers if options else servers[:1]

    with contextlib.closing(ClickHouseTables(hosts(before), **before)) as made:
        made.insert(EVENTS, rows(0))
        url = address_of(hosts(after), made.database, **after)
        with pytest.raises(OperatorError, match=reason):
            ClickHouseWriter(parse_address(url)).prepare()
        assert made.rows(COUNT) == [[10, 10]]


def test_a_missing_grant_is_named(clickhouse_servers: ClickHouseServers) -> None:
    url = reading_address_of(clickhouse_servers.servers[:1], new_database())
    with pytest.raises(OperatorError, match=NO_PARTS):
        ClickHouseWriter(parse_address(url)).prepare()
    with contextlib.closing(ClickHouseTables(clickhouse_servers.servers[:1])) as made:
        statement = "SELECT count() FROM system.parts"
        with pytest.raises(StoreUnavailable, match=NO_PARTS):
            made.rows(statement)


def test_an_unreachable_host_is_skipped(clickhouse_servers: ClickHouseServers) -> None:
    made = ClickHouseTables(clickhouse_servers.servers[:1])
    unused = Host("127.0.0.1", free_port())
    address = replace(made.address, hosts=(unused, *made.address.hosts))
    writer = ClickHouseWriter(address)
    writer.insert(EVENTS, arrow_stream(EVENTS, rows(0)), token="t")
    writer.close()
    reader = ClickHouseReader(address, connections=2, log=get_logger())
    selecting = reader.select(COUNT, EncodedParameters({}), LIMITS, f"{made.database}-passed-over")
    assert decode_rows(made.run(selecting)) == [[10, 10]]
    wait_until(lambda: made.run(reader.is_ready()), "it is ready within its second")
    made.run(reader.close())
    made.close()


@pytest.mark.parametrize("first", ["a select", "a readiness check"])
def test_selects_begin_with_another_host_after_one_met_a_silent_one(
    first: str, dedicated_cluster: tuple[ClickHouseServers, ClickHouseTables]
) -> None:
    servers, tables = dedicated_cluster
    port = "SELECT getServerPort('http_port')"

    def select(timeout_s: float) -> Any:
        limits = replace(LIMITS, timeout_s=timeout_s)
        return tables.reader.select(port, EncodedParameters({}), limits, tables.database)

    ((used,),) = decode_rows(tables.run(select(60)))
    (silent,) = (server for server in servers.servers if server.port == used)
    (other,) = (server for server in servers.servers if server.port != used)
    silent.signal(signal.SIGSTOP)
    try:
        if first == "a select":
            with pytest.raises(QueryTimedOut):
                tables.run(select(0.1))
        else:
            assert not tables.run(tables.reader.is_ready())
        assert decode_rows(tables.run(select(60))) == [[other.port]]
    finally:
        silent.signal(signal.SIGCONT)


def test_selects_begin_with_another_host_after_one_did_not_open_a_connection(
    clickhouse_servers: ClickHouseServers,
) -> None:
    made = ClickHouseTables(clickhouse_servers.servers[:1])
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = Host("127.0.0.1", silent.getsockname()[1])
        address = replace(made.address, hosts=(host, *made.address.hosts))
        reader = ClickHouseReader(address, connections=2, log=get_logger())
        assert not made.run(reader.is_ready())
        wait_until(lambda: made.run(reader.is_ready()), "the other host responds within a second")
        made.run(reader.close())
    made.close()


def test_a_select_does_not_wait_for_a_host_that_opens_no_connection(
    clickhouse_servers: ClickHouseServers,
) -> None:
    made = ClickHouseTables(clickhouse_servers.servers[:1])
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = Host("127.0.0.1", silent.getsockname()[1])
        for hosts in ((host,), (host, *made.address.hosts)):
            address = replace(made.address, hosts=hosts)
            reader = ClickHouseReader(address, connections=2, log=get_logger())
            select = reader.select("SELECT 1", EncodedParameters({}), LIMITS, made.database)
            if len(hosts) == 1:
                with pytest.raises(StoreUnavailable, match=f"{host}: NO_RESPONSE_IN_TIME"):
                    made.run(select)
            else:
                assert decode_rows(made.run(select)) == [[1]]
            made.run(reader.close())
    made.close()


def stale_until(condition: str) -> str:
    """Return a statement that fails until then, as one whose replicas are all behind."""
    return (
        f"SELECT throwIf(NOT ({condition}), 'behind', 369::Int16) "
        "SETTINGS allow_custom_error_code_in_throwif = 1"
    )


def test_a_select_waits_for_replicas_that_are_all_behind(
    clickhouse_servers: ClickHouseServers,
) -> None:
    with contextlib.closing(ClickHouseTables(clickhouse_servers.servers[:1])) as made:
        made.rows("SELECT 1")  # opens the connection
        arrives_ms = int(time.time() * 1000) + 1000
        sql = stale_until(f"toUnixTimestamp64Milli(now64()) >= {arrives_ms}")
        assert made.rows(sql) == [[0]]


def test_a_select_whose_replicas_stay_behind_is_unavailable_at_its_deadline(
    clickhouse_servers: ClickHouseServers,
) -> None:
    with contextlib.closing(ClickHouseTables(clickhouse_servers.servers[:1])) as made:
        made.rows("SELECT 1")  # opens the connection
        began_s = time.monotonic()
        with pytest.raises(StoreUnavailable, match="ALL_REPLICAS_ARE_STALE"):
            made.rows(stale_until("0"), limits=replace(LIMITS, timeout_s=2))
        assert time.monotonic() - began_s > 1


@pytest.mark.parametrize("cause", ["password", "host"])
def test_the_log_says_once_why_the_store_cannot_be_read(
    cause: str, clickhouse_servers: ClickHouseServers
) -> None:
    unused = Host("127.0.0.1", free_port())
    with contextlib.closing(ClickHouseTables(clickhouse_servers.servers[:1])) as made:
        address, reason = {
            "password": (
                replace(made.address, password="se/cret"),
                "ClickHouse rejected a statement: AUTHENTICATION_FAILED (516)",
            ),
            "host": (
                replace(made.address, hosts=(unused,)),
                f"no ClickHouse server responds ({unused}: CONNECTION_FAILED)",
            ),
        }[cause]
        made.run(made.reader.is_ready())  # imports the client: a part of the second that it has
        while True:
            with capture_logs() as lines:
                reader = ClickHouseReader(address, connections=2, log=get_logger())
                assert [made.run(reader.is_ready()) for _ in range(2)] == [False, False]
                made.run(reader.close())
            if not any("no response within" in line["reason"] for line in lines):
                break  # a busy machine takes longer than a second, which is another reason
    user = made.address.user
    line = {"event": "clickhouse_not_readable", "log_level": "warning", "reason": reason}
    assert lines == [{**line, "user": user}]


def test_cancelling_a_select_kills_the_query_on_every_shard(
    cluster: ClickHouseTables, capfd: pytest.CaptureFixture[str]
) -> None:
    query_id = f"{cluster.database}-cancelled"
    running = (
        f"SELECT count() FROM clusterAllReplicas('{CLUSTER}', system.processes) "
        f"WHERE initial_query_id = '{query_id}'"
    )

    def count() -> int:
        return int(cluster.servers[0].execute(running))

    selecting_task = asyncio.run_coroutine_threadsafe(
        cluster.reader.select(ENDLESS, EncodedParameters({}), LONG_TIMEOUT, query_id),
        cluster.loop,
    )
    wait_until(lambda: count() > 0, "the query runs")
    selecting_task.cancel()
    wait_until(lambda: count() == 0, "the query has ended")
    cluster.run(asyncio.sleep(0.1))  # until the reader would have logged a failure
    assert "query_not_killed" not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO events (id) VALUES ('')",
        "DROP TABLE events",
        "ALTER TABLE events DELETE WHERE 1",
    ],
)
def test_the_reader_is_read_only(statement: str, cluster: ClickHouseTables) -> None:
    with pytest.raises((ClickHouseError, StoreUnavailable), match=r"READONLY|ACCESS_DENIED"):
        cluster.rows(statement)


@pytest.mark.parametrize("size", [1, MAX_PIECE_CHARACTERS, MAX_PIECE_CHARACTERS * 3 + 1, 1_000_000])
def test_a_long_value_is_bound_as_it_is(size: int, cluster: ClickHouseTables) -> None:
    text = ("é'\\\n" * size)[:size]
    ((found,),) = cluster.rows("SELECT {text:String}", {"text": text})
    assert found == text
    ((found,),) = cluster.rows("SELECT {all:Array(String)}", {"all": ["x", text, "y"]})
    assert found == ["x", text, "y"]


def test_a_filter_takes_many_values_of_any_total_length(
    cluster: ClickHouseTables,
) -> None:
    wanted = [f"{number}-{'x' * 900}" for number in range(1000)]
    found = cluster.rows(
        "SELECT {last:String} IN {all:Array(String)}, 'other' IN {all:Array(String)}",
        {"last": wanted[-1], "all": wanted},
    )
    assert found == [[1, 0]]


def logged_statements(server: ClickHouseServer, text: str) -> int:
    """Return the entries of a server's log of queries that have a text."""
    server.execute("SYSTEM FLUSH LOGS")
    return int(
        server.execute(
            f"SELECT count() FROM system.query_log WHERE position(query, '{text}') > 0 "
            "AND position(query, 'query_log') = 0"
        )
    )


def test_the_log_of_the_servers_has_no_identifier_that_an_erasure_looks_for(
    dedicated_shards: ClickHouseServers,
) -> None:
    servers = dedicated_shards.servers
    configuration = servers[0].configuration
    section = "<query_log><database>system</database><table>query_log</table></query_log>"
    written = configuration.read_text().replace("<clickhouse>", f"<clickhouse>{section}", 1)
    configuration.write_text(written)
    for server in servers:
        server.kill()
        server.start()
    with contextlib.closing(ClickHouseTables(servers, cluster=CLUSTER, replicated=0)) as made:
        made.rows(f"{COUNT} WHERE anonymous_id = {{id:String}}", {"id": "of-a-reader"})
        erased = Selector(SelectorKind.ANONYMOUS_ID, "of-an-erasure")
        query = find_rows(EVENTS, "web_1", [erased], made.dialect)
        assert query is not None
        finder = ClickHouseRowFinder(made.address)
        assert finder.select(query) == []
        finder.close()
        for server in servers:
            assert logged_statements(server, "of-a-reader") > 0
            assert logged_statements(server, "of-an-erasure") == 0
