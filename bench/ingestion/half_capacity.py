"""Measures the latency of a 200 at half of the required throughput.

Run: .venv/bin/python -m bench --only half-load
"""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from msgspec import Struct

from bench.ingestion.cpu_cost import BATCH_CONNECTIONS, SINGLE_CONNECTIONS
from bench.load.bodies import BATCH, batch_bodies, single_bodies
from bench.load.open_loop import OpenLoopResult, run_open_loop
from bench.load.target import TargetService, run_target
from bench.report.measurements import Measurement, Threshold
from bench.scale import Scale

P50_THRESHOLD = Threshold(fixed=6)
P99_THRESHOLD = Threshold(fixed=25)


class SteadyLoad(Struct, frozen=True):
    """A constant load of `rate` requests per second."""

    name: str
    bodies: tuple[bytes, ...]
    rate: int
    connections: int
    events_per_request: int


def steady_loads() -> tuple[SteadyLoad, SteadyLoad]:
    """Half of 12,000 single events per second, and half of 60,000 events per second in batches."""
    return (
        SteadyLoad(
            "single events, 6,000 a second", tuple(single_bodies()), 6000, SINGLE_CONNECTIONS, 1
        ),
        SteadyLoad(
            "batches of 100, 300 a second", tuple(batch_bodies()), 300, BATCH_CONNECTIONS, BATCH
        ),
    )


def measure(scale: Scale) -> list[Measurement]:
    """Measure both kinds of load in turn."""
    results_by_load: dict[str, list[OpenLoopResult]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="paced-", dir=scale.folder) as folder,
        run_target(Path(folder)) as target,
    ):
        for _ in range(scale.runs):
            for load in steady_loads():
                results_by_load.setdefault(load.name, []).append(
                    send_at_rate(target, load, scale.turn_s)
                )
    return [
        measurement
        for name, results in results_by_load.items()
        for measurement in _measurements(name, results)
    ]


def send_at_rate(
    target: TargetService,
    load: SteadyLoad,
    seconds: float,
    *,
    on_sent: Callable[[], None] = lambda: None,
) -> OpenLoopResult:
    """Send for some seconds, then require that everything is stored."""
    bodies = target.service.data.with_name("bodies")
    bodies.write_bytes(b"\n".join(load.bodies))
    stored_before = target.count_stored()
    result = run_open_loop(
        target.service.port,
        bodies,
        rate=load.rate,
        seconds=seconds,
        connections=load.connections,
        authorization=target.authorization,
    )
    on_sent()
    stored, sent = target.count_stored() - stored_before, result.requests * load.events_per_request
    assert stored == sent, f"{sent} events got a 200, {stored} are stored"
    return result


def _measurements(name: str, results: Sequence[OpenLoopResult]) -> list[Measurement]:
    share = median(one.generator_share for one in results)
    return [
        Measurement(
            group="acknowledgement at half load",
            title=f"{name}: {title}",
            unit="ms",
            runs=tuple(runs),
            threshold=threshold,
            remark=f"the client took {share:.0%} of a core",
        )
        for title, runs, threshold in (
            ("p50", [one.p50_ms for one in results], P50_THRESHOLD),
            ("p99", [one.p99_ms for one in results], P99_THRESHOLD),
        )
    ]
