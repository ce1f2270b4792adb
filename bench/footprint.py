"""What ten million stored events cost: the start, memory when nothing happens, and disk.

Run: .venv/bin/python -m bench --only footprint
"""

import time
from pathlib import Path
from typing import NamedTuple

from bench.bare_engine import BareEngine
from bench.dataset import Dataset, provide
from bench.figures import Figure, Target
from bench.processes import anonymous_mb, memory_mb, pids_of, wait_until_quiet
from bench.scale import Scale
from bench.subject import AS_MANY_WORKERS_AS_IT_WANTS
from tests.e2e.service import Service

DISK_OF_ONE = "disk for one event and its share of vitals and errors"
_LOOK_EVERY_S = 0.01
_DISK = """
SELECT sum(bytes_on_disk) / 1e6, sumIf(bytes_on_disk, table = 'events') / 1e6, count()
FROM system.parts WHERE active AND database = 'headrace'
"""


class Start(NamedTuple):
    """One start on what is stored, and the memory once it has come to rest."""

    seconds: float
    memory_mb: float
    anonymous_mb: float


def measure(scale: Scale) -> list[Figure]:
    """Measure all of it on one data set."""
    dataset = provide(scale.folder, events=scale.events)
    starts = [_start(dataset) for _ in range(scale.runs)]
    stored = f"with {scale.events:,} events stored"
    return [
        Figure(
            group=stored,
            what="start, to ready",
            unit="s",
            runs=tuple(start.seconds for start in starts),
            target=Target(fixed=2),
        ),
        Figure(
            group=stored,
            what="memory, idle, all processes",
            unit="MB",
            runs=tuple(start.memory_mb for start in starts),
            target=Target(fixed=450),
            remark=f"{starts[-1].anonymous_mb:,.0f} MB of it no file's",
        ),
        *_disk_figures(dataset, stored),
    ]


def _start(dataset: Dataset) -> Start:
    service = Service(Path(dataset.data), workers=AS_MANY_WORKERS_AS_IT_WANTS)
    try:
        started_s = time.perf_counter()
        service.launch()
        while not service.is_ready():
            assert service.exit_code() is None, service.log_text()
            time.sleep(_LOOK_EVERY_S)
        seconds = time.perf_counter() - started_s
        pids = pids_of(service)
        wait_until_quiet(pids)
        start = Start(seconds, memory_mb(pids), anonymous_mb(pids))
        service.stop()
    finally:
        service.kill()
    return start


def _disk_figures(dataset: Dataset, group: str) -> list[Figure]:
    engine = BareEngine(dataset.places.store)
    try:
        ((all_mb, events_mb, parts),) = engine.query(_DISK)
    finally:
        engine.close()
    disk = Figure(
        group=group,
        what="disk, web vitals and errors included",
        unit="MB",
        runs=(all_mb,),
        target=Target(fixed=1300 * dataset.events / 10_000_000),
        remark=f"events alone {events_mb:,.0f} MB; {parts} parts",
    )
    each = Figure(
        group=group, what=DISK_OF_ONE, unit="bytes", runs=(all_mb * 1e6 / dataset.events,)
    )
    return [disk, each]
