"""A data directory moves to one server and to two shards, and all three answer ten questions.

The rows are compared each time. The shards share the cores of this machine with everything else, so
the ratio is what putting answers together costs, not what a second host gains.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from bench.cluster_place import SHARDS, Place, store_settings
from bench.cluster_scale import ClusterScale
from bench.dataset import Dataset, provide
from bench.figures import Figure
from bench.processes import pids_of, spending
from bench.question_list import QUESTIONS, Question
from bench.questions import MONTH, NO_CACHE, WARM_UPS, Asked, OverHttp, compare_rows, serving
from tests.clickhouse_fixture import ClickHouseServer
from tests.e2e.service import HEADRACE, Service, clean_environment

QUESTION_MS = "CPU of one question, mean of the ten, all processes"
DISK_BYTES = "disk for one event, its share of vitals and errors included"
MOVE_ROWS = "migrate-store to two shards, compared before and after"
_ONE = "one server"
_TABLES = ("events", "errors", "performance")
_MOVE_GROUP = "moving a machine's rows with migrate-store"


class Moved(NamedTuple):
    """A store that the rows were moved to, and what that took."""

    service: Service
    servers: Sequence[ClickHouseServer]
    database: str
    rows: int
    seconds: float
    memory_mb: float


class Turn(NamedTuple):
    """One question, asked of all three stores one after the other."""

    embedded: Asked
    one: Asked
    two: Asked


def measure(where: Place, scale: ClusterScale) -> list[Figure]:
    """Move the rows twice, and ask."""
    dataset = provide(where.datasets, events=scale.events)
    with ExitStack() as opened:
        one = opened.enter_context(_moved(where, dataset, shards=1))
        two = opened.enter_context(_moved(where, dataset, shards=SHARDS))
        embedded = opened.enter_context(serving(dataset))
        stores = (embedded, one.service, two.service)
        askers = [OverHttp(service, dataset) for service in stores]
        figures = [_question(one_of, askers, dataset, scale) for one_of in QUESTIONS]
        cpu_ms = [
            _cpu_ms(moved, asker) for moved, asker in zip((two, one), askers[:0:-1], strict=True)
        ]
    return [*figures, _cpu_figure(figures, *cpu_ms), *_move_figures(one, two)]


@contextmanager
def _moved(where: Place, dataset: Dataset, *, shards: int) -> Generator[Moved]:
    """Move a copy of the data set, and run the service on where its rows are then."""
    folder = Path(tempfile.mkdtemp(prefix=f"moved-{shards}-", dir=where.folder))
    data = folder / "data"
    subprocess.run(["cp", "-a", dataset.data, str(data)], check=True)
    servers = where.clickhouse.servers[:shards]
    settings = {**NO_CACHE, **store_settings(servers)}
    service = Service(data, settings=settings)
    try:
        rows, seconds, memory_mb = _move(data, settings["HEADRACE_STORE"])
        service.start()
        database = settings["HEADRACE_STORE"].partition("?")[0].rpartition("/")[2]
        yield Moved(service, servers, database, rows, seconds, memory_mb)
        service.stop()
    finally:
        service.kill()
        shutil.rmtree(folder)


def _move(data: Path, url: str) -> tuple[int, float, float]:
    """Return rows, seconds, and the megabytes that the command had at its most."""
    command = [HEADRACE, "migrate-store", "--to", "clickhouse", "--json", "--data", str(data)]
    with (data.parent / "moved.json").open("w+b") as printed:
        started_s = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=printed, env=clean_environment({"HEADRACE_STORE": url})
        )
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started_s
        process.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        told = msgspec.json.decode(printed.read())
    assert process.returncode == 0, told
    assert told["done"], told
    return told["copied"], seconds, used.ru_maxrss * 1024 / 1e6


def _question(
    question: Question, askers: Sequence[OverHttp], dataset: Dataset, scale: ClusterScale
) -> Figure:
    turns: list[Turn] = []
    for _ in range(WARM_UPS + scale.questions_runs):
        turn = Turn(*(asker.ask(question, MONTH) for asker in askers))
        compare_rows(question.name, turn.two.rows, turn.one.rows)
        compare_rows(question.name, turn.two.rows, turn.embedded.rows)
        turns.append(turn)
    counted = turns[WARM_UPS:]
    embedded_ms = median(turn.embedded.ms for turn in counted)
    return Figure(
        group=f"ten questions over {dataset.events:,} events: two shards beside one server",
        what=question.name,
        unit="ms",
        runs=tuple(turn.two.ms for turn in counted),
        yardstick=_ONE,
        yardstick_runs=tuple(turn.one.ms for turn in counted),
        remark=f"embedded store {embedded_ms:.0f} ms; {len(counted[0].two.rows):,} rows, equal",
    )


def _cpu_ms(moved: Moved, asker: OverHttp) -> float:
    pids = (*pids_of(moved.service), *(server.pid for server in moved.servers))
    with spending(pids) as spent:
        for question in QUESTIONS:
            asker.ask(question, MONTH)
    return spent.cpu_s * 1e3 / len(QUESTIONS)


def _cpu_figure(figures: Sequence[Figure], two_ms: float, one_ms: float) -> Figure:
    return Figure(
        group=figures[0].group,
        what=QUESTION_MS,
        unit="ms",
        runs=(two_ms,),
        yardstick=_ONE,
        yardstick_runs=(one_ms,),
    )


def _move_figures(one: Moved, two: Moved) -> list[Figure]:
    rows = Figure(
        group=_MOVE_GROUP,
        what=MOVE_ROWS,
        unit="rows/s",
        runs=(two.rows / two.seconds,),
        yardstick=_ONE,
        yardstick_runs=(one.rows / one.seconds,),
        remark=f"{two.rows:,} rows, counts and checksums equal",
    )
    memory = msgspec.structs.replace(
        rows,
        what="its memory at its most, pages of files included",
        unit="MB",
        runs=(two.memory_mb,),
        yardstick_runs=(one.memory_mb,),
        remark="",
    )
    disk = msgspec.structs.replace(
        memory,
        what=DISK_BYTES,
        unit="bytes",
        runs=(_disk_bytes(two),),
        yardstick_runs=(_disk_bytes(one),),
    )
    return [rows, memory, disk]


def _disk_bytes(moved: Moved) -> float:
    """Return the bytes of one event on disk, its share of vitals and errors included."""
    listed = ", ".join(f"'{table}'" for table in _TABLES)
    found = [
        server.execute(
            "SELECT sum(bytes_on_disk), sumIf(rows, table = 'events') FROM system.parts "
            f"WHERE active AND table IN ({listed}) AND startsWith(database, '{moved.database}')"
        ).split()
        for server in moved.servers
    ]
    return sum(float(size) for size, _ in found) / sum(float(events) for _, events in found)
