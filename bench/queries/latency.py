"""Ten queries over HTTP against hand-written SQL in bare chDB (Y3), and as data grows.

Run: .venv/bin/python -m bench --only questions

The service runs on the data set, bare chDB on a copy of its store: both have the same parts, and a
directory cannot be open twice. They run each query in turn, and the rows are compared each time.
The result cache is off; its effect is a measurement of its own.
"""

import http.client
import math
import os
import shutil
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.baselines.chdb import BareChdb
from bench.dataset.generate import Dataset, ensure_dataset
from bench.load.processes import measure_usage, pids_of
from bench.queries.query_list import QUERIES, BenchmarkQuery, DateRange
from bench.report.measurements import TIMES, Measurement, Threshold
from bench.scale import Scale
from testing.service import Service

MONTH = DateRange("2026-03-01", "2026-03-31", "2026-04-01")
FIRST_WEEK = DateRange("2026-01-01", "2026-01-08", "2026-01-09")
WARM_UPS = 2
THRESHOLD = Threshold(factor=1.15, fixed=3.0)
NO_CACHE = {"HEADRACE_QUERY_CACHE_BYTES": "0"}
GROWTH_THRESHOLD = Threshold(factor=1.3)

Rows = list[list[Any]]
_SUFFIXES_OF_PARTS = frozenset({".bin", ".cmrk2", ".cmrk3", ".cmrk4", ".cidx"})
"""Files that chDB never changes once they are written, which are nearly all bytes of a store."""


class QueryResult(NamedTuple):
    """Latency and CPU of a query, and its rows in the order of the query's columns."""

    ms: float
    cpu_s: float
    rows: Rows


class Response(NamedTuple):
    """The response of a query: latency, CPU of all processes meanwhile, and its `data`."""

    ms: float
    cpu_s: float
    data: Any


class HttpClient:
    """Queries a running service about one website, over one persistent connection."""

    def __init__(self, service: Service, dataset: Dataset) -> None:
        self._pids = pids_of(service)
        self._connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
        self._website = dataset.websites[0]
        self._headers = {
            "Authorization": f"Bearer {dataset.key}",
            "Content-Type": "application/json",
        }

    def run_query(self, query: BenchmarkQuery, date_range: DateRange) -> QueryResult:
        """Run a custom query, which must succeed."""
        response = self.send("custom", query.body(date_range))
        rows = [[row[name] for name in query.columns] for row in response.data]
        return QueryResult(response.ms, response.cpu_s, rows)

    def send(self, kind: str, body: Mapping[str, Any]) -> Response:
        """Send a query to /v1/query/KIND, which must succeed.

        Over the rate of its kind it is sent again later, and only that is measured.
        """
        path, encoded = f"/v1/query/{kind}?website_id={self._website}", msgspec.json.encode(body)
        while True:
            with measure_usage(self._pids) as usage:
                self._connection.request("POST", path, encoded, self._headers)
                response = self._connection.getresponse()
                result = response.read()
            if response.status != HTTPStatus.TOO_MANY_REQUESTS:
                break
            time.sleep(int(response.headers["Retry-After"]))
        assert response.status == 200, f"{encoded.decode()}: {result.decode()}"
        return Response(usage.wall_s * 1e3, usage.cpu_s, msgspec.json.decode(result)["data"])


class ChdbClient:
    """Runs the equivalent hand-written SQL in bare chDB."""

    def __init__(self, engine: BareChdb, dataset: Dataset) -> None:
        self._engine = engine
        self._website = dataset.websites[0]

    def run_query(self, query: BenchmarkQuery, date_range: DateRange) -> QueryResult:
        """Run a query."""
        sql = query.statement(self._website, date_range)
        cpu_before_s, started_s = time.process_time(), time.perf_counter()
        result = self._engine.query_bytes(sql)
        ms, cpu_s = (time.perf_counter() - started_s) * 1e3, time.process_time() - cpu_before_s
        return QueryResult(ms, cpu_s, msgspec.json.Decoder(list[Any]).decode_lines(result))


@contextmanager
def serving(dataset: Dataset, settings: Mapping[str, str] = NO_CACHE) -> Generator[Service]:
    """Run the real service on a data set."""
    service = Service(Path(dataset.data), settings=settings).start()
    try:
        yield service
        service.stop()
    finally:
        service.kill()


@contextmanager
def copied_store(dataset: Dataset) -> Generator[BareChdb]:
    """Open a copy of a data set's store, which no process may have open while it is made.

    Symbolic links are preserved. Files that never change are linked: a hundred million events take
    11 GB, and both stores are in the page cache once. The copy is removed afterwards.
    """
    folder = Path(tempfile.mkdtemp(prefix="bare-", dir=Path(dataset.data).parent))
    try:
        shutil.copytree(
            dataset.paths.store, folder / "store", symlinks=True, copy_function=_link_or_copy
        )
        engine = BareChdb(folder / "store")
        try:
            yield engine
        finally:
            engine.close()
    finally:
        shutil.rmtree(folder)


def _link_or_copy(source: str, target: str) -> None:
    if Path(source).suffix in _SUFFIXES_OF_PARTS:
        os.link(source, target)
    else:
        shutil.copy2(source, target)


