"""Startup time, idle memory and disk usage with ten million stored events.

Run: .venv/bin/python -m bench --only footprint
"""

import time
from pathlib import Path
from typing import NamedTuple

from bench.baselines.chdb import BareChdb
from bench.dataset.generate import Dataset, ensure_dataset
from bench.load.processes import anonymous_mb, memory_mb, pids_of, wait_until_idle
from bench.load.target import DEFAULT_WORKERS
from bench.report.measurements import Measurement, Threshold
from bench.scale import Scale
from testing.service import Service

DISK_PER_EVENT = "disk for one event and its share of vitals and errors"
_POLL_INTERVAL_S = 0.01
_DISK = """
SELECT sum(bytes_on_disk) / 1e6, sumIf(bytes_on_disk, table = 'events') / 1e6, count()
FROM system.parts WHERE active AND database = 'headrace'
"""


class Start(NamedTuple):
    """One start on the stored events, and the memory once the processes are idle."""

    seconds: float
    memory_mb: float
    anonymous_mb: float


def measure(scale: Scale) -> list[Measurement]:
    """Measure everything on one data set."""
    dataset = ensure_dataset(scale.folder, events=scale.events)
    starts = [_start(dataset) for _ in range(scale.runs)]
    stored = f"with {scale.events:,} events stored"
    return [
        Measurement(
            group=stored,
            title="start, to ready",
            unit="s",
            runs=tuple(start.seconds for start in starts),
            threshold=Threshold(fixed=2),
        ),
        Measurement(
            group=stored,
            title="memory, idle, all processes",
            unit="MB",
            runs=tuple(start.memory_mb for start in starts),
            threshold=Threshold(fixed=450),
            remark=f"{starts[-1].anonymous_mb:,.0f} MB of it no file's",
        ),
        *_disk_measurements(dataset, stored),
    ]


def _start(dataset: Dataset) -> Start:
    service = Service(Path(dataset.data), workers=DEFAULT_WORKERS)
    try:
        seconds = start_timed(service)
        pids = pids_of(service)
        wait_until_idle(pids)
        start = Start(seconds, memory_mb(pids), anonymous_mb(pids))
        service.stop()
    finally:
        service.kill()
    return start


def start_timed(service: Service) -> float:
    """Start a service and return the seconds until it is ready."""
    started_s = time.perf_counter()
    service.launch()
    while not service.is_ready():
        assert service.exit_code() is None, service.log_text()
        time.sleep(_POLL_INTERVAL_S)
    return time.perf_counter() - started_s


def _disk_measurements(dataset: Dataset, group: str) -> list[Measurement]:
    disk = measure_disk(dataset, group)
    each_bytes = disk.value * 1e6 / dataset.events
    each = Measurement(group=group, title=DISK_PER_EVENT, unit="bytes", runs=(each_bytes,))
    return [disk, each]


def measure_disk(dataset: Dataset, group: str) -> Measurement:
    """Return the disk usage of a data set; no process may have its store open."""
    engine = BareChdb(dataset.paths.store)
    try:
        ((all_mb, events_mb, parts),) = engine.query(_DISK)
    finally:
        engine.close()
    return Measurement(
        group=group,
        title="disk, web vitals and errors included",
        unit="MB",
        runs=(all_mb,),
        threshold=Threshold(fixed=1300 * dataset.events / 10_000_000),
        remark=f"events alone {events_mb:,.0f} MB; {parts} parts",
    )
