"""What it costs to take events in: CPU next to the bare servers (Y1, Y4) and the bare engine (Y2).

Run: .venv/bin/python -m bench --only ingestion
All of them are up at the same time and are driven in turn, each for some seconds with the same
bodies. The service's own cost is that of all its processes until everything is stored and at rest.
"""

import tempfile
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from bench.bare_inserts import BATCH_ROWS, BareInserts, bare_inserts, take_batch
from bench.bodies import BATCH, batch_bodies, single_bodies
from bench.figures import Figure, Target
from bench.processes import spending, wait_until_quiet
from bench.scale import Scale
from bench.subject import Subject, Whole, subject
from bench.wrk import Driven, Load, check_wrk, drive
from bench.yardsticks import Server, bare_bun, bare_python

SINGLE_CONNECTIONS = 64
BATCH_CONNECTIONS = 16
WHOLE_BATCH = "batch of 100: CPU of all processes for one event, to the stored row"
WHOLE_SINGLE = "single event: CPU of all processes, to the stored row"
_GROUP = "taking events in"
NO_BUN = "no bun: npm could not install it"


class Turn(NamedTuple):
    """One turn of a bare server: CPU in µs for one event."""

    driven: Driven
    cpu_us: float


class Round(NamedTuple):
    """One turn of everything.

    `inserted_us` is the bare engine's CPU for one event, for as many as the batches brought.
    """

    y1_single: Turn
    y1_batch: Turn
    y4_single: Turn | None
    y4_batch: Turn | None
    single: Whole
    batch: Whole
    inserted_us: float


class Arena(NamedTuple):
    """Everything that is up at the same time."""

    ours: Subject
    y1: Server
    y4: Server | None
    y2: BareInserts
    folder: Path


def measure(scale: Scale) -> list[Figure]:
    """Measure in rounds."""
    check_wrk()
    single = Load(tuple(single_bodies()), SINGLE_CONNECTIONS, scale.turn_s)
    batch = Load(tuple(batch_bodies()), BATCH_CONNECTIONS, scale.turn_s)
    with _arena(scale, batch) as arena:
        rounds = [_play(arena, single, batch) for _ in range(scale.runs)]
    return [*_worker_figures(rounds), *_whole_figures(rounds), *_speed_figures(rounds)]


@contextmanager
def _arena(scale: Scale, batch: Load) -> Generator[Arena]:
    with tempfile.TemporaryDirectory(prefix="ingestion-", dir=scale.folder) as name:
        folder = Path(name)
        rows = _make_rows(folder, batch)
        with (
            subject(folder) as ours,
            bare_python() as y1,
            bare_bun() as y4,
            bare_inserts(folder / "bare" / "store", rows) as y2,
        ):
            yield Arena(ours, y1, y4, y2, folder)


def _make_rows(folder: Path, batch: Load) -> Path:
    """Have the service itself store events, and take their rows for the bare engine."""
    with subject(folder, name="first") as first:
        while first.stored() < BATCH_ROWS:
            first.drive(batch, events_a_request=BATCH)
        store = first.service.data / "store"
    rows = folder / "rows.arrow"
    take_batch(store, rows)
    return rows


def _play(arena: Arena, single: Load, batch: Load) -> Round:
    single_turn = arena.ours.drive(single, events_a_request=1)
    batch_turn = arena.ours.drive(batch, events_a_request=BATCH)
    return Round(
        y1_single=_drive_bare(arena.y1, single, arena.folder, 1),
        y1_batch=_drive_bare(arena.y1, batch, arena.folder, BATCH),
        y4_single=_drive_bare(arena.y4, single, arena.folder, 1) if arena.y4 else None,
        y4_batch=_drive_bare(arena.y4, batch, arena.folder, BATCH) if arena.y4 else None,
        single=single_turn,
        batch=batch_turn,
        inserted_us=_insert_bare(arena.y2, batch_turn.events),
    )


def _drive_bare(server: Server, load: Load, folder: Path, events_a_request: int) -> Turn:
    with spending(server.pids) as spent:
        driven = drive(server.url, load, folder)
    return Turn(driven, spent.cpu_s * 1e6 / (driven.requests * events_a_request))


