"""CPU cost of ingestion, compared with the bare servers (Y1, Y4) and bare chDB (Y2).

Run: .venv/bin/python -m bench --only ingestion

All of them run at the same time and are driven in turn, each for some seconds with the same bodies.
The cost of the service is that of all its processes until everything is stored and they are idle.
"""

import tempfile
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from bench.baselines.chdb_inserts import BATCH_ROWS, BareInserter, extract_batch, run_bare_inserter
from bench.baselines.servers import Server, bare_bun, bare_python
from bench.load.bodies import BATCH, batch_bodies, single_bodies, with_event_ids
from bench.load.processes import measure_usage, wait_until_idle
from bench.load.target import LoadCost, TargetService, run_target
from bench.load.wrk import Load, WrkResult, check_wrk, run_wrk
from bench.report.measurements import Measurement, Threshold
from bench.scale import Scale

SINGLE_CONNECTIONS = 64
BATCH_CONNECTIONS = 16
END_TO_END_BATCH = "batch of 100 with ids: CPU of all processes for one event, to the stored row"
WITHOUT_IDS = "batch of 100 without ids: CPU of all processes for one event, to the stored row"
END_TO_END_SINGLE = "single event: CPU of all processes, to the stored row"
_GROUP = "taking events in"
_MAX_RATIO_WITHOUT_IDS, _MAX_RATIO_OF_IDS = 3, 1.25
NO_BUN = "no bun: npm could not install it"


class BareTurn(NamedTuple):
    """One turn of a bare server: CPU in µs per event."""

    result: WrkResult
    cpu_us: float


class Round(NamedTuple):
    """One turn of each contender. Every event of `batch_with_ids` has an id that is new.

    `inserted_us` is the CPU per event of bare chDB, for as many events as the batches contained.
    """

    y1_single: BareTurn
    y1_batch: BareTurn
    y4_single: BareTurn | None
    y4_batch: BareTurn | None
    single: LoadCost
    batch: LoadCost
    batch_with_ids: LoadCost
    inserted_us: float


class Testbed(NamedTuple):
    """Everything that runs at the same time."""

    target: TargetService
    y1: Server
    y4: Server | None
    y2: BareInserter
    folder: Path


def measure(scale: Scale) -> list[Measurement]:
    """Measure in rounds."""
    check_wrk()
    single = Load(tuple(single_bodies()), SINGLE_CONNECTIONS, scale.turn_s)
    batch = Load(tuple(batch_bodies()), BATCH_CONNECTIONS, scale.turn_s)
    with _testbed(scale, batch) as testbed:
        rounds = [_run_round(testbed, single, batch) for _ in range(scale.runs)]
    return [
        *_worker_measurements(rounds),
        *_end_to_end_measurements(rounds),
        *_throughput_measurements(rounds),
    ]


@contextmanager
def _testbed(scale: Scale, batch: Load) -> Generator[Testbed]:
    with tempfile.TemporaryDirectory(prefix="ingestion-", dir=scale.folder) as name:
        folder = Path(name)
        rows = _make_rows(folder, batch)
        with (
            run_target(folder) as target,
            bare_python() as y1,
            bare_bun() as y4,
            run_bare_inserter(folder / "bare" / "store", rows) as y2,
        ):
            yield Testbed(target, y1, y4, y2, folder)


def _make_rows(folder: Path, batch: Load) -> Path:
    """Have the service store events, and extract their rows for bare chDB."""
    with run_target(folder, name="first") as first:
        while first.count_stored() < BATCH_ROWS:
            first.run_load(batch, events_per_request=BATCH)
        store = first.service.data / "store"
    rows = folder / "rows.arrow"
    extract_batch(store, rows)
    return rows


def _run_round(testbed: Testbed, single: Load, batch: Load) -> Round:
    single_turn = testbed.target.run_load(single, events_per_request=1)
    batch_turn = testbed.target.run_load(batch, events_per_request=BATCH)
    with_ids = msgspec.structs.replace(batch, bodies=tuple(with_event_ids(batch.bodies)))
    return Round(
        y1_single=_run_bare(testbed.y1, single, testbed.folder, 1),
        y1_batch=_run_bare(testbed.y1, batch, testbed.folder, BATCH),
        y4_single=_run_bare(testbed.y4, single, testbed.folder, 1) if testbed.y4 else None,
        y4_batch=_run_bare(testbed.y4, batch, testbed.folder, BATCH) if testbed.y4 else None,
        single=single_turn,
        batch=batch_turn,
        batch_with_ids=testbed.target.run_load(with_ids, events_per_request=BATCH),
        inserted_us=_insert_bare(testbed.y2, batch_turn.events),
    )


def _run_bare(server: Server, load: Load, folder: Path, events_per_request: int) -> BareTurn:
    with measure_usage(server.pids) as usage:
        result = run_wrk(server.url, load, folder)
    return BareTurn(result, usage.cpu_s * 1e6 / (result.requests * events_per_request))


