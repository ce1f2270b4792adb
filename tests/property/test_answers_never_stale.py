"""Whatever is acknowledged, stored and asked in whatever order: no answer lacks what it owes.

The model's rows are numbers: how many of a website are acknowledged, and how many are in the store.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from headrace.adapters.query_scheduler.coalescing_executor import SharedSelects
from headrace.adapters.query_scheduler.fair_semaphore import FairPlaces, PlaceBounds
from headrace.adapters.query_scheduler.key import Question
from headrace.adapters.query_scheduler.result_cache import AnswerCache
from headrace.adapters.query_scheduler.versions import DataVersions
from headrace.base.errors import StoreUnavailable
from headrace.base.telemetry import Metrics
from headrace.ports.store import QueryGuards

WEBSITES = ("a", "b")
GUARDS = QueryGuards(timeout_s=3600, max_memory_bytes=10**9)


class Asked(Struct):
    """One question: what it owes, and what had been answered to others before it was asked."""

    website: str
    acknowledged: int
    answered_before: int
    task: asyncio.Task[bytes]


class Run:
    """One run in the store: it looks at the rows at one moment and answers at a later one."""

    def __init__(self, website: str) -> None:
        self.website = website
        self.looks = asyncio.Event()
        self.answers = asyncio.Event()
        self.fails = False


class World:
    """Acknowledged rows, stored rows, a loader between them, and those who ask."""

    def __init__(self) -> None:
        self.acknowledged: Counter[str] = Counter()
        self.stored: Counter[str] = Counter()
        self.best_answer: Counter[str] = Counter()
        self.versions = DataVersions()
        self.asked: list[Asked] = []
        self.runs: list[Run] = []
        self._changing: ExitStack | None = None
        self._being_stored: Counter[str] = Counter()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self.selects = SharedSelects[bytes](
            places=FairPlaces(PlaceBounds(2, 100, 100), metrics=Metrics()),
            load_barrier=self._barrier,
            versions=self.versions,
            cache=AnswerCache(10**6),
            wait_timeout_s=3600,
            metrics=Metrics(),
        )

    def acknowledge(self, website: str) -> None:
        self.acknowledged[website] += 1

    def ask(self, website: str, sql: str) -> None:
        question = Question(website, sql, (), GUARDS)
        task = asyncio.create_task(self.selects.answer(question, lambda _: self._run(website)))
        self.asked.append(
            Asked(website, self.acknowledged[website], self.best_answer[website], task)
        )

    def hang_up(self, number: int) -> None:
        if self.asked:
            gone = self.asked.pop(number % len(self.asked))
            gone.task.cancel()

    def begin_batch(self, *, is_reopened: bool = False) -> None:
        if self._changing is None:
            self._being_stored = self.acknowledged - self.stored
            self._changing = ExitStack()
            self._changing.enter_context(self.versions.changing(set(self._being_stored)))
            if is_reopened:
                self._changing.enter_context(self.versions.changing_all())

    def store_batch(self) -> None:
        if self._changing is not None:
            self.stored += self._being_stored
            self._being_stored = Counter()
            self._wake()

    def end_batch(self) -> None:
        """End a batch, well or not: what was not stored is in the next one."""
        if self._changing is not None:
            self._changing.close()
            self._changing = None

    def load(self) -> None:
        self.begin_batch()
        self.store_batch()
        self.end_batch()

    def look(self, number: int) -> None:
        if self.runs:
            self.runs[number % len(self.runs)].looks.set()

    def finish(self, number: int) -> None:
        if self.runs:
            run = self.runs[number % len(self.runs)]
            run.looks.set()
            run.answers.set()

    def fail(self, number: int) -> None:
        if self.runs:
            self.runs[number % len(self.runs)].fails = True

    async def settle(self) -> None:
        """Let everything go on by itself, and check what was answered."""
        for _ in range(10):
            await asyncio.sleep(0)
        for one in [one for one in self.asked if one.task.done()]:
            self.asked.remove(one)
            if one.task.exception() is None:
                self._check(one, int(one.task.result()))

    async def end(self) -> None:
        """Store everything and let all runs end."""
        while self.asked:
            self.load()
            for run in self.runs:
                run.looks.set()
                run.answers.set()
            await self.settle()

    def _check(self, one: Asked, answer: int) -> None:
        assert answer >= one.acknowledged, "an acknowledged row is missing"
        assert answer >= one.answered_before, "a row that was seen before is missing"
        assert answer <= self.acknowledged[one.website]
        self.best_answer[one.website] = max(self.best_answer[one.website], answer)

    async def _barrier(self) -> None:
        woken = asyncio.get_running_loop().create_future()
        self._waiting.append((self.acknowledged.total(), woken))
        self._wake()
        await woken

    def _wake(self) -> None:
        """Wake who waits for what is stored, even before its batch has ended."""
        for wanted, woken in self._waiting:
            if wanted <= self.stored.total() and not woken.done():
                woken.set_result(None)

    async def _run(self, website: str) -> bytes:
        run = Run(website)
        self.runs.append(run)
        try:
            await run.looks.wait()
            seen = self.stored[website]
            await run.answers.wait()
        finally:
            self.runs.remove(run)
        if run.fails:
            raise StoreUnavailable("closed")
        return b"%d" % seen


Step = Callable[[World], None]

STEPS: Mapping[str, Step] = {
    "acknowledge a": lambda world: world.acknowledge("a"),
    "acknowledge b": lambda world: world.acknowledge("b"),
    "ask of a": lambda world: world.ask("a", "SELECT 1"),
    "ask of a again": lambda world: world.ask("a", "SELECT 1"),
    "ask more of a": lambda world: world.ask("a", "SELECT 2"),
    "ask of b": lambda world: world.ask("b", "SELECT 1"),
    "hang up first": lambda world: world.hang_up(0),
    "hang up last": lambda world: world.hang_up(-1),
    "begin batch": World.begin_batch,
    "begin batch and reopen": lambda world: world.begin_batch(is_reopened=True),
    "store batch": World.store_batch,
    "end batch": World.end_batch,
    "load": World.load,
    "load again": World.load,
    "look first": lambda world: world.look(0),
    "look last": lambda world: world.look(-1),
    "finish first": lambda world: world.finish(0),
    "finish last": lambda world: world.finish(-1),
    "fail first": lambda world: world.fail(0),
}
steps = st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.booleans()), min_size=30, max_size=80)


BEGUN_WITHIN_A_BATCH = [
    "ask of a",
    "ask more of a",
    "acknowledge a",
    "begin batch",
    "finish first",  # now the second question has its turn
    "finish first",
    "store batch",
    "ask more of a",
    "end batch",
    "ask more of a",
]
"""Chance finds this one seldom: a run that begins within a batch and looks before it is stored."""


@example(steps=[(name, True) for name in BEGUN_WITHIN_A_BATCH])
@example(steps=[(name, True) for name in ["acknowledge a", "load", *BEGUN_WITHIN_A_BATCH]])
@settings(deadline=None, max_examples=500, suppress_health_check=[HealthCheck.too_slow])
@given(steps=steps)
def test_every_answer_has_all_that_was_acknowledged_before_its_question(
    steps: list[tuple[str, bool]],
) -> None:
    async def live() -> None:
        world = World()
        for name, settles in steps:
            STEPS[name](world)
            if settles:
                await world.settle()
        await world.end()

    asyncio.run(live())
