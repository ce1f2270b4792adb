"""Migrates a data directory to one server and to two shards, and runs ten queries on all three.

The rows are compared each time. The shards share the cores of this machine with everything else, so
the ratio shows the cost of merging results, not the gain of a second host.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from bench.cluster.environment import SHARDS, ClusterEnv, store_settings
from bench.cluster.scale import ClusterScale
from bench.dataset.generate import Dataset, ensure_dataset
from bench.load.processes import measure_usage, pids_of
from bench.queries.latency import (
    MONTH,
    NO_CACHE,
    WARM_UPS,
    HttpClient,
    QueryResult,
    compare_rows,
    serving,
)
from bench.queries.query_list import QUERIES, BenchmarkQuery
from bench.report.measurements import Measurement
from testing.servers.clickhouse import ClickHouseServer
from testing.service import HEADRACE, Service, clean_environment

QUERY_CPU_MS = "CPU of one question, mean of the ten, all processes"
DISK_BYTES = "disk for one event, its share of vitals and errors included"
MIGRATION_ROWS = "migrate-store to two shards, compared before and after"
_ONE = "one server"
_TABLES = ("events", "errors", "performance")
_MIGRATION_GROUP = "moving a machine's rows with migrate-store"


class MigratedStore(NamedTuple):
    """A store that the rows were migrated to, and the cost of the migration."""

    service: Service
    servers: Sequence[ClickHouseServer]
    database: str
    rows: int
    seconds: float
    memory_mb: float


class QueryTurn(NamedTuple):
    """One query, run on all three stores in turn."""

    embedded: QueryResult
    one: QueryResult
    two: QueryResult


def measure(env: ClusterEnv, scale: ClusterScale) -> list[Measurement]:
    """Migrate the rows twice and run the queries."""
    dataset = ensure_dataset(env.datasets, events=scale.events)
    with ExitStack() as stack:
        one = stack.enter_context(_migrated(env, dataset, shards=1))
        two = stack.enter_context(_migrated(env, dataset, shards=SHARDS))
        embedded = stack.enter_context(serving(dataset))
        stores = (embedded, one.service, two.service)
        clients = [HttpClient(service, dataset) for service in stores]
        measurements = [_measure_query(query, clients, dataset, scale) for query in QUERIES]
        cpu_ms = [
            _cpu_ms(migrated, client)
            for migrated, client in zip((two, one), clients[:0:-1], strict=True)
        ]
    return [
        *measurements,
        _cpu_measurement(measurements, *cpu_ms),
        *_migration_measurements(one, two),
    ]


@contextmanager
def _migrated(env: ClusterEnv, dataset: Dataset, *, shards: int) -> Generator[MigratedStore]:
    """Migrate a copy of the data set and run the service on the new store."""
    folder = Path(tempfile.mkdtemp(prefix=f"moved-{shards}-", dir=env.folder))
    data = folder / "data"
    subprocess.run(["cp", "-a", dataset.data, str(data)], check=True)
    servers = env.clickhouse.servers[:shards]
    settings = {**NO_CACHE, **store_settings(servers)}
    service = Service(data, settings=settings)
    try:
        rows, seconds, memory_mb = _migrate(data, settings["HEADRACE_CLICKHOUSE_URL"])
        service.start()
        database = settings["HEADRACE_CLICKHOUSE_URL"].partition("?")[0].rpartition("/")[2]
        yield MigratedStore(service, servers, database, rows, seconds, memory_mb)
        service.stop()
    finally:
        service.kill()
        shutil.rmtree(folder)


def _migrate(data: Path, url: str) -> tuple[int, float, float]:
    """Migrate. Return the rows, the seconds, and the peak memory of the command in megabytes."""
    command = [HEADRACE, "migrate-store", "--to", "clickhouse", "--json", "--data", str(data)]
    with (data.parent / "moved.json").open("w+b") as output:
        started_s = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=output, env=clean_environment({"HEADRACE_CLICKHOUSE_URL": url})
        )
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started_s
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        report = msgspec.json.decode(output.read())
    assert process.returncode == 0, report
    assert report["done"], report
    return report["copied"], seconds, used.ru_maxrss * 1024 / 1e6


def _measure_query(
    query: BenchmarkQuery, clients: Sequence[HttpClient], dataset: Dataset, scale: ClusterScale
) -> Measurement:
    turns: list[QueryTurn] = []
    for _ in range(WARM_UPS + scale.query_runs):
        turn = QueryTurn(*(client.run_query(query, MONTH) for client in clients))
        compare_rows(query.name, turn.two.rows, turn.one.rows)
        compare_rows(query.name, turn.two.rows, turn.embedded.rows)
        turns.append(turn)
    counted = turns[WARM_UPS:]
    embedded_ms = median(turn.embedded.ms for turn in counted)
    return Measurement(
        group=f"ten questions over {dataset.events:,} events: two shards beside one server",
        title=query.name,
        unit="ms",
        runs=tuple(turn.two.ms for turn in counted),
        baseline=_ONE,
        baseline_runs=tuple(turn.one.ms for turn in counted),
        remark=f"embedded store {embedded_ms:.0f} ms; {len(counted[0].two.rows):,} rows, equal",
    )


def _cpu_ms(migrated: MigratedStore, client: HttpClient) -> float:
    pids = (*pids_of(migrated.service), *(server.pid for server in migrated.servers))
    with measure_usage(pids) as usage:
        for query in QUERIES:
            client.run_query(query, MONTH)
    return usage.cpu_s * 1e3 / len(QUERIES)


def _cpu_measurement(
    measurements: Sequence[Measurement], two_ms: float, one_ms: float
) -> Measurement:
    return Measurement(
        group=measurements[0].group,
        title=QUERY_CPU_MS,
        unit="ms",
        runs=(two_ms,),
        baseline=_ONE,
        baseline_runs=(one_ms,),
    )


def _migration_measurements(one: MigratedStore, two: MigratedStore) -> list[Measurement]:
    rows = Measurement(
        group=_MIGRATION_GROUP,
        title=MIGRATION_ROWS,
        unit="rows/s",
        runs=(two.rows / two.seconds,),
        baseline=_ONE,
        baseline_runs=(one.rows / one.seconds,),
        remark=f"{two.rows:,} rows, counts and checksums equal",
    )
    memory = msgspec.structs.replace(
        rows,
        title="its memory at its most, pages of files included",
        unit="MB",
        runs=(two.memory_mb,),
        baseline_runs=(one.memory_mb,),
        remark="",
    )
    disk = msgspec.structs.replace(
        memory,
        title=DISK_BYTES,
        unit="bytes",
        runs=(_disk_bytes(two),),
        baseline_runs=(_disk_bytes(one),),
    )
    return [rows, memory, disk]


def _disk_bytes(migrated: MigratedStore) -> float:
    """Return the bytes per event on disk, including a share of vitals and errors."""
    listed = ", ".join(f"'{table}'" for table in _TABLES)
    sizes = [
        server.execute(
            "SELECT sum(bytes_on_disk), sumIf(rows, table = 'events') FROM system.parts "
            f"WHERE active AND table IN ({listed}) AND startsWith(database, '{migrated.database}')"
        ).split()
        for server in migrated.servers
    ]
    return sum(float(size) for size, _ in sizes) / sum(float(events) for _, events in sizes)
