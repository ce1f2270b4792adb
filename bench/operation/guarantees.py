"""Measures the cost of each guarantee: the service with it against the service without it.

Run: .venv/bin/python -m bench --only guarantees

No setting disables a guarantee. So the cost of fsync is measured on a file system in memory, where
fsync does nothing and writes are free too; event ids, by omitting them; read-your-own-writes, by
querying with and without an event just before; exactness, in bare chDB.
"""

import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench.baselines.chdb import BareChdb
from bench.dataset.generate import ensure_dataset
from bench.ingestion.cpu_cost import BATCH_CONNECTIONS, SINGLE_CONNECTIONS
from bench.ingestion.half_capacity import send_at_rate, steady_loads
from bench.load.bodies import BATCH, batch_bodies, single_bodies, with_event_ids
from bench.load.target import TargetService, run_target
from bench.load.wrk import Load, check_wrk
from bench.queries.latency import MONTH, NO_CACHE, copied_store
from bench.queries.query_list import QUERIES
from bench.report.measurements import Measurement, Threshold
from bench.scale import Scale
from testing.service import bearer

IN_MEMORY = Path("/dev/shm")
IN_MEMORY_BYTES = 2_000_000_000
QUERIES_PER_RUN = 25
_GROUP = "what each guarantee costs (the yardstick is without it)"
_CPU = "CPU for one event in batches of 100, to the stored row"
_COUNT = {"table": "events", "selects": [{"field": "*", "aggregate": "count"}]}


def measure(scale: Scale) -> list[Measurement]:
    """Measure the cost of all guarantees."""
    check_wrk()
    return [
        *_fsync_measurements(scale),
        _event_id_measurement(scale),
        _read_your_writes_measurement(scale),
        _exactness_measurement(scale),
    ]


def _fsync_measurements(scale: Scale) -> list[Measurement]:
    if not IN_MEMORY.is_dir() or shutil.disk_usage(IN_MEMORY).free < IN_MEMORY_BYTES:
        return [
            Measurement(group=_GROUP, title="fsync", unit="", skip_reason=f"no room in {IN_MEMORY}")
        ]
    single = Load(tuple(single_bodies()), SINGLE_CONNECTIONS, scale.turn_s)
    batch = Load(tuple(batch_bodies()), BATCH_CONNECTIONS, scale.turn_s)
    with (
        tempfile.TemporaryDirectory(prefix="fsync-", dir=scale.folder) as on_disk,
        tempfile.TemporaryDirectory(prefix="headrace-", dir=IN_MEMORY) as in_memory,
        run_target(Path(on_disk)) as with_fsync,
        run_target(Path(in_memory)) as without,
    ):
        both, load = (with_fsync, without), steady_loads()[0]
        rounds = [
            [
                [one.run_load(single, events_per_request=1).result.per_s for one in both],
                [_cpu_us(one, batch) for one in both],
                [send_at_rate(one, load, scale.turn_s).p50_ms for one in both],
            ]
            for _ in range(scale.runs)
        ]
    singles, batches, latencies = zip(*rounds, strict=True)
    return [
        _compare("fsync: single events", "requests/s", singles),
        _compare(f"fsync: {_CPU}", "µs", batches),
        _compare(f"fsync: p50 of a 200, {load.name}", "ms", latencies),
    ]


def _event_id_measurement(scale: Scale) -> Measurement:
    bodies = batch_bodies()
    loads = [
        Load(tuple(chosen), BATCH_CONNECTIONS, scale.turn_s)
        for chosen in (with_event_ids(bodies), bodies)
    ]
    with (
        tempfile.TemporaryDirectory(prefix="ids-", dir=scale.folder) as folder,
        run_target(Path(folder)) as target,
    ):
        turns = [[_cpu_us(target, load) for load in loads] for _ in range(scale.runs)]
    return _compare(
        f"eventIds: {_CPU}",
        "µs",
        turns,
        threshold=Threshold(factor=1.25),
        remark="every event has an id that is new; the ledger remembers seven days of them",
    )


def _cpu_us(target: TargetService, load: Load) -> float:
    cost = target.run_load(load, events_per_request=BATCH)
    return cost.cpu_s * 1e6 / cost.events


def _read_your_writes_measurement(scale: Scale) -> Measurement:
    with (
        tempfile.TemporaryDirectory(prefix="writes-", dir=scale.folder) as folder,
        run_target(Path(folder), settings=NO_CACHE) as target,
    ):
        send_at_rate(target, steady_loads()[1], scale.turn_s)
        turns = [
            [
                _query_over_http_ms(target, after_event=True),
                _query_over_http_ms(target, after_event=False),
            ]
            for _ in range(scale.runs)
        ]
    return _compare(
        "reading one's own writes: a count just after an event",
        "ms",
        turns,
        threshold=Threshold(factor=1, fixed=50),
        remark=f"medians of {QUERIES_PER_RUN} questions",
    )


def _query_over_http_ms(target: TargetService, *, after_event: bool) -> float:
    latencies_ms: list[float] = []
    for _ in range(QUERIES_PER_RUN):
        if after_event:
            assert target.service.post("/track", {"name": "x"}, headers=bearer(target.key)).ok
        started_s = time.perf_counter()
        target.service.answer(target.website, _COUNT, key=target.key)
        latencies_ms.append((time.perf_counter() - started_s) * 1e3)
    return median(latencies_ms)


def _exactness_measurement(scale: Scale) -> Measurement:
    dataset = ensure_dataset(scale.folder, events=scale.events)
    top_pages = next(query for query in QUERIES if "uniqExactIf" in query.sql)
    exact = top_pages.statement(dataset.websites[0], MONTH)
    with copied_store(dataset) as engine:
        turns = [
            [_query_ms(engine, exact), _query_ms(engine, exact.replace("uniqExactIf", "uniqIf"))]
            for _ in range(scale.query_runs)
        ]
    return _compare(f"exactness: {top_pages.name}, in the bare engine", "ms", turns)


def _query_ms(engine: BareChdb, sql: str) -> float:
    started_s = time.perf_counter()
    engine.query_bytes(sql)
    return (time.perf_counter() - started_s) * 1e3


def _compare(
    title: str,
    unit: str,
    turns: Sequence[Sequence[float]],
    *,
    threshold: Threshold | None = None,
    remark: str = "",
) -> Measurement:
    return Measurement(
        group=_GROUP,
        title=title,
        unit=unit,
        runs=tuple(turn[0] for turn in turns),
        baseline="without",
        baseline_runs=tuple(turn[1] for turn in turns),
        threshold=threshold,
        remark=remark,
    )
