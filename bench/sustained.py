"""A minute of batches at a steady rate, then one as fast as they are taken: what is stored, how far
the loader is behind, and the memory that it takes.

Run: .venv/bin/python -m bench --only sustained
The steady rate is above the one that the service has to bear. There the backlog must be small and
must not grow. As fast as batches are taken it has to grow: they are taken faster than stored.
"""

import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

from bench.bodies import BATCH, batch_bodies
from bench.figures import Figure, Target
from bench.half_load import Pace, send_paced
from bench.ingestion import BATCH_CONNECTIONS
from bench.processes import anonymous_mb, memory_mb, wait_until_quiet
from bench.scale import Scale
from bench.subject import Subject, subject
from bench.wrk import Load, check_wrk

STEADY_BATCHES_PER_S = 1000
SAMPLE_EVERY_S = 1.0
_GROUP = "sustained load"
_ACKNOWLEDGED = ("headrace_http_requests_total", 'endpoint="track"', 'status="200"')
_STORED = ("headrace_items_total", 'outcome="accepted"')
_THROUGHPUT = Target(fixed=60_000, at_least=True)


class Sample(NamedTuple):
    """One moment of a load: events since the service started, and memory."""

    at_s: float
    acknowledged: float
    stored: float
    memory_mb: float
    anonymous_mb: float


class Minute(NamedTuple):
    """One run: its events, the generator's share of a core, and samples in order."""

    events: int
    generator_share: float
    samples: Sequence[Sample]

    @property
    def stored_per_s(self) -> float:
        """Events that were stored in a second of the load."""
        first, last = self.samples[0], self.samples[-1]
        return (last.stored - first.stored) / (last.at_s - first.at_s)

    @property
    def acknowledged_per_s(self) -> float:
        """Events that got a 200 in a second of the load."""
        first, last = self.samples[0], self.samples[-1]
        return (last.acknowledged - first.acknowledged) / (last.at_s - first.at_s)

    @property
    def backlog_s(self) -> float:
        """How long the mean backlog of the last third takes to come in."""
        return self._behind_s(self._thirds()[2])

    @property
    def growth_s(self) -> float:
        """How much longer that is than it was in the second third."""
        _, middle, last = self._thirds()
        return self._behind_s(last) - self._behind_s(middle)

    def _behind_s(self, samples: Sequence[Sample]) -> float:
        return mean(one.acknowledged - one.stored for one in samples) / self.acknowledged_per_s

    def _thirds(self) -> tuple[Sequence[Sample], Sequence[Sample], Sequence[Sample]]:
        third = max(1, len(self.samples) // 3)
        return self.samples[:third], self.samples[-2 * third : -third], self.samples[-third:]


def measure(scale: Scale) -> list[Figure]:
    """Measure some runs of each kind on one directory."""
    check_wrk()
    with (
        tempfile.TemporaryDirectory(prefix="sustained-", dir=scale.folder) as folder,
        subject(Path(folder)) as ours,
    ):
        steady = [_run_steady(ours, scale.sustained_s) for _ in range(scale.sustained_runs)]
        driven = [_run_driven(ours, scale.sustained_s) for _ in range(scale.sustained_runs)]
    return [*steady_figures(steady, scale), *driven_figures(driven, scale)]


def _run_steady(ours: Subject, seconds: int) -> Minute:
    pace = Pace("", tuple(batch_bodies()), STEADY_BATCHES_PER_S, BATCH_CONNECTIONS, BATCH)
    with _sampling(ours) as (samples, end):
        waits = send_paced(ours, pace, seconds, on_sent=end)
    wait_until_quiet(ours.pids)
    return Minute(waits.requests * BATCH, waits.generator_share, samples)


def _run_driven(ours: Subject, seconds: int) -> Minute:
    load = Load(tuple(batch_bodies()), BATCH_CONNECTIONS, seconds)
    with _sampling(ours) as (samples, end):
        whole = ours.drive(load, events_a_request=BATCH, on_sent=end)
    return Minute(whole.events, whole.driven.generator_share, samples)


@contextmanager
def _sampling(ours: Subject) -> Generator[tuple[Sequence[Sample], Callable[[], None]]]:
    samples, ended = list[Sample](), threading.Event()
    sampler = threading.Thread(target=_sample, args=(ours, samples, ended))
    sampler.start()
    try:
        yield samples, ended.set
    finally:
        ended.set()
        sampler.join()


def _sample(ours: Subject, samples: list[Sample], ended: threading.Event) -> None:
    """Look at the service until the load ends; leave out what is before its first event."""
    started = ours.metric(*_STORED)
    while not ended.wait(SAMPLE_EVERY_S):
        sample = _look(ours)
        if sample.stored > started:
            samples.append(sample)


def _look(ours: Subject) -> Sample:
    return Sample(
        at_s=time.perf_counter(),
        acknowledged=ours.metric(*_ACKNOWLEDGED) * BATCH,
        stored=ours.metric(*_STORED),
        memory_mb=memory_mb(ours.pids),
        anonymous_mb=anonymous_mb(ours.pids),
    )


def steady_figures(minutes: Sequence[Minute], scale: Scale) -> list[Figure]:
    """Return what the runs at a steady rate say."""
    rate = STEADY_BATCHES_PER_S * BATCH
    return [
        Figure(
            group=_GROUP,
            what=f"batches of 100, {scale.sustained_s} s at a steady {rate:,} events/s: stored",
            unit="events/s",
            runs=tuple(minute.stored_per_s for minute in minutes),
            target=_THROUGHPUT,
            remark=f"{_acknowledged(minutes)}; {_all_stored(minutes)}; "
            f"the client took {_share(minutes)}",
        ),
        Figure(
            group=_GROUP,
            what="at that rate: backlog of the last third, as time in which it comes in",
            unit="s",
            runs=tuple(minute.backlog_s for minute in minutes),
            target=Target(fixed=3),
            remark="the loader gathers for up to a second",
        ),
        Figure(
            group=_GROUP,
            what="at that rate: what this is more than in the second third",
            unit="s",
            runs=tuple(minute.growth_s for minute in minutes),
            target=Target(fixed=0.5),
        ),
    ]


def driven_figures(minutes: Sequence[Minute], scale: Scale) -> list[Figure]:
    """Return what the runs as fast as batches are taken say."""
    anonymous = max(sample.anonymous_mb for minute in minutes for sample in minute.samples)
    behind_s = median(minute.backlog_s for minute in minutes)
    return [
        Figure(
            group=_GROUP,
            what=f"batches of 100, {scale.sustained_s} s as fast as they are taken: stored",
            unit="events/s",
            runs=tuple(minute.stored_per_s for minute in minutes),
            target=_THROUGHPUT,
            remark=f"{_acknowledged(minutes)}, so the last third waited "
            f"{behind_s:.0f} s; {_all_stored(minutes)}; wrk took {_share(minutes)}",
        ),
        Figure(
            group=_GROUP,
            what="memory under that load, all processes, at its most",
            unit="MB",
            runs=tuple(max(one.memory_mb for one in minute.samples) for minute in minutes),
            target=Target(fixed=1300),
            remark=f"{anonymous:,.0f} MB of it no file's",
        ),
    ]


def _acknowledged(minutes: Sequence[Minute]) -> str:
    per_s = median(minute.acknowledged_per_s for minute in minutes)
    return f"{per_s:,.0f} a second got a 200"


def _all_stored(minutes: Sequence[Minute]) -> str:
    return f"all {sum(minute.events for minute in minutes):,} events are stored"


def _share(minutes: Sequence[Minute]) -> str:
    return f"{median(minute.generator_share for minute in minutes):.0%} of a core"
