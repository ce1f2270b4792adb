"""Measures throughput, loader backlog and memory under sustained batches.

Run: .venv/bin/python -m bench --only sustained

One minute is at a constant rate and one as fast as batches are acknowledged. The constant rate is
above the required throughput: there the backlog must be small and must not grow. At full speed it
must grow, because batches are acknowledged faster than they are stored.
"""

import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

from bench.ingestion.cpu_cost import BATCH_CONNECTIONS
from bench.ingestion.half_capacity import SteadyLoad, send_at_rate
from bench.load.bodies import BATCH, batch_bodies
from bench.load.processes import anonymous_mb, memory_mb, wait_until_idle
from bench.load.target import TargetService, run_target
from bench.load.wrk import Load, check_wrk
from bench.report.measurements import Measurement, Threshold
from bench.scale import Scale

STEADY_BATCHES_PER_S = 1000
SAMPLE_EVERY_S = 1.0
_GROUP = "sustained load"
_ACKNOWLEDGED = ("headrace_http_requests_total", 'endpoint="track"', 'status="200"')
_STORED = ("headrace_items_total", 'outcome="accepted"')
_THROUGHPUT = Threshold(fixed=60_000, at_least=True)


class Sample(NamedTuple):
    """One sample during a load: events since the service started, and memory."""

    at_s: float
    acknowledged: float
    stored: float
    memory_mb: float
    anonymous_mb: float


