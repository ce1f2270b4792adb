"""A minute of batches as fast as they are taken, the loader keeping up, and the memory they take.

Run: .venv/bin/python -m bench --only sustained
What counts is what was stored in the minute: the events that got a 200, less what the log had more
in its backlog at the end than at the beginning.
"""

import tempfile
import threading
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.bodies import BATCH, batch_bodies
from bench.figures import Figure, Target
from bench.ingestion import BATCH_CONNECTIONS
from bench.processes import anonymous_mb, memory_mb
from bench.scale import Scale
from bench.subject import Subject, Whole, subject
from bench.wrk import Load, check_wrk

SAMPLE_EVERY_S = 1.0
_GROUP = "sustained load"


class Sample(NamedTuple):
    """One moment of the load."""

    backlog_bytes: float
    appended_bytes: float
    memory_mb: float
    anonymous_mb: float


class Minute(NamedTuple):
    """One run: what was driven, and its samples in order."""

    whole: Whole
    samples: list[Sample]

    @property
    def stored_per_s(self) -> float:
        """Events that were stored in a second of the load."""
        first, last = self.samples[0], self.samples[-1]
        growth = (last.backlog_bytes - first.backlog_bytes) / (
            last.appended_bytes - first.appended_bytes
        )
        return self.whole.driven.per_s * BATCH * (1 - growth)

    @property
    def backlog_s(self) -> float:
        """How long the backlog of the last third takes to come in."""
        seconds = (len(self.samples) - 1) * SAMPLE_EVERY_S
        per_s = (self.samples[-1].appended_bytes - self.samples[0].appended_bytes) / seconds
        late = self.samples[-max(1, len(self.samples) // 3) :]
        return median(sample.backlog_bytes for sample in late) / per_s


def measure(scale: Scale) -> list[Figure]:
    """Measure some runs on one directory."""
    check_wrk()
    load = Load(tuple(batch_bodies()), BATCH_CONNECTIONS, scale.sustained_s)
    with (
        tempfile.TemporaryDirectory(prefix="sustained-", dir=scale.folder) as folder,
        subject(Path(folder)) as ours,
    ):
        minutes = [_run(ours, load) for _ in range(scale.sustained_runs)]
    return _figures(minutes, scale)


def _run(ours: Subject, load: Load) -> Minute:
    samples, ended = list[Sample](), threading.Event()
    sampler = threading.Thread(target=_sample, args=(ours, samples, ended))
    sampler.start()
    try:
        whole = ours.drive(load, events_a_request=BATCH, on_sent=ended.set)
    finally:
        ended.set()
        sampler.join()
    return Minute(whole, samples)


def _sample(ours: Subject, samples: list[Sample], ended: threading.Event) -> None:
    while not ended.wait(SAMPLE_EVERY_S):
        samples.append(
            Sample(
                ours.metric("millrace_log_backlog_bytes"),
                ours.metric("millrace_log_appended_bytes_total"),
                memory_mb(ours.pids),
                anonymous_mb(ours.pids),
            )
        )


def _figures(minutes: list[Minute], scale: Scale) -> list[Figure]:
    share = median(minute.whole.driven.generator_share for minute in minutes)
    events = sum(minute.whole.events for minute in minutes)
    anonymous = max(sample.anonymous_mb for minute in minutes for sample in minute.samples)
    return [
        Figure(
            group=_GROUP,
            what=f"batches of 100, {scale.sustained_s} s, stored as they come",
            unit="events/s",
            runs=tuple(minute.stored_per_s for minute in minutes),
            target=Target(fixed=60_000, at_least=True),
            remark=f"all {events:,} events are stored; wrk took {share:.0%} of a core",
        ),
        Figure(
            group=_GROUP,
            what="backlog of the last third, as time in which it comes in",
            unit="s",
            runs=tuple(minute.backlog_s for minute in minutes),
            target=Target(fixed=3),
            remark="the loader gathers for up to a second",
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
