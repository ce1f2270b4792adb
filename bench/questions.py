"""The ten questions over HTTP beside hand-written SQL in the bare engine (Y3), and as data grows.

Run: .venv/bin/python -m bench --only questions

The service answers on the data set, the bare engine on a copy of its store (`cp -a`): both hold the
same parts, and one directory cannot be open twice. They are asked in turn, and their rows are
compared each time. The cache of answers is off, and what it gives is a figure of its own.
"""

import http.client
import math
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.bare_engine import BareEngine
from bench.dataset import Dataset, provide
from bench.figures import TIMES, Figure, Target
from bench.processes import pids_of, spending
from bench.question_list import QUESTIONS, Days, Question
from bench.scale import Scale
from tests.e2e.service import Service

MONTH = Days("2026-03-01", "2026-03-31", "2026-04-01")
FIRST_WEEK = Days("2026-01-01", "2026-01-08", "2026-01-09")
WARM_UPS = 2
TARGET = Target(factor=1.15, fixed=3.0)
NO_CACHE = {"HEADRACE_QUERY_CACHE_BYTES": "0"}
GROWTH_TARGET = Target(factor=1.3)

Rows = list[list[Any]]


class Asked(NamedTuple):
    """How long an answer took, on what CPU, and its rows in the order of the question's columns."""

    ms: float
    cpu_s: float
    rows: Rows


class OverHttp:
    """Asks a running service about one website, over one connection that is kept."""

    def __init__(self, service: Service, dataset: Dataset) -> None:
        self._pids = pids_of(service)
        self._connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
        self._path = f"/v1/query/custom?website_id={dataset.websites[0]}"
        self._headers = {
            "Authorization": f"Bearer {dataset.key}",
            "Content-Type": "application/json",
        }

    def ask(self, question: Question, days: Days) -> Asked:
        """Ask one question, which must be answered."""
        body = msgspec.json.encode(question.body(days))
        with spending(self._pids) as spent:
            self._connection.request("POST", self._path, body, self._headers)
            reply = self._connection.getresponse()
            answer = reply.read()
        assert reply.status == 200, f"{question.name}: {answer.decode()}"
        found = msgspec.json.decode(answer)["data"]
        return Asked(
            spent.wall_s * 1e3,
            spent.cpu_s,
            [[row[name] for name in question.columns] for row in found],
        )


class InEngine:
    """Asks the bare engine the same in hand-written SQL."""

    def __init__(self, engine: BareEngine, dataset: Dataset) -> None:
        self._engine = engine
        self._website = dataset.websites[0]

    def ask(self, question: Question, days: Days) -> Asked:
        """Ask one question."""
        sql = question.statement(self._website, days)
        cpu_before_s, started_s = time.process_time(), time.perf_counter()
        answer = self._engine.query_bytes(sql)
        ms, cpu_s = (time.perf_counter() - started_s) * 1e3, time.process_time() - cpu_before_s
        return Asked(ms, cpu_s, msgspec.json.Decoder(list[Any]).decode_lines(answer))


@contextmanager
def serving(dataset: Dataset, settings: Mapping[str, str] = NO_CACHE) -> Generator[Service]:
    """Run the real service on a data set."""
    service = Service(Path(dataset.data), settings=settings).start()
    try:
        yield service
        service.stop()
    finally:
        service.kill()