def _insert_bare(inserts: BareInserts, events: int) -> float:
    """Insert as many rows as the service had to: they are merged as often then."""
    times = max(1, round(events / BATCH_ROWS))
    with spending([inserts.pid]) as spent:
        inserts.insert(times)
        wait_until_quiet([inserts.pid])
    return spent.cpu_s * 1e6 / (times * BATCH_ROWS)


def _worker_figures(rounds: list[Round]) -> list[Figure]:
    single = tuple(_worker_us(turns.single) for turns in rounds)
    batch = tuple(_worker_us(turns.batch) for turns in rounds)
    with_y1 = Figure(
        group=_GROUP,
        what="single event: CPU of the worker",
        unit="µs",
        runs=single,
        yardstick="Y1",
        yardstick_runs=tuple(turns.y1_single.cpu_us for turns in rounds),
        target=Target(factor=1.6),
    )
    batch_with_y1 = msgspec.structs.replace(
        with_y1,
        what="batch of 100: CPU of the worker for one event",
        runs=batch,
        yardstick_runs=tuple(turns.y1_batch.cpu_us for turns in rounds),
        target=Target(factor=3),
    )
    return [
        with_y1,
        _beside_bun(with_y1, [turns.y4_single for turns in rounds]),
        batch_with_y1,
        _beside_bun(batch_with_y1, [turns.y4_batch for turns in rounds]),
    ]


def _beside_bun(figure: Figure, turns: Sequence[Turn | None]) -> Figure:
    found = tuple(turn.cpu_us for turn in turns if turn is not None)
    beside = msgspec.structs.replace(figure, yardstick="Y4", yardstick_runs=found, target=None)
    return beside if found else msgspec.structs.replace(beside, absent=NO_BUN)


def _whole_figures(rounds: list[Round]) -> list[Figure]:
    inserted = tuple(turns.inserted_us for turns in rounds)
    batch = Figure(
        group=_GROUP,
        what=WHOLE_BATCH,
        unit="µs",
        runs=tuple(_whole_us(turns.batch) for turns in rounds),
        yardstick="Y2",
        yardstick_runs=inserted,
        target=Target(factor=3),
        remark=f"{_counted(turns.batch for turns in rounds)}; Y2 inserted as many rows, and the "
        "merges of both count",
    )
    single = msgspec.structs.replace(
        batch,
        what=WHOLE_SINGLE,
        runs=tuple(_whole_us(turns.single) for turns in rounds),
        target=Target(fixed=70),
        remark=_counted(turns.single for turns in rounds),
    )
    return [batch, single]


def _speed_figures(rounds: list[Round]) -> list[Figure]:
    single = Figure(
        group=_GROUP,
        what=f"single events over {SINGLE_CONNECTIONS} connections",
        unit="requests/s",
        runs=tuple(turns.single.driven.per_s for turns in rounds),
        yardstick="Y1",
        yardstick_runs=tuple(turns.y1_single.driven.per_s for turns in rounds),
        target=Target(fixed=12_000, at_least=True),
        remark=_generator(turns.single for turns in rounds),
    )
    batch = msgspec.structs.replace(
        single,
        what=f"batches of 100 over {BATCH_CONNECTIONS} connections, a few seconds",
        unit="events/s",
        runs=tuple(turns.batch.driven.per_s * BATCH for turns in rounds),
        yardstick_runs=tuple(turns.y1_batch.driven.per_s * BATCH for turns in rounds),
        target=None,
        remark=_generator(turns.batch for turns in rounds),
    )
    return [single, batch]


def _worker_us(whole: Whole) -> float:
    return whole.worker_cpu_s * 1e6 / whole.events


def _whole_us(whole: Whole) -> float:
    return whole.cpu_s * 1e6 / whole.events


def _counted(wholes: Iterable[Whole]) -> str:
    return f"all {sum(whole.events for whole in wholes):,} events are stored"


def _generator(wholes: Iterable[Whole]) -> str:
    share = median(whole.driven.generator_share for whole in wholes)
    return f"wrk took {share:.0%} of a core"