class SustainedRun(NamedTuple):
    """One run: its events, the generator's share of a core, and samples in order."""

    events: int
    generator_share: float
    samples: Sequence[Sample]

    @property
    def stored_per_s(self) -> float:
        """Events stored per second of the load."""
        first, last = self.samples[0], self.samples[-1]
        return (last.stored - first.stored) / (last.at_s - first.at_s)

    @property
    def acknowledged_per_s(self) -> float:
        """Events acknowledged per second of the load."""
        first, last = self.samples[0], self.samples[-1]
        return (last.acknowledged - first.acknowledged) / (last.at_s - first.at_s)

    @property
    def backlog_s(self) -> float:
        """The mean backlog of the last third, as seconds of ingestion."""
        return self._mean_backlog_s(self._thirds()[2])

    @property
    def growth_s(self) -> float:
        """The growth of the backlog since the second third, in seconds of ingestion."""
        _, middle, last = self._thirds()
        return self._mean_backlog_s(last) - self._mean_backlog_s(middle)

    def _mean_backlog_s(self, samples: Sequence[Sample]) -> float:
        return mean(one.acknowledged - one.stored for one in samples) / self.acknowledged_per_s

    def _thirds(self) -> tuple[Sequence[Sample], Sequence[Sample], Sequence[Sample]]:
        third = max(1, len(self.samples) // 3)
        return self.samples[:third], self.samples[-2 * third : -third], self.samples[-third:]


def measure(scale: Scale) -> list[Measurement]:
    """Measure several runs of each kind on one directory."""
    check_wrk()
    with (
        tempfile.TemporaryDirectory(prefix="sustained-", dir=scale.folder) as folder,
        run_target(Path(folder)) as target,
    ):
        steady = [_run_steady(target, scale.sustained_s) for _ in range(scale.sustained_runs)]
        saturated = [_run_saturated(target, scale.sustained_s) for _ in range(scale.sustained_runs)]
    return [*steady_measurements(steady, scale), *saturated_measurements(saturated, scale)]


def _run_steady(target: TargetService, seconds: int) -> SustainedRun:
    load = SteadyLoad("", tuple(batch_bodies()), STEADY_BATCHES_PER_S, BATCH_CONNECTIONS, BATCH)
    with _sampled(target) as (samples, end):
        result = send_at_rate(target, load, seconds, on_sent=end)
    wait_until_idle(target.pids)
    return SustainedRun(result.requests * BATCH, result.generator_share, samples)


def _run_saturated(target: TargetService, seconds: int) -> SustainedRun:
    load = Load(tuple(batch_bodies()), BATCH_CONNECTIONS, seconds)
    with _sampled(target) as (samples, end):
        cost = target.run_load(load, events_per_request=BATCH, on_sent=end)
    return SustainedRun(cost.events, cost.result.generator_share, samples)


@contextmanager
def _sampled(target: TargetService) -> Generator[tuple[Sequence[Sample], Callable[[], None]]]:
    samples, ended = list[Sample](), threading.Event()
    sampler = threading.Thread(target=_collect_samples, args=(target, samples, ended))
    sampler.start()
    try:
        yield samples, ended.set
    finally:
        ended.set()
        sampler.join()


def _collect_samples(target: TargetService, samples: list[Sample], ended: threading.Event) -> None:
    """Sample the service until the load ends. Samples before the first event are left out."""
    started = target.metric(*_STORED)
    while not ended.wait(SAMPLE_EVERY_S):
        sample = _take_sample(target)
        if sample.stored > started:
            samples.append(sample)


def _take_sample(target: TargetService) -> Sample:
    return Sample(
        at_s=time.perf_counter(),
        acknowledged=target.metric(*_ACKNOWLEDGED) * BATCH,
        stored=target.metric(*_STORED),
        memory_mb=memory_mb(target.pids),
        anonymous_mb=anonymous_mb(target.pids),
    )


def steady_measurements(runs: Sequence[SustainedRun], scale: Scale) -> list[Measurement]:
    """Return the measurements of the runs at a constant rate."""
    rate = STEADY_BATCHES_PER_S * BATCH
    return [
        Measurement(
            group=_GROUP,
            title=f"batches of 100, {scale.sustained_s} s at a steady {rate:,} events/s: stored",
            unit="events/s",
            runs=tuple(run.stored_per_s for run in runs),
            threshold=_THROUGHPUT,
            remark=f"{_acknowledged_remark(runs)}; {_stored_remark(runs)}; "
            f"the client took {_generator_remark(runs)}",
        ),
        Measurement(
            group=_GROUP,
            title="at that rate: backlog of the last third, as time in which it comes in",
            unit="s",
            runs=tuple(run.backlog_s for run in runs),
            threshold=Threshold(fixed=3),
            remark="the loader gathers for up to a second",
        ),
        Measurement(
            group=_GROUP,
            title="at that rate: what this is more than in the second third",
            unit="s",
            runs=tuple(run.growth_s for run in runs),
            threshold=Threshold(fixed=0.5),
        ),
    ]


def saturated_measurements(runs: Sequence[SustainedRun], scale: Scale) -> list[Measurement]:
    """Return the measurements of the runs at full speed."""
    anonymous = max(sample.anonymous_mb for run in runs for sample in run.samples)
    backlog_s = median(run.backlog_s for run in runs)
    return [
        Measurement(
            group=_GROUP,
            title=f"batches of 100, {scale.sustained_s} s as fast as they are taken: stored",
            unit="events/s",
            runs=tuple(run.stored_per_s for run in runs),
            threshold=_THROUGHPUT,
            remark=f"{_acknowledged_remark(runs)}, so the last third waited "
            f"{backlog_s:.0f} s; {_stored_remark(runs)}; wrk took {_generator_remark(runs)}",
        ),
        Measurement(
            group=_GROUP,
            title="memory under that load, all processes, at its most",
            unit="MB",
            runs=tuple(max(one.memory_mb for one in run.samples) for run in runs),
            threshold=Threshold(fixed=1300),
            remark=f"{anonymous:,.0f} MB of it no file's",
        ),
    ]


def _acknowledged_remark(runs: Sequence[SustainedRun]) -> str:
    per_s = median(run.acknowledged_per_s for run in runs)
    return f"{per_s:,.0f} a second got a 200"


def _stored_remark(runs: Sequence[SustainedRun]) -> str:
    return f"all {sum(run.events for run in runs):,} events are stored"


def _generator_remark(runs: Sequence[SustainedRun]) -> str:
    return f"{median(run.generator_share for run in runs):.0%} of a core"
