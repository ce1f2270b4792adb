"""What each guarantee costs: the service with it beside the service without it.

Run: .venv/bin/python -m bench --only guarantees
There is no setting that takes a promise away. So fsync is measured on a file system in memory,
where it does nothing and writing costs nothing either; event ids by leaving them out; reading one's
own writes by asking just after an event and without one; exactness in the bare engine.
"""

import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench.bare_engine import BareEngine
from bench.bodies import BATCH, batch_bodies, single_bodies, with_event_ids
from bench.dataset import provide
from bench.figures import Figure, Target
from bench.half_load import paces, send_paced
from bench.ingestion import BATCH_CONNECTIONS, SINGLE_CONNECTIONS
from bench.question_list import QUESTIONS
from bench.questions import MONTH, NO_CACHE, copied_store
from bench.scale import Scale
from bench.subject import Subject, subject
from bench.wrk import Load, check_wrk
from tests.e2e.service import bearer

IN_MEMORY = Path("/dev/shm")
IN_MEMORY_BYTES = 2_000_000_000
QUESTIONS_A_RUN = 25
_GROUP = "what each guarantee costs (the yardstick is without it)"
_CPU = "CPU for one event in batches of 100, to the stored row"
_COUNT = {"table": "events", "selects": [{"field": "*", "aggregate": "count"}]}


def measure(scale: Scale) -> list[Figure]:
    """Measure all of them."""
    check_wrk()
    return [
        *_fsync_figures(scale),
        _event_id_figure(scale),
        _own_writes_figure(scale),
        _exactness_figure(scale),
    ]


def _fsync_figures(scale: Scale) -> list[Figure]:
    if not IN_MEMORY.is_dir() or shutil.disk_usage(IN_MEMORY).free < IN_MEMORY_BYTES:
        return [Figure(group=_GROUP, what="fsync", unit="", absent=f"no room in {IN_MEMORY}")]
    single = Load(tuple(single_bodies()), SINGLE_CONNECTIONS, scale.turn_s)
    batch = Load(tuple(batch_bodies()), BATCH_CONNECTIONS, scale.turn_s)
    with (
        tempfile.TemporaryDirectory(prefix="fsync-", dir=scale.folder) as on_disk,
        tempfile.TemporaryDirectory(prefix="headrace-", dir=IN_MEMORY) as in_memory,
        subject(Path(on_disk)) as with_fsync,
        subject(Path(in_memory)) as without,
    ):
        both, pace = (with_fsync, without), paces()[0]
        rounds = [
            [
                [one.drive(single, events_a_request=1).driven.per_s for one in both],
                [_cpu_us(one, batch) for one in both],
                [send_paced(one, pace, scale.turn_s).p50_ms for one in both],
            ]
            for _ in range(scale.runs)
        ]
    singles, batches, waits = zip(*rounds, strict=True)
    return [
        _beside("fsync: single events", "requests/s", singles),
        _beside(f"fsync: {_CPU}", "µs", batches),
        _beside(f"fsync: p50 of a 200, {pace.name}", "ms", waits),
    ]


def _event_id_figure(scale: Scale) -> Figure:
    bodies = batch_bodies()
    loads = [
        Load(tuple(chosen), BATCH_CONNECTIONS, scale.turn_s)
        for chosen in (with_event_ids(bodies), bodies)
    ]
    with (
        tempfile.TemporaryDirectory(prefix="ids-", dir=scale.folder) as folder,
        subject(Path(folder)) as ours,
    ):
        turns = [[_cpu_us(ours, load) for load in loads] for _ in range(scale.runs)]
    return _beside(
        f"eventIds: {_CPU}",
        "µs",
        turns,
        remark="every event has an id that is new; the ledger remembers seven days of them",
    )


def _cpu_us(ours: Subject, load: Load) -> float:
    whole = ours.drive(load, events_a_request=BATCH)
    return whole.cpu_s * 1e6 / whole.events


def _own_writes_figure(scale: Scale) -> Figure:
    with (
        tempfile.TemporaryDirectory(prefix="writes-", dir=scale.folder) as folder,
        subject(Path(folder), settings=NO_CACHE) as ours,
    ):
        send_paced(ours, paces()[1], scale.turn_s)
        turns = [
            [_ask_ms(ours, after_event=True), _ask_ms(ours, after_event=False)]
            for _ in range(scale.runs)
        ]
    return _beside(
        "reading one's own writes: a count just after an event",
        "ms",
        turns,
        target=Target(factor=1, fixed=50),
        remark=f"medians of {QUESTIONS_A_RUN} questions",
    )


def _ask_ms(ours: Subject, *, after_event: bool) -> float:
    waits_ms: list[float] = []
    for _ in range(QUESTIONS_A_RUN):
        if after_event:
            assert ours.service.post("/track", {"name": "x"}, headers=bearer(ours.key)).ok
        started_s = time.perf_counter()
        ours.service.answer(ours.website, _COUNT, key=ours.key)
        waits_ms.append((time.perf_counter() - started_s) * 1e3)
    return median(waits_ms)


def _exactness_figure(scale: Scale) -> Figure:
    dataset = provide(scale.folder, events=scale.events)
    pages = next(question for question in QUESTIONS if "uniqExactIf" in question.sql)
    exact = pages.statement(dataset.websites[0], MONTH)
    with copied_store(dataset) as engine:
        turns = [
            [_query_ms(engine, exact), _query_ms(engine, exact.replace("uniqExactIf", "uniqIf"))]
            for _ in range(scale.questions_runs)
        ]
    return _beside(f"exactness: {pages.name}, in the bare engine", "ms", turns)


def _query_ms(engine: BareEngine, sql: str) -> float:
    started_s = time.perf_counter()
    engine.query_bytes(sql)
    return (time.perf_counter() - started_s) * 1e3


def _beside(
    what: str,
    unit: str,
    turns: Sequence[Sequence[float]],
    *,
    target: Target | None = None,
    remark: str = "",
) -> Figure:
    return Figure(
        group=_GROUP,
        what=what,
        unit=unit,
        runs=tuple(turn[0] for turn in turns),
        yardstick="without",
        yardstick_runs=tuple(turn[1] for turn in turns),
        target=target,
        remark=remark,
    )