@contextmanager
def copied_store(dataset: Dataset) -> Generator[BareEngine]:
    """Open a copy of a data set's store, links as links, that is removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="bare-", dir=Path(dataset.data).parent))
    try:
        subprocess.run(["cp", "-a", str(dataset.places.store), str(folder / "store")], check=True)
        engine = BareEngine(folder / "store")
        try:
            yield engine
        finally:
            engine.close()
    finally:
        shutil.rmtree(folder)


def measure(scale: Scale) -> list[Figure]:
    """Measure both data sets, and the growth from one to the other."""
    runs, small, big = scale.questions_runs, scale.small_events, scale.events
    return [
        *measure_questions(scale.folder, events=big, runs=runs),
        *measure_questions(scale.folder, events=small, runs=runs),
        *measure_growth(scale.folder, small=small, big=big, runs=runs),
        measure_cache(scale.folder, events=big),
    ]


def measure_questions(folder: Path, *, events: int, runs: int) -> list[Figure]:
    """Ask all questions about a month of the biggest website, in turn with the bare engine."""
    dataset = provide(folder, events=events)
    with serving(dataset) as service, copied_store(dataset) as engine:
        over_http, in_engine = OverHttp(service, dataset), InEngine(engine, dataset)
        return [
            _measure_pair(question, over_http, in_engine, runs=runs, events=events)
            for question in QUESTIONS
        ]


def _measure_pair(
    question: Question, over_http: OverHttp, in_engine: InEngine, *, runs: int, events: int
) -> Figure:
    pairs: list[tuple[Asked, Asked]] = []
    for _ in range(WARM_UPS + runs):
        ours, theirs = (
            over_http.ask(question, MONTH),
            in_engine.ask(question, MONTH),
        )
        compare_rows(question.name, ours.rows, theirs.rows)
        pairs.append((ours, theirs))
    counted = pairs[WARM_UPS:]
    cpu_ratio = sum(ours.cpu_s for ours, _ in counted) / sum(theirs.cpu_s for _, theirs in counted)
    return Figure(
        group=f"questions over {events:,} events",
        what=question.name,
        unit="ms",
        runs=tuple(ours.ms for ours, _ in counted),
        yardstick="Y3",
        yardstick_runs=tuple(theirs.ms for _, theirs in counted),
        target=TARGET,
        remark=f"CPU {cpu_ratio:.2f} {TIMES} Y3; {len(counted[0][0].rows):,} rows, equal",
    )


def measure_growth(folder: Path, *, small: int, big: int, runs: int) -> list[Figure]:
    """Ask about the first days when there were few events, and about the same days later."""
    sets = [provide(folder, events=events, all_events=big) for events in (small, big)]
    with serving(sets[0]) as before, serving(sets[1]) as after:
        askers = [OverHttp(before, sets[0]), OverHttp(after, sets[1])]
        return [
            _measure_growth_of(question, askers, runs=runs, small=small, big=big)
            for question in QUESTIONS
        ]


def _measure_growth_of(
    question: Question, askers: Sequence[OverHttp], *, runs: int, small: int, big: int
) -> Figure:
    taken: list[list[float]] = []
    for _ in range(WARM_UPS + runs):
        answers = [asker.ask(question, FIRST_WEEK) for asker in askers]
        compare_rows(question.name, answers[0].rows, answers[1].rows)
        taken.append([answer.ms for answer in answers])
    few, many = f"{small / 1e6:g} M", f"{big / 1e6:g} M"
    return Figure(
        group=f"the same eight days, as data grows from {few} to {many} events",
        what=question.name,
        unit="ms",
        runs=tuple(after for _, after in taken[WARM_UPS:]),
        yardstick=f"at {few}",
        yardstick_runs=tuple(before for before, _ in taken[WARM_UPS:]),
        target=GROWTH_TARGET,
    )


def measure_cache(folder: Path, *, events: int) -> Figure:
    """Ask each question twice with the cache on, and tell how long the second answer takes."""
    dataset = provide(folder, events=events)
    with serving(dataset, {}) as service:
        asker = OverHttp(service, dataset)
        first = [asker.ask(question, MONTH) for question in QUESTIONS]
        again = [asker.ask(question, MONTH) for question in QUESTIONS]
    return Figure(
        group="asked again, while nothing new of the website was stored",
        what="each of the ten questions over a month",
        unit="ms",
        runs=tuple(answer.ms for answer in again),
        yardstick="first",
        yardstick_runs=tuple(answer.ms for answer in first),
        remark="a run is a question; the answer comes from the cache",
    )


def compare_rows(name: str, ours: Rows, theirs: Rows) -> None:
    """Fail where two answers differ; sums of fractions may in their last digits."""
    assert len(ours) == len(theirs), f"{name}: {len(ours)} rows and {len(theirs)}"
    for mine, other in zip(ours, theirs, strict=True):
        assert len(mine) == len(other), f"{name}: {mine} and {other}"
        assert all(map(_are_equal, mine, other)), f"{name}: {mine} and {other}"


def _are_equal(mine: object, other: object) -> bool:
    if isinstance(mine, int | float) and isinstance(other, int | float):
        return math.isclose(mine, other, rel_tol=1e-9)
    return mine == other