def measure(scale: Scale) -> list[Measurement]:
    """Measure both data sets, and the growth from one to the other."""
    runs, small, large = scale.query_runs, scale.small_events, scale.events
    return [
        *measure_queries(scale.folder, events=large, runs=runs),
        *measure_queries(scale.folder, events=small, runs=runs),
        *measure_growth(scale.folder, small=small, large=large, runs=runs),
        measure_cache(scale.folder, events=large),
    ]


def measure_queries(folder: Path, *, events: int, runs: int) -> list[Measurement]:
    """Run all queries over a month of the biggest website, in turn with bare chDB."""
    dataset = ensure_dataset(folder, events=events)
    with copied_store(dataset) as engine, serving(dataset) as service:
        http_client, chdb_client = HttpClient(service, dataset), ChdbClient(engine, dataset)
        return [
            measure_pair(
                query,
                http_client,
                chdb_client,
                runs=runs,
                group=f"questions over {events:,} events",
            )
            for query in QUERIES
        ]


def measure_pair(
    query: BenchmarkQuery,
    http_client: HttpClient,
    chdb_client: ChdbClient,
    *,
    runs: int,
    group: str,
) -> Measurement:
    """Run a query over the month in turn with hand-written SQL, and compare the rows."""
    pairs: list[tuple[QueryResult, QueryResult]] = []
    for _ in range(WARM_UPS + runs):
        actual, expected = (
            http_client.run_query(query, MONTH),
            chdb_client.run_query(query, MONTH),
        )
        compare_rows(query.name, actual.rows, expected.rows)
        pairs.append((actual, expected))
    counted = pairs[WARM_UPS:]
    cpu_ratio = sum(actual.cpu_s for actual, _ in counted) / sum(
        expected.cpu_s for _, expected in counted
    )
    return Measurement(
        group=group,
        title=query.name,
        unit="ms",
        runs=tuple(actual.ms for actual, _ in counted),
        baseline="Y3",
        baseline_runs=tuple(expected.ms for _, expected in counted),
        threshold=THRESHOLD,
        remark=f"CPU {cpu_ratio:.2f} {TIMES} Y3; {len(counted[0][0].rows):,} rows, equal",
    )


def measure_growth(folder: Path, *, small: int, large: int, runs: int) -> list[Measurement]:
    """Query the first days in a small data set, and the same days in a large one."""
    datasets = [
        ensure_dataset(folder, events=events, all_events=large) for events in (small, large)
    ]
    with serving(datasets[0]) as before, serving(datasets[1]) as after:
        clients = [HttpClient(before, datasets[0]), HttpClient(after, datasets[1])]
        return [
            _measure_growth_of(query, clients, runs=runs, small=small, large=large)
            for query in QUERIES
        ]


def _measure_growth_of(
    query: BenchmarkQuery, clients: Sequence[HttpClient], *, runs: int, small: int, large: int
) -> Measurement:
    timings_ms: list[list[float]] = []
    for _ in range(WARM_UPS + runs):
        results = [client.run_query(query, FIRST_WEEK) for client in clients]
        compare_rows(query.name, results[0].rows, results[1].rows)
        timings_ms.append([result.ms for result in results])
    small_label, large_label = f"{small / 1e6:g} M", f"{large / 1e6:g} M"
    return Measurement(
        group=f"the same eight days, as data grows from {small_label} to {large_label} events",
        title=query.name,
        unit="ms",
        runs=tuple(after for _, after in timings_ms[WARM_UPS:]),
        baseline=f"at {small_label}",
        baseline_runs=tuple(before for before, _ in timings_ms[WARM_UPS:]),
        threshold=GROWTH_THRESHOLD,
    )


def measure_cache(folder: Path, *, events: int) -> Measurement:
    """Run each query twice with the cache on, and measure the latency of the second result."""
    dataset = ensure_dataset(folder, events=events)
    with serving(dataset, {}) as service:
        client = HttpClient(service, dataset)
        first = [client.run_query(query, MONTH) for query in QUERIES]
        cached = [client.run_query(query, MONTH) for query in QUERIES]
    return Measurement(
        group="asked again, while nothing new of the website was stored",
        title="each of the ten questions over a month",
        unit="ms",
        runs=tuple(result.ms for result in cached),
        baseline="first",
        baseline_runs=tuple(result.ms for result in first),
        remark="a run is a question; the answer comes from the cache",
    )


def compare_rows(name: str, actual: Rows, expected: Rows) -> None:
    """Fail if two results differ; sums of fractions may differ in their last digits."""
    assert len(actual) == len(expected), f"{name}: {len(actual)} rows and {len(expected)}"
    for left, right in zip(actual, expected, strict=True):
        assert len(left) == len(right), f"{name}: {left} and {right}"
        assert all(map(_are_equal, left, right)), f"{name}: {left} and {right}"


def _are_equal(left: object, right: object) -> bool:
    if isinstance(left, int | float) and isinstance(right, int | float):
        return math.isclose(left, right, rel_tol=1e-9)
    return left == right