def _insert_bare(inserts: BareInserter, events: int) -> float:
    """Insert as many rows as the service did, so that they are merged equally often."""
    times = max(1, round(events / BATCH_ROWS))
    with measure_usage([inserts.pid]) as usage:
        inserts.insert(times)
        wait_until_idle([inserts.pid])
    return usage.cpu_s * 1e6 / (times * BATCH_ROWS)


def _worker_measurements(rounds: list[Round]) -> list[Measurement]:
    single = tuple(_worker_us(turns.single) for turns in rounds)
    batch = tuple(_worker_us(turns.batch) for turns in rounds)
    with_y1 = Measurement(
        group=_GROUP,
        title="single event: CPU of the worker",
        unit="µs",
        runs=single,
        baseline="Y1",
        baseline_runs=tuple(turns.y1_single.cpu_us for turns in rounds),
        threshold=Threshold(factor=1.6),
    )
    batch_with_y1 = msgspec.structs.replace(
        with_y1,
        title="batch of 100: CPU of the worker for one event",
        runs=batch,
        baseline_runs=tuple(turns.y1_batch.cpu_us for turns in rounds),
        threshold=Threshold(factor=3),
    )
    return [
        with_y1,
        _compare_with_bun(with_y1, [turns.y4_single for turns in rounds]),
        batch_with_y1,
        _compare_with_bun(batch_with_y1, [turns.y4_batch for turns in rounds]),
    ]


def _compare_with_bun(measurement: Measurement, turns: Sequence[BareTurn | None]) -> Measurement:
    found = tuple(turn.cpu_us for turn in turns if turn is not None)
    compared = msgspec.structs.replace(
        measurement, baseline="Y4", baseline_runs=found, threshold=None
    )
    return compared if found else msgspec.structs.replace(compared, skip_reason=NO_BUN)


def _end_to_end_measurements(rounds: list[Round]) -> list[Measurement]:
    inserted = tuple(turns.inserted_us for turns in rounds)
    batch = Measurement(
        group=_GROUP,
        title=END_TO_END_BATCH,
        unit="µs",
        runs=tuple(_total_us(turns.batch_with_ids) for turns in rounds),
        baseline="Y2",
        baseline_runs=inserted,
        threshold=Threshold(factor=_MAX_RATIO_WITHOUT_IDS * _MAX_RATIO_OF_IDS),
        remark=f"{_stored_remark(turns.batch_with_ids for turns in rounds)}; the ledger remembers "
        "the ids for seven days; Y2 inserted rows without them, and the merges of both count",
    )
    without_ids = msgspec.structs.replace(
        batch,
        title=WITHOUT_IDS,
        runs=tuple(_total_us(turns.batch) for turns in rounds),
        threshold=Threshold(factor=_MAX_RATIO_WITHOUT_IDS),
        remark=f"{_stored_remark(turns.batch for turns in rounds)}; Y2 inserted as many rows, "
        "and the merges of both count",
    )
    single = msgspec.structs.replace(
        batch,
        title=END_TO_END_SINGLE,
        runs=tuple(_total_us(turns.single) for turns in rounds),
        threshold=Threshold(fixed=70),
        remark=_stored_remark(turns.single for turns in rounds),
    )
    return [batch, without_ids, single]


def _throughput_measurements(rounds: list[Round]) -> list[Measurement]:
    single = Measurement(
        group=_GROUP,
        title=f"single events over {SINGLE_CONNECTIONS} connections",
        unit="requests/s",
        runs=tuple(turns.single.result.per_s for turns in rounds),
        baseline="Y1",
        baseline_runs=tuple(turns.y1_single.result.per_s for turns in rounds),
        threshold=Threshold(fixed=12_000, at_least=True),
        remark=_generator_remark(turns.single for turns in rounds),
    )
    batch = msgspec.structs.replace(
        single,
        title=f"batches of 100 over {BATCH_CONNECTIONS} connections, a few seconds",
        unit="events/s",
        runs=tuple(turns.batch.result.per_s * BATCH for turns in rounds),
        baseline_runs=tuple(turns.y1_batch.result.per_s * BATCH for turns in rounds),
        threshold=None,
        remark=_generator_remark(turns.batch for turns in rounds),
    )
    return [single, batch]


def _worker_us(cost: LoadCost) -> float:
    return cost.worker_cpu_s * 1e6 / cost.events


def _total_us(cost: LoadCost) -> float:
    return cost.cpu_s * 1e6 / cost.events


def _stored_remark(costs: Iterable[LoadCost]) -> str:
    return f"all {sum(cost.events for cost in costs):,} events are stored"


def _generator_remark(costs: Iterable[LoadCost]) -> str:
    share = median(cost.result.generator_share for cost in costs)
    return f"wrk took {share:.0%} of a core"
